/// What the paper says of its experiment on a restricted Boltzmann machine, held against the numbers.
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

#include "studies/published.hpp"
#include "studies/rbm/rbm.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

/// A claim that `a` is larger than `b`.
Holds larger(const Estimate& a, const Estimate& b) {
  return exceeds(a, b) ? Holds::yes : exceeds(b, a) ? Holds::no : Holds::open;
}

}  // namespace

std::vector<Verdict> RbmExperiment::judge(const Results& results) const {
  const auto early = [&](const char* key) { return early_discrepancy(results.at(key)); };
  const auto ess = [&](const char* key) { return median_ess(results.at(key)); };
  const auto time = [&](const char* key) { return number(results.at(key)["seconds"]["per_step_of_all_chains"]); };
  const auto thousandfold = [&](const char* key) {
    const Estimate found = early(key);
    return text_of({1000.0 * found.mean, 1000.0 * found.sd, found.count});
  };
  std::vector<Verdict> verdicts;

  verdicts.push_back(
      {"FLSB 1 recovers the performance of GWG (Figure 4).",
       exceeds(early("flsb1"), early("gwg")) || exceeds(ess("gwg"), ess("flsb1")) ? Holds::no : Holds::yes,
       fmt::format("1000 MMD\u00b2, mean over burn-in: {} against {}; median effective sample size {} against {}.",
                   thousandfold("flsb1"), thousandfold("gwg"), text_of(ess("flsb1")), text_of(ess("gwg")))});
  verdicts.push_back(
      {"FLSB 2 converges in fewer steps than GWG (Figure 4).", larger(early("gwg"), early("flsb2")),
       fmt::format(
           "1000 MMD\u00b2, mean over burn-in: {} against {}. A step of burn-in costs {:.1f} evaluations of the "
           "target, those of learning included, against {:.1f}.",
           thousandfold("flsb2"), thousandfold("gwg"),
           number(results.at("flsb2")["evals_burn_in"]) / static_cast<double>(burn_in_),
           number(results.at("gwg")["evals_burn_in"]) / static_cast<double>(burn_in_))});
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
  std::size_t slower_ones = 0;
  std::size_t faster_ones = 0;
  const std::vector<const char*> others = {"gibbs-2", "gibbs-4", "gibbs-10", "hb-10-1", "hb-10-2", "hb-10-3"};
  for (const char* key : others) {
    slower_ones += exceeds(early(key), early("flsb2")) ? 1 : 0;
    faster_ones += exceeds(early("flsb2"), early(key)) ? 1 : 0;
    blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ", contestant(key).label, thousandfold(key));
  }
  verdicts.push_back(
      {"FLSB 2 converges in fewer steps than block Gibbs and Hamming balls, which evaluate more (Figures 8, 9).",
       slower_ones == others.size()          ? Holds::yes
       : slower_ones == 0 && faster_ones > 0 ? Holds::no
                                             : Holds::open,
       fmt::format("Beyond chance so for {} of {}. 1000 MMD\u00b2, mean over burn-in: FLSB 2 {}; {}.", slower_ones,
                   others.size(), thousandfold("flsb2"), blocks)});
  verdicts.push_back({"Ours: flsb mixes at least as well as GWG.",
                      errors ? (exceeds(ess("gwg"), ess("flsb")) ? Holds::no : Holds::yes) : Holds::open,
                      fmt::format("Median effective sample size {} against {}{}.", text_of(ess("flsb")),
                                  text_of(ess("gwg")), errors ? "" : "; of one chain each")});
  return verdicts;
}

}  // namespace poise::reproduction
