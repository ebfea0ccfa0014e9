/// Line plots as self-contained SVG: what the reports and the figures of the documentation are drawn with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poise {

/// One line, with an optional band around it. Points that are not finite (or not positive on a log axis) leave a gap.
struct Series {
  std::string label = {};  ///< in the legend; empty: not listed there
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};   ///< lower edge of the band; empty with `high`: no band
  std::vector<double> high = {};  ///< upper edge of the band
  std::string color = {};         ///< any SVG colour; empty: the next of the Okabe-Ito palette
  double line_width = 1.8;        ///< 0: no line, markers only
  std::string dash = {};          ///< SVG dash pattern such as "6 3"; empty: solid
  double marker_radius = 0;       ///< of a dot at every point; 0: none
};

enum class Legend {
  automatic,  ///< in a corner that no line crosses, else outside
  outside,    ///< to the right of the plot
  none,
};

/// Everything a plot needs. Limits left out are taken from the data.
struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool x_log = false;
  bool y_log = false;
  std::optional<double> x_min;
  std::optional<double> x_max;
  std::optional<double> y_min;
  std::optional<double> y_max;
  std::vector<Series> series;  ///< listed in this order; the first is drawn last, on top of the others
  Legend legend = Legend::automatic;
  double width = 560;  ///< in CSS pixels, the legend included
  double height = 380;
};

/// The plot as an SVG document. Text may be any UTF-8.
/// Throws std::invalid_argument when the arrays of a series differ in length or the limits are no range.
[[nodiscard]] std::string render_svg(const Plot& plot);

/// A learned balancing function beside the fixed ones, log-log for t in [e^-6, e^6], all scaled to g(1) = 1.
/// log g(e^u) = u/2 + phi(|u|), with phi linear between the knots and beyond them with the slope of the end.
[[nodiscard]] std::string balance_plot(std::span<const double> knots, std::span<const double> log_phi);

}  // namespace poise
