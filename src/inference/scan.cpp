/// The points of a scan, made at the same time, and what is shown of them.
#include "inference/scan.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/plot.hpp>
#include "base/file.hpp"
#include "base/options.hpp"
#include "base/thread_pool.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

constexpr std::size_t kMostPoints = 100000;

[[noreturn]] void refuse_range(const std::string& text) {
  throw InputError(
      fmt::format("--over: found {}, expected KEY=FROM..TO:COUNT such as beta=0.38..0.50:13, or "
                  "KEY=VALUE,VALUE,...",
                  quote(text)));
}

Spec spec_at(const ScanOptions& options, double value) {
  Spec spec = parse_spec(options.model);
  const std::string text = fmt::format("{}", value);
  for (auto& [key, found] : spec.settings) {
    if (key != options.range.key) continue;
    found = text;
    return spec;
  }
  spec.settings.emplace_back(options.range.key, text);
  return spec;
}

RunOptions options_at(const ScanOptions& options, double value) {
  RunOptions run = options.run;
  constexpr int kBits = 11;  // JSON keeps whole numbers up to 2^53
  run.seed = (checksum(fmt::format("{} {}", options.run.seed, value))) >> kBits;
  run.keep = Keep::monitors;
  return run;
}

std::vector<Observable> rows_of(const Report& report) {
  if (!report.observables.empty()) return report.observables;
  std::vector<Observable> rows;
  const auto draws = static_cast<double>(report.chains * report.draws);
  for (const auto& [name, summary] : report.monitors) {
    if (name != "hamming") rows.push_back({name, summary.mean, summary.mcse, draws / summary.ess});
  }
  return rows;
}

std::optional<ScanPoint> run_point(const ScanOptions& options, double value, unsigned threads,
                                   const std::atomic<bool>* stop) {
  const auto started = Clock::now();
  RunOptions run_options = options_at(options, value);
  run_options.threads = threads;
  const RunResult result = run(make_model(spec_at(options, value), options.files), parse_sampler(options.sampler),
                               run_options, {.stop = stop});
  if (result.interrupted) return {};
  const Report report = make_report(result);
  ScanPoint point{value, report.sampler, rows_of(report), {}, seconds_since(started)};
  for (const Warning& warning : report.warnings) point.warnings.push_back(warning.code);
  return point;
}

void sort_points(std::vector<ScanPoint>& points) {
  std::sort(points.begin(), points.end(), [](const ScanPoint& a, const ScanPoint& b) { return a.value < b.value; });
}

json head(const ScanOptions& options) {
  json settings = options_json(options.run, Option::Role::setting);
  return {{"model", options.model}, {"key", options.range.key}, {"sampler", options.sampler}, {"options", settings}};
}

json real_json(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

/// Names of all rows, in the order in which they come first.
std::vector<std::string> names_of(const std::vector<ScanPoint>& points) {
  std::vector<std::string> names;
  for (const ScanPoint& point : points) {
    for (const Observable& row : point.rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
    }
  }
  return names;
}

const Observable* find(const ScanPoint& point, const std::string& name) {
  const auto found =
      std::find_if(point.rows.begin(), point.rows.end(), [&](const Observable& row) { return row.name == name; });
  return found == point.rows.end() ? nullptr : &*found;
}

}  // namespace

ScanRange read_scan_range(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) refuse_range(text);
  ScanRange range{text.substr(0, equals), {}};
  const std::string values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  if (dots == std::string::npos) {
    for (std::size_t first = 0; first <= values.size();) {
      const std::size_t end = std::min(values.find(',', first), values.size());
      const auto value = parse_real(values.substr(first, end - first));
      if (!value) refuse_range(text);
      range.values.push_back(*value);
      first = end + 1;
    }
  } else {
    const std::size_t colon = values.find(':', dots);
    if (colon == std::string::npos) refuse_range(text);
    const auto low = parse_real(values.substr(0, dots)), high = parse_real(values.substr(dots + 2, colon - dots - 2));
    const auto count = parse_integer(values.substr(colon + 1));
    if (!low || !high || !count || *count < 2 || *count > static_cast<std::int64_t>(kMostPoints) || !(*low < *high)) {
      refuse_range(text);
    }
    const auto steps = static_cast<double>(*count - 1);
    for (std::int64_t k = 0; k <= *count - 1; ++k) {
      // Rounded to what the step can tell apart, so that 0.1..0.5:5 has 0.3 and not 0.30000000000000004.
      const double exact = *low + (*high - *low) * static_cast<double>(k) / steps;
      const double unit = std::pow(10.0, std::floor(std::log10((*high - *low) / steps)) - 9.0);
      range.values.push_back(*parse_real(fmt::format("{:.15g}", std::round(exact / unit) * unit)));
    }
  }
  std::sort(range.values.begin(), range.values.end());
  range.values.erase(std::unique(range.values.begin(), range.values.end()), range.values.end());
  return range;
}

std::vector<ScanPoint> scan(const ScanOptions& options, const std::vector<ScanPoint>& known, const ScanHooks& hooks) {
  std::vector<ScanPoint> points;
  std::vector<double> missing;
  for (const double value : options.range.values) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const ScanPoint& p) { return p.value == value; });
    if (found != known.end()) points.push_back(*found);
    if (found == known.end()) missing.push_back(value);
  }
  if (missing.empty()) return points;
  for (const double value : {missing.front(), missing.back()}) {
    const Model model = make_model(spec_at(options, value), options.files);
    options_at(options, value).check(model);
  }
  const unsigned cores =
      options.run.threads > 0 ? options.run.threads : std::max(1U, std::thread::hardware_concurrency());
  const bool together = missing.size() > 1 && options.run.device == Device::cpu;
  std::mutex mutex;
  ThreadPool pool(together ? std::min<unsigned>(cores, static_cast<unsigned>(missing.size())) : 1);
  if (hooks.progress) hooks.progress(points.size(), options.range.values.size());
  pool.for_each(missing.size(), [&](std::size_t k) {
    if (hooks.stop != nullptr && *hooks.stop) return;
    const std::optional<ScanPoint> point =
        run_point(options, missing[k], together ? 1 : options.run.threads, hooks.stop);
    if (!point) return;
    const std::lock_guard lock(mutex);
    points.push_back(*point);
    sort_points(points);
    if (hooks.finished) hooks.finished(points);
    if (hooks.progress) hooks.progress(points.size(), options.range.values.size());
  });
  sort_points(points);
  return points;
}

