/// An RBM that an experiment trains itself, as a part that is kept.
#pragma once

#include <cstdint>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/image/idx.hpp"
#include "models/rbm/rbm.hpp"

#include "studies/parts.hpp"

namespace poise::reproduction {

struct TrainingPlan {
  const IdxImages& images;
  Index hidden = 0;
  std::uint64_t seed = 1;
  unsigned threads = 1;  ///< what is learned does not depend on it
};

/// One epoch of CD-10 on the images in black and white: weights, reconstruction_error, pseudo_log_likelihood, seconds.
[[nodiscard]] nlohmann::json train_rbm(const TrainingPlan& plan, const StopFlag& stop);

/// The RBM of such a result.
[[nodiscard]] std::shared_ptr<const Rbm> trained_rbm(const nlohmann::json& result);

}  // namespace poise::reproduction
