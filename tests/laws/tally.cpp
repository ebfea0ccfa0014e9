/// Sums of tallies, and the table as text and as JSON.
#include "laws/tally.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace poise::laws {

namespace {

using nlohmann::json;

double percent(std::size_t part, std::size_t all) {
  return all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

std::string header(const std::string& title) {
  return fmt::format("\n{:<22}{:>7}{:>7}{:>8}{:>7}{:>7}{:>8}{:>10}{:>6}{:>9}{:>6}{:>8}{:>7}\n", title, "runs", "right",
                     "warned", "lucky", "wrong", "silent", "warned %", "(-)", "close %", "(-)", "sure %", "log p");
}

/// Warned in per cent of right runs and of those that are close to the truth, each with and without (-) those that are
/// right by luck and say so; and of those that state small errors.
std::string row(const std::string& name, const Alarms& a) {
  const std::size_t right = a.right_silent + a.right_warned;
  return fmt::format("{:<22}{:>7}{:>7}{:>8}{:>7}{:>7}{:>8}{:>10.1f}{:>6.1f}{:>9.1f}{:>6.1f}{:>8.1f}{:>7}\n", name,
                     a.runs(), right, a.right_warned, a.lucky, a.wrong_silent + a.wrong_warned, a.wrong_silent,
                     percent(a.right_warned, right), percent(a.right_warned - a.lucky, right - a.lucky),
                     percent(a.close_warned, a.close), percent(a.close_warned - a.close_lucky, a.close - a.close_lucky),
                     percent(a.sure_warned, a.sure), a.energy_silent);
}

std::set<std::string> names(const Tally& tally, std::size_t place) {
  std::set<std::string> found;
  for (const auto& [key, alarms] : tally.alarms) found.insert(key[place]);
  return found;
}

std::string alarms_text(const Tally& tally) {
  std::string out = header("way");
  for (const std::string& way : names(tally, 0)) out += row(way, tally.sum(way, 0, ""));
  for (const std::string& way : names(tally, 0)) {
    out += row("auto, " + way, tally.sum(way, 2, "auto"));
  }
  out += header("sampler, as shipped");
  for (const std::string& sampler : names(tally, 2)) {
    const Alarms sum = tally.sum("as shipped", 2, sampler);
    if (sum.runs() > 0) out += row(sampler, sum);
  }
  out += header("kind");
  for (const std::string& kind : names(tally, 1)) out += row(kind, tally.sum("", 1, kind));
  out += header("start, as shipped");
  for (const std::string& start : names(tally, 3)) {
    const Alarms sum = tally.sum("as shipped", 3, start);
    if (sum.runs() > 0) out += row(start, sum);
  }
  return out;
}

}  // namespace

void Alarms::add(const Alarms& more) {
  right_silent += more.right_silent;
  right_warned += more.right_warned;
  wrong_silent += more.wrong_silent;
  wrong_warned += more.wrong_warned;
  close += more.close;
  close_warned += more.close_warned;
  energy_silent += more.energy_silent;
  lucky += more.lucky;
  close_lucky += more.close_lucky;
  sure += more.sure;
  sure_warned += more.sure_warned;
}

void Errors::add(double z) {
  ++count;
  beyond += std::abs(z) > 3.0 ? 1 : 0;
  squares += std::min(100.0, z * z);
}

void Errors::add(const Errors& more) {
  count += more.count;
  beyond += more.beyond;
  squares += more.squares;
}

void Checks::add(const Checks& more) {
  done += more.done;
  failed += more.failed;
  worst = std::max(worst, more.worst);
}

void Tally::add(const Tally& more) {
  models += more.models;
  for (const auto& [key, value] : more.alarms) alarms[key].add(value);
  for (const auto& [key, value] : more.errors) errors[key].add(value);
  for (const auto& [key, value] : more.checks) checks[key].add(value);
  for (const auto& [key, value] : more.false_alarms) false_alarms[key] += value;
  findings.insert(findings.end(), more.findings.begin(), more.findings.end());
  records.insert(records.end(), more.records.begin(), more.records.end());
}

bool Tally::passes() const {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.gates; });
}

