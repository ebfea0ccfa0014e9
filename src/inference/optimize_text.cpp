/// The answer of an optimisation as JSON, as a table and as a picture.
#include <poise/optimize.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/plot.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

/// All digits that an objective has, none that rounding has added.
std::string objective_text(double value) { return fmt::format("{:.12g}", value); }

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json state_json(const std::vector<Value>& state, const VariableLayout& layout) {
  json out = json::array();
  for (const Value level : state) out.push_back(static_cast<int>(layout.label(level)));
  return out;
}

std::string proof_of(const OptimizeAnswer& answer) {
  if (answer.optimal) return "proved optimal";
  if (answer.bound) return fmt::format("not proved; no state is better than {}", objective_text(*answer.bound));
  return "not proved";
}

}  // namespace

json optimize_json(const OptimizeAnswer& answer, const VariableLayout& layout) {
  json out = {
      {"version", POISE_VERSION},
      {"model", answer.model},
      {"objective", answer.objective},
      {"sense", answer.maximise ? "max" : "min"},
      {"best", {{"objective", number(answer.best().objective)}, {"state", state_json(answer.best().state, layout)}}},
      {"solutions", json::array()},
      {"optimal", answer.optimal},
      {"bound", answer.bound ? number(*answer.bound) : json(nullptr)},
      {"history", json::array()},
      {"reason", answer.reason},
      {"seconds", answer.seconds},
      {"interrupted", answer.interrupted}};
  for (const Solution& solution : answer.solutions) {
    out["solutions"].push_back({{"objective", number(solution.objective)},
                                {"state", state_json(solution.state, layout)},
                                {"count", solution.count}});
  }
  for (const Improvement& improvement : answer.history) {
    out["history"].push_back({{"seconds", improvement.seconds},
                              {"sweeps", improvement.sweeps},
                              {"objective", number(improvement.objective)}});
  }
  return out;
}

std::string optimize_text(const OptimizeAnswer& answer, const VariableLayout& layout, std::size_t width) {
  std::string out = text::wrap(answer.model, "model       ", width);
  out += text::wrap(fmt::format("{}", layout.variables), "variables   ", width);
  out +=
      text::wrap(fmt::format("{} {}, {}", answer.objective, objective_text(answer.best().objective), proof_of(answer)),
                 "best        ", width);
  out += text::wrap(answer.reason, "method      ", width);
  std::string time = text::duration(answer.seconds);
  if (!answer.history.empty()) {
    time += fmt::format(", the best after {}", text::duration(answer.history.back().seconds));
  }
  out += text::wrap(time, "time        ", width);
  if (answer.solutions.size() < 2) return out;
  text::Table table({"solution", answer.objective, "found"});
  constexpr std::size_t most = 20;
  for (std::size_t k = 0; k < std::min(most, answer.solutions.size()); ++k) {
    table.add({fmt::format("{}", k + 1), objective_text(answer.solutions[k].objective),
               text::plural(answer.solutions[k].count, "time")});
  }
  out += '\n' + table.text(width);
  const std::size_t rest = answer.solutions.size() - std::min(most, answer.solutions.size());
  if (rest > 0) out += fmt::format("and {}; --out and --json write all of them\n", text::plural(rest, "more solution"));
  return out;
}

std::string optimize_plot(const OptimizeAnswer& answer) {
  Series line{.label = "best so far"};
  for (std::size_t k = 0; k < answer.history.size(); ++k) {
    const Improvement& improvement = answer.history[k];
    if (k > 0) {  // the best stays what it is until the next improvement
      line.x.push_back(improvement.seconds);
      line.y.push_back(line.y.back());
    }
    line.x.push_back(improvement.seconds);
    line.y.push_back(improvement.objective);
  }
  if (!line.x.empty() && answer.seconds > line.x.back()) {
    line.x.push_back(answer.seconds);
    line.y.push_back(line.y.back());
  }
  Plot plot;
  plot.title = answer.model;
  plot.x_label = "seconds";
  plot.y_label = answer.objective;
  // Most improvements come in the first moments, where a linear axis would show a wall.
  plot.x_log = line.x.size() > 1 && line.x.front() > 0.0;
  plot.series.push_back(std::move(line));
  plot.legend = Legend::none;
  return render_svg(plot);
}

}  // namespace poise
