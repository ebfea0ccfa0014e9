/// The checks that every model goes through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/run.hpp>
#include "laws/small_model.hpp"
#include "laws/tally.hpp"

namespace poise::laws {

/// A model under test, and what goes with it.
struct Trial {
  std::uint64_t seed = 1;    ///< of all models
  std::uint64_t number = 0;  ///< of this one
  std::string sampler;       ///< the only one to be tried; empty: all
  std::string program;       ///< path of `poise`; empty: it is not compared with the library
  bool by_the_clock = true;  ///< whether to make checks whose results depend on the speed of the machine
  const SmallModel* small = nullptr;
  const Truth* truth = nullptr;
  std::vector<std::string> samplers = {};  ///< that take the model and are to be tried

  /// Seed of the runs of this model.
  [[nodiscard]] std::uint64_t run_seed() const { return 1000003 * seed + number; }
  [[nodiscard]] bool wants(std::string_view name) const { return sampler.empty() || sampler == name; }
  /// A number that differs from model to model and from sampler to sampler: what is not done with all of them takes
  /// turns by it, alone or among others.
  [[nodiscard]] std::size_t turn(const std::string& name) const;
  /// The command that shows a failure again.
  [[nodiscard]] std::string again(const std::string& which) const;
  void report(Tally& tally, Finding finding) const;
};

/// All samplers by name, and settings of them that take other ways through the code.
[[nodiscard]] std::vector<std::string> all_samplers();
/// Whether the model takes the sampler.
[[nodiscard]] bool takes(const Model& model, const std::string& sampler);
/// Whether the name has no settings behind it.
[[nodiscard]] inline bool is_plain(const std::string& sampler) { return sampler.find(':') == std::string::npos; }

/// log p against its definition, exact marginals and every way to log Z.
void check_values(const Trial& trial, Tally& tally);
/// Chains from exact draws keep the law; where the distribution is nearly flat, chains from one state come to it.
void check_laws(const Trial& trial, Tally& tally);
/// Default runs: right or wrong, warned or silent, and their standard errors.
void check_runs(const Trial& trial, Tally& tally);
/// The same draws for any number of threads, resumed, made longer, chain by chain, and by the program.
void check_identities(const Trial& trial, Tally& tally);
/// Default runs on a large model with a known answer, beside one small model in five.
void check_large(const Trial& trial, Tally& tally);

/// States drawn with their probabilities, one after another.
[[nodiscard]] std::vector<Value> exact_draws(const Truth& truth, std::size_t count, std::uint64_t seed);

/// One run by defaults, judged and counted.
struct RunPlan {
  std::string way;
  std::string kind;
  std::string sampler;
  Start start = Start::uniform;
  bool exact_starts = false;  ///< from draws of the distribution; `given` holds them
  std::vector<Value> given = {};
  bool may_refuse = false;  ///< whether it is no failure that the model has no such run
};
struct RunOutcome {
  std::string used;  ///< the sampler that made the draws
  bool silent_wrong = false;
};
RunOutcome try_run(const Trial& trial, const Model& model, const Known& known, const RunPlan& plan, Tally& tally);

}  // namespace poise::laws
