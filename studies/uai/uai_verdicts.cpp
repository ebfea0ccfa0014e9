/// What the paper says of its experiment on networks, held against the numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

#include "studies/estimate.hpp"
#include "studies/published.hpp"
#include "studies/uai/uai.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

}  // namespace

std::vector<Verdict> UaiExperiment::judge(const Results& results) const {
  const std::vector<Contestant> contestants = in_tables();
  const auto ess = [&](std::size_t n, const std::string& key) {
    return estimate_of(result(results, n, key)["window_ess"]);
  };
  const auto steps = [&](std::size_t n, const std::string& key) {
    return estimate_of(result(results, n, key)["arrival"]["steps"]);
  };
  const auto error_of = [&](std::size_t n, const std::string& key) { return marginal_error(results, n, key).mean; };
  const auto label = [&](const std::string& key) {
    return std::find_if(contestants.begin(), contestants.end(), [&](const Contestant& c) { return c.key == key; })
        ->label;
  };
  std::vector<Verdict> verdicts;
  if (!options_.data.empty()) {
    std::size_t same = 0;
    std::size_t compared = 0;
    for (std::size_t n = 0; n < problems_.size(); ++n) {
      for (const Contestant& contestant : contestants) {
        const auto paper = published_uai(static_cast<int>(n) + 1, contestant.column);
        if (!paper) continue;
        ++compared;
        same += differ(ess(n, contestant.key), *paper) ? 0 : 1;
      }
    }
    verdicts.push_back({"The numbers of Table 3 are those of this run.",
                        same == compared      ? Holds::yes
                        : 2 * same < compared ? Holds::no
                                              : Holds::open,
                        fmt::format("{} of {} do not differ by more than chance.", same, compared)});
  }

  Tally faster;
  Tally similar;
  Tally best;
  std::vector<std::string> apart;
  std::string by_steps;
  std::string spread;
  std::string details;
  std::string floors;
  for (std::size_t n = 0; n < problems_.size(); ++n) {
    const std::string name = name_of(n);
    const auto semicolon = [&](const std::string& text) { return text.empty() ? "" : "; "; };
    const Estimate learned = steps(n, "lsb2");
    std::string quickest = "sqrt";
    std::string widest_low = "sqrt";
    std::string widest_high = "sqrt";
    std::string top = "sqrt";
    for (const Contestant& contestant : contestants) {
      if (contestant.column.empty()) continue;
      const bool fixed = !parse_sampler(contestant.sampler).learns();
      if (fixed && steps(n, contestant.key).mean < steps(n, quickest).mean) quickest = contestant.key;
      if (fixed && ess(n, contestant.key).mean > ess(n, top).mean) top = contestant.key;
      if (ess(n, contestant.key).mean < ess(n, widest_low).mean) widest_low = contestant.key;
      if (ess(n, contestant.key).mean > ess(n, widest_high).mean) widest_high = contestant.key;
    }
    faster.add(name, exceeds(steps(n, quickest), learned), exceeds(learned, steps(n, quickest)));
    by_steps += fmt::format("{}{}: {} against {} of {}", semicolon(by_steps), name, text_of(learned),
                            text_of(steps(n, quickest)), label(quickest));
    const bool alike = !differ(ess(n, widest_low), ess(n, widest_high));
    similar.add(name, alike, !alike);
    if (!alike) apart.push_back(name);
    spread += fmt::format("{}{}: from {} ({}) to {} ({})", semicolon(spread), name, text_of(ess(n, widest_low)),
                          label(widest_low), text_of(ess(n, widest_high)), label(widest_high));
    best.add(name, !exceeds(ess(n, top), ess(n, "lsb")), exceeds(ess(n, top), ess(n, "lsb")));
    details += fmt::format("{}{}: {} against {} of {}", semicolon(details), name, text_of(ess(n, "lsb")),
                           text_of(ess(n, top)), label(top));
    floors += fmt::format("{}{}: {:.4f} with \u221at, {:.4f} with lsb, {:.4f} with Gibbs", semicolon(floors), name,
                          error_of(n, "sqrt"), error_of(n, "lsb"), error_of(n, "gibbs"));
  }
  verdicts.push_back(
      {"LSB 2 converges in fewer iterations than every fixed function (Figure 5).", faster.holds(),
       fmt::format("Beyond chance so in: {}. Iterations until 95 % of the way in log p, LSB 2 against the fastest "
                   "fixed one: {}{}.",
                   faster.text(), by_steps, published() ? "; an iteration of LSB 2 is two steps" : "")});
  verdicts.push_back({"The six samplers mix alike (Table 3).", similar.holds(),
                      fmt::format("Smallest and largest differ by more than chance in: {}. {}.",
                                  apart.empty() ? "none" : fmt::format("{}", fmt::join(apart, ", ")), spread)});
  const nlohmann::json& fit = results.at("fit-to-max");
  const double error = number(fit["error"].back());
  verdicts.push_back({"A monotone network can be fitted to max{1,t} (Figure 11).", error < 0.1 ? Holds::yes : Holds::no,
                      fmt::format("Root mean square error of log g {:.2g} at first, {:.2g} after 6000 steps.",
                                  number(fit["error"].front()), error)});
  verdicts.push_back(
      {"Ours: lsb mixes at least as well as the best fixed function, whichever that is.", best.holds(),
       fmt::format("Not worse beyond chance in: {}. Effective sample size in the window: {}.", best.text(), details)});
  if (published()) {
    const auto off = [&](std::size_t n) {
      return exceeds(marginal_error(results, n, "sqrt"), marginal_error(results, n, "lsb"));
    };
    verdicts.push_back(
        {"All samplers of Figure 5 and Table 3 sample the same distribution.",
         off(0) && off(1) ? Holds::no : Holds::open,
         fmt::format(
             "Mean error of marginals after as many evaluations, {}: the fixed functions do not keep the evidence.",
             floors)});
  } else {
    verdicts.push_back({"Marginals come out right, whichever the sampler.",
                        error_of(0, "lsb") < 0.05 && error_of(1, "lsb") < 0.05 ? Holds::yes : Holds::open,
                        fmt::format("Mean error of one chain after as many evaluations, {}.", floors)});
  }
  return verdicts;
}

}  // namespace poise::reproduction
