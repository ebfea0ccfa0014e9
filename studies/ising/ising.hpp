/// The Ising experiment: four cases, and how long and with what they are run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "studies/contestant.hpp"
#include "studies/experiment.hpp"

namespace poise::reproduction {

struct IsingCase {
  int number;
  const char* name;
  std::uint64_t burn_in;       ///< iterations, as published
  std::uint64_t window_start;  ///< iteration at which the published effective sample sizes begin: inside burn-in
  std::size_t lags;            ///< of the window
};

inline constexpr std::array<IsingCase, 4> kIsingCases = {{{1, "independent, noisy", 2000, 1000, 500},
                                                          {2, "independent, clean", 800, 400, 400},
                                                          {3, "dependent, noisy", 2000, 1000, 500},
                                                          {4, "dependent, clean", 800, 400, 100}}};

class IsingExperiment final : public ExperimentRun {
 public:
  explicit IsingExperiment(const ReproduceOptions& options);

  [[nodiscard]] nlohmann::json data() const override { return "generated"; }
  [[nodiscard]] std::size_t num_parts() const override { return kIsingCases.size() * contestants_.size(); }
  [[nodiscard]] Results compute(PartRunner& runner) const override;
  [[nodiscard]] std::vector<Verdict> judge(const Results& results) const override;
  [[nodiscard]] Document describe(const Results& results, const std::vector<Verdict>& verdicts) const override;

 private:
  [[nodiscard]] bool published() const { return options_.protocol == Protocol::published; }
  [[nodiscard]] nlohmann::json measure(const IsingCase& which, const Contestant& contestant,
                                       const StopFlag& stop) const;
  [[nodiscard]] ContestantRun make_chains(const IsingCase& which, const Contestant& contestant) const;
  /// The number of the noise of a chain's target.
  [[nodiscard]] std::uint64_t field_seed(std::size_t chain) const;
  [[nodiscard]] const nlohmann::json& result(const Results& results, const IsingCase& which,
                                             const std::string& key) const;

  void add_settings(Document& document) const;
  void add_tables(Document& document, const Results& results) const;
  void add_figures(Document& document, const Results& results) const;
  void add_burn_in(Document& document, const Results& results) const;
  void add_mixing(Document& document, const Results& results) const;

  ReproduceOptions options_;
  std::vector<Contestant> contestants_;
  std::size_t chains_ = 30;
  std::uint64_t sampling_ = 30000;      ///< steps after burn-in
  std::uint64_t fair_burn_in_ = 20000;  ///< of every sampler alike, learning included
};

/// The spec of a case with a field of its own.
[[nodiscard]] std::string ising_spec(const IsingCase& which, std::uint64_t seed);

}  // namespace poise::reproduction
