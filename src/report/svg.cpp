/// Markup of texts, axes and boxes.
#include "report/svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace poise::svg {

std::string escaped(std::string_view text) {
  // JSON holds nothing but UTF-8: on the way there and back what is none is replaced.
  using Json = nlohmann::json;
  const auto valid = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::string out;
  for (const char c : valid) {
    if ((c >= 0 && c < 0x20 && c != '\t') || c == 0x7f) {
      out += "\ufffd";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

double width_of(std::string_view text, double size) {
  double ems = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;  // a later byte of a character
    const bool narrow = std::string_view("ijl.,:;|!'()[]tfr I/").find(c) != std::string_view::npos;
    const bool wide = (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%' || c == '@';
    ems += narrow ? 0.37 : wide ? 0.78 : 0.6;
  }
  return ems * size;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string opening(double width, double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" fill=\"#222222\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      coordinate(width), coordinate(height), escaped(title));
}

namespace {

/// The number in NAME="..." of the root element.
double attribute(const std::string& document, std::string_view name) {
  const std::size_t at = document.find(fmt::format(" {}=\"", name));
  return at == std::string::npos ? 0.0 : std::strtod(document.c_str() + at + name.size() + 3, nullptr);
}

std::string placed(std::string document, double x, double y) {
  return document.insert(document.find("<svg") + 4, fmt::format(" x=\"{}\" y=\"{}\"", coordinate(x), coordinate(y)));
}

std::string framed(double width, double height, const std::string& inside) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n{2}</svg>\n",
      coordinate(width), coordinate(height), inside);
}

}  // namespace

std::string beside(std::span<const std::string> documents) {
  double width = 0.0, height = 0.0;
  std::string inside;
  for (const std::string& document : documents) {
    inside += placed(document, width, 0.0);
    width += attribute(document, "width");
    height = std::max(height, attribute(document, "height"));
  }
  return framed(width, height, inside);
}

std::string stacked(std::span<const std::string> documents, std::string_view title) {
  double width = 0.0, height = 0.0;
  std::string inside =
      fmt::format("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", escaped(title));
  for (const std::string& document : documents) {
    inside += placed(document, 0.0, height);
    width = std::max(width, attribute(document, "width"));
    height += attribute(document, "height");
  }
  return framed(width, height, inside);
}

namespace {

constexpr double kMostTicks = 7;

/// The round number (1, 2 or 5 times a power of ten) not below a value.
double round_up(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string number_label(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool is_zero = text.find_first_not_of("0.") == std::string::npos;
  return value < 0 && !is_zero ? "\u2212" + text : text;
}

std::string power_of_ten(int exponent) {
  return fmt::format("10<tspan dy=\"-5\" font-size=\"9\">{}</tspan>", number_label(exponent, 0));
}

Axis::Axis(double low, double high, bool is_log) : low_(low), high_(high), log_(is_log) {
  if (log_) {
    log_ticks();
  } else {
    linear_ticks();
  }
}

Axis::Axis(const std::vector<std::string>& names) : low_(0), high_(static_cast<double>(names.size())), log_(false) {
  for (std::size_t i = 0; i < names.size(); ++i) ticks_.push_back({static_cast<double>(i) + 0.5, escaped(names[i])});
}

double Axis::fraction(double value) const {
  if (!log_) return (value - low_) / (high_ - low_);
  if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));  // the quotients may overflow
}

void Axis::linear_ticks() {
  const double step = round_up((high_ - low_) / kMostTicks);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  const int magnitude = static_cast<int>(std::floor(std::log10(largest)));
  exponent_ = magnitude >= 5 || magnitude <= -4 ? magnitude : 0;
  const double unit = std::pow(10.0, exponent_);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step / unit) + 1e-9)), 0, 12);
  const double first = std::ceil(low_ / step - 1e-9);
  for (double i = first; i * step <= high_ + 1e-9 * (high_ - low_) && ticks_.size() < 50; ++i) {
    ticks_.push_back({i * step, number_label(i * step / unit, decimals)});
  }
}

void Axis::log_ticks() {
  const double low = std::log10(low_);
  const double high = std::log10(high_);
  const int first = static_cast<int>(std::ceil(low - 1e-9));
  const int last = static_cast<int>(std::floor(high + 1e-9));
  const auto inside = [&](double value) { return value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9); };
  const auto plain = [](double value) {
    return number_label(value, std::max(0, -static_cast<int>(std::floor(std::log10(value) + 1e-9))));
  };
  if (last - first < 1) {  // less than two decades marked: 1, 2 and 5 of each, or plain steps in a still smaller range
    for (int power = first - 1; power <= last + 1; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10.0, power);
        if (!inside(value)) continue;
        ticks_.push_back({value, power >= -4 && power <= 5 ? plain(value) : fmt::format("{:.0e}", value)});
      }
    }
    if (ticks_.size() < 2) {
      ticks_.clear();
      linear_ticks();
    }
    return;
  }
  const int every = std::max(1, static_cast<int>(std::ceil((last - first + 1) / (kMostTicks + 2))));
  const bool decimal = first >= -3 && last <= 4;
  for (int power = first - 1; power <= last; ++power) {
    const double decade = std::pow(10.0, power);
    if (power >= first) {
      const bool labelled = power % every == 0;
      ticks_.push_back({decade, !labelled ? "" : decimal ? plain(decade) : power_of_ten(power)});
    }
    if (every > 1 || last - first > 6) continue;
    for (int factor = 2; factor <= 9; ++factor) {
      if (inside(factor * decade)) ticks_.push_back({factor * decade, ""});
    }
  }
}

namespace {

/// A quantile of sorted values, linear between neighbours (type 7).
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string stroke(double x1, double y1, double x2, double y2, double width) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#222222\" stroke-width=\"{}\"/>\n",
                     coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2), width);
}

}  // namespace

std::string box_markup(const Boxed& box, const BoxPlace& place, const std::function<double(double)>& height) {
  std::vector<double> values;
  for (const double value : box.values) {
    if (std::isfinite(value) && std::isfinite(height(value))) values.push_back(value);
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  const double low = quantile(values, 0.25);
  const double median = quantile(values, 0.5);
  const double high = quantile(values, 0.75);
  const double reach = 1.5 * (high - low);
  const double bottom = *std::lower_bound(values.begin(), values.end(), low - reach);
  const double top = *(std::upper_bound(values.begin(), values.end(), high + reach) - 1);
  const double left = place.middle - place.width / 2;
  const double cap = place.width / 4;
  std::string out;
  out += stroke(place.middle, height(top), place.middle, height(high), 1);
  out += stroke(place.middle, height(low), place.middle, height(bottom), 1);
  for (const double end : {bottom, top}) {
    out += stroke(place.middle - cap, height(end), place.middle + cap, height(end), 1);
  }
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.65\" stroke=\"#222222\"/>\n",
      coordinate(left), coordinate(height(high)), coordinate(place.width),
      coordinate(std::max(0.0, height(low) - height(high))), escaped(place.color));
  out += stroke(left, height(median), left + place.width, height(median), 2.2);
  for (const double value : values) {
    if (value >= bottom && value <= top) continue;
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"1.6\" fill=\"#222222\" fill-opacity=\"0.5\"/>\n",
                       coordinate(place.middle), coordinate(height(value)));
  }
  return out;
}

}  // namespace poise::svg
