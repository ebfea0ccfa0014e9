/// The experiment on a restricted Boltzmann machine: training, ground truth, ten samplers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/rbm/rbm.hpp"
#include "studies/contestant.hpp"
#include "studies/distances.hpp"
#include "studies/estimate.hpp"
#include "studies/experiment.hpp"
#include "studies/images/idx.hpp"

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

class RbmExperiment final : public ExperimentRun {
 public:
  explicit RbmExperiment(const ReproduceOptions& options);

  [[nodiscard]] nlohmann::json data() const override;
  [[nodiscard]] std::size_t num_parts() const override { return 1 + truth_parts_ + contestants_.size(); }
  [[nodiscard]] Results compute(PartRunner& runner) const override;
  [[nodiscard]] std::vector<Verdict> judge(const Results& results) const override;
  [[nodiscard]] Document describe(const Results& results, const std::vector<Verdict>& verdicts) const override;

 private:
  [[nodiscard]] bool published() const { return options_.protocol == Protocol::published; }
  [[nodiscard]] nlohmann::json draw_truth(const std::shared_ptr<const Rbm>& rbm, std::size_t part,
                                          const StopFlag& stop) const;
  [[nodiscard]] nlohmann::json measure(const std::shared_ptr<const Rbm>& rbm, const Contestant& contestant,
                                       const GroundTruth& truth, const StopFlag& stop) const;
  [[nodiscard]] GroundTruth gather_truth(const Results& results) const;
  [[nodiscard]] const Contestant& contestant(const std::string& key) const;

  /// Effective sample sizes by chain: the median over the reference draws of each.
  [[nodiscard]] static Estimate median_ess(const nlohmann::json& result);

  /// MMD^2 to the ground truth, mean over the looks in burn-in: the lower, the faster the chains have arrived.
  [[nodiscard]] static Estimate early_discrepancy(const nlohmann::json& result);
  /// The discrepancy of exact draws, as many as there are chains: the least that the discrepancy can be for long.
  [[nodiscard]] double least_discrepancy(const Results& results) const;

  void add_settings(Document& document, const Results& results) const;
  void add_tables(Document& document, const Results& results) const;
  void add_comparison(Document& document, const Results& results, const std::vector<std::string>& keys,
                      const std::string& figure) const;

  ReproduceOptions options_;
  IdxImages images_;
  std::string data_name_;
  std::vector<Contestant> contestants_;
  Index hidden_ = 250;
  std::size_t chains_ = 16;
  std::uint64_t burn_in_ = 24000;
  std::uint64_t sampling_ = 96000;
  std::uint64_t every_ = 500;  ///< steps between looks at the discrepancy
  std::size_t truth_ = 500;    ///< reference draws
  std::size_t truth_parts_ = 10;
  std::uint64_t truth_steps_ = 10000;  ///< of the RBM's own Gibbs before each of them
};

}  // namespace poise::reproduction
