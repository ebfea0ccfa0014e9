/// Draws and states as text for other programs.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include <poise/network.hpp>
#include <poise/report.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

std::string variable_name(const VariableLayout& layout, Index i) {
  return i < layout.names.size() ? layout.names[i] : fmt::format("x[{}]", i);
}

Value level_of(const VariableLayout& layout, std::int8_t label) {
  if (layout.labels.empty()) return static_cast<Value>(label);
  return static_cast<Value>(std::find(layout.labels.begin(), layout.labels.end(), label) - layout.labels.begin());
}

std::string level_text(const VariableLayout& layout, Index i, std::int8_t label) {
  if (layout.level_names.empty()) return fmt::format("{}", label);
  return layout.level_names[i][level_of(layout, label)];
}

}  // namespace

std::string draws_csv(const Trace& trace, const VariableLayout& layout) {
  const Index n = layout.variables;
  std::string out = "chain,draw,log_prob";
  for (Index i = 0; i < n; ++i) out += ',' + text::csv_field(variable_name(layout, i));
  out += '\n';
  // Fields of levels are made once: there are few of them, and many draws.
  std::vector<std::vector<std::string>> fields(layout.level_names.size());
  for (Index i = 0; i < fields.size(); ++i) {
    for (const std::string& level : layout.level_names[i]) fields[i].push_back(text::csv_field(level));
  }
  for (std::size_t row = 0; row < trace.chains * trace.draws; ++row) {
    fmt::format_to(std::back_inserter(out), "{},{},{}", row / trace.draws, row % trace.draws * trace.stride,
                   trace.monitors[0][row]);
    for (Index i = 0; i < n; ++i) {
      const std::int8_t label = trace.x.label(row, i);
      out += ',';
      if (fields.empty()) {
        fmt::format_to(std::back_inserter(out), "{}", static_cast<int>(label));
      } else {
        out += fields[i][level_of(layout, label)];
      }
    }
    out += '\n';
  }
  return out;
}

std::string best_state_text(const BestDraw& best, const VariableLayout& layout, const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::toupper(c); });
  if (ending == ".MPE" || ending == ".MAP") {
    std::vector<Value> levels;
    for (const std::int8_t label : best.state) levels.push_back(level_of(layout, label));
    return mpe_text(levels);
  }
  std::string out;
  const Index n = layout.variables;
  const Index columns = layout.is_lattice() ? layout.columns : !layout.sides.empty() ? layout.sides.back() : n;
  for (Index i = 0; i < n; ++i) {
    if (layout.names.empty()) {
      out += fmt::format("{}{}", static_cast<int>(best.state[i]), (i + 1) % columns == 0 ? '\n' : ' ');
    } else {
      out += fmt::format("{} = {}\n", layout.names[i], level_text(layout, i, best.state[i]));
    }
  }
  return out;
}

}  // namespace poise
