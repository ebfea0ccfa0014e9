/// Default runs on large models, and the formula behind one of them.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "laws/checks.hpp"
#include "laws/large_models.hpp"

namespace poise::laws {

namespace {

/// They take some ten times as long as small ones.
constexpr std::uint64_t kEvery = 4;

/// Kaufman's formula where all states can be visited.
void check_formula(const Trial& trial, double coupling, Tally& tally) {
  constexpr Index side = 4;
  constexpr Index n = side * side;
  double sum = 0.0;
  for (Index x = 0; x < (1U << n); ++x) {
    int alike = 0;
    for (Index i = 0; i < n; ++i) {
      const Index right = i / side * side + (i + 1) % side;
      const Index below = (i + side) % n;
      alike += (((x >> i) ^ (x >> right)) & 1U) == 0 ? 1 : -1;
      alike += (((x >> i) ^ (x >> below)) & 1U) == 0 ? 1 : -1;
    }
    sum += std::exp(coupling * alike);
  }
  const double off = kaufman_log_partition(side, side, coupling) - std::log(sum);
  Checks& checks = tally.checks["Kaufman's formula"];
  ++checks.done;
  checks.worst = std::max(checks.worst, std::abs(off));
  if (std::abs(off) < 1e-10) return;
  ++checks.failed;
  trial.report(tally,
               {"Kaufman's formula", "large lattice", "no sampler", fmt::format("off by {}", off), trial.again("")});
}

}  // namespace

void check_large(const Trial& trial, Tally& tally) {
  if (trial.number % kEvery != 0) return;
  const std::uint64_t number = trial.number / kEvery;
  const LargeModel large = make_large_model(trial.seed, number);
  if (large.kind == "large lattice") check_formula(trial, 0.2 + 0.1 * static_cast<double>(number % 4), tally);
  // `auto` makes the draws of the sampler it chooses, which are not made twice.
  std::array<std::string, 2> used;
  const auto attempt = [&](const std::string& sampler, Start start) {
    std::string& drawn_by = used[start == Start::uniform ? 0 : 1];
    if (!trial.wants(sampler) || drawn_by == sampler || !takes(large.model, sampler)) return;
    drawn_by = try_run(trial, large.model, large.known, {"large", large.kind, sampler, start}, tally).used;
  };
  attempt("auto", Start::uniform);
  attempt("auto", Start::dispersed);
  const std::array<const char*, 6> others = {"gibbs", "temper", "wolff", "lsb", "dlmc", "sw"};
  attempt(others[number / 5 % others.size()], number % 2 == 0 ? Start::uniform : Start::dispersed);
}

}  // namespace poise::laws
