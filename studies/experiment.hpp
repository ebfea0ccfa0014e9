/// What an experiment is made of: parts to compute, and a report made from their results.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "studies/reproduce.hpp"

#include "studies/document.hpp"
#include "studies/parts.hpp"

namespace poise::reproduction {

class ExperimentRun {
 public:
  virtual ~ExperimentRun() = default;
  /// What the results depend on besides options and version: the data.
  [[nodiscard]] virtual nlohmann::json data() const = 0;
  [[nodiscard]] virtual std::size_t num_parts() const = 0;
  /// Computes all parts, in as many rounds as depend on each other.
  [[nodiscard]] virtual Results compute(PartRunner& runner) const = 0;
  [[nodiscard]] virtual std::vector<Verdict> judge(const Results& results) const = 0;
  [[nodiscard]] virtual Document describe(const Results& results, const std::vector<Verdict>& verdicts) const = 0;
};

/// Each throws InputError where the data cannot be read.
[[nodiscard]] std::unique_ptr<ExperimentRun> make_ising_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_uai_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_rbm_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_discs_experiment(const ReproduceOptions& options);

/// "published protocol, full effort, seed 1": the line below the title of a report.
[[nodiscard]] std::string subtitle(const ReproduceOptions& options);

}  // namespace poise::reproduction
