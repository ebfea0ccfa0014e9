/// The one grammar for models and samplers, `name:key=value,key=value`, and a reader that reports all problems at once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// A name and its settings in the order given. The name holds none of ":=,", a key no "=" or ",", a value no ",";
/// a value may hold ":", "=" and "/", so that it can be a file name.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;

  /// The text that `parse_spec` turns back into this.
  [[nodiscard]] std::string text() const;
  bool operator==(const Spec&) const = default;
};

/// Reads `name` or `name:key=value,...`. Throws InputError with every problem of the text; which names and keys there
/// are is for `SpecReader` and its caller to say.
Spec parse_spec(std::string_view text);

/// The candidate closest to a mistyped word, or an empty string when none is close. Close means: at most one edit (a
/// letter added, dropped, changed, or two neighbours swapped) for every three letters, or the word, of three letters or
/// more, begins the candidate. Upper and lower case are the same; of equally close candidates the first wins.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);
/// " (did you mean 'candidate'?)", to end a message with; empty where no candidate is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// The whole of `text` as a finite number or an integer, whatever the locale; nothing otherwise, nor when it is too
/// large or too small (1e400, 1e-400) for the type.
std::optional<double> parse_real(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);
/// A whole number as people type it: 1000000, or 1e6 where that is exact.
std::optional<std::int64_t> parse_whole_number(std::string_view text);

/// `found` in single quotes for an error message: shortened when long, other bytes than printable ASCII in
/// hexadecimal.
std::string quote(std::string_view found);

/// Reads the settings of a spec with types and ranges. A getter gives the default when its key is absent or its value
/// is wrong, and notes the problem; `finish` throws them all together, so nothing that was read may be used before it.
class SpecReader {
 public:
  static constexpr std::int64_t kMinInteger = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
  static constexpr double kMinReal = std::numeric_limits<double>::lowest();
  static constexpr double kMaxReal = std::numeric_limits<double>::max();

  /// `kind` says what is read, in messages: "model" or "sampler".
  SpecReader(Spec spec, std::string kind);

  [[nodiscard]] bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t min = kMinInteger,
                       std::int64_t max = kMaxInteger);
  double real(std::string_view key, double otherwise, double min = kMinReal, double max = kMaxReal);
  std::string choice(std::string_view key, std::string_view otherwise, const std::vector<std::string>& names);
  std::string text(std::string_view key, std::string_view otherwise) const;

  /// Notes that the value of a key is wrong; `expected` completes "found '...', expected".
  void reject(std::string_view key, std::string_view expected);
  /// Notes a problem in the caller's own words, without a full stop.
  void problem(std::string sentence);

  /// Notes the keys that are not among `known`, then throws one InputError that lists every problem, if there is any.
  void finish(const std::vector<std::string>& known);

 private:
  [[nodiscard]] const std::string* find(std::string_view key) const;

  Spec spec_;
  std::string kind_;
  std::vector<std::string> problems_;
};

/// A name that can be given on the command line, and a line of help.
struct NameHelp {
  std::string name;
  std::string help;
};

}  // namespace poise
