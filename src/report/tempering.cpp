/// Tempering statistics as text, JSON and a picture.
#include "report/tempering.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/plot.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double real(const json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

std::vector<double> reals(const json& array) {
  std::vector<double> out;
  if (!array.is_array()) return out;
  for (const json& value : array) out.push_back(real(value));
  return out;
}

/// Empty where they are not those of a ladder of so many rungs.
ReplicaPaths read_paths(const json& in, std::size_t rungs) {
  if (!in.is_object() || !in.contains("stride") || !in.contains("rungs")) return {};
  const json &stride = in["stride"], &paths = in["rungs"];
  if (!stride.is_number_unsigned() || !paths.is_array() || paths.size() != ReplicaPaths::kReplicas) return {};
  const std::size_t points = paths[0].size();
  if (points > ReplicaPaths::kMost) return {};
  std::vector<std::uint32_t> out(points * ReplicaPaths::kReplicas);
  for (std::size_t replica = 0; replica < ReplicaPaths::kReplicas; ++replica) {
    if (!paths[replica].is_array() || paths[replica].size() != points) return {};
    for (std::size_t point = 0; point < points; ++point) {
      const json& rung = paths[replica][point];
      if (!rung.is_number_unsigned() || rung.get<std::uint64_t>() >= rungs) return {};
      out[point * ReplicaPaths::kReplicas + replica] = rung.get<std::uint32_t>();
    }
  }
  return {stride.get<std::uint64_t>(), std::move(out)};
}

}  // namespace

std::string log_partition_text(const TemperingReport& report) {
  if (report.acceptance.empty()) return fmt::format("{:.8g} (exact)", report.log_partition);
  std::string out = text::mean(report.log_partition, report.log_partition_error);
  if (std::isfinite(report.log_partition_error)) {
    out += fmt::format(" (error {}, by {})", text::number(report.log_partition_error, 2),
                       text::plural(report.ladders, "ladder"));
  }
  return out;
}

std::string ladder_text(const TemperingReport& report) {
  const auto [least, most] = std::minmax_element(report.acceptance.begin(), report.acceptance.end());
  std::string out = fmt::format("{} rungs, barrier {:.1f}, swaps accepted {:.2f} to {:.2f}, {} in {}",
                                report.betas.size(), report.barrier, *least, *most,
                                text::plural(report.round_trips, "round trip"), text::plural(report.steps, "step"));
  if (report.components > 0.0) out += fmt::format("; exchanges of {:.1f} components", report.components);
  return out;
}

json tempering_json(const TemperingReport& report) {
  json paths = json::array();
  for (std::size_t replica = 0; replica < ReplicaPaths::kReplicas && report.paths.size() > 0; ++replica) {
    json path = json::array();
    for (std::size_t point = 0; point < report.paths.size(); ++point) path.push_back(report.paths.rung(point, replica));
    paths.push_back(std::move(path));
  }
  json by_ladder = json::array();
  for (const double log_partition : report.log_partition_by_ladder) by_ladder.push_back(finite(log_partition));
  return {{"betas", report.betas},
          {"acceptance", report.acceptance},
          {"barrier", finite(report.barrier)},
          {"round_trips", report.round_trips},
          {"steps", report.steps},
          {"ladders", report.ladders},
          {"log_partition", finite(report.log_partition)},
          {"log_partition_error", finite(report.log_partition_error)},
          {"log_partition_by_ladder", std::move(by_ladder)},
          {"components", finite(report.components)},
          {"paths", {{"stride", report.paths.stride()}, {"rungs", std::move(paths)}}}};
}