Alarms Tally::sum(const std::string& way, std::size_t place, const std::string& value) const {
  Alarms out;
  for (const auto& [key, counts] : alarms) {
    if ((way.empty() || key[0] == way) && (value.empty() || key[place] == value)) out.add(counts);
  }
  return out;
}

std::string tally_text(const Tally& tally) {
  std::string out = fmt::format("{} models, {} runs\n", tally.models, tally.sum("", 0, "").runs());
  out += alarms_text(tally);
  out += fmt::format("\n{:<34}{:>10}{:>10}{:>12}\n", "check", "done", "failed", "worst");
  for (const auto& [name, check] : tally.checks) {
    out += fmt::format("{:<34}{:>10}{:>10}{:>12.3g}\n", name, check.done, check.failed, check.worst);
  }
  out += fmt::format("\n{:<34}{:>10}{:>12}{:>12}\n", "errors of right and silent runs", "values", "|z|>3 in %",
                     "mean z^2");
  for (const auto& [name, errors] : tally.errors) {
    out += fmt::format("{:<34}{:>10}{:>12.2f}{:>12.2f}\n", name, errors.count, percent(errors.beyond, errors.count),
                       errors.mean_square());
  }
  if (!tally.false_alarms.empty()) out += "\nwarnings of runs within 0.02 of the truth\n";
  for (const auto& [cause, count] : tally.false_alarms) out += fmt::format("{:>8}  {}\n", count, cause);
  for (const bool gates : {false, true}) {
    const auto count = std::count_if(tally.findings.begin(), tally.findings.end(),
                                     [&](const Finding& one) { return one.gates == gates; });
    if (count > 0)
      out += fmt::format("\n{} {}\n", count, gates ? "failures" : "findings that do not count as failures");
    for (const Finding& one : tally.findings) {
      if (one.gates != gates) continue;
      out += fmt::format("{}, {} on {}: {}\n    {}\n", one.check, one.sampler, one.kind, one.what, one.again);
    }
  }
  return out;
}

json tally_json(const Tally& tally) {
  json runs = json::array();
  for (const auto& [key, a] : tally.alarms) {
    runs.push_back({{"way", key[0]},
                    {"kind", key[1]},
                    {"sampler", key[2]},
                    {"start", key[3]},
                    {"right_silent", a.right_silent},
                    {"right_warned", a.right_warned},
                    {"wrong_silent", a.wrong_silent},
                    {"wrong_warned", a.wrong_warned},
                    {"close", a.close},
                    {"close_warned", a.close_warned},
                    {"energy_silent", a.energy_silent},
                    {"lucky", a.lucky},
                    {"close_lucky", a.close_lucky},
                    {"sure", a.sure},
                    {"sure_warned", a.sure_warned}});
  }
  json errors = json::object();
  for (const auto& [name, e] : tally.errors) {
    errors[name] = {{"count", e.count}, {"beyond_3", e.beyond}, {"mean_square", e.mean_square()}};
  }
  json checks = json::object();
  for (const auto& [name, c] : tally.checks) {
    checks[name] = {{"done", c.done}, {"failed", c.failed}, {"worst", std::isfinite(c.worst) ? json(c.worst) : json()}};
  }
  json findings = json::array();
  for (const Finding& f : tally.findings) {
    findings.push_back({{"check", f.check},
                        {"kind", f.kind},
                        {"sampler", f.sampler},
                        {"what", f.what},
                        {"again", f.again},
                        {"gates", f.gates}});
  }
  return {{"models", tally.models},   {"runs", runs},
          {"errors", errors},         {"checks", checks},
          {"findings", findings},     {"false_alarms", tally.false_alarms},
          {"passes", tally.passes()}, {"records", tally.records}};
}

}  // namespace poise::laws
