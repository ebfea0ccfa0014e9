/// What informed single flips, jumps and learning gain in variable selection, held against the numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "studies/select/select.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

/// Part of the best fixed function that learning should reach where it cannot gain.
constexpr double kLearnedPart = 0.95;
/// How far the mean over chains may be from the reference where the sampler is right and its chains are long enough.
constexpr double kClose = 0.03;

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : "; ") + item; }

}  // namespace

std::string SelectExperiment::fixed_best(const Results& results, const SelectCase& which) const {
  std::string best = "sqrt";
  for (const char* key : {"barker", "min", "max"}) {
    if (ess(results, which, key, Per::second).mean > ess(results, which, best, Per::second).mean) best = key;
  }
  return best;
}

Verdict SelectExperiment::ahead(const Results& results, const std::string& key, const std::string& rival) const {
  Tally tally;
  std::string details;
  std::string label = key == "lb" ? "lb with its best function" : sampler(key).contestant.label;
  for (const SelectCase& which : cases_) {
    const Estimate ours = ess(results, which, key == "lb" ? fixed_best(results, which) : key, Per::second);
    const Estimate theirs = ess(results, which, rival, Per::second);
    tally.add(which.label, exceeds(ours, theirs), exceeds(theirs, ours));
    append(details, fmt::format("{}: {:.3g}", which.label, ours.mean / theirs.mean));
  }
  return {fmt::format("{} has more effective samples of inclusion probabilities per second than {}.", label,
                      sampler(rival).contestant.label),
          tally.holds(), fmt::format("Beyond chance so in: {}. Times as many: {}.", tally.text(), details)};
}

Verdict SelectExperiment::best_of_all(const Results& results) const {
  Tally tally;
  std::string details;
  for (const SelectCase& which : cases_) {
    std::string rival = "gibbs";
    for (const SelectSampler& one : samplers_) {
      const std::string& key = one.contestant.key;
      if (key != "wtgs" && ess(results, which, key, Per::second).mean > ess(results, which, rival, Per::second).mean) {
        rival = key;
      }
    }
    const Estimate ours = ess(results, which, "wtgs", Per::second);
    const Estimate next = ess(results, which, rival, Per::second);
    tally.add(which.label, exceeds(ours, next), exceeds(next, ours));
    append(details,
           fmt::format("{}: {:.3g} times {}", which.label, ours.mean / next.mean, sampler(rival).contestant.label));
  }
  return {"wtgs has more effective samples per second than every other sampler, each with its best settings.",
          tally.holds_throughout(), fmt::format("Beyond chance so in: {}. {}.", tally.text(), details)};
}

Verdict SelectExperiment::learning_gains(const Results& results) const {
  Tally tally;
  std::string details;
  for (const SelectCase& which : cases_) {
    const std::string rival = fixed_best(results, which);
    const Estimate fixed = ess(results, which, rival, Per::sampling);
    const Estimate learned = ess(results, which, "lsb", Per::sampling);
    const double part = learned.mean / fixed.mean;
    const double error = part * std::hypot(learned.error() / learned.mean, fixed.error() / fixed.mean);
    tally.add(which.label, part >= kLearnedPart, part + 2.0 * error < kLearnedPart);
    append(details,
           fmt::format("{}: {:.2f} \u00b1 {:.2f} of {} ({:.2f} with warm-up), {:.2f} of lb, \u221at", which.label, part,
                       error, sampler(rival).contestant.label,
                       ess(results, which, "lsb", Per::second).mean / ess(results, which, rival, Per::second).mean,
                       learned.mean / ess(results, which, "sqrt", Per::sampling).mean));
  }
  return {
      fmt::format("Learning the balancing function gives at least {} of the effective samples per second of the best "
                  "fixed one, whichever that is, once it has learned.",
                  kLearnedPart),
      tally.holds_throughout(), fmt::format("So in: {}. {}.", tally.text(), details)};
}

Verdict SelectExperiment::same_answer(const Results& results) const {
  Tally tally;
  std::string details;
  for (const SelectCase& which : cases_) {
    std::string far;
    for (const SelectSampler& one : samplers_) {
      const double farthest = number(best_run(results, which, one)["farthest"]);
      if (farthest > kClose) append(far, fmt::format("{} {:.2f}", one.contestant.label, farthest));
    }
    tally.add(which.label, far.empty(), !far.empty());
    append(details, fmt::format("{}: {}", which.label, far.empty() ? "all within" : far));
  }
  return {fmt::format("All samplers find the inclusion probabilities of the reference to {} in runs of this length.",
                      kClose),
          tally.holds_throughout(),
          fmt::format("So in: {}. Largest errors of the mean over chains, where larger: {}.", tally.text(), details)};
}

Verdict SelectExperiment::causes_found(const Results& results) const {
  Tally tally;
  std::string details;
  for (const SelectCase& which : cases_) {
    if (which.causes.empty()) continue;
    const nlohmann::json& sets = results.at(reference_key(which))["sets"];
    std::size_t with_cause = 0;
    double stated = 0.0;
    for (const nlohmann::json& set : sets) {
      const std::vector<Index> variables = set["variables"].get<std::vector<Index>>();
      stated += number(set["mass"]);
      with_cause += std::any_of(variables.begin(), variables.end(), [&](Index j) {
        return std::find(which.causes.begin(), which.causes.end(), j) != which.causes.end();
      });
    }
    tally.add(which.label, with_cause == sets.size(), with_cause < sets.size());
    append(details, fmt::format("{}: {} of {} sets, {:.1f} by their stated probabilities, {} causes", which.label,
                                with_cause, sets.size(), stated, which.causes.size()));
  }
  return {"Every credible set contains a cause.", tally.holds(), fmt::format("So in: {}. {}.", tally.text(), details)};
}

std::vector<Verdict> SelectExperiment::judge(const Results& results) const {
  std::vector<Verdict> out = {ahead(results, "lb", "gibbs"),    ahead(results, "wtgs", "gibbs"), best_of_all(results),
                              ahead(results, "wtgs", "temper"), learning_gains(results),         same_answer(results)};
  const bool known =
      std::any_of(cases_.begin(), cases_.end(), [](const SelectCase& one) { return !one.causes.empty(); });
  if (known) out.push_back(causes_found(results));
  return out;
}

}  // namespace poise::reproduction
