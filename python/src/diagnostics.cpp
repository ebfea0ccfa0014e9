/// Diagnostics of any arrays of chains.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <poise/diagnose.hpp>

#include "bindings.hpp"

namespace poise::python {

namespace {

using Chains = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// A diagnostic of one series, whose value of (chain, draw) is at [chain, draw].
void bind(nb::module_& module, const char* name, double (*diagnostic)(ChainsView)) {
  module.def(
      name,
      [diagnostic](const Chains& x) {
        return diagnostic({x.data(), x.shape(0), x.shape(1)});
      },
      nb::arg("x"));
}

}  // namespace

void bind_diagnostics(nb::module_& module) {
  bind(module, "r_hat", &r_hat);
  bind(module, "ess_bulk", &ess_bulk);
  bind(module, "ess_tail", &ess_tail);
  bind(module, "ess_mean", &ess_mean);
  bind(module, "mcse_mean", &mcse_mean);
  bind(module, "mcse_sd", &mcse_sd);
  module.def("warning_codes", &warning_codes);
  module.def("explanation", [](const std::string& code) { return explanation(code); });
}

}  // namespace poise::python
