/// The experiment on variable selection: regressions on correlated columns, and samplers of their inclusion
/// probabilities.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/selection.hpp>
#include "models/selection/selection_problem.hpp"
#include "studies/contestant.hpp"
#include "studies/estimate.hpp"
#include "studies/experiment.hpp"

namespace poise::reproduction {

struct SelectCase {
  std::string key;
  std::string label;
  std::string about;  ///< a sentence
  std::shared_ptr<const SelectionProblem> problem;
  std::vector<Index> causes;  ///< variables with an effect, where they are known
  nlohmann::json fingerprint;
};

/// Regressions on simulated genotypes and on autoregressive columns.
[[nodiscard]] std::vector<SelectCase> simulate_select_cases(Effort effort, std::uint64_t seed);
/// Those of the .npz files of a directory: X and Y or y; XtX, Xty, yty and n; or z, R (or ldref) and n. Each column of
/// Y is a case. Throws InputError.
[[nodiscard]] std::vector<SelectCase> read_select_cases(const std::string& directory);

/// A sampler, and the settings of which its best is shown.
struct SelectSampler {
  Contestant contestant;
  std::vector<std::string> specs;    ///< that are tried
  std::vector<std::uint64_t> thins;  ///< steps between two looks at all probabilities, each with every spec
  /// Steps of a chain for as much work as a flip that looks at all odds. Steps of Gibbs are sweeps.
  double steps_per_flip = 1.0;
};
[[nodiscard]] std::vector<SelectSampler> select_samplers();

struct SelectPlan {
  std::size_t chains = 16;
  std::uint64_t seed = 1;
  std::uint64_t flips = 40000;      ///< of a chain, or as many steps as take about as long
  std::size_t reference_times = 8;  ///< how many times as long the chains of the reference are
};

/// Inclusion probabilities by long chains of wtgs with random numbers of their own. Keys: pip, pip_se, sets, included
/// (the mean number), warnings (how many), seconds.
[[nodiscard]] nlohmann::json reference_of(const SelectCase& which, const SelectPlan& plan, const StopFlag& stop);

struct SelectRun {
  std::string spec;
  std::uint64_t thin;
  std::uint64_t steps;
};
/// Keys: spec, thin, steps, warmup_steps, squares (of each chain: the sum over variables of the squared error of its
/// inclusion probabilities), slowest (effective samples of a chain for the uncertain variable that has the fewest),
/// farthest (the largest error of the mean over chains), curve {part, error}, r_hat, knots and log_phi of a learned
/// function, seconds {warmup, sampling} of all chains.
[[nodiscard]] nlohmann::json sample_select(const SelectCase& which, const SelectRun& run, const SelectPlan& plan,
                                           const std::vector<double>& reference, const StopFlag& stop);

class SelectExperiment final : public ExperimentRun {
 public:
  explicit SelectExperiment(const ReproduceOptions& options);

  [[nodiscard]] nlohmann::json data() const override;
  [[nodiscard]] std::size_t num_parts() const override;
  [[nodiscard]] Results compute(PartRunner& runner) const override;
  [[nodiscard]] std::vector<Verdict> judge(const Results& results) const override;
  [[nodiscard]] Document describe(const Results& results, const std::vector<Verdict>& verdicts) const override;

 private:
  /// What effective samples are counted in.
  enum class Per {
    second,   ///< of processor time, warm-up and learning included
    sampling  ///< of processor time after warm-up
  };
  [[nodiscard]] static std::string reference_key(const SelectCase& which) { return which.key + "-reference"; }
  [[nodiscard]] static std::string part_key(const SelectCase& which, const SelectSampler& sampler, std::size_t setting);
  /// The runs of a sampler, each with other settings.
  [[nodiscard]] std::vector<SelectRun> settings_of(const SelectSampler& sampler) const;
  /// The run with the settings that give the most effective samples per second.
  [[nodiscard]] const nlohmann::json& best_run(const Results& results, const SelectCase& which,
                                               const SelectSampler& sampler) const;
  [[nodiscard]] const SelectSampler& sampler(const std::string& key) const;
  /// Independent draws whose inclusion probabilities would be as far off as those of a chain: the sum over variables of
  /// P (1 - P), over the mean of the summed squared errors.
  [[nodiscard]] static Estimate ess(const nlohmann::json& reference, const nlohmann::json& run);
  [[nodiscard]] Estimate ess(const Results& results, const SelectCase& which, const std::string& key, Per per) const;
  [[nodiscard]] std::string fixed_best(const Results& results, const SelectCase& which) const;

  [[nodiscard]] Verdict ahead(const Results& results, const std::string& key, const std::string& rival) const;
  [[nodiscard]] Verdict best_of_all(const Results& results) const;
  [[nodiscard]] Verdict learning_gains(const Results& results) const;
  [[nodiscard]] Verdict same_answer(const Results& results) const;
  [[nodiscard]] Verdict causes_found(const Results& results) const;

  void add_settings(Document& document, const Results& results) const;
  void add_table(Document& document, const Results& results, Per per) const;
  void add_details(Document& document, const Results& results) const;
  void add_pictures(Document& document, const Results& results) const;
  void add_curves(Document& document, const Results& results) const;
  void add_functions(Document& document, const Results& results) const;

  ReproduceOptions options_;
  SelectPlan plan_;
  std::vector<SelectCase> cases_;
  std::vector<SelectSampler> samplers_;
};

}  // namespace poise::reproduction
