/// Writing and checking the text of a layout.
#include "store/layout_text.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/types.hpp>

namespace poise {

namespace {

constexpr Index kMostLevels = Index{std::numeric_limits<Value>::max()} + 1;

using Observation = std::pair<Index, std::int16_t>;

/// What is wrong with a layout, or nothing. Whoever uses one takes these for granted.
const char* flaw(const VariableLayout& layout) {
  if (layout.rows != 0 || layout.columns != 0) {
    if (std::uint64_t{layout.rows} * layout.columns != layout.variables) return "rows and columns that do not fit";
  }
  const auto& levels = layout.cardinalities;
  if (!levels.empty() && levels.size() != layout.variables) return "a wrong number of cardinalities";
  const Index most = levels.empty() ? 2 : *std::max_element(levels.begin(), levels.end());
  const Index least = levels.empty() ? 2 : *std::min_element(levels.begin(), levels.end());
  if (least == 0 || most > kMostLevels) return "cardinalities that make no sense";
  if (!layout.labels.empty() && layout.labels.size() < most) return "too few labels";
  const auto& names = layout.level_names;
  return names.empty() || names.size() == layout.variables ? nullptr : "a wrong number of level names";
}

VariableLayout plain_layout(const nlohmann::json& stored, std::uint64_t most) {
  VariableLayout layout;
  layout.variables = stored.at("variables").get<Index>();
  layout.rows = stored.value("rows", Index{0});
  layout.columns = stored.value("columns", Index{0});
  layout.labels = stored.value("labels", std::vector<std::int8_t>{});
  if (layout.variables > most) return layout;
  if (stored.contains("cardinalities")) {
    const auto& levels = stored.at("cardinalities");
    layout.cardinalities = levels.is_number() ? std::vector<Index>(layout.variables, levels.get<Index>())
                                              : levels.get<std::vector<Index>>();
  }
  layout.level_names = stored.value("level_names", std::vector<std::vector<std::string>>{});
  return layout;
}

}  // namespace

std::string layout_text(const VariableLayout& layout) {
  nlohmann::json json{{"variables", layout.variables}};
  if (layout.is_lattice()) {
    json["rows"] = layout.rows;
    json["columns"] = layout.columns;
  }
  if (!layout.labels.empty()) json["labels"] = layout.labels;
  const auto& levels = layout.cardinalities;
  if (!levels.empty()) {
    // A single cardinality stands for all variables.
    const bool same = std::adjacent_find(levels.begin(), levels.end(), std::not_equal_to<>()) == levels.end();
    json["cardinalities"] = same ? nlohmann::json(levels.front()) : nlohmann::json(levels);
  }
  if (!layout.level_names.empty()) json["level_names"] = layout.level_names;
  if (!layout.observed.empty()) {
    json["observed"] = nlohmann::json::array();
    for (Index i = 0; i < layout.variables; ++i) {
      if (layout.is_observed(i)) json["observed"].push_back({i, layout.observed[i]});
    }
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

VariableLayout parse_layout(const nlohmann::json& stored, const std::string& path, std::uint64_t most) {
  const auto fail = [&](const char* what) { throw InputError(fmt::format("{} has a layout with {}.", path, what)); };
  VariableLayout layout;
  std::vector<Observation> observations;
  try {
    layout = plain_layout(stored, most);
    observations = stored.value("observed", std::vector<Observation>{});
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} has an attribute 'layout' that is not one of poise.", path));
  }
  if (layout.variables > most) fail("more variables than fit into the file");
  if (const char* found = flaw(layout)) fail(found);
  if (stored.contains("observed")) layout.observed.assign(layout.variables, -1);
  for (const auto& [variable, level] : observations) {
    if (variable >= layout.variables || level < 0 || level >= static_cast<int>(kMostLevels)) {
      fail("observations that make no sense");
    }
    layout.observed[variable] = level;
  }
  return layout;
}

}  // namespace poise
