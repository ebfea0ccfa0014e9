/// Figures that the experiments share: curves of several samplers and the balancing functions that were learned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/plot.hpp>

#include "studies/contestant.hpp"
#include "studies/document.hpp"
#include "studies/estimate.hpp"

namespace poise::reproduction {

/// A line in the colour of the contestant, labelled with its name.
[[nodiscard]] Series line_of(const Contestant& contestant);

/// Mean and a band of two standard errors; at most `points` of them, evenly chosen.
struct BandData {
  std::vector<double> x;
  std::vector<double> mean;
  std::vector<double> error;  ///< empty: no band
};
[[nodiscard]] Series band_of(const Contestant& contestant, const BandData& data, std::size_t points = 120);

/// Learned balancing functions over the four fixed ones, log-log, scaled to g(1) = 1. `phi` as `tabulated` gives it.
struct LearnedFunction {
  const Contestant* contestant;
  std::vector<double> phi;
};
enum class FigureSize { large, small };
[[nodiscard]] std::string balance_figure(const std::string& title, const std::vector<LearnedFunction>& learned,
                                         FigureSize size = FigureSize::large);

/// What a table shows of one contestant in one case.
struct Compared {
  Estimate ours;
  std::optional<Estimate> published;
};

struct ComparisonPlan {
  std::string name;
  std::string caption;
  std::vector<std::string> cases;  ///< titles of the columns
  bool larger_is_better = true;
};

/// Our number beside the published one, a row for each contestant. The best of a case and what cannot be told from it
/// are set in bold, and what differs from the published number by more than chance is marked. `cells` is
/// [case][contestant].
[[nodiscard]] Table comparison_table(const ComparisonPlan& plan, const std::vector<Contestant>& contestants,
                                     const std::vector<std::vector<Compared>>& cells);

}  // namespace poise::reproduction
