/// Scans over a parameter.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include <poise/report.hpp>
#include "base/file.hpp"
#include "inference/scan.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// What a scan is continued from, where its file is there; the root reads it.
std::vector<ScanPoint> known_points(const std::string& path, const ScanOptions& options) {
  if (path.empty()) return {};
  std::string content;
  try {
    if (is_root()) content = read_file(path);
  } catch (const FileError&) {
  }
  if (ranks() != nullptr) content = ranks()->of_root(content);
  if (content.empty()) return {};
  return read_scan(nlohmann::json::parse(content, nullptr, false), options, path);
}

std::vector<Model> models_at(const std::string& text, const std::optional<Settings>& settings, const std::string& field,
                             const std::string& evidence, const std::string& key, const std::vector<double>& values) {
  const Spec spec = settings ? Spec{text, *settings} : parse_spec(text);
  std::vector<Model> models;
  for (const double value : values) models.push_back(make_model(with_value(spec, key, value), {field, evidence}));
  return models;
}

/// JSON of all points, and how they were made.
std::pair<nb::object, std::string> run_scan(const std::vector<Model>& models, const std::string& name,
                                            const std::string& key, const std::vector<double>& values,
                                            const nb::dict& settings, const nb::object& shown,
                                            const std::string& path) {
  const nb::object progress = is_root() ? shown : nb::none();
  ScanOptions options{.model = name, .files = {}, .range = {key, values}, .run = run_options(settings)};
  options.sampler = nb::cast<std::string>(settings["sampler"]);
  options.exchange = nb::cast<std::string>(settings["exchange"]);
  options.make = [&](double value) {
    const auto found = std::find(values.begin(), values.end(), value);
    return models[static_cast<std::size_t>(found - values.begin())];
  };
  std::vector<ScanPoint> points;
  std::string how;
  bool interrupted = false;
  Interruptible place;
  std::mutex mutex;
  std::pair<std::size_t, std::size_t> made;
  std::optional<Progress> now;
  const ScanHooks hooks{.progress =
                            [&](std::size_t done, std::size_t total) {
                              const std::lock_guard lock(mutex);
                              made = {done, total};
                            },
                        .sampling =
                            [&](const Progress& told) {
                              const std::lock_guard lock(mutex);
                              now = told;
                            },
                        .how = [&](const std::string& told) { how = told; },
                        .state = path,
                        .finished =
                            [&](const std::vector<ScanPoint>& found) {
                              if (!path.empty() && is_root())
                                write_atomically(path, json_text(scan_json(options, found)));
                            },
                        .stop = &place.stop(),
                        .collective = ranks()};
  const auto look = [&] {
    std::optional<Progress> told;
    std::pair<std::size_t, std::size_t> done;
    {
      const std::lock_guard lock(mutex);
      told.swap(now);
      done = made;
    }
    if (told) progress(progress_dict(*told));
    if (done.second == 0) return;
    nb::dict out;
    out["phase"] = "points";
    out["done"] = done.first;
    out["total"] = done.second;
    progress(out);
  };
  const auto work = [&] {
    points = scan(options, known_points(path, options), hooks);
    interrupted = place.stop();
    if (ranks() != nullptr) interrupted = ranks()->any(interrupted);
  };
  place.run([&] { together(work); }, progress.is_none() ? std::function<void()>() : std::function<void()>(look));
  nb::object json = to_python(scan_json(options, points));
  json["interrupted"] = interrupted;
  return {json, how};
}

}  // namespace

void bind_scan(nb::module_& module) {
  module.def("scan_range", [](const std::string& text) {
    const ScanRange range = read_scan_range(text);
    return std::pair(range.key, range.values);
  });
  module.def("models_at", &models_at, nb::arg("text"), nb::arg("settings").none(), nb::arg("field"),
             nb::arg("evidence"), nb::arg("key"), nb::arg("values"));
  module.def("scan", &run_scan, nb::arg("models"), nb::arg("name"), nb::arg("key"), nb::arg("values"),
             nb::arg("settings"), nb::arg("progress").none(), nb::arg("path"));
}

}  // namespace poise::python
