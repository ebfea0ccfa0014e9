/// One model at several values of a parameter: means and errors at each, as a table, JSON, CSV and plots.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>

namespace poise {

/// What is varied: "beta=0.38..0.50:13" is thirteen values at equal distances, "beta=0.1,0.2,0.5" three.
struct ScanRange {
  std::string key;
  std::vector<double> values;
};
/// Throws InputError.
[[nodiscard]] ScanRange read_scan_range(const std::string& text);

struct ScanOptions {
  std::string model;  ///< a spec; the key is set in it
  ModelFiles files;
  ScanRange range;
  std::string sampler = "auto";
  RunOptions run;  ///< of every point; chains are moved by one thread where several points are made at once
};

struct ScanPoint {
  double value = 0.0;
  std::string sampler;
  /// Observables of a spin model; of others the means of the monitors, with their errors and autocorrelation times.
  std::vector<Observable> rows;
  std::vector<std::string> warnings;  ///< codes
  double seconds = 0.0;
};

struct ScanHooks {
  std::function<void(std::size_t done, std::size_t total)> progress = {};  ///< called by one thread at a time
  /// The same, with all points so far in the order of their values: what a caller may write down.
  std::function<void(const std::vector<ScanPoint>&)> finished = {};
  const std::atomic<bool>* stop = nullptr;
};

/// Runs every point that `known` does not have. The random numbers of a point follow from the seed and its value, so
/// points are independent of each other, and other values change none. Throws InputError where the model cannot be made
/// with a value of the key. Ends early when stopped, with the points that are done.
[[nodiscard]] std::vector<ScanPoint> scan(const ScanOptions& options, const std::vector<ScanPoint>& known,
                                          const ScanHooks& hooks);

/// {version, scan{model, key, sampler, options}, points[{value, sampler, observables{NAME{value, error, tau}},
/// warnings[], seconds}]}
[[nodiscard]] nlohmann::json scan_json(const ScanOptions& options, const std::vector<ScanPoint>& points);
/// The points of `scan_json`. Throws InputError where it is of another scan; the values may be others.
[[nodiscard]] std::vector<ScanPoint> read_scan(const nlohmann::json& json, const ScanOptions& options,
                                               const std::string& name);
/// A row for each value.
[[nodiscard]] std::string scan_text(const ScanOptions& options, const std::vector<ScanPoint>& points,
                                    std::size_t width);
[[nodiscard]] std::string scan_csv(const ScanOptions& options, const std::vector<ScanPoint>& points);
/// A plot of every observable over the parameter, with bands of one standard error.
[[nodiscard]] std::string scan_plot(const ScanOptions& options, const std::vector<ScanPoint>& points);

}  // namespace poise
