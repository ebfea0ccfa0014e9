/// Row by row, so that all inner products are of numbers that lie one behind the other.
#include "models/selection/cholesky.hpp"

#include <cmath>

#include <poise/extend/base/hot.hpp>

namespace poise {

std::optional<LowerTriangle> cholesky(const DenseCrossProducts& r, double shrinkage, double least) {
  LowerTriangle l(r.size());
  for (Index i = 0; i < r.size(); ++i) {
    double* const own = l.row(i);
    const CrossColumn column = r.column(i);
    for (Index j = 0; j <= i; ++j) {
      // What lies beyond j in the row of j is zero, and so is what lies beyond it in this one so far.
      const double known = padded_product(own, l.row(j), 8 * lines_of(j));
      const double entry = (1.0 - shrinkage) * column.values[j] + (i == j ? shrinkage : 0.0) - known;
      if (j < i) {
        own[j] = entry / l.row(j)[j];
      } else if (!(entry > least)) {
        return std::nullopt;
      } else {
        own[i] = std::sqrt(entry);
      }
    }
  }
  return l;
}

std::vector<double> solve_lower(const LowerTriangle& l, std::vector<double> b) {
  for (Index i = 0; i < l.size(); ++i) {
    double sum = b[i];
    for (Index k = 0; k < i; ++k) sum -= l.row(i)[k] * b[k];
    b[i] = sum / l.row(i)[i];
  }
  return b;
}

LowerTriangle inverse_of(const LowerTriangle& l) {
  LowerTriangle out(l.size());
  for (Index i = 0; i < l.size(); ++i) {
    double* const own = out.row(i);
    const double scale = 1.0 / l.row(i)[i];
    for (Index k = 0; k < i; ++k) {
      hot([own, other = out.row(k), factor = -scale * l.row(i)[k], padded = 8 * lines_of(k + 1)] {
        for (std::size_t j = 0; j < padded; j += 8) store8(own + j, load8(own + j) + load8(other + j) * factor);
      });
    }
    own[i] = scale;
  }
  return out;
}

}  // namespace poise
