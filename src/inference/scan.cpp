/// The points of a scan, made at the same time, and what is shown of them.
#include "inference/scan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/plot.hpp>
#include "base/file.hpp"
#include "base/options.hpp"
#include "base/thread_pool.hpp"
#include "inference/scan_exchange.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using nlohmann::json;

constexpr std::size_t kMostPoints = 100000;
/// Models of so many points and one more say that there are too many for a replica exchange.
constexpr std::size_t kMostExchanged = 128;
/// Swaps under this fraction carry little from point to point.
constexpr double kFewSwaps = 0.02;

[[noreturn]] void refuse_range(const std::string& text) {
  throw InputError(
      fmt::format("--over: found {}, expected KEY=FROM..TO:COUNT such as beta=0.38..0.50:13, or "
                  "KEY=VALUE,VALUE,...",
                  quote(text)));
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

Model model_at(const ScanOptions& options, double value) {
  return options.make ? options.make(value)
                      : make_model(with_value(parse_spec(options.model), options.range.key, value), options.files);
}

/// How much of the machine a point has.
struct Share {
  unsigned threads;
  double seconds;
};

std::optional<ScanPoint> run_point(const ScanOptions& options, double value, Share share,
                                   const std::atomic<bool>* stop) {
  const auto started = Clock::now();
  RunOptions run_options = options_at(options, value);
  run_options.threads = share.threads;
  run_options.seconds = share.seconds;
  const RunResult result = run(model_at(options, value), parse_sampler(options.sampler), run_options, {.stop = stop});
  if (result.interrupted) return {};
  ScanPoint point = point_of(value, make_report(result));
  point.seconds = seconds_since(started);
  return point;
}

void sort_points(std::vector<ScanPoint>& points) {
  std::sort(points.begin(), points.end(), [](const ScanPoint& a, const ScanPoint& b) { return a.value < b.value; });
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

Spec with_value(Spec spec, const std::string& key, double value) {
  // Two names of one setting, and a setting in place of its inverse.
  constexpr std::array<std::pair<const char*, const char*>, 2> kSame{{{"coupling", "lambda"}, {"beta", "T"}}};
  std::erase_if(spec.settings, [&](const auto& setting) {
    const auto is_other = [&](const auto& pair) {
      return (key == pair.first && setting.first == pair.second) || (key == pair.second && setting.first == pair.first);
    };
    return setting.first == key || std::any_of(kSame.begin(), kSame.end(), is_other);
  });
  spec.settings.emplace_back(key, fmt::format("{}", value));
  return spec;
}

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

json scan_head(const ScanOptions& options) {
  json settings = options_json(options.run, Option::Role::setting);
  return {{"model", options.model},
          {"key", options.range.key},
          {"sampler", options.sampler},
          {"exchange", options.exchange},
          {"options", settings}};
}

ScanPoint point_of(double value, const Report& report) {
  ScanPoint point{value, report.sampler, rows_of(report), {}, 0.0, std::nan(""), {}};
  for (const Warning& warning : report.warnings) point.warnings.push_back(warning.code);
  return point;
}

namespace {

bool is_complete(const ScanPoint& point) {
  return std::find(point.warnings.begin(), point.warnings.end(), "interrupted") == point.warnings.end();
}

/// The points of a replica exchange, where there is to be one.
std::optional<std::vector<ScanPoint>> exchanged(const ScanOptions& options, const std::vector<ScanPoint>& known,
                                                const ScanHooks& hooks) {
  const auto tell = [&](const std::string& how) {
    if (hooks.how) hooks.how(how);
  };
  if (options.exchange == "no") {
    tell("points are independent of each other");
    return {};
  }
  std::vector<Model> models;
  for (const double value : options.range.values) {
    models.push_back(model_at(options, value));
    options_at(options, value).check(models.back());
    if (models.size() > kMostExchanged) break;
  }
  try {
    const ExchangePlan plan = plan_exchange(options, models);
    const bool is_made =
        known.size() == models.size() && std::all_of(known.begin(), known.end(), [&](const ScanPoint& point) {
          return !point.correlations.empty() && is_complete(point) &&
                 std::binary_search(options.range.values.begin(), options.range.values.end(), point.value);
        });
    tell(fmt::format("one replica exchange of {} points by {}", models.size(), plan.sampler.name));
    return is_made ? known : scan_by_exchange(options, models, plan, hooks);
  } catch (const NoExchange& why) {
    if (options.exchange == "yes") throw InputError(fmt::format("--exchange yes: {}", why.what()));
    tell(fmt::format("points are independent of each other: {}", why.what()));
    return {};
  }
}

}  // namespace

std::vector<ScanPoint> scan(const ScanOptions& options, const std::vector<ScanPoint>& known, const ScanHooks& hooks) {
  if (auto points = exchanged(options, known, hooks)) {
    if (hooks.finished) hooks.finished(*points);
    return *std::move(points);
  }
  std::vector<ScanPoint> points;
  std::vector<double> missing;
  for (const double value : options.range.values) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const ScanPoint& p) { return p.value == value; });
    const bool is_known = found != known.end() && found->correlations.empty();
    if (is_known) points.push_back(*found);
    if (!is_known) missing.push_back(value);
  }
  if (missing.empty()) return points;
  for (const double value : {missing.front(), missing.back()}) {
    const Model model = model_at(options, value);
    options_at(options, value).check(model);
  }
  const unsigned cores =
      options.run.threads > 0 ? options.run.threads : std::max(1U, std::thread::hardware_concurrency());
  const bool together = missing.size() > 1 && options.run.device == Device::cpu;
  std::mutex mutex;
  Collective* const ranks = hooks.collective;
  const std::size_t size = ranks == nullptr ? 1 : static_cast<std::size_t>(ranks->size());
  const unsigned workers = together ? std::min<unsigned>(cores, static_cast<unsigned>(missing.size())) : 1;
  ThreadPool pool(workers);
  // Points wait for each other, so one gets as much of the time as if they were made one after the other by each
  // thread.
  const double rounds = std::ceil(static_cast<double>(missing.size()) / (workers * static_cast<double>(size)));
  const Share share{together ? 1 : options.run.threads, options.run.seconds / rounds};
  if (hooks.progress) hooks.progress(points.size(), options.range.values.size());
  const auto make = [&](std::size_t k) {
    if (hooks.stop != nullptr && *hooks.stop) return;
    const std::optional<ScanPoint> point = run_point(options, missing[k], share, hooks.stop);
    if (!point) return;
    const std::lock_guard lock(mutex);
    points.push_back(*point);
    sort_points(points);
    if (ranks != nullptr) return;
    if (hooks.finished) hooks.finished(points);
    if (hooks.progress) hooks.progress(points.size(), options.range.values.size());
  };
  if (ranks == nullptr) {
    pool.for_each(missing.size(), make);
    sort_points(points);
    return points;
  }
  // Ranks tell each other of a point for each of their threads at a time.
  const std::vector<unsigned> of_ranks = ranks->of_all(workers);
  const std::size_t most = *std::min_element(of_ranks.begin(), of_ranks.end());
  bool stopped = false;
  for (std::size_t first = 0; first < missing.size() && !stopped; first += most * size) {
    std::vector<ScanPoint> others = std::exchange(points, {});
    const std::size_t mine = first + static_cast<std::size_t>(ranks->rank()) * most;
    pool.for_each(std::min(most, missing.size() - std::min(missing.size(), mine)),
                  [&](std::size_t k) { make(mine + k); });
    const std::vector<std::size_t> one_each(size, 1);
    for (const std::string& text : ranks->gather_strings({scan_json(options, points).dump()}, one_each)) {
      const std::vector<ScanPoint> heard = read_scan(json::parse(text), options, "a rank");
      others.insert(others.end(), heard.begin(), heard.end());
    }
    points = std::move(others);
    sort_points(points);
    if (hooks.finished) hooks.finished(points);
    if (hooks.progress) hooks.progress(points.size(), options.range.values.size());
    stopped = ranks->any(hooks.stop != nullptr && *hooks.stop);
  }
  return points;
}

