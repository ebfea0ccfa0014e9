/// Estimates from chains.
#include "studies/estimate.hpp"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include "report/text.hpp"

namespace poise::reproduction {

Estimate estimate(std::span<const double> values) {
  Estimate out;
  double sum = 0.0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++out.count;
  }
  if (out.count == 0) return out;
  out.mean = sum / static_cast<double>(out.count);
  double square = 0.0;
  for (const double value : values) {
    if (std::isfinite(value)) square += (value - out.mean) * (value - out.mean);
  }
  out.sd = out.count > 1 ? std::sqrt(square / static_cast<double>(out.count - 1)) : 0.0;
  return out;
}

double p_value(const Estimate& a, const Estimate& b) {
  if (a.count < 2 || b.count < 2) return std::numeric_limits<double>::quiet_NaN();
  const double of_a = a.error() * a.error();
  const double of_b = b.error() * b.error();
  const double variance = of_a + of_b;
  if (!(variance > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  const double freedom =
      variance * variance /
      (of_a * of_a / static_cast<double>(a.count - 1) + of_b * of_b / static_cast<double>(b.count - 1));
  const boost::math::students_t_distribution<double> law(freedom);
  return 2.0 * boost::math::cdf(boost::math::complement(law, std::abs(a.mean - b.mean) / std::sqrt(variance)));
}

std::string text_of(const Estimate& value) {
  if (!std::isfinite(value.mean)) return "\u2013";
  if (!(value.error() > 0.0)) return plain(value.mean);
  return fmt::format("{} \u00b1 {}", text::mean(value.mean, value.error()), text::number(value.error(), 2));
}

std::string plain(double value) {
  const bool whole = std::isfinite(value) && value == std::round(value) && std::abs(value) < 1e15;
  return whole ? fmt::format("{:.0f}", value) : text::number(value, 4);
}

double number(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> numbers(const nlohmann::json& array) {
  std::vector<double> out;
  for (const nlohmann::json& value : array) out.push_back(number(value));
  return out;
}

}  // namespace poise::reproduction
