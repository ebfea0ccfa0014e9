/// What the DISCS paper says of samplers, and what ours promise, held against the numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "studies/discs/discs.hpp"
#include "studies/estimate.hpp"
#include "studies/published.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

/// Part of the best fixed many-flip sampler that `dlsb` should reach, part of the best of all that `auto` should, and
/// how many times as fast as the published code we should be.
constexpr double kLearnedPart = 0.95;
constexpr double kChosenPart = 0.8;
constexpr double kTimesFaster = 10.0;

bool one_of(const std::string& key, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](const char* first) { return key.starts_with(first); });
}

/// The error of a / b, from those of both.
double ratio_error(const Estimate& a, const Estimate& b) {
  return std::hypot(a.error() / b.mean, a.mean / b.mean * b.error() / b.mean);
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : "; ") + item; }

}  // namespace

Verdict DiscsExperiment::ahead_of_gwg(const Results& results, Per per) const {
  Tally tally;
  std::string details;
  for (const DiscsCase* which : main_cases()) {
    const auto top = [&](std::initializer_list<const char*> beginnings) {
      return ess(results, *which,
                 best(results, *which, per,
                      [&](const DiscsSampler& one) {
                        return one.has_grid() == (one.pace == Pace::many) && one_of(one.contestant.key, beginnings);
                      }),
                 per);
    };
    const Estimate gwg = top({"gwg-"});
    const Estimate pas = top({"pas-"});
    const Estimate dlmc = top({"dlmc-"});
    tally.add(which->label, exceeds(pas, gwg) && exceeds(dlmc, gwg), exceeds(gwg, pas) || exceeds(gwg, dlmc));
    append(details,
           fmt::format("{}: PAS {:.3g}, DLMC {:.3g}", which->label, pas.mean / gwg.mean, dlmc.mean / gwg.mean));
  }
  const char* unit = per == Per::step ? "step" : per == Per::evaluation ? "evaluation" : "second";
  return {fmt::format("PAS and DLMC are ahead of GWG in effective samples of log p per {}.", unit), tally.holds(),
          fmt::format("Beyond chance so in: {}. Times as many as GWG, each with its better function and its best step "
                      "length: {}.",
                      tally.text(), details)};
}

Verdict DiscsExperiment::function_by_coupling(const Results& results, const std::string& family) const {
  Tally tally;
  std::string details;
  for (const DiscsCase* which : sweep_cases()) {
    const Estimate root = ess(results, *which, family + "-sqrt", Per::step);
    const Estimate barker = ess(results, *which, family + "-barker", Per::step);
    const bool below = which->coupling < kCriticalCoupling;
    // At the critical coupling itself the claim says nothing.
    if (std::abs(which->coupling - kCriticalCoupling) > 0.01) {
      const Estimate& better = below ? root : barker;
      const Estimate& worse = below ? barker : root;
      tally.add(which->label, exceeds(better, worse), exceeds(worse, better));
    }
    append(details, fmt::format("{}: {:.2f}", which->label, root.mean / barker.mean));
  }
  return {fmt::format("{}: \u221at is better below the critical coupling of the Ising model, t/(1+t) above.",
                      family == "gwg"   ? "GWG"
                      : family == "pas" ? "PAS"
                                        : "DLMC"),
          tally.holds(),
          fmt::format("Beyond chance so at: {}. Effective samples of log p per step, \u221at over t/(1+t), each with "
                      "its best step length: {}.",
                      tally.text(), details)};
}

Verdict DiscsExperiment::learned_beside_best(const Results& results) const {
  Tally tally;
  std::string details;
  for (const DiscsCase& which : cases_) {
    const std::string rival = best(results, which, Per::step,
                                   [](const DiscsSampler& one) { return one.pace == Pace::many && one.has_grid(); });
    const Estimate fixed = ess(results, which, rival, Per::step);
    const Estimate learned = ess(results, which, "dlsb", Per::step);
    const double part = learned.mean / fixed.mean;
    const double error = ratio_error(learned, fixed);
    // Where chains of the rival disagree there is nothing to be measured by.
    const bool known = agree(results, which, rival);
    tally.add(which.label, known && part >= kLearnedPart, known && part + 2.0 * error < kLearnedPart);
    append(details,
           fmt::format("{}{}: {:.2f} \u00b1 {:.2f} of {} with {} = {}", which.label, known ? "" : " (chains disagree)",
                       part, error, sampler(rival).contestant.label, sampler(rival).length,
                       number(results.at(part_key(which, sampler(rival), "-grid"))["best"])));
  }
  return {fmt::format("Ours: dlsb, with nothing set by hand, has at least {} of the effective samples per step of the "
                      "best sampler that changes many variables with a fixed function and the best step length.",
                      kLearnedPart),
          tally.holds_throughout(), fmt::format("So in: {}. {}.", tally.text(), details)};
}