std::optional<TemperingReport> read_tempering(const json& in) {
  if (!in.is_object()) return {};
  const auto at = [&](const char* key) { return in.contains(key) ? in[key] : json(); };
  const auto count = [&](const char* key) {
    return at(key).is_number_unsigned() ? at(key).get<std::uint64_t>() : std::uint64_t{0};
  };
  TemperingReport report;
  report.betas = reals(at("betas"));
  report.acceptance = reals(at("acceptance"));
  if (report.betas.empty() || report.acceptance.size() + 1 != report.betas.size()) return {};
  report.barrier = real(at("barrier"));
  report.round_trips = count("round_trips");
  report.steps = count("steps");
  report.ladders = count("ladders");
  report.log_partition = real(at("log_partition"));
  report.log_partition_error = real(at("log_partition_error"));
  report.log_partition_by_ladder = reals(at("log_partition_by_ladder"));
  report.components = real(at("components"));
  report.paths = read_paths(at("paths"), report.betas.size());
  return report;
}

std::string tempering_text(const TemperingReport& report, std::size_t width) {
  if (report.acceptance.empty()) {
    return text::wrap("none: with variables summed out nothing is left to sample, and draws are independent",
                      "ladders     ", width) +
           text::wrap(log_partition_text(report), "log Z       ", width);
  }
  std::string out = text::wrap(ladder_text(report), report.ladders == 1 ? "ladder      " : "ladders     ", width);
  if (std::isfinite(report.log_partition)) out += text::wrap(log_partition_text(report), "log Z       ", width);
  return out;
}

std::vector<Warning> tempering_warnings(const TemperingReport& report, const RunFacts& facts) {
  if (report.acceptance.empty()) return {};
  constexpr double kCut = 0.05;
  const auto least = std::min_element(report.acceptance.begin(), report.acceptance.end());
  if (*least < kCut) {
    const auto pair = static_cast<std::size_t>(least - report.acceptance.begin());
    return {{"ladder",
             fmt::format("Replicas at beta = {:.3g} and {:.3g} swap with probability {:.2g}, which cuts the ladder of "
                         "{} rungs in two",
                         report.betas[pair], report.betas[pair + 1], *least, report.betas.size()),
             facts.seconds > 0.0 ? facts.longer(4)
                                 : fmt::format("--warmup {}", 4 * std::max<std::size_t>(facts.warmup, 250))}};
  }
  if (report.round_trips == 0) {
    return {{"ladder", "No replica went from the cold end of the ladder to the hot one and back", facts.longer(4)}};
  }
  return {};
}

std::string tempering_plot(const TemperingReport& report) {
  Plot swaps;
  swaps.title = fmt::format("swaps of neighbours, barrier {:.1f}", report.barrier);
  swaps.x_label = "inverse temperature";
  swaps.y_label = "acceptance";
  swaps.y_min = 0.0;
  swaps.y_max = 1.0;
  swaps.legend = Legend::none;
  swaps.width = 460;
  Series line{.marker_radius = 2.6};
  for (std::size_t k = 0; k < report.acceptance.size(); ++k) {
    line.x.push_back(0.5 * (report.betas[k] + report.betas[k + 1]));
    line.y.push_back(report.acceptance[k]);
  }
  swaps.series.push_back(std::move(line));
  Plot paths;
  paths.title = fmt::format("{} of all replicas", text::plural(report.round_trips, "round trip"));
  paths.x_label = "step";
  paths.y_label = "rung, the hot end at 0";
  paths.legend = Legend::none;
  paths.width = 560;
  // As many points as one can follow, the last ones.
  constexpr std::size_t kShown = 160;
  const std::size_t first = report.paths.size() > kShown ? report.paths.size() - kShown : 0;
  for (std::size_t replica = 0; replica < ReplicaPaths::kReplicas; ++replica) {
    Series path{.line_width = 1.3};
    for (std::size_t point = first; point < report.paths.size(); ++point) {
      path.x.push_back(static_cast<double>(point * report.paths.stride()));
      path.y.push_back(report.paths.rung(point, replica));
    }
    paths.series.push_back(std::move(path));
  }
  if (report.paths.size() == 0) return render_row(std::array{swaps});
  return render_row(std::array{swaps, paths});
}

}  // namespace poise
