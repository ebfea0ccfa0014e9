/// One model at several values of a parameter: means and errors at each, as a table, JSON, CSV and plots.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/extend/base/spec.hpp>
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

/// A spec with the key at a value, whatever it was before.
[[nodiscard]] Spec with_value(Spec spec, const std::string& key, double value);

struct ScanOptions {
  std::string model;  ///< a spec; the key is set in it
  ModelFiles files;
  ScanRange range;
  std::string sampler = "auto";
  /// Of every point; `seconds` of all of them together. Chains of a point are moved by one thread where several points
  /// are made at once.
  RunOptions run;
  /// Whether all points are one replica exchange: `yes`, `no`, or `auto`, where the parameter multiplies log p.
  std::string exchange = "auto";
  std::function<Model(double)> make = {};  ///< the model at a value; empty: `model` with the key set
};

struct ScanPoint {
  double value = 0.0;
  std::string sampler;
  /// Observables of a spin model; of others the means of the monitors, with their errors and autocorrelation times.
  std::vector<Observable> rows;
  std::vector<std::string> warnings;  ///< codes
  double seconds = 0.0;
  // Of a replica exchange:
  double acceptance = std::nan("");               ///< of swaps with the next point
  std::vector<std::vector<double>> correlations;  ///< [row][point] of the errors; empty where points are independent
};

struct ScanHooks {
  std::function<void(std::size_t done, std::size_t total)> progress = {};  ///< called by one thread at a time
  std::function<void(const Progress&)> sampling = {};                      ///< of a replica exchange
  /// Told once how points are made: by replica exchange, or why not.
  std::function<void(const std::string&)> how = {};
  std::string state;  ///< path that a replica exchange keeps its state beside, to be continued from; empty: nowhere
  /// The same, with all points so far in the order of their values: what a caller may write down.
  std::function<void(const std::vector<ScanPoint>&)> finished = {};
  const std::atomic<bool>* stop = nullptr;
  /// The ranks that make the scan together, all with the same options and known points: they divide the points, or the
  /// ladders of a replica exchange. All get all points, those of one process.
  Collective* collective = nullptr;
};

/// What a scan has in common with those whose points it may take over.
[[nodiscard]] nlohmann::json scan_head(const ScanOptions& options);

/// Where the parameter multiplies log p, all points are one replica exchange, made anew unless `known` has all of them.
/// Otherwise runs every point that `known` does not have: the random numbers of a point follow from the seed and its
/// value, so points are independent of each other, and other values change none. Throws InputError where the model
/// cannot be made with a value of the key. Ends early when stopped, with the points that are done.
[[nodiscard]] std::vector<ScanPoint> scan(const ScanOptions& options, const std::vector<ScanPoint>& known,
                                          const ScanHooks& hooks);

/// {version, exchange, scan{model, key, sampler, options}, points[{value, sampler, observables{NAME{value, error, tau,
/// correlations[]}}, acceptance, warnings[], seconds}]}
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
