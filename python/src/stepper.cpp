/// Chains in the hands of Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <poise/run/stepper.hpp>

#include "bindings.hpp"

namespace poise::python {

namespace {

/// A stretch of steps without the lock; a signal in between ends it and is raised.
template <class Work>
void interruptibly(const Work& work) {
  std::optional<nb::python_error> raised;
  const auto go_on = [&] {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() == 0) return true;
    raised.emplace();
    return false;
  };
  bool stopped = false;
  {
    const nb::gil_scoped_release release;
    try {
      work(go_on);
    } catch (const RunStopped&) {
      stopped = true;
    }
  }
  if (raised) throw *raised;
  if (stopped) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
}

}  // namespace

void bind_stepper(nb::module_& module) {
  nb::class_<Stepper>(module, "Stepper")
      .def(
          "__init__",
          [](Stepper* self, const Model& model, const std::string& sampler, const nb::dict& settings) {
            new (self) Stepper(model, parse_sampler(sampler), run_options(settings));
          },
          nb::arg("model"), nb::arg("sampler"), nb::arg("settings"))
      .def("step", [](Stepper& stepper,
                      std::uint64_t steps) { interruptibly([&](const auto& go_on) { stepper.step(steps, go_on); }); })
      .def("warm_up",
           [](Stepper& stepper, std::uint64_t steps) {
             interruptibly([&](const auto& go_on) { stepper.warm_up(steps, go_on); });
           })
      .def("target_changed", &Stepper::target_changed)
      .def_prop_ro(
          "levels",
          [](const Stepper& stepper) {
            return array(stepper.states(), {stepper.num_chains(), stepper.model().layout.variables});
          },
          nb::rv_policy::reference)
      .def("set_levels",
           [](Stepper& stepper, const nb::ndarray<const Value, nb::c_contig, nb::device::cpu>& levels) {
             interruptibly([&](const auto&) { stepper.set_states({levels.data(), levels.size()}); });
           })
      .def("log_prob",
           [](Stepper& stepper) {
             std::vector<double> out;
             interruptibly([&](const auto&) { out = stepper.log_prob(); });
             const std::size_t chains = out.size();
             return array(std::move(out), {chains});
           })
      .def_prop_ro("acceptance_rate", &Stepper::acceptance_rate)
      .def_prop_ro("steps_per_sweep", &Stepper::steps_per_sweep)
      .def_prop_ro("evals", [](const Stepper& stepper) {
        const Evals evals = stepper.evals();
        nb::dict out;
        out["target"] = evals.target;
        out["ratio"] = evals.ratio;
        out["gradient"] = evals.gradient;
        out["balance"] = evals.balance;
        return out;
      });
}

}  // namespace poise::python
