/// Chains in the hands of Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <poise/stepper.hpp>

#include "bindings.hpp"

namespace poise::python {

namespace {

/// Chains that one caller at a time can move on.
struct GuardedStepper {
  GuardedStepper(const Model& model, const std::string& sampler, const RunOptions& options)
      : stepper(model, parse_sampler(sampler), options) {}
  Stepper stepper;
  std::atomic<bool> busy{false};
};

/// A stretch of steps without the lock; a signal in between ends it and is raised.
template <class Work>
void interruptibly(GuardedStepper& guarded, const Work& work) {
  if (guarded.busy.exchange(true)) throw std::runtime_error("this stepper is making steps already");
  struct Leave {
    std::atomic<bool>& busy;
    ~Leave() { busy = false; }
  } leave{guarded.busy};
  std::optional<nb::python_error> raised;
  const auto keep_going = [&] {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() == 0) return true;
    raised.emplace();
    return false;
  };
  bool stopped = false;
  {
    const nb::gil_scoped_release release;
    try {
      work(guarded.stepper, keep_going);
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
  nb::class_<GuardedStepper>(module, "Stepper")
      .def(
          "__init__",
          [](GuardedStepper* self, const Model& model, const std::string& sampler, const nb::dict& settings) {
            new (self) GuardedStepper(model, sampler, run_options(settings));
          },
          nb::arg("model"), nb::arg("sampler"), nb::arg("settings"))
      .def("step",
           [](GuardedStepper& self, std::uint64_t steps) {
             interruptibly(self, [&](Stepper& stepper, const auto& keep_going) { stepper.step(steps, keep_going); });
           })
      .def("warm_up",
           [](GuardedStepper& self, std::uint64_t steps) {
             interruptibly(self, [&](Stepper& stepper, const auto& keep_going) { stepper.warm_up(steps, keep_going); });
           })
      .def("target_changed", [](GuardedStepper& self) { self.stepper.target_changed(); })
      .def_prop_ro(
          "levels",
          [](GuardedStepper& self) {
            std::vector<Value> levels;
            interruptibly(self, [&](Stepper& stepper, const auto&) { levels = stepper.states(); });
            return array(std::move(levels), {self.stepper.num_chains(), self.stepper.model().layout.variables});
          },
          nb::rv_policy::reference)
      .def("set_levels",
           [](GuardedStepper& self, const nb::ndarray<const Value, nb::c_contig, nb::device::cpu>& levels) {
             interruptibly(self, [&](Stepper& stepper, const auto&) {
               stepper.set_states({levels.data(), levels.size()});
             });
           })
      .def("log_prob",
           [](GuardedStepper& self) {
             std::vector<double> out;
             interruptibly(self, [&](Stepper& stepper, const auto&) { out = stepper.log_prob(); });
             const std::size_t chains = out.size();
             return array(std::move(out), {chains});
           })
      .def_prop_ro("acceptance_rate", [](const GuardedStepper& self) { return self.stepper.acceptance_rate(); })
      .def_prop_ro("steps_per_sweep", [](const GuardedStepper& self) { return self.stepper.steps_per_sweep(); })
      .def_prop_ro("evals", [](const GuardedStepper& self) {
        const Evals evals = self.stepper.evals();
        nb::dict out;
        out["target"] = evals.target;
        out["ratio"] = evals.ratio;
        out["gradient"] = evals.gradient;
        out["balance"] = evals.balance;
        return out;
      });
}

}  // namespace poise::python
