/// The UAI experiment: two networks of a hundred variables with evidence.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/network.hpp>
#include "studies/contestant.hpp"
#include "studies/estimate.hpp"
#include "studies/experiment.hpp"

namespace poise::reproduction {

struct UaiProblem {
  std::string name;
  std::shared_ptr<const Network> without_evidence;
  std::shared_ptr<const Network> network;  ///< with its evidence
  nlohmann::json fingerprint;              ///< tells this network from any other
};

/// BN_1 and BN_8, the paper's MN 1 and MN 2, with their evidence (BN_1.uai.evid) from a directory. Throws InputError.
[[nodiscard]] std::array<UaiProblem, 2> read_uai_problems(const std::string& directory);

/// Bayesian networks of the same size: a hundred binary variables, as many with as many parents, as many observed (at
/// values that a draw from the network has). Four in five rows of the tables are near-deterministic.
[[nodiscard]] std::array<UaiProblem, 2> generate_uai_problems(std::uint64_t seed);

class UaiExperiment final : public ExperimentRun {
 public:
  explicit UaiExperiment(const ReproduceOptions& options);

  [[nodiscard]] nlohmann::json data() const override;
  [[nodiscard]] std::size_t num_parts() const override;
  [[nodiscard]] Results compute(PartRunner& runner) const override;
  [[nodiscard]] std::vector<Verdict> judge(const Results& results) const override;
  [[nodiscard]] Document describe(const Results& results, const std::vector<Verdict>& verdicts) const override;

 private:
  using Starts = std::vector<std::vector<Value>>;
  [[nodiscard]] bool published() const { return options_.protocol == Protocol::published; }
  /// Whether a contestant samples evidence variables too, as the fixed ones do in the published runs.
  [[nodiscard]] bool ignores_evidence(const Contestant& contestant) const;
  [[nodiscard]] Model model_of(const UaiProblem& problem, const Contestant& contestant) const;
  [[nodiscard]] Starts first_starts(const UaiProblem& problem, const Model& model) const;
  [[nodiscard]] nlohmann::json measure(const UaiProblem& problem, const Contestant& contestant,
                                       const std::vector<double>& exact, const StopFlag& stop) const;
  [[nodiscard]] const nlohmann::json& result(const Results& results, std::size_t network, const std::string& key) const;
  [[nodiscard]] std::vector<Contestant> in_tables() const;
  [[nodiscard]] std::string name_of(std::size_t network) const;
  /// Evaluations of the target that every sampler had made on a network by the end of its run.
  [[nodiscard]] double common_evals(const Results& results, std::size_t network) const;
  /// Mean error of a chain's marginals by then.
  [[nodiscard]] Estimate marginal_error(const Results& results, std::size_t network, const std::string& key) const;

  void add_settings(Document& document) const;
  void add_tables(Document& document, const Results& results) const;
  void add_curves(Document& document, const Results& results) const;
  void add_functions(Document& document, const Results& results) const;

  ReproduceOptions options_;
  std::array<UaiProblem, 2> problems_;
  std::vector<Contestant> contestants_;
  std::size_t chains_ = 20;
  std::uint64_t burn_in_ = 5000;     ///< iterations
  std::uint64_t learning_ = 500;     ///< iterations of the paper's schedule
  std::uint64_t window_ = 10000;     ///< steps that the effective sample sizes are made from
  std::uint64_t sampling_ = 100000;  ///< steps that marginals are counted in
};

inline constexpr std::size_t kUaiLags = 400;

}  // namespace poise::reproduction
