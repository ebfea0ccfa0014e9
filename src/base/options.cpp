/// Values of options as text and as JSON.
#include "base/options.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>

namespace poise {

namespace {

std::string choice_name(const Option& option, std::uint64_t number) {
  return number < option.choices.size() ? option.choices[number] : option.stored_only;
}

/// "cpu, cuda or auto"
std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t k = 0; k < names.size(); ++k) {
    out += k == 0 ? "" : k + 1 == names.size() ? " or " : ", ";
    out += names[k];
  }
  return out;
}

}  // namespace

std::string flag_of(const Option& option) {
  std::string name = fmt::format("--{}", option.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string default_text(const Option& option, OptionKind kind, const OptionValue& value) {
  const bool is_zero = value == OptionValue() || value == OptionValue(std::uint64_t{0}) || value == OptionValue(0.0) ||
                       value == OptionValue(false);
  if (option.unset != nullptr && is_zero) return option.unset;
  if (kind == OptionKind::real) return fmt::format("{:g}", std::get<double>(value));
  const nlohmann::json json = option_json(option, kind, value);
  return json.is_string() ? json.get<std::string>() : json.is_null() ? "" : json.dump();
}

std::string read_text(const Option& option, OptionKind kind, const std::string& text, OptionValue& value) {
  switch (kind) {
    case OptionKind::whole: {
      const auto number = parse_whole_number(text);
      const bool is_whole = number && *number >= 0;
      if (is_whole && static_cast<std::uint64_t>(*number) >= option.least &&
          static_cast<std::uint64_t>(*number) <= option.most) {
        value = static_cast<std::uint64_t>(*number);
        return "";
      }
      const bool too_large = is_whole && static_cast<std::uint64_t>(*number) > option.most;
      return fmt::format("found {}, expected a whole number of {} {}", quote(text), too_large ? "at most" : "at least",
                         too_large ? option.most : option.least);
    }
    case OptionKind::real: {
      const bool in_seconds = std::string_view(option.value) == "S" && text.ends_with('s');  // such as 30s
      const auto number = parse_real(in_seconds ? text.substr(0, text.size() - 1) : text);
      if (!number || !(*number > 0.0)) return fmt::format("found {}, expected a positive number", quote(text));
      value = *number;
      return "";
    }
    case OptionKind::choice: {
      const auto found = std::find(option.choices.begin(), option.choices.end(), text);
      if (found == option.choices.end()) {
        return fmt::format("found {}, expected {}", quote(text), list_of(option.choices));
      }
      value = static_cast<std::uint64_t>(found - option.choices.begin());
      return "";
    }
    case OptionKind::flag: value = true; return "";
    case OptionKind::text: value = text; return "";
  }
  return "";
}

nlohmann::json option_json(const Option& option, OptionKind kind, const OptionValue& value) {
  if (kind == OptionKind::choice) return choice_name(option, std::get<std::uint64_t>(value));
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

OptionValue option_value(const Option& option, OptionKind kind, const nlohmann::json& json) {
  if (json.is_null()) return {};
  switch (kind) {
    case OptionKind::whole: return json.get<std::uint64_t>();
    case OptionKind::real: return json.get<double>();
    case OptionKind::flag: return json.get<bool>();
    case OptionKind::text: return json.get<std::string>();
    case OptionKind::choice: break;
  }
  const auto name = json.get<std::string>();
  for (std::uint64_t k = 0; k <= option.choices.size(); ++k) {
    if (k == option.choices.size() && option.stored_only == nullptr) break;
    if (name == choice_name(option, k)) return k;
  }
  throw InputError(fmt::format("{}: found {}, expected {}", option.name, quote(name), list_of(option.choices)));
}

}  // namespace poise
