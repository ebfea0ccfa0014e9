/// The DISCS benchmark: its models, the samplers that are compared on them, and the chains of one on one model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/model.hpp>
#include <poise/types.hpp>
#include "studies/contestant.hpp"
#include "studies/estimate.hpp"
#include "studies/experiment.hpp"
#include "studies/images/idx.hpp"
#include "studies/reproduce.hpp"

namespace poise::reproduction {

struct DiscsCase {
  std::string key;
  std::string label;
  std::string model;        ///< its spec; empty for an RBM
  Index hidden = 0;         ///< units of an RBM
  std::uint64_t steps;      ///< of samplers that change many variables a step
  std::uint64_t sweeps;     ///< of all others
  std::uint64_t tried = 0;  ///< steps at each step length of a grid; 0: a quarter of `steps`
  double coupling = 0.0;    ///< of the sweep of couplings; 0 elsewhere
  [[nodiscard]] bool in_sweep() const { return coupling > 0.0; }
};

/// What a step of a sampler is.
enum class Pace {
  change,  ///< one variable, chosen among all
  sweep,   ///< all variables in turn, or layer by layer
  many,    ///< many variables at once
  chosen   ///< that of the sampler that is chosen
};

struct DiscsSampler {
  Contestant contestant;  ///< its spec is without step length where there is a grid of them
  Pace pace = Pace::change;
  std::string length = {};        ///< the key of the step length
  std::vector<double> grid = {};  ///< step lengths to try; empty: none, or tuned by the sampler itself
  bool in_sweep = false;          ///< whether it takes part in the sweep of couplings
  bool rbm_only = false;
  [[nodiscard]] bool has_grid() const { return !grid.empty(); }
  /// A fixed function, and a step length that is given.
  [[nodiscard]] std::string with_length(double value) const;
};

/// The critical coupling of the square lattice, log(1 + sqrt 2) / 2.
inline constexpr double kCriticalCoupling = 0.44068679350977147;

/// Chains whose R-hat of log p is larger do not know log p yet, and their effective sample size means little.
inline constexpr double kAgree = 1.05;

[[nodiscard]] std::vector<DiscsCase> discs_cases(Effort effort, std::uint64_t seed);
[[nodiscard]] std::vector<DiscsSampler> discs_samplers(Effort effort);

struct DiscsPlan {
  std::size_t chains = 16;
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;
  std::uint64_t start_sweeps = 200;  ///< of Gibbs, from which all samplers begin
  bool ordered = false;              ///< whether Gibbs itself begins with all variables alike
  std::uint64_t thin = 1;            ///< steps per draw; 0: a sweep
  std::size_t draws = 1000;
  std::optional<std::size_t> warmup = std::nullopt;  ///< in draws; none: what the sampler needs
  double timing = 0.0;  ///< seconds for which steps are timed at least, where their number comes from them
};

/// Keys: sampler and chosen (specs), ess_per_step (of log p, per chain: mean, sd, chains), evaluations_per_step,
/// acceptance_rate, r_hat, steps (of a chain), warmup_steps, seconds {total,
/// per_step of all chains}.
///
/// An evaluation is one look at the whole state: its gradient, or as many ratios as there are moves.
[[nodiscard]] nlohmann::json sample_discs(const Model& model, const std::string& sampler, const DiscsPlan& plan,
                                          const StopFlag& stop);

/// Effective samples of log p per step of a chain, as an estimate over chains.
[[nodiscard]] Estimate ess_per_step(const nlohmann::json& result);

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
