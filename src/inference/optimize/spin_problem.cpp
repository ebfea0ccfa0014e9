/// Integers for the fields and couplings of an Ising model.
#include "inference/optimize/spin_problem.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

namespace {

/// Rounding errors of numbers that are multiples of one another, over the largest number.
constexpr double kTolerance = 1e-12;

/// The largest number of which all given ones are multiples, or 0 where it would be so small that it is an accident of
/// real numbers.
double common_unit(const std::vector<double>& values, double largest) {
  constexpr double finest = 0x1p-20;
  const double zero = kTolerance * largest;
  double unit = 0.0;
  for (const double value : values) {
    // Euclid's algorithm; what is left of a division that comes out even is rounding.
    double a = std::abs(value);
    double b = unit;
    while (b > zero) {
      const double rest = std::abs(a - b * std::round(a / b));
      a = b;
      b = rest;
    }
    if (a > zero) unit = a;
    if (unit != 0.0 && unit < finest * largest) return 0.0;
  }
  return largest / std::round(largest / unit);
}

}  // namespace

std::int64_t SpinProblem::local_field(Index i, std::span<const Spin> spins) const {
  std::int64_t sum = field[i];
  for (std::size_t k = start[i]; k < start[i + 1]; ++k) sum += weight[k] * spins[neighbour[k]];
  return sum;
}

std::int64_t SpinProblem::value(std::span<const Spin> spins) const {
  std::int64_t fields = 0;
  std::int64_t twice = 0;
  for (Index i = 0; i < num_variables(); ++i) {
    fields += field[i] * spins[i];
    twice += (local_field(i, spins) - field[i]) * spins[i];
  }
  return fields + twice / 2;
}

std::int64_t SpinProblem::strength(Index i) const {
  std::int64_t sum = std::abs(field[i]);
  for (std::size_t k = start[i]; k < start[i + 1]; ++k) sum += std::abs(weight[k]);
  return sum;
}

bool SpinProblem::is_symmetric() const {
  return std::all_of(field.begin(), field.end(), [](std::int64_t value) { return value == 0; });
}

SpinProblem spin_problem(const std::vector<double>& field, const std::vector<Edge>& edges) {
  std::vector<double> values = field;
  for (const Edge& edge : edges) values.push_back(edge.coupling);
  double largest = 0.0;
  double sum = 0.0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
    sum += std::abs(value);
  }
  double unit = largest > 0.0 ? common_unit(values, largest) : 1.0;
  if (unit == 0.0) unit = sum * 0x1p-46;  // sums have room for what elimination multiplies them by
  SpinProblem problem;
  for (const double value : field) problem.field.push_back(std::llround(value / unit));
  problem.start.assign(field.size() + 1, 0);
  for (const Edge& edge : edges) {
    ++problem.start[edge.i + 1];
    ++problem.start[edge.j + 1];
  }
  for (std::size_t i = 0; i < field.size(); ++i) problem.start[i + 1] += problem.start[i];
  problem.neighbour.resize(2 * edges.size());
  problem.weight.resize(2 * edges.size());
  std::vector<std::size_t> next(problem.start.begin(), problem.start.end() - 1);
  for (const Edge& edge : edges) {
    const std::int64_t weight = std::llround(edge.coupling / unit);
    problem.neighbour[next[edge.i]] = edge.j;
    problem.weight[next[edge.i]++] = weight;
    problem.neighbour[next[edge.j]] = edge.i;
    problem.weight[next[edge.j]++] = weight;
  }
  return problem;
}

}  // namespace poise
