/// What the paper says of its experiment on a restricted Boltzmann machine, held against the numbers.
#include <cmath>

#include <fmt/format.h>

#include <poise/report/text.hpp>

#include "published.hpp"
#include "rbm.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

/// A claim that `a` is larger than `b`.
Holds larger(const Estimate& a, const Estimate& b) {
  return exceeds(a, b) ? Holds::yes : exceeds(b, a) ? Holds::no : Holds::open;
}

}  // namespace

std::vector<Verdict> RbmExperiment::judge(const Results& results) const {
  const auto steps = [&](const char* key) { return estimate_of(results.at(key)["arrival"]["steps"]); };
  const auto evals = [&](const char* key) { return estimate_of(results.at(key)["arrival"]["evals"]); };
  const auto ess = [&](const char* key) { return median_ess(results.at(key)); };
  const auto time = [&](const char* key) { return number(results.at(key)["seconds"]["per_step_of_all_chains"]); };
  std::vector<Verdict> verdicts;

  verdicts.push_back(
      {"FLSB 1 recovers the performance of GWG (Figure 4).",
       differ(steps("flsb1"), steps("gwg")) || differ(ess("flsb1"), ess("gwg")) ? Holds::no : Holds::yes,
       fmt::format(
           "Steps until 95 % of the way in units on: {} against {}; median effective sample size {} against {}.",
           text_of(steps("flsb1")), text_of(steps("gwg")), text_of(ess("flsb1")), text_of(ess("gwg")))});
  verdicts.push_back(
      {"FLSB 2 converges in fewer steps than GWG (Figure 4).", larger(steps("gwg"), steps("flsb2")),
       fmt::format("{} steps against {} until 95 % of the way in units on; in evaluations of the "
                   "target, those of learning included, {} against "
                   "{}. By MMD\u00b2: {} against {} steps.",
                   text_of(steps("flsb2")), text_of(steps("gwg")), text_of(evals("flsb2")), text_of(evals("gwg")),
                   plain(discrepancy_arrival(results, "flsb2")), plain(discrepancy_arrival(results, "gwg")))});
  const bool errors = ess("flsb2").count > 1;
  verdicts.push_back({"FLSB 2 has a larger effective sample size than GWG (Figure 4).",
                      errors ? larger(ess("flsb2"), ess("gwg")) : Holds::open,
                      fmt::format("Median {} against {}{}.", text_of(ess("flsb2")), text_of(ess("gwg")),
                                  errors ? "" : "; of one chain each, as published, so that no error can be given")});
  const double slower = time("flsb2") / time("gwg");
  verdicts.push_back(
      {"FLSB 2 pays for its network in time: a step costs much more than one of GWG.",
       slower > 1.5   ? Holds::yes
       : slower < 1.2 ? Holds::no
                      : Holds::open,
       fmt::format("{:.2f} times as much here, for a learned function is frozen into a table.", slower)});
  std::string wrong;
  for (const char* key : {"gibbs-2", "gibbs-4", "gibbs-10", "hb-10-1", "hb-10-2", "hb-10-3", "flsb2"}) {
    const double counted = number(results.at(key)["evals_per_step"]);
    const double paper = *published_rbm_evaluations(key);
    if (std::abs(counted - paper) > 0.005 * paper) {
      wrong += fmt::format("{}{}: {} counted, {} published", wrong.empty() ? "" : "; ", contestant(key).label,
                           plain(counted), plain(paper));
    }
  }
  verdicts.push_back({"Table 4 has the evaluations of the target per step.", wrong.empty() ? Holds::yes : Holds::no,
                      wrong.empty() ? "All as counted." : wrong + "."});
  std::string blocks;
  bool all_slower = true;
  for (const char* key : {"gibbs-2", "gibbs-4", "gibbs-10", "hb-10-1", "hb-10-2", "hb-10-3"}) {
    const Estimate other = evals(key);
    const bool arrived = std::isfinite(other.mean);
    all_slower = all_slower && (!arrived || exceeds(other, evals("flsb2")));
    blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", contestant(key).label,
                          arrived ? text_of(other) : "not within burn-in");
  }
  verdicts.push_back(
      {"FLSB 2 needs far fewer evaluations to converge than block Gibbs and Hamming balls (Figures 8, 9).",
       all_slower ? Holds::yes : Holds::open,
       fmt::format("{} evaluations with those of learning, against {}.", text_of(evals("flsb2")), blocks)});
  verdicts.push_back({"Ours: flsb mixes at least as well as GWG.",
                      errors ? (exceeds(ess("gwg"), ess("flsb")) ? Holds::no : Holds::yes) : Holds::open,
                      fmt::format("Median effective sample size {} against {}{}.", text_of(ess("flsb")),
                                  text_of(ess("gwg")), errors ? "" : "; of one chain each")});
  return verdicts;
}

}  // namespace poise::reproduction
