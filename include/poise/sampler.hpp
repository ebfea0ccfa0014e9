/// A sampler by name: what `--sampler lsb:objective=entropy` stands for, as plain settings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>

namespace poise {

class LearnedFunction;

/// A balancing function g: one of the fixed ones, or a table that was learned.
enum class FunctionKind { sqrt, barker, min, max, table };

/// What a learned function maximises (poise/extend/learning/learning_objective.hpp).
enum class LearningObjectiveKind { variance, entropy, mi, mi_bound };

/// First-order optimisers of the learning objective.
enum class OptimizerKind { adam, sgd };

/// How a balancing function is learned.
struct LearnOptions {
  LearningObjectiveKind objective = LearningObjectiveKind::variance;
  OptimizerKind optimizer = OptimizerKind::adam;
  double rate = 0.01;
  double ridge = 0.02;  ///< weight of the penalty on the steepness of log g
};

/// How a balancing function is had: fixed, or learned as one of these.
enum class FunctionFamily { fixed, mixture, spline, mlp, monotone };

/// How the step length of proposals that change many variables is had: by hand, by the objective of learning, or such
/// that acceptance has a given rate.
enum class StepTuning { fixed, objective, acceptance };

/// What samplers read from their specs. Each row of the registry (run/samplers.hpp) says which of these it takes.
struct SamplerSettings {
  FunctionFamily family = FunctionFamily::fixed;
  FunctionKind function = FunctionKind::sqrt;  ///< fixed, or what a network is first fitted to
  /// Learns from the first step, at every step, as the paper does, instead of near stationarity.
  bool paper_schedule = false;
  LearnOptions learn;
  int hidden = 10;  ///< units of the MLP
  int blocks = 20;  ///< of the monotone network
  int units = 20;
  bool first_order = false;  ///< ratios from one gradient instead of exact ones
  Index block = 1;           ///< variables that a block kernel changes at once
  unsigned radius = 1;       ///< of the Hamming ball; of paths: their mean length
  bool many = false;         ///< changes many variables a step
  double level = 0.0;        ///< log of the step length of proposals that do; where it is tuned, at first
  double most_level = 14.0;  ///< that tuning may find
  StepTuning tuning = StepTuning::fixed;
  double acceptance = 0.574;   ///< that the step length is to have, by StepTuning::acceptance
  std::uint64_t clusters = 0;  ///< that a step of Wolff's makes; 0: as many as warm-up finds
  double elsewhere = 1.0;      ///< flips of weighted Gibbs that go anywhere, a unit of time
  double memory = 4.0;         ///< GiB that the tables of the exact sampler may take
  unsigned collapse = 12;      ///< log2 of the entries that tables of a collapsed network may have; 0: not collapsed
};

class OwnKernel;

/// A sampler and its settings. `parse_sampler` makes one from its name.
struct Sampler {
  std::string name = "auto";  ///< the spec as given
  std::size_t row = 0;        ///< in the registry; beyond it for your own kernel
  SamplerSettings settings;   ///< of `temper`: also those of the sampler inside
  /// What `temper` is put around; empty where it is not named, and for all other samplers.
  std::shared_ptr<const Sampler> of = nullptr;
  /// Your own kernel (extend/engines/own_kernel.hpp), which no name in a spec stands for.
  std::shared_ptr<const OwnKernel> own = nullptr;

  /// Whether there is anything to find out in warm-up: a function, or a step length.
  [[nodiscard]] bool learns() const {
    return settings.family != FunctionFamily::fixed || settings.tuning != StepTuning::fixed;
  }
  /// Whether its chains are ladders.
  [[nodiscard]] bool tempers() const;
  /// The function to learn, at its starting point; where steps change many variables, with a level.
  [[nodiscard]] std::unique_ptr<LearnedFunction> make_function(double level = 0.0) const;
};

/// Reads a sampler spec; throws InputError with the nearest name where a word is unknown.
Sampler parse_sampler(const std::string& text);

/// The samplers there are.
const std::vector<NameHelp>& sampler_help();

/// What the sampler `auto` chose, and why.
struct Choice {
  std::string sampler;     ///< that the run is made with
  std::string reason;      ///< in one sentence
  std::uint64_t thin = 0;  ///< steps per draw that were chosen with it; 0 where the usual ones are

  template <class A>
  void archive(A& archive) {
    archive(sampler, reason, thin);
  }
};

/// Keys: sampler, reason, and thin where it was chosen.
[[nodiscard]] nlohmann::json choice_json(const Choice& choice);
/// The other way; empty where the value is not such an object.
[[nodiscard]] std::optional<Choice> read_choice(const nlohmann::json& json);

}  // namespace poise
