/// Plots: well-formed whatever the data.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <poise/plot.hpp>
#include <poise/types.hpp>
#include "support/markup.hpp"

namespace poise::svg_test {

using testing::count;
using testing::is_well_formed;

TEST(SvgTest, TextIsEscaped) {
  Plot plot;
  plot.title = "a < b & \"c\" \x01 \xff \xc3\xa9";
  plot.x_label = "<script>";
  plot.series = {{.label = "</svg>", .x = {0, 1}, .y = {0, 1}, .color = "\"><x"}};
  const std::string svg = render_svg(plot);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot; \ufffd \ufffd \u00e9"), std::string::npos);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
}

TEST(SvgTest, EmptyAndDegenerateData) {
  EXPECT_TRUE(is_well_formed(render_svg({})));
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = 1e300;
  const std::vector<std::vector<double>> data{
      {}, {5}, {0, 0}, {NAN, inf}, {-1, 0, 1e-9}, {tiny, huge}, {1e17, 1e17 + 64}};
  for (const auto& values : data) {
    for (const bool log : {false, true}) {
      Plot plot;
      plot.x_log = plot.y_log = log;
      plot.series = {{.label = "s", .x = values, .y = values, .low = values, .high = values, .marker_radius = 2}};
      EXPECT_TRUE(is_well_formed(render_svg(plot)));
    }
  }
}

TEST(SvgTest, GapsAndClipping) {
  Plot plot;
  plot.legend = Legend::none;
  plot.series = {{.x = {0, 1, 2, 3, 4}, .y = {0, 1, NAN, 1, 0}}};
  const auto path_of = [](const std::string& svg) {
    const std::size_t at = svg.find("<path d=\"") + 9;
    return svg.substr(at, svg.find('"', at) - at);
  };
  EXPECT_EQ(count(path_of(render_svg(plot)), "M"), 2U);
  plot.series = {{.x = {0, 1, 2}, .y = {0, 1e12, 0}}};
  plot.y_max = 1;
  plot.y_min = 0;
  const std::string path = path_of(render_svg(plot));
  EXPECT_EQ(count(path, "M"), 2U);
  for (std::size_t at = path.find_first_of("ML "); at != std::string::npos; at = path.find_first_of("ML ", at + 1)) {
    EXPECT_LT(std::abs(std::strtod(path.c_str() + at + 1, nullptr)), 1000);
  }
}

TEST(SvgTest, Ticks) {
  Plot plot;
  plot.series = {{.x = {0, 1000}, .y = {-0.3, 0.3}}};
  std::string svg = render_svg(plot);
  for (const char* label : {">0<", ">200<", ">1000<", ">\u22120.2<", ">0.0<", ">0.2<"}) {
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  }
  plot.x_log = true;
  plot.series = {{.x = {1e-8, 1e8}, .y = {0, 3e6}}};
  svg = render_svg(plot);
  EXPECT_NE(svg.find("10<tspan dy=\"-5\" font-size=\"9\">\u22128</tspan>"), std::string::npos);
  EXPECT_NE(svg.find("\u00d7 10<tspan dy=\"-5\" font-size=\"9\">6</tspan>"), std::string::npos);
  plot.series = {{.x = {1, 100}, .y = {0, 1}}};
  EXPECT_NE(render_svg(plot).find(">10<"), std::string::npos);
}

TEST(SvgTest, BadPlotsAreRefused) {
  Plot plot;
  plot.series = {{.label = "s", .x = {0, 1}, .y = {0}}};
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.series = {{.label = "s", .x = {0}, .y = {0}, .low = {0}}};
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.series.clear();
  plot.x_min = 2;
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.x_min = -1;
  plot.x_log = true;
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
}

TEST(SvgTest, BalancePlot) {
  const std::vector<double> knots{0, 1, 2};
  const std::vector<double> log_phi{0.5, 0.2, -0.4};
  const std::string svg = balance_plot(knots, log_phi);
  EXPECT_TRUE(is_well_formed(svg));
  for (const char* part : {"learned", "\u221at", "t/(1 + t)", "min{1, t}", "max{1, t}", "g(t)/g(1)"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(balance_plot(knots, std::vector<double>{1.5, 1.2, 0.6}), svg) << "a constant factor of g has no meaning";
  const std::vector<double> zero{0};
  EXPECT_TRUE(is_well_formed(balance_plot(zero, zero)));
  EXPECT_THROW(static_cast<void>(balance_plot(knots, zero)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(balance_plot(std::vector<double>{1, 1}, std::vector<double>{0, 0})),
               std::invalid_argument);
}

TEST(SvgTest, BoxesShowQuartilesAndLeaveOutWhatIsNotFinite) {
  Plot plot;
  plot.y_label = "size";
  plot.boxes = {{"a, repaired", {1, 2, 3, 4, 5, 100}}, {"b & c", {7}}, {"none", {}}, {"odd", {NAN, INFINITY, 2, 3}}};
  const std::string svg = render_svg(plot);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count(svg, "fill-opacity=\"0.65\""), 3U);  // boxes
  EXPECT_EQ(count(svg, "<circle"), 1U);                // 100 lies beyond the whiskers
  EXPECT_NE(svg.find(">repaired<"), std::string::npos);
  EXPECT_NE(svg.find("b &amp; c"), std::string::npos);
  plot.y_log = true;
  EXPECT_TRUE(is_well_formed(render_svg(plot)));
}

TEST(SvgTest, PanelsHoldTheirPictures) {
  PicturePanel panel;
  panel.title = "draws";
  EXPECT_THROW(static_cast<void>(render_panel(panel)), std::invalid_argument);
  for (int k = 0; k < 5; ++k) panel.pictures.push_back({Image{3, 2, 1, {0, 50, 100, 150, 200, 250}}, "a < b"});
  panel.per_row = 3;
  const std::string svg = render_panel(panel);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count(svg, "data:image/png;base64,iVBORw0KGgo"), 5U);
  EXPECT_EQ(count(svg, "a &lt; b"), 5U);
}

TEST(SvgTest, BarsHaveNamesAndNumbers) {
  BarChart chart{.title = "p < 1", .x_label = "probability", .bars = {}};
  EXPECT_TRUE(is_well_formed(render_bars(chart)));
  chart.bars = {{.label = "a & b", .value = 0.25, .error = 0.02},
                {.label = "none", .value = NAN},
                {.label = std::string(300, 'w'), .value = 0.0, .error = NAN, .note = "!", .first_of_group = true}};
  const std::string svg = render_bars(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("not known"), std::string::npos);
  EXPECT_EQ(svg.find(std::string(100, 'w')), std::string::npos) << "long names are cut";
}

}  // namespace poise::svg_test
