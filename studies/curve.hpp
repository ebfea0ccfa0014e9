/// What chains do in burn-in: a statistic and log p against iterations and against evaluations of the target.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/extend/engines/engine.hpp>

namespace poise::reproduction {

/// One number of a chain's present state.
using Statistic = std::function<double(const Engine&, std::size_t)>;

class CurveRecorder {
 public:
  struct Range {
    std::uint64_t every = 1;  ///< iterations between looks
    std::uint64_t until = 0;  ///< last iteration that is looked at
  };
  CurveRecorder(const Engine& engine, Statistic statistic, Range range);

  /// Takes the present state of a chain in, if it is time to. The first look is at iteration 0.
  void look(std::size_t chain, std::uint64_t iteration);

  /// step, evals (per chain), mean and error of the statistic over chains, mean and error of log_prob.
  [[nodiscard]] nlohmann::json curve() const;

  /// When each chain had made 95 % of its way in log p, from where it started to `finals`, its mean afterwards: in
  /// iterations (`steps`) and in evaluations (`evals`), linear between looks; null where it had not by the end.
  [[nodiscard]] nlohmann::json arrival(const std::vector<double>& finals) const;

 private:
  struct Look {
    double evals;
    double statistic;
    double log_prob;
  };
  const Engine& engine_;
  Statistic statistic_;
  Range range_;
  std::vector<std::vector<Look>> looks_;  // of each chain
};

}  // namespace poise::reproduction
