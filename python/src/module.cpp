/// The module `poise._core`: exceptions, and the parts in files of their own.
#include <poise/types.hpp>

#include "bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  // A target whose code refers to what holds it is found by the garbage collector, but not at the interpreter's end.
  nb::set_leak_warnings(false);
  module.doc() = "The engine of Poise. Use the package `poise`, which wraps it.";
  module.def("version", [] { return POISE_VERSION; });
  nb::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const poise::InputError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const poise::RunStopped&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);  // before there was a run to keep anything of
    }
  });
  poise::python::bind_models(module);
  poise::python::bind_targets(module);
  poise::python::bind_device_functions(module);
  poise::python::bind_diagnostics(module);
  poise::python::bind_runs(module);
  poise::python::bind_ranks(module);
  poise::python::bind_marginals(module);
  poise::python::bind_answers(module);
  poise::python::bind_optimize(module);
  poise::python::bind_scan(module);
  poise::python::bind_selection(module);
  poise::python::bind_stepper(module);
}
