/// The picture of variable selection: inclusion probabilities along the genome, and correlations of what matters most.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <poise/plot.hpp>
#include <poise/selection.hpp>
#include "base/file.hpp"
#include "inference/select/selection_parts.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

constexpr std::size_t kMostCorrelated = 12;  // variables whose correlations are shown
constexpr double kWorthShowing = 0.01;       // inclusion probability that these have at least
constexpr std::size_t kMostListed = 14;      // sets in the legend
constexpr std::size_t kMostNamed = 12;       // variables up to which the axis has their names
constexpr std::size_t kLongestName = 18;     // letters
constexpr std::size_t kMostDots = 2000;      // points of variables that hardly matter
constexpr double kHardlyMatters = 0.005;
constexpr double kWidth = 860;
constexpr double kHeight = 380;
constexpr double kCell = 34;
constexpr double kLetters = 12;
constexpr std::string_view kGrey = "#8a8a8a";
/// Okabe and Ito's palette without black and yellow.
constexpr std::array<std::string_view, 6> kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

std::string color_of(std::size_t set) { return std::string(kColors[set % kColors.size()]); }

std::string short_name(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // inside of a letter of UTF-8
  return name.substr(0, end) + "\u2026";
}

/// The column of positions that goes with summary statistics; nothing where there is none, or not all are numbers.
std::optional<std::vector<double>> positions_of(const SummaryTable& summary) {
  for (std::size_t k = 0; k < summary.extra_heads.size(); ++k) {
    const std::string& head = summary.extra_heads[k];
    const auto is = [&](std::string_view name) { return same_letters(head, name); };
    if (!is("position") && !is("pos") && !is("bp") && !is("base_pair_location")) continue;
    std::vector<double> out;
    for (const std::vector<std::string>& row : summary.extra) {
      double value = 0.0;
      const auto [end, error] = std::from_chars(row[k].data(), row[k].data() + row[k].size(), value);
      if (error != std::errc() || end != row[k].data() + row[k].size() || !std::isfinite(value)) return std::nullopt;
      out.push_back(value);
    }
    return out;
  }
  return std::nullopt;
}

/// Where variables stand along x.
struct Places {
  std::vector<double> x;
  std::string label;
  std::vector<std::string> names;
};

Places places_of(const SelectionAnswer& answer, const std::vector<double>& given) {
  const std::size_t p = answer.variables.size();
  if (!given.empty() && given.size() != p) {
    throw InputError(fmt::format("positions: found {}, expected {}, one for each variable", given.size(), p));
  }
  std::optional<std::vector<double>> positions = positions_of(answer.summary);
  if (!given.empty()) positions = given;
  Places out;
  if (positions && positions->size() == p) {
    out.x = std::move(*positions);
    out.label = "position";
    constexpr double kMega = 1e6;
    if (*std::max_element(out.x.begin(), out.x.end()) >= kMega) {
      for (double& x : out.x) x /= kMega;
      out.label = "position (Mb)";
    }
    return out;
  }
  // Names that would run into each other give way to numbers.
  double widest = 0.0;
  for (std::size_t j = 0; j < std::min(p, kMostNamed); ++j) {
    widest = std::max(widest, svg::width_of(short_name(answer.variables[j].name), kLetters));
  }
  const bool named = p <= kMostNamed && (widest + 8.0) * static_cast<double>(p) < kWidth - 90.0;
  for (std::size_t j = 0; j < p; ++j) {
    out.x.push_back(named ? static_cast<double>(j) + 0.5 : static_cast<double>(j + 1));
    if (named) out.names.push_back(short_name(answer.variables[j].name));
  }
  if (!named) out.label = "variable, in the order of the data";
  return out;
}

std::string set_label(const SelectionAnswer& answer, std::size_t k) {
  const CredibleSet& set = answer.sets[k];
  return fmt::format("set {}: {}, P(signal) {:.2f}, led by {}", k + 1, text::plural(set.variables.size(), "variable"),
                     set.mass, short_name(answer.variables[set.variables.front()].name));
}

