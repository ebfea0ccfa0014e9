/// Observables of spin models as means: what each draw adds to them, to first order.
#pragma once

#include <string>
#include <vector>

#include <poise/trace.hpp>

namespace poise {

/// An observable, and for each draw, chain by chain, what it adds: the error of the observable is that of the mean of
/// `adds` (the infinitesimal jackknife, Jaeckel 1972).
struct ObservableSeries {
  std::string name;
  double value;
  std::vector<double> adds;
};

/// Of all draws of a trace; nothing where it lacks the monitors.
[[nodiscard]] std::vector<ObservableSeries> observable_series(const SpinScale& spins, const Trace& trace,
                                                              unsigned threads);

}  // namespace poise
