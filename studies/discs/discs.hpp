/// The experiment on the models of the DISCS benchmark: samplers that change one variable a step, and many.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/image/idx.hpp"

#include "studies/discs/discs_cases.hpp"
#include "studies/estimate.hpp"
#include "studies/experiment.hpp"

namespace poise::reproduction {

class DiscsExperiment final : public ExperimentRun {
 public:
  explicit DiscsExperiment(const ReproduceOptions& options);

  [[nodiscard]] nlohmann::json data() const override;
  [[nodiscard]] std::size_t num_parts() const override;
  [[nodiscard]] Results compute(PartRunner& runner) const override;
  [[nodiscard]] std::vector<Verdict> judge(const Results& results) const override;
  [[nodiscard]] Document describe(const Results& results, const std::vector<Verdict>& verdicts) const override;

 private:
  /// What is compared: effective samples of log p per this.
  enum class Per { step, evaluation, second };

  [[nodiscard]] bool takes_part(const DiscsSampler& sampler, const DiscsCase& which) const;
  [[nodiscard]] const DiscsSampler& sampler(const std::string& key) const;
  [[nodiscard]] std::vector<const DiscsCase*> main_cases() const;
  [[nodiscard]] std::vector<const DiscsCase*> sweep_cases() const;
  [[nodiscard]] static std::string part_key(const DiscsCase& which, const DiscsSampler& sampler,
                                            const char* ending = "");

  /// Null where a sampler does not take part.
  [[nodiscard]] const nlohmann::json* found(const Results& results, const DiscsCase& which,
                                            const std::string& key) const;
  /// Whether the chains of a sampler agree on log p.
  [[nodiscard]] bool agree(const Results& results, const DiscsCase& which, const std::string& key) const;
  /// NaN where a sampler does not take part.
  [[nodiscard]] Estimate ess(const Results& results, const DiscsCase& which, const std::string& key, Per per) const;
  /// The sampler with the most among those that `wanted` takes; empty where there is none.
  template <class Wanted>
  [[nodiscard]] std::string best(const Results& results, const DiscsCase& which, Per per, Wanted&& wanted) const {
    std::string out;
    double most = -1.0;
    for (const DiscsSampler& one : samplers_) {
      if (!wanted(one)) continue;
      const double mean = ess(results, which, one.contestant.key, per).mean;
      if (mean > most) {
        most = mean;
        out = one.contestant.key;
      }
    }
    return out;
  }

  [[nodiscard]] Verdict ahead_of_gwg(const Results& results, Per per) const;
  [[nodiscard]] Verdict function_by_coupling(const Results& results, const std::string& family) const;
  [[nodiscard]] Verdict learned_beside_best(const Results& results) const;
  [[nodiscard]] Verdict chosen_beside_best(const Results& results) const;
  [[nodiscard]] Verdict beside_published_code(const Results& results) const;

  void add_settings(Document& document, const Results& results) const;
  [[nodiscard]] std::string case_text(const DiscsCase& which, const Results& results) const;
  void add_table(Document& document, const Results& results, Per per) const;
  void add_details(Document& document, const Results& results) const;
  void add_grids(Document& document, const Results& results) const;
  void add_sweep(Document& document, const Results& results) const;
  void add_peer(Document& document, const Results& results) const;

  ReproduceOptions options_;
  IdxImages images_;
  std::string data_name_;
  std::vector<DiscsCase> cases_;
  std::vector<DiscsSampler> samplers_;
};

}  // namespace poise::reproduction
