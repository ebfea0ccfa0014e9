/// Ticks at round numbers, for linear and logarithmic axes.
#include "report/svg_axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "report/svg_text.hpp"

namespace poise::svg {

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

}  // namespace poise::svg
