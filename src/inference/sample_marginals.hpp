/// Marginals by sampling, for the choice in marginals.cpp.
#pragma once

#include <chrono>

#include <poise/marginals.hpp>
#include "base/thread_pool.hpp"
#include "inference/joint.hpp"

namespace poise::marginals_parts {

struct SamplingTask {
  std::shared_ptr<const Network> network;
  Clock::time_point deadline;
  const JointQuery* query = nullptr;  ///< a joint distribution that draws are to give, where they can
  std::vector<Index> variables = {};  ///< those of the whole network that `network` has; empty: all
};

/// Fills the answer by sampling.
void sample_marginals(const SamplingTask& task, const MarginalsOptions& options, const MarginalsHooks& hooks,
                      MarginalsAnswer& answer);

}  // namespace poise::marginals_parts
