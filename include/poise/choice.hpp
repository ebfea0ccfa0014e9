/// What the sampler `auto` chose, from which candidates, and why.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace poise {

/// What is known of a candidate when the choice is made. Unknown numbers are NaN.
struct CandidateScore {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string sampler;
  // Work before the first step, and of an evaluation of log p from scratch, a ratio, a gradient.
  double setup = 0.0;
  double target = 0.0;
  double ratio = 0.0;
  double gradient = 0.0;
  double run_work = 0.0;           ///< of the whole run by it, as far as can be said before
  double draws = 0.0;              ///< of all chains together, in that run
  double pilot_work = 0.0;         ///< that was spent on it
  double ess_per_draw = kUnknown;  ///< of the slowest of log p, the model's statistics and the variables
  std::string slowest;             ///< which of them that is
  double score = kUnknown;         ///< effective samples of the run per unit of its work
  double r_hat = kUnknown;         ///< how far the chains of the pilot disagree
  std::string verdict;             ///< what became of it, and why

  template <class A>
  void archive(A& archive) {
    archive(sampler, setup, target, ratio, gradient, run_work, draws, pilot_work, ess_per_draw, slowest, score, r_hat,
            verdict);
  }
};

struct Choice {
  std::string sampler;  ///< that the run is made with
  std::string reason;   ///< in one sentence
  std::string unit;     ///< of work: "ns" of one core, by the table of costs, or "rows" of user code
  double pilot_work = 0.0;
  std::vector<CandidateScore> candidates;  ///< best first

  template <class A>
  void archive(A& archive) {
    archive(sampler, reason, unit, pilot_work, candidates);
  }
};

/// Keys: sampler, reason, unit, pilot_work, candidates[{sampler, costs{setup, target, ratio, gradient}, run_work,
/// draws, pilot_work, ess_per_draw, slowest, score, r_hat, verdict}]. Unknown and infinite numbers are null.
[[nodiscard]] nlohmann::json choice_json(const Choice& choice);
/// The other way; empty where the value is not such an object. Anything may be missing.
[[nodiscard]] std::optional<Choice> read_choice(const nlohmann::json& json);

}  // namespace poise