/// Points and, apart from them, their error bars.
struct Points {
  Series points;
  Series bars;
};

void add_point(const SelectedVariable& variable, double x, Points& to) {
  to.points.x.push_back(x);
  to.points.y.push_back(variable.pip);
  constexpr double kVisible = 0.002;  // half a pixel
  if (!(variable.pip_se > kVisible)) return;
  const double gap = std::numeric_limits<double>::quiet_NaN();
  for (const double end : {variable.pip - 2.0 * variable.pip_se, variable.pip + 2.0 * variable.pip_se, gap}) {
    to.bars.x.push_back(std::isnan(end) ? gap : x);
    to.bars.y.push_back(std::isnan(end) ? gap : std::clamp(end, 0.0, 1.0));
  }
}

std::string probabilities_plot(const SelectionAnswer& answer, const std::vector<double>& positions) {
  const Places places = places_of(answer, positions);
  const std::size_t p = answer.variables.size();
  std::vector<std::size_t> group(p, answer.sets.size());  // the number of the set; that of all others is the last
  for (std::size_t k = 0; k < answer.sets.size(); ++k) {
    for (const Index j : answer.sets[k].variables) group[j] = k;
  }
  std::vector<Points> groups(answer.sets.size() + 1);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const bool is_set = k < answer.sets.size();
    Series& points = groups[k].points;
    points.line_width = 0;
    points.marker_radius = is_set ? 4 : 2.5;
    points.color = groups[k].bars.color = is_set ? color_of(k) : std::string(kGrey);
    groups[k].bars.line_width = 1.2;
    if (k < std::min(kMostListed, answer.sets.size())) points.label = set_label(answer, k);
  }
  if (!answer.sets.empty()) groups.back().points.label = "in no credible set";
  const std::size_t stride = std::max<std::size_t>(1, p / kMostDots);
  for (std::size_t j = 0; j < p; ++j) {
    const bool shown = group[j] < answer.sets.size() || answer.variables[j].pip >= kHardlyMatters || j % stride == 0;
    if (shown) add_point(answer.variables[j], places.x[j], groups[group[j]]);
  }
  Plot plot;
  plot.title = answer.model;
  plot.x_label = places.label;
  plot.y_label = "inclusion probability";
  plot.x_names = places.names;
  plot.y_min = -0.02;
  plot.y_max = 1.05;
  plot.width = kWidth;
  plot.height = kHeight;
  // Legends of many sets would hide the points.
  plot.legend = answer.sets.empty() ? Legend::none : Legend::automatic;
  for (Points& one : groups) {
    plot.series.push_back(std::move(one.points));
    if (!one.bars.x.empty()) plot.series.push_back(std::move(one.bars));
  }
  return render_svg(plot);
}

