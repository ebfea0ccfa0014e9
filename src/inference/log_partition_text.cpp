/// Partition functions of RBMs as JSON and as a table.
#include <numbers>

#include <fmt/format.h>

#include <poise/log_partition.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

const char* side(const ExactLogPartition& exact) { return exact.hidden ? "hidden" : "visible"; }

}  // namespace

json log_partition_json(const LogPartition& answer, const std::string& model) {
  json out = {{"version", POISE_VERSION},
              {"model", model},
              {"visible", answer.visible},
              {"hidden", answer.hidden},
              {"seed", answer.seed},
              {"ais", nullptr},
              {"exact", nullptr},
              {"difference_in_errors", nullptr},
              {"interrupted", answer.interrupted},
              {"warnings", answer.warnings()}};
  if (answer.annealed) {
    out["ais"] = {{"log_partition", answer.annealed->value},
                  {"log10_partition", answer.annealed->value / std::numbers::ln10},
                  {"mcse", answer.annealed->error},
                  {"effective_chains", answer.annealed->effective_chains},
                  {"largest_share", answer.annealed->largest_share},
                  {"chains", answer.annealed->chains},
                  {"temperatures", answer.annealed->temperatures},
                  {"seconds", answer.annealed->seconds}};
  }
  if (answer.exact) {
    out["exact"] = {{"log_partition", answer.exact->value},
                    {"log10_partition", answer.exact->value / std::numbers::ln10},
                    {"side", side(*answer.exact)},
                    {"units", answer.exact->units},
                    {"seconds", answer.exact->seconds}};
  }
  if (const auto difference = answer.difference_in_errors()) out["difference_in_errors"] = *difference;
  return out;
}

std::string log_partition_text(const LogPartition& answer, const std::string& model, std::size_t width) {
  std::string out = text::wrap(model, "model       ", width);
  out += text::wrap(fmt::format("{} visible, {} hidden", answer.visible, answer.hidden), "units       ", width);
  if (answer.annealed) {
    out += text::wrap(fmt::format("{} chains through {} temperatures, worth {} equal ones{}", answer.annealed->chains,
                                  answer.annealed->temperatures, text::count(answer.annealed->effective_chains),
                                  answer.interrupted ? "; interrupted" : ""),
                      "annealing   ", width);
  } else if (answer.interrupted) {
    out += text::wrap("interrupted before the first chains were through", "annealing   ", width);
  }
  if (answer.exact) {
    out += text::wrap(fmt::format("2^{} states of the {} units", answer.exact->units, side(*answer.exact)),
                      "enumerated  ", width);
  }
  out += '\n';
  text::Table table({"method", "log Z", "log10 Z", "mcse", "time"});
  if (const auto& ais = answer.annealed) {
    table.add({"ais", text::mean(ais->value, ais->error),
               text::mean(ais->value / std::numbers::ln10, ais->error / std::numbers::ln10),
               text::number(ais->error, 2), text::duration(ais->seconds)});
  }
  if (answer.exact) {
    table.add({"exact", fmt::format("{:.6f}", answer.exact->value),
               fmt::format("{:.6f}", answer.exact->value / std::numbers::ln10), "-",
               text::duration(answer.exact->seconds)});
  }
  out += table.text(width);
  if (const auto difference = answer.difference_in_errors()) {
    out += fmt::format("\nais - exact = {}, {} standard errors\n",
                       text::number(answer.annealed->value - answer.exact->value, 2), text::number(*difference, 2));
  }
  const std::vector<std::string> warnings = answer.warnings();
  if (!warnings.empty()) out += '\n';
  for (const std::string& warning : warnings) out += text::wrap(warning, "warning: ", width);
  return out;
}

}  // namespace poise
