/// What the tester counts, and what it found wrong. Tallies of models add up, in any order, to the same table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace poise::laws {

/// Runs by what they are worth and what they say. A run is right where every marginal is within 0.06 of the truth, or
/// within five of its standard errors.
struct Alarms {
  std::size_t right_silent = 0;
  std::size_t right_warned = 0;
  std::size_t wrong_silent = 0;
  std::size_t wrong_warned = 0;
  std::size_t close = 0;          ///< right ones whose marginals are all within 0.02 of the truth
  std::size_t close_warned = 0;   ///< of them: false alarms
  std::size_t energy_silent = 0;  ///< right and silent, but the mean of log p is off
  /// Right and warned, and right by luck: some variable never moved in chains that differ, or an error that the run
  /// states is over 0.06, so that five of them are over 0.3.
  std::size_t lucky = 0;
  std::size_t close_lucky = 0;  ///< of these: close ones
  std::size_t sure = 0;         ///< right ones that state errors of under 0.02 alone, whatever the truth is
  std::size_t sure_warned = 0;

  [[nodiscard]] std::size_t runs() const { return right_silent + right_warned + wrong_silent + wrong_warned; }
  void add(const Alarms& more);
};

/// Standard errors against the truth: z values beyond 3 should be one in 370.
struct Errors {
  std::size_t count = 0;
  std::size_t beyond = 0;
  double squares = 0.0;  ///< sum of z^2, each at most 100

  [[nodiscard]] double mean_square() const { return count == 0 ? 0.0 : squares / static_cast<double>(count); }
  void add(double z);
  void add(const Errors& more);
};

/// A check that either holds or does not.
struct Checks {
  std::size_t done = 0;
  std::size_t failed = 0;
  double worst = 0.0;  ///< the largest |z|, or difference

  void add(const Checks& more);
};

/// Something wrong, with the command that shows it again.
struct Finding {
  std::string check;
  std::string kind;
  std::string sampler;
  std::string what;
  std::string again;
  bool gates = true;  ///< whether it makes the tester fail
};

/// Way, kind, sampler, start.
using RunKey = std::array<std::string, 4>;

struct Tally {
  std::size_t models = 0;
  std::map<RunKey, Alarms> alarms;
  std::map<std::string, Errors> errors;
  std::map<std::string, Checks> checks;
  std::map<std::string, std::size_t> false_alarms;  ///< by cause: warnings of runs that are close
  std::vector<Finding> findings;
  nlohmann::json records = nlohmann::json::array();  ///< of all runs: what they were and what was found

  void add(const Tally& more);
  [[nodiscard]] bool passes() const;
  /// Those of all runs whose key has `value` at place `place`, and `way` at the first; an empty text is anything.
  [[nodiscard]] Alarms sum(const std::string& way, std::size_t place, const std::string& value) const;
};

/// The table for people.
[[nodiscard]] std::string tally_text(const Tally& tally);
/// Keys: models, runs[{way, kind, sampler, start, right_silent, right_warned, wrong_silent, wrong_warned, close,
/// close_warned, energy_silent, lucky, close_lucky, sure, sure_warned}], errors{NAME{count, beyond_3, mean_square}},
/// checks{NAME{done, failed, worst}}, false_alarms{CAUSE}, findings[{check, kind, sampler, what, again, gates}],
/// passes, records[{model, way, kind, sampler, start, drawn_by, right, close, lucky, codes[], ess, off, error,
/// z2{NAME}}]: a run each, with its smallest effective sample size, its largest difference from the truth and stated
/// error, and the mean z^2 of each row of errors where it is right and silent.
[[nodiscard]] nlohmann::json tally_json(const Tally& tally);

}  // namespace poise::laws