/// White for 0, blue towards -1, vermilion towards 1.
std::string shade(double r) {
  const std::array<double, 3> full = r < 0.0 ? std::array{0.0, 114.0, 178.0} : std::array{213.0, 94.0, 0.0};
  const double part = std::min(1.0, std::abs(r));
  std::array<int, 3> mixed{};
  for (std::size_t k = 0; k < 3; ++k) mixed[k] = static_cast<int>(std::lround(255.0 + part * (full[k] - 255.0)));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

/// The heat map of correlations, with `y` of its upper edge; names on the left have the colour of their set.
std::string correlations_map(const SelectionAnswer& answer, double y) {
  const std::size_t count = answer.top.size();
  std::vector<std::string> colors(answer.variables.size(), std::string(kGrey));
  for (std::size_t k = 0; k < answer.sets.size(); ++k) {
    for (const Index j : answer.sets[k].variables) colors[j] = color_of(k);
  }
  double names = 0.0;
  for (const Index j : answer.top) {
    names = std::max(names, svg::width_of(short_name(answer.variables[j].name), kLetters));
  }
  const double left = 24 + names + 20;
  const auto text = [](double x, double at, std::string_view anchor, std::string_view words,
                       const std::string& more = "") {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", svg::coordinate(x),
                       svg::coordinate(at), anchor, kLetters, more, words);
  };
  std::string out =
      text(14, y + 18, "start", "Correlations of the most probable variables, with their inclusion probabilities",
           " font-weight=\"bold\"");
  const double top = y + 32;
  const double size = kCell * static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Index j = answer.top[i];
    const double middle = top + kCell * (static_cast<double>(i) + 0.5);
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>\n", svg::coordinate(left - 10),
                       svg::coordinate(middle), colors[j]);
    out += text(left - 20, middle + 4.2, "end", svg::escaped(short_name(answer.variables[j].name)));
    out += text(left + size + 10, middle + 4.2, "start", fmt::format("{:.3f}", answer.variables[j].pip));
    for (std::size_t k = 0; k < count; ++k) {
      const double r = answer.correlations[i * count + k];
      const double x = left + kCell * static_cast<double>(k);
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#ffffff\"/>\n",
                         svg::coordinate(x), svg::coordinate(middle - kCell / 2), kCell, kCell, shade(r));
      const std::string number = svg::number_label(r, 2);
      constexpr double kDark = 0.7;  // from here on white letters are read more easily
      out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\"{}>{}</text>\n",
                         svg::coordinate(x + kCell / 2), svg::coordinate(middle + 3.5),
                         std::abs(r) > kDark ? " fill=\"#ffffff\"" : "", number);
    }
  }
  return out;
}

double height_of_map(const SelectionAnswer& answer) {
  return answer.top.size() < 2 ? 0.0 : 44 + kCell * static_cast<double>(answer.top.size());
}

/// What the picture shows, for those who do not see it.
std::string description(const SelectionAnswer& answer) {
  std::string out = fmt::format("Inclusion probabilities of {} with bars of two standard errors.",
                                text::plural(answer.variables.size(), "variable"));
  for (std::size_t k = 0; k < answer.sets.size(); ++k) out += fmt::format(" Credible {}.", set_label(answer, k));
  if (answer.sets.empty()) out += " There is no credible set.";
  std::vector<Index> order = answer.top;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return answer.variables[a].pip > answer.variables[b].pip; });
  std::vector<std::string> highest;
  for (std::size_t k = 0; k < std::min<std::size_t>(5, order.size()); ++k) {
    const SelectedVariable& one = answer.variables[order[k]];
    highest.push_back(fmt::format("{} {:.3f}", one.name, one.pip));
  }
  if (!highest.empty()) out += fmt::format(" The most probable: {}.", fmt::join(highest, ", "));
  return out;
}

}  // namespace

void add_correlations(const SelectionProblem& problem, SelectionAnswer& answer) {
  std::vector<Index> order;
  for (Index j = 0; j < answer.variables.size(); ++j) {
    if (answer.variables[j].pip >= kWorthShowing) order.push_back(j);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return answer.variables[a].pip > answer.variables[b].pip; });
  order.resize(std::min(order.size(), kMostCorrelated));
  std::sort(order.begin(), order.end());
  for (const Index i : order) {
    for (const Index j : order) answer.correlations.push_back(i == j ? 1.0 : problem.correlation(i, j));
  }
  answer.top = std::move(order);
}

std::string selection_plot(const SelectionAnswer& answer, const std::vector<double>& positions) {
  std::string upper = probabilities_plot(answer, positions);
  const double map = height_of_map(answer);
  std::string out = svg::opening(kWidth, kHeight + map, answer.model);
  const std::string_view title_end = "</title>\n";
  out.insert(out.find(title_end) + title_end.size(),
             fmt::format("<desc>{}</desc>\n", svg::escaped(description(answer))));
  out += upper.insert(upper.find("<svg") + 4, " x=\"0\" y=\"0\"");
  if (map > 0.0) out += correlations_map(answer, kHeight);
  return out + "</svg>\n";
}

}  // namespace poise
