/// Errors of transition matrices.
#include <poise/extend/check/exactness.hpp>

namespace poise {

namespace {

/// The larger of two errors; one that is not a number is the largest of all.
double worse(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

}  // namespace

double row_error(const TransitionMatrix& matrix, const StateSpace& space) {
  double worst = 0.0;
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    double sum = 0.0;
    for (std::size_t t = 0; t < space.size(); ++t) {
      sum += matrix[s][t];
      worst = worse(worst, -matrix[s][t]);
      if (space.probabilities[t] == 0.0) worst = worse(worst, matrix[s][t]);
    }
    worst = worse(worst, std::abs(sum - 1.0));
  }
  return worst;
}

double detailed_balance_error(const TransitionMatrix& matrix, const StateSpace& space) {
  const std::vector<double>& p = space.probabilities;
  double worst = 0.0;
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (std::size_t t = 0; t < s; ++t) {
      const double larger = std::max(p[s], p[t]);
      if (larger > 0.0) worst = worse(worst, std::abs(p[s] * matrix[s][t] - p[t] * matrix[t][s]) / larger);
    }
  }
  return worst;
}

double invariance_error(const TransitionMatrix& matrix, const StateSpace& space) {
  std::vector<double> after(space.size(), 0.0);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (std::size_t t = 0; t < space.size(); ++t) after[t] += space.probabilities[s] * matrix[s][t];
  }
  double worst = 0.0;
  for (std::size_t t = 0; t < space.size(); ++t) worst = worse(worst, std::abs(after[t] - space.probabilities[t]));
  return worst;
}

double chi_square_z(std::span<const double> count, const StateSpace& space) {
  double all = 0.0;
  for (const double one : count) all += one;
  // States are pooled into cells of at least ten expected visits; what is left joins the last cell.
  struct Cell {
    double expected = 0.0;
    double seen = 0.0;
  };
  std::vector<Cell> cells;
  Cell cell;
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0 && count[s] > 0.0) return std::numeric_limits<double>::infinity();
    cell.expected += space.probabilities[s] * all;
    cell.seen += count[s];
    if (cell.expected < 10.0) continue;
    cells.push_back(cell);
    cell = {};
  }
  if (cells.size() < 2) return 0.0;
  cells.back().expected += cell.expected;
  cells.back().seen += cell.seen;
  double chi2 = 0.0;
  for (const Cell& one : cells) chi2 += (one.seen - one.expected) * (one.seen - one.expected) / one.expected;
  // The cube root of chi-square is nearly normal (Wilson and Hilferty 1931), also with few degrees of freedom.
  const auto freedom = static_cast<double>(cells.size() - 1);
  const double variance = 2.0 / (9.0 * freedom);
  return (std::cbrt(chi2 / freedom) - (1.0 - variance)) / std::sqrt(variance);
}

std::size_t state_at(const StateSpace& space, double place) {
  const std::vector<double>& p = space.probabilities;
  std::size_t s = 0;
  while (s + 1 < p.size() && (place >= p[s] || p[s] == 0.0)) place -= p[s++];
  while (p[s] == 0.0) --s;  // rounding may lead past the last possible state
  return s;
}

}  // namespace poise
