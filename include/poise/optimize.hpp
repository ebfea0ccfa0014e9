/// The best state of a model: exact and proved where elimination is cheap, found by search elsewhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <poise/devices.hpp>
#include <poise/model.hpp>
#include <poise/trace.hpp>
#include <poise/types.hpp>

namespace poise {

class OptionVisitor;

/// When the search ends, and what it may use. Memory is about 300 bytes a variable and thread beside the model.
struct OptimizeOptions {
  /// Wall-clock limit of the whole call, reading not counted. Ten seconds where there is no other limit.
  std::optional<double> seconds;
  /// Limits the search by sweeps of one chain instead: the answer then depends on the seed alone, for any number of
  /// threads.
  std::optional<std::uint64_t> sweeps;
  std::optional<double> target;                          ///< stop as soon as the objective is at least as good
  std::size_t solutions = 1;                             ///< distinct best states to report
  double memory_limit = 4.0 * (std::uint64_t{1} << 30);  ///< bytes that tables of exact maximisation may take
  Device device = Device::cpu;
  std::uint64_t seed = 1;
  unsigned threads = 0;

  void describe(OptionVisitor& visit);
};

/// States to start from and variables that must keep a level.
struct OptimizeStart {
  std::vector<std::vector<Value>> states;
  std::vector<std::optional<Value>> fixed;  ///< empty: none
  std::string resumed;                      ///< what OptimizeHooks::after_round had saved; empty: a new search
};

/// One state and its objective.
struct Solution {
  double objective = 0.0;  ///< as the user counts it: sense, offset and sign
  std::vector<Value> state;
  std::uint64_t count = 1;  ///< how often the search arrived there
};

/// An improvement of the best state.
struct Improvement {
  double seconds = 0.0;
  std::uint64_t sweeps = 0;
  double objective = 0.0;
};

/// The best states that were found, and whether they are proved to be the best.
struct OptimizeAnswer {
  std::string model;
  std::string objective;             ///< what it is called: cut, energy, log_prob, ...
  bool maximise = true;              ///< its direction
  std::vector<Solution> solutions;   ///< best first, distinct modulo the symmetry of the model; never empty
  bool optimal = false;              ///< only where it is proved
  std::optional<double> bound;       ///< no state is better than that
  std::vector<Improvement> history;  ///< of the best state
  std::string reason;                ///< how it was found, in one sentence
  double seconds = 0.0;
  bool interrupted = false;

  /// The first solution.
  [[nodiscard]] const Solution& best() const { return solutions.front(); }
};

/// How the search talks to the outside.
struct OptimizeHooks {
  /// Told now and then: the best so far, when it was found, and how far the work is (0 to 1).
  std::function<void(const Improvement& best, double done)> progress;
  const std::atomic<bool>* stop = nullptr;
  /// Called between two rounds of a search with a function that gives its state, to resume from.
  std::function<void(const std::function<std::string()>& save)> after_round;
};

/// The best state of a model that was found. Throws InputError where the model has no state of positive probability.
[[nodiscard]] OptimizeAnswer find_best(const Model& model, const OptimizeOptions& options,
                                       const OptimizeStart& start = {}, const OptimizeHooks& hooks = {});

/// The whole answer. States hold labels as draws do: -1 and 1 for spins.
[[nodiscard]] nlohmann::json optimize_json(const OptimizeAnswer& answer, const VariableLayout& layout);
/// What a terminal shows, in lines of at most `width` characters.
[[nodiscard]] std::string optimize_text(const OptimizeAnswer& answer, const VariableLayout& layout, std::size_t width);
/// The objective of the best state over time, as a picture.
[[nodiscard]] std::string optimize_plot(const OptimizeAnswer& answer);

/// The solutions as text: one state a line, a label for each variable. This is what `parse_states` reads.
[[nodiscard]] std::string states_text(const OptimizeAnswer& answer, const VariableLayout& layout);
/// States to start from, one a line; '#' starts a comment. `name` is for messages. Throws InputError.
[[nodiscard]] std::vector<std::vector<Value>> parse_states(std::string_view content, std::string_view name,
                                                           const VariableLayout& layout);
/// Variables that must keep a level: lines `variable label` or `variable = label`, where a variable is a name or a
/// number from 0 on, and a label is what output calls a level. Throws InputError.
[[nodiscard]] std::vector<std::optional<Value>> parse_fixed(std::string_view content, std::string_view name,
                                                            const VariableLayout& layout);

}  // namespace poise
