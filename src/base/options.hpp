/// Options described once: flags, help, Python keywords, JSON and fingerprints follow from one description.
///
/// An options struct has `void describe(OptionVisitor& visit)`, which calls `visit` for each of its fields. Each caller
/// that reads, writes or lists options is a visitor, so a new option is one field and one line.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace poise {

struct Option {
  /// A resumed run must have the same `identity`; `setting` is recorded with the draws; `machine` says how the work
  /// is done and is recorded nowhere but in checkpoints.
  enum class Role { identity, setting, machine };

  const char* name;   ///< keyword in Python and key in JSON; a flag has dashes instead of underscores
  const char* value;  ///< that stands for the value in help, such as N
  const char* help;   ///< in words that suit the program and Python
  Role role = Role::setting;
  const char* unset = nullptr;  ///< what holds where the value is 0 or none, for help; null: the value itself
  std::uint64_t least = 0;      ///< of whole numbers; others are positive
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::string> choices = {};  ///< names of an enum's values, in their order
  const char* stored_only = nullptr;      ///< name of the value behind the last choice, which cannot be typed
};

enum class OptionKind { whole, real, choice, text, flag };

/// Nothing where an optional field is empty; a choice is the number of its value.
using OptionValue = std::variant<std::monostate, std::uint64_t, double, bool, std::string>;

class OptionVisitor {
 public:
  /// Gives whether the value was changed.
  using Look = std::function<bool(const Option&, OptionKind, OptionValue&)>;
  explicit OptionVisitor(Look look) : visit_(std::move(look)) {}

  template <class T>
  void operator()(const Option& option, T& field) {
    if constexpr (std::is_enum_v<T>) {
      OptionValue value = static_cast<std::uint64_t>(field);
      if (visit_(option, OptionKind::choice, value)) field = static_cast<T>(std::get<std::uint64_t>(value));
    } else {
      OptionValue value = Field<T>::value(field);
      if (visit_(option, Field<T>::kind, value)) field = Field<T>::field(value);
    }
  }

 private:
  template <class T>
  struct Field {
    using Stored = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::uint64_t, T>;
    static constexpr OptionKind kind = std::is_same_v<T, bool>     ? OptionKind::flag
                                       : std::is_integral_v<T>     ? OptionKind::whole
                                       : std::is_same_v<T, double> ? OptionKind::real
                                                                   : OptionKind::text;
    static OptionValue value(const T& field) { return static_cast<Stored>(field); }
    static T field(const OptionValue& value) { return static_cast<T>(std::get<Stored>(value)); }
  };
  template <class T>
  struct Field<std::optional<T>> {
    static constexpr OptionKind kind = Field<T>::kind;
    static OptionValue value(const std::optional<T>& field) { return field ? Field<T>::value(*field) : OptionValue(); }
    static std::optional<T> field(const OptionValue& value) {
      if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
      return Field<T>::field(value);
    }
  };

  Look visit_;
};

/// The name as a flag: --first-chain.
[[nodiscard]] std::string flag_of(const Option& option);
/// What help says behind the words: the value that holds where none is given; may be empty.
[[nodiscard]] std::string default_text(const Option& option, OptionKind kind, const OptionValue& value);
/// Reads what was typed; gives what is wrong with it, as "found 'x', expected ...", or nothing.
[[nodiscard]] std::string read_text(const Option& option, OptionKind kind, const std::string& text, OptionValue& value);

/// A choice is its name, and an empty value null.
[[nodiscard]] nlohmann::json option_json(const Option& option, OptionKind kind, const OptionValue& value);
/// The other way. Throws nlohmann::json::exception where the type is another, and InputError for unknown names.
[[nodiscard]] OptionValue option_value(const Option& option, OptionKind kind, const nlohmann::json& json);

/// The options whose role is at most `last`, by name.
template <class Options>
[[nodiscard]] nlohmann::json options_json(Options options, Option::Role last = Option::Role::machine) {
  nlohmann::json out = nlohmann::json::object();
  OptionVisitor write([&](const Option& option, OptionKind kind, const OptionValue& value) {
    if (option.role <= last) out[option.name] = option_json(option, kind, value);
    return false;
  });
  options.describe(write);
  return out;
}

/// Sets what is there.
template <class Options>
void read_options_json(const nlohmann::json& json, Options& options) {
  OptionVisitor read([&](const Option& option, OptionKind kind, OptionValue& value) {
    const auto found = json.find(option.name);
    if (found == json.end()) return false;
    value = option_value(option, kind, *found);
    return true;
  });
  options.describe(read);
}

}  // namespace poise
