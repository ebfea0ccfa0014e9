/// A sampler by name: what `--sampler lsb:objective=entropy` stands for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <poise/adapt/learner.hpp>
#include <poise/spec.hpp>

namespace poise {

struct Sampler {
  enum class Kind { locally_balanced, gibbs, block_gibbs, hamming_ball, rbm_gibbs, exact };
  enum class Family { fixed, mixture, spline, mlp, monotone };
  /// two_phase approaches with sqrt and then learns near stationarity; paper learns from the first step, at every step.
  enum class Schedule { two_phase, paper };

  Kind kind = Kind::locally_balanced;
  Family family = Family::spline;
  BalancingFunction::Kind function =
      BalancingFunction::Kind::sqrt;  ///< of a fixed sampler; what a network is first fitted to
  Schedule schedule = Schedule::two_phase;
  LearnOptions learn;
  int hidden = 10;  ///< units of the MLP
  int blocks = 20;  ///< of the monotone network
  int units = 20;
  bool first_order = false;  ///< ratios from one gradient instead of exact ones
  Index block = 1;           ///< variables that a block kernel changes at once
  unsigned radius = 1;       ///< of the Hamming ball
  double memory = 4.0;       ///< GiB that the tables of the exact sampler may take
  std::string name = "lsb";  ///< the spec as given

  [[nodiscard]] bool learns() const { return kind == Kind::locally_balanced && family != Family::fixed; }
  /// The function to learn, at its starting point.
  [[nodiscard]] std::unique_ptr<LearnedFunction> make_function() const;
};

/// Reads a sampler spec; throws InputError with the nearest name where a word is unknown.
Sampler parse_sampler(const std::string& text);

/// A name that can be given on the command line, and a line of help.
struct NameHelp {
  std::string name;
  std::string help;
};
/// The samplers there are.
const std::vector<NameHelp>& sampler_help();

}  // namespace poise