json scan_json(const ScanOptions& options, const std::vector<ScanPoint>& points) {
  json out = {{"version", POISE_VERSION}, {"scan", head(options)}, {"points", json::array()}};
  for (const ScanPoint& point : points) {
    json one = {{"value", point.value},
                {"sampler", point.sampler},
                {"observables", json::object()},
                {"warnings", point.warnings},
                {"seconds", point.seconds}};
    for (const Observable& row : point.rows) {
      one["observables"][row.name] = {
          {"value", real_json(row.value)}, {"error", real_json(row.error)}, {"tau", real_json(row.tau)}};
    }
    one["order"] = names_of({point});
    out["points"].push_back(std::move(one));
  }
  return out;
}

std::vector<ScanPoint> read_scan(const json& in, const ScanOptions& options, const std::string& name) {
  const auto fail = [&](const char* why) {
    throw InputError(fmt::format("{} {}; name another file, or delete it", name, why));
  };
  if (!in.is_object() || !in.contains("scan") || !in.contains("points") || !in["points"].is_array()) {
    fail("is no scan");
  }
  if (in["scan"] != head(options) || in.value("version", "") != POISE_VERSION) {
    fail("is a scan with other settings, or of another version");
  }
  std::vector<ScanPoint> points;
  const auto real = [](const json& value) { return value.is_number() ? value.get<double>() : std::nan(""); };
  try {
    for (const json& one : in["points"]) {
      ScanPoint point{
          one.at("value").get<double>(), one.at("sampler").get<std::string>(), {}, {}, real(one.at("seconds"))};
      for (const json& row : one.at("order")) {
        const auto key = row.get<std::string>();
        const json& found = one.at("observables").at(key);
        point.rows.push_back({key, real(found.at("value")), real(found.at("error")), real(found.at("tau"))});
      }
      for (const json& code : one.at("warnings")) point.warnings.push_back(code.get<std::string>());
      points.push_back(std::move(point));
    }
  } catch (const json::exception&) {
    fail("is damaged");
  }
  return points;
}

std::string scan_text(const ScanOptions& options, const std::vector<ScanPoint>& points, std::size_t width) {
  const std::vector<std::string> names = names_of(points);
  std::vector<std::string> titles{options.range.key};
  for (const std::string& name : names) titles.push_back(name), titles.emplace_back("error");
  titles.emplace_back("<warnings");
  text::Table table(titles);
  for (const ScanPoint& point : points) {
    std::vector<std::string> row{fmt::format("{}", point.value)};
    for (const std::string& name : names) {
      const Observable* found = find(point, name);
      row.push_back(found == nullptr ? "-" : text::mean(found->value, found->error));
      row.push_back(found == nullptr ? "-" : text::number(found->error, 2));
    }
    row.push_back(fmt::format("{}", fmt::join(point.warnings, ", ")));
    table.add(std::move(row));
  }
  return table.text(width);
}

std::string scan_csv(const ScanOptions& options, const std::vector<ScanPoint>& points) {
  const std::vector<std::string> names = names_of(points);
  const auto cell = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); };
  std::string out = options.range.key;
  for (const std::string& name : names) out += fmt::format(",{0},{0}_error,{0}_tau", name);
  out += ",sampler,warnings\n";
  for (const ScanPoint& point : points) {
    out += fmt::format("{}", point.value);
    for (const std::string& name : names) {
      const Observable* found = find(point, name);
      const Observable none{name, std::nan(""), std::nan(""), std::nan("")};
      const Observable& row = found == nullptr ? none : *found;
      out += fmt::format(",{},{},{}", cell(row.value), cell(row.error), cell(row.tau));
    }
    out += fmt::format(",\"{}\",{}\n", point.sampler, fmt::join(point.warnings, " "));
  }
  return out;
}

std::string scan_plot(const ScanOptions& options, const std::vector<ScanPoint>& points) {
  std::vector<std::string> rows, row;
  for (const std::string& name : names_of(points)) {
    Plot plot;
    plot.title = name;
    plot.x_label = options.range.key;
    plot.y_label = name;
    plot.legend = Legend::none;
    plot.width = 460;
    plot.height = 310;
    Series line{.line_width = 1.2, .marker_radius = 2.6};
    for (const ScanPoint& point : points) {
      const Observable* found = find(point, name);
      if (found == nullptr) continue;
      const double error = std::isfinite(found->error) ? found->error : 0.0;
      line.x.push_back(point.value);
      line.y.push_back(found->value);
      line.low.push_back(found->value - error);
      line.high.push_back(found->value + error);
    }
    plot.series = {std::move(line)};
    row.push_back(render_svg(plot));
    if (row.size() == 2) {
      rows.push_back(svg::beside(row));
      row.clear();
    }
  }
  if (!row.empty()) rows.push_back(svg::beside(row));
  if (rows.empty()) rows.push_back(render_svg({}));
  return svg::stacked(rows, fmt::format("{} over {}", options.model, options.range.key));
}

}  // namespace poise