json scan_json(const ScanOptions& options, const std::vector<ScanPoint>& points) {
  const bool is_exchange =
      std::any_of(points.begin(), points.end(), [](const auto& p) { return !p.correlations.empty(); });
  json out = {
      {"version", POISE_VERSION}, {"exchange", is_exchange}, {"scan", scan_head(options)}, {"points", json::array()}};
  for (const ScanPoint& point : points) {
    json one = {{"value", point.value},
                {"sampler", point.sampler},
                {"observables", json::object()},
                {"warnings", point.warnings},
                {"seconds", point.seconds}};
    for (std::size_t k = 0; k < point.rows.size(); ++k) {
      const Observable& row = point.rows[k];
      json& observable = one["observables"][row.name];
      observable = {{"value", real_json(row.value)}, {"error", real_json(row.error)}, {"tau", real_json(row.tau)}};
      if (point.correlations.empty()) continue;
      for (const double value : point.correlations[k]) observable["correlations"].push_back(real_json(value));
    }
    if (!point.correlations.empty()) one["acceptance"] = real_json(point.acceptance);
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
  if (in["scan"] != scan_head(options) || in.value("version", "") != POISE_VERSION) {
    fail("is a scan with other settings, or of another version");
  }
  std::vector<ScanPoint> points;
  const auto real = [](const json& value) { return value.is_number() ? value.get<double>() : std::nan(""); };
  try {
    for (const json& one : in["points"]) {
      ScanPoint point{one.at("value").get<double>(),
                      one.at("sampler").get<std::string>(),
                      {},
                      {},
                      real(one.at("seconds")),
                      one.contains("acceptance") ? real(one["acceptance"]) : std::nan(""),
                      {}};
      for (const json& row : one.at("order")) {
        const auto key = row.get<std::string>();
        const json& found = one.at("observables").at(key);
        point.rows.push_back({key, real(found.at("value")), real(found.at("error")), real(found.at("tau"))});
        if (!found.contains("correlations")) continue;
        auto& correlations = point.correlations.emplace_back();
        for (const json& value : found["correlations"]) correlations.push_back(real(value));
      }
      for (const json& code : one.at("warnings")) point.warnings.push_back(code.get<std::string>());
      points.push_back(std::move(point));
    }
  } catch (const json::exception&) {
    fail("is damaged");
  }
  return points;
}

namespace {

/// Of the error of an observable at a point with that at the next one; not a number where there is none.
double correlation_with_next(const std::vector<ScanPoint>& points, std::size_t k, const std::string& name) {
  const Observable* found = find(points[k], name);
  if (k + 1 >= points.size() || found == nullptr || points[k].correlations.empty()) return std::nan("");
  return points[k].correlations[static_cast<std::size_t>(found - points[k].rows.data())][k + 1];
}

std::string correlations_text(const std::vector<ScanPoint>& points, std::size_t width) {
  if (points.empty() || points[0].correlations.empty()) return "";
  std::string list;
  const ScanPoint& last = points.back();  // at beta = 0 a spin model has other rows
  for (std::size_t row = 0; row < last.rows.size(); ++row) {
    double sum = 0.0, count = 0.0;
    for (std::size_t k = 0; k + 1 < points.size(); ++k) {
      const double one = correlation_with_next(points, k, last.rows[row].name);
      if (std::isfinite(one)) sum += one, ++count;
    }
    list += fmt::format("{}{} {:.2f}", list.empty() ? "" : ", ", last.rows[row].name, sum / count);
  }
  double least = 1.0, most = 0.0;
  for (std::size_t k = 0; k + 1 < points.size(); ++k) {
    least = std::min(least, points[k].acceptance);
    most = std::max(most, points[k].acceptance);
  }
  std::string out = text::wrap(
      fmt::format(
          "Neighbouring points exchanged states ({:.0f} to {:.0f} % of the swaps), so their errors are correlated, "
          "on average by: {}. --json has all correlations; --exchange no makes points independent.",
          100.0 * least, 100.0 * most, list),
      "", width);
  if (least < kFewSwaps) {
    out += text::wrap("Some neighbours hardly exchange: points between them would help.", "note: ", width);
  }
  return out;
}

}  // namespace

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
  return table.text(width) + correlations_text(points, width);
}

std::string scan_csv(const ScanOptions& options, const std::vector<ScanPoint>& points) {
  const std::vector<std::string> names = names_of(points);
  const auto cell = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); };
  std::string out = options.range.key;
  const bool is_exchange = !points.empty() && !points[0].correlations.empty();
  for (const std::string& name : names) {
    out += fmt::format(",{0},{0}_error,{0}_tau", name);
    if (is_exchange) out += fmt::format(",{}_correlation_with_next", name);
  }
  out += ",sampler,warnings\n";
  for (std::size_t k = 0; k < points.size(); ++k) {
    const ScanPoint& point = points[k];
    out += fmt::format("{}", point.value);
    for (const std::string& name : names) {
      const Observable* found = find(point, name);
      const Observable none{name, std::nan(""), std::nan(""), std::nan("")};
      const Observable& row = found == nullptr ? none : *found;
      out += fmt::format(",{},{},{}", cell(row.value), cell(row.error), cell(row.tau));
      if (!is_exchange) continue;
      out += "," + cell(correlation_with_next(points, k, name));
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
