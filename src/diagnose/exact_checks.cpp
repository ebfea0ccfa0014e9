/// Frequencies of levels against the exact marginals of small parts.
#include <algorithm>
#include <cmath>

#include "diagnose/model_checks.hpp"
#include "exact/block_laws.hpp"

namespace poise {

namespace {

/// Table entries that junction trees may visit, and variables that are planned for, however short the run is: a
/// millisecond or two. And how many for each update of the run: a hundredth of its time.
constexpr double kFreeEntries = 1 << 20;
constexpr double kFreeVariables = 256.0;
constexpr double kEntriesPerUpdate = 0.08;
constexpr double kVariablesPerUpdate = 1e-4;
/// A probability may be off by this without being wrong.
constexpr double kNegligible = 0.06;
constexpr std::size_t kMostOff = 1000;

}  // namespace

void add_exact_checks(const Model& model, std::span<const double> frequencies, std::uint64_t updates,
                      ModelChecks& checks) {
  const VariableLayout& layout = model.layout;
  const auto count = static_cast<double>(updates);
  const double variables = kFreeVariables + kVariablesPerUpdate * count;
  // Only networks are known to fall into parts without being made one.
  const bool is_network = std::holds_alternative<NetworkDescription>(model.description);
  if (!is_network && layout.variables > variables) return;
  const std::shared_ptr<const Network> network = tables_to_check(model, updates);
  if (!network) return;
  const std::vector<ExactPart> parts =
      cheap_parts(*network, kFreeEntries + kEntriesPerUpdate * count, static_cast<std::size_t>(variables));
  std::vector<std::size_t> first(layout.variables + 1, 0);  // of each variable, in `frequencies`
  for (Index i = 0; i < layout.variables; ++i) first[i + 1] = first[i] + layout.levels(i) - 1;
  std::size_t solved = 0;
  for (const ExactPart& part : parts) {
    solved += part.variables.size();
    for (std::size_t k = 0; k < part.variables.size(); ++k) {
      const Index i = part.variables[k];
      if (layout.levels(i) < 2) continue;
      const std::span<const double> exact = part.marginals.of(static_cast<Index>(k));
      double lowest = 1.0;
      const auto compare = [&](Index level, double frequency) {
        if (std::abs(frequency - exact[level]) <= kNegligible) return;
        checks.off.push_back({i, layout.label(static_cast<Value>(level)), frequency, exact[level]});
      };
      for (Index level = 1; level < exact.size(); ++level) {
        const double frequency = frequencies[first[i] + level - 1];
        lowest -= frequency;
        compare(level, frequency);
      }
      if (exact.size() > 1) compare(0, lowest);
    }
  }
  checks.solved = solved == layout.variables;
  std::stable_sort(checks.off.begin(), checks.off.end(), [](const auto& a, const auto& b) {
    return std::abs(a.frequency - a.probability) > std::abs(b.frequency - b.probability);
  });
  if (checks.off.size() > kMostOff) checks.off.resize(kMostOff);
}

}  // namespace poise
