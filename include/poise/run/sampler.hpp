/// A sampler by name: what `--sampler lsb:objective=entropy` stands for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <poise/adapt/learner.hpp>
#include <poise/spec.hpp>

namespace poise {

struct Sampler {
  enum class Kind { locally_balanced, gibbs };
  enum class Family { fixed, mixture, spline, mlp, monotone };
  /// two_phase approaches with sqrt and then learns near stationarity; paper learns from the first step, at every step.
  enum class Schedule { two_phase, paper };

  Kind kind = Kind::locally_balanced;
  Family family = Family::spline;
  Balance::Rule rule = Balance::Rule::sqrt;  ///< of a fixed sampler; what a network is first fitted to
  Schedule schedule = Schedule::two_phase;
  LearnOptions learn;
  int hidden = 10;  ///< units of the MLP
  int blocks = 20;  ///< of the monotone network
  int units = 20;
  std::string name = "lsb";  ///< the spec as given

  [[nodiscard]] bool learns() const { return kind == Kind::locally_balanced && family != Family::fixed; }
  /// The rule to learn, at its starting point.
  [[nodiscard]] std::unique_ptr<LearnedRule> make_rule() const;
};

/// Reads a sampler spec; throws InputError with the nearest name where a word is unknown.
Sampler parse_sampler(const std::string& text);

/// The samplers there are, a line of help each.
struct SamplerHelp {
  std::string name;
  std::string help;
};
const std::vector<SamplerHelp>& sampler_help();

}  // namespace poise