Verdict DiscsExperiment::chosen_beside_best(const Results& results) const {
  Tally tally;
  std::string details;
  for (const DiscsCase* which : main_cases()) {
    const std::string rival =
        best(results, *which, Per::second, [](const DiscsSampler& one) { return one.pace != Pace::chosen; });
    const std::string chosen = (*found(results, *which, "auto"))["chosen"];
    const Estimate ours = ess(results, *which, "auto", Per::second);
    const Estimate top = ess(results, *which, rival, Per::second);
    const double part = ours.mean / top.mean;
    // The same sampler twice has nothing to tell apart, whatever the noise.
    const bool same = chosen == sampler(rival).contestant.sampler;
    const bool known = agree(results, *which, rival);
    tally.add(which->label, same || (known && part >= kChosenPart),
              !same && known && part + 2.0 * ratio_error(ours, top) < kChosenPart);
    append(details, same ? fmt::format("{}: {}, which is the best ({:.2f} of it named)", which->label, chosen, part)
                         : fmt::format("{}{}: {} has {:.2f} of {}", which->label, known ? "" : " (chains disagree)",
                                       chosen, part, sampler(rival).contestant.label));
  }
  return {fmt::format("Ours: auto has at least {} of the effective samples of log p per second of the best of all "
                      "samplers, whichever that is, or is that one.",
                      kChosenPart),
          tally.holds_throughout(), fmt::format("So in: {}. {}.", tally.text(), details)};
}

Verdict DiscsExperiment::beside_published_code(const Results& results) const {
  Tally tally;
  std::string details;
  for (const DiscsCase* which : main_cases()) {
    double theirs = 0.0;
    for (const PeerRun& run : peer_runs()) {
      if (run.model == which->key) theirs = std::max(theirs, run.ess_per_second());
    }
    if (theirs == 0.0) continue;
    const double times = ess(results, *which, "auto", Per::second).mean / theirs;
    tally.add(which->label, times >= kTimesFaster, times < kTimesFaster);
    append(details, fmt::format("{}: {:.3g}", which->label, times));
    for (const PeerRun& run : peer_runs()) {
      const std::string key(run.sampler);
      if (run.model != which->key || found(results, *which, key) == nullptr) continue;
      const double same = ess(results, *which, key, Per::second).mean / run.ess_per_second();
      details += fmt::format(", {} {:.2g}", sampler(key).contestant.label, same);
    }
  }
  return {fmt::format("Ours: auto has at least {} times the effective samples of log p per second and core of the "
                      "published code, by the best of its samplers.",
                      kTimesFaster),
          options_.effort == Effort::quick ? Holds::open : tally.holds_throughout(),
          fmt::format("So in: {}. Times as many, then by the same sampler: {}. {}", tally.text(), details,
                      options_.effort == Effort::quick ? "Models of a quick run are smaller, so this says nothing."
                                                       : "How the published code was run is said below.")};
}

std::vector<Verdict> DiscsExperiment::judge(const Results& results) const {
  std::vector<Verdict> out;
  for (const Per per : {Per::step, Per::evaluation, Per::second}) out.push_back(ahead_of_gwg(results, per));
  for (const char* family : {"gwg", "pas", "dlmc"}) out.push_back(function_by_coupling(results, family));
  out.push_back(learned_beside_best(results));
  out.push_back(chosen_beside_best(results));
  if (!peer_runs().empty()) out.push_back(beside_published_code(results));
  return out;
}

}  // namespace poise::reproduction
