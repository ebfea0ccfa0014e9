/// Line plots, box plots and panels of pictures as self-contained SVG: what reports and documentation are drawn with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/image.hpp>

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

/// The quartiles of a set of values as a box, its median as a line, whiskers to the last values within one and a half
/// times the height of the box, and the values beyond them as dots. Values that are not finite are left out.
struct Boxed {
  std::string label = {};  ///< below the box
  std::vector<double> values = {};
  std::string color = {};  ///< any SVG colour; empty: the next of the Okabe-Ito palette
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
  std::vector<std::string> x_names;  ///< along the x axis in place of numbers: number i stands at i + 1/2
  std::vector<Series> series;        ///< listed in this order; the first is drawn last, on top of the others
  std::vector<Boxed> boxes;          ///< side by side in place of lines; the x axis then has their labels
  Legend legend = Legend::automatic;
  double width = 560;  ///< in CSS pixels, the legend included
  double height = 380;
};

/// The plot as an SVG document. Text may be any UTF-8.
/// Throws std::invalid_argument when the arrays of a series differ in length or the limits are no range.
[[nodiscard]] std::string render_svg(const Plot& plot);

/// Plots side by side, in one document.
[[nodiscard]] std::string render_row(std::span<const Plot> plots);

/// A value by name, with an error where it has one.
struct Bar {
  std::string label;
  double value = 0;
  double error = 0;             ///< one standard error, drawn to both sides; 0 or NaN: none
  std::string note = {};        ///< behind the number
  bool first_of_group = false;  ///< some room above it
};

/// Bars below each other, as long as their values; a value that is not finite has none.
struct BarChart {
  std::string title;
  std::string x_label;
  std::vector<Bar> bars;
  std::optional<double> x_max = {};  ///< the longest bar where it is not given
  double width = 640;
};

/// The bars as an SVG document as high as they need.
[[nodiscard]] std::string render_bars(const BarChart& chart);

/// A picture with a line of text below it.
struct Picture {
  Image image;
  std::string caption;
};

/// Pictures in rows, every pixel a sharp square.
struct PicturePanel {
  std::string title;
  std::vector<Picture> pictures;
  std::size_t per_row = 4;
  double side = 150;  ///< width of a picture in CSS pixels
};

/// The panel as an SVG document that holds the pictures themselves. Throws std::invalid_argument without pictures.
[[nodiscard]] std::string render_panel(const PicturePanel& panel);

/// A learned balancing function beside the fixed ones, log-log for t in [e^-6, e^6], all scaled to g(1) = 1.
/// log g(e^u) = u/2 + phi(|u|), with phi linear between the knots and beyond them with the slope of the end.
[[nodiscard]] std::string balance_plot(std::span<const double> knots, std::span<const double> log_phi);

}  // namespace poise
