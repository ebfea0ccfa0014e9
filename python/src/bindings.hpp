/// What the files of the Python module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/marginals.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include "base/options.hpp"
#include "store/run_file.hpp"

namespace poise::python {

namespace nb = nanobind;

/// A run with all there is to say of it: just made, or read from a file.
struct Fit {
  StoredRun stored;
  Report report;
  std::vector<std::int8_t> labels;          ///< of two-valued draws, once they were looked at
  std::vector<double> empirical_marginals;  ///< empty when read from a file
  std::optional<RunMarginals> marginals;    ///< where they were asked for
  std::vector<WarmupPoint> warmup_trace;
  std::string state;  ///< from which the run can be made longer; empty where it cannot
  std::string path;   ///< of the file that has the draws, where not all of them are here
};

/// A stretch of work without the interpreter lock that a signal can end: the handler's exception is kept for later.
class Interruptible {
 public:
  /// Runs `work` on a thread of its own while this one listens for signals and calls `look` ten times a second, holding
  /// the lock. What `work` throws is thrown again; what a signal or `look` raised is thrown when `work` has ended,
  /// except a KeyboardInterrupt, which `work` answers by an early end.
  void run(const std::function<void()>& work, const std::function<void()>& look);
  [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }

 private:
  std::atomic<bool> stop_{false};
};

/// The ranks that this script runs on, where a launcher has started several. Throws InputError where MPI is missing
/// then.
Collective* ranks();
/// Whether this is the one that writes files and shows progress.
bool is_root();
/// Work of all ranks: an error of one is one of all.
void together(const std::function<void()>& work);

/// A read-only NumPy array over memory that `owner` keeps alive.
template <class T>
nb::ndarray<nb::numpy, const T> view(const T* data, std::initializer_list<std::size_t> shape, nb::handle owner) {
  return nb::ndarray<nb::numpy, const T>(data, shape.size(), shape.begin(), owner);
}

/// A NumPy array that owns the vector.
template <class T>
nb::ndarray<nb::numpy, T> array(std::vector<T> values, std::vector<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}

/// What to type next, as Python has it: draws=6000 for --draws 6000, sampler="temper" for --sampler temper.
void use_keywords(std::vector<Warning>& warnings);

/// JSON as Python's own dictionaries and lists; null is None.
[[nodiscard]] nb::object to_python(const nlohmann::json& json);

/// JSON from what Python gives for an option: numbers, strings, booleans and None.
[[nodiscard]] nlohmann::json from_python(nb::handle value);

/// Sets the options that keyword arguments give.
template <class Options>
void read_settings(const nb::dict& settings, Options& options) {
  OptionVisitor read([&](const Option& option, OptionKind kind, OptionValue& value) {
    if (!settings.contains(option.name)) return false;
    value = option_value(option, kind, from_python(settings[option.name]));
    return true;
  });
  options.describe(read);
}

/// An option as Python checks and documents it.
[[nodiscard]] nb::dict option_row(const Option& option, OptionKind kind, const OptionValue& value);

template <class Options>
[[nodiscard]] nb::list described_options() {
  nb::list out;
  Options defaults;
  OptionVisitor add([&](const Option& option, OptionKind kind, const OptionValue& value) {
    out.append(option_row(option, kind, value));
    return false;
  });
  defaults.describe(add);
  return out;
}

/// What a progress bar is told.
[[nodiscard]] nb::dict progress_dict(const Progress& progress);

/// The options of a run, with the states that its chains begin in.
[[nodiscard]] RunOptions run_options(const nb::dict& settings);

void bind_models(nb::module_& module);
void bind_targets(nb::module_& module);
void bind_device_functions(nb::module_& module);
void bind_diagnostics(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_ranks(nb::module_& module);
void bind_answers(nb::module_& module);
void bind_marginals(nb::module_& module);
void bind_optimize(nb::module_& module);
void bind_scan(nb::module_& module);
void bind_selection(nb::module_& module);
void bind_stepper(nb::module_& module);

}  // namespace poise::python
