/// The best state of a model.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include <poise/optimize.hpp>
#include "models/network/independent_set.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

using States = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Levels = nb::ndarray<const std::int16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vertices = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Best {
  VariableLayout layout;
  OptimizeAnswer answer;
};

/// `states` are rows of levels, `fixed` has a level for each variable, or -1 where it is free.
OptimizeStart start_of(const States& states, const Levels& fixed) {
  OptimizeStart start;
  for (std::size_t k = 0; k < states.shape(0); ++k) {
    const std::uint8_t* row = states.data() + k * states.shape(1);
    start.states.emplace_back(row, row + states.shape(1));
  }
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    const std::int16_t level = fixed.data()[i];
    start.fixed.push_back(level < 0 ? std::nullopt : std::optional(static_cast<Value>(level)));
  }
  return start;
}

/// log p as the energy that the user has written, which is to be small.
double energy_of(double log_prob) { return 0.0 - log_prob; }

void count_energy(OptimizeAnswer& answer) {
  answer.objective = "energy";
  answer.maximise = false;
  for (Solution& solution : answer.solutions) solution.objective = energy_of(solution.objective);
  for (Improvement& improvement : answer.history) improvement.objective = energy_of(improvement.objective);
  if (answer.bound) answer.bound = energy_of(*answer.bound);
}

Best find(const Model& model, const nb::dict& settings, std::optional<double> target, const States& states,
          const Levels& fixed, bool is_energy, const nb::object& progress) {
  OptimizeOptions options;
  read_settings(settings, options);
  options.target = target && is_energy ? energy_of(*target) : target;
  const OptimizeStart start = start_of(states, fixed);
  Best out{model.layout, {}};
  Interruptible place;
  std::mutex mutex;
  std::optional<Improvement> best;
  double done = 0.0;
  OptimizeHooks hooks;
  hooks.stop = &place.stop();
  hooks.progress = [&](const Improvement& improvement, double part) {
    const std::lock_guard lock(mutex);
    best = improvement;
    done = part;
  };
  const auto look = [&] {
    std::optional<Improvement> heard;
    double part = 0.0;
    {
      const std::lock_guard lock(mutex);
      heard = best;
      part = done;
    }
    if (heard) progress(heard->objective, heard->seconds, part);
  };
  if (model.fibers() != nullptr) {  // the code of a target runs on this thread, and hears of signals itself
    hooks.progress = [&](const Improvement& improvement, double part) {
      if (progress.is_none()) return;
      const nb::gil_scoped_acquire acquire;
      progress(is_energy ? energy_of(improvement.objective) : improvement.objective, improvement.seconds, part);
    };
    const nb::gil_scoped_release release;
    out.answer = find_best(model, options, start, hooks);
    if (is_energy) count_energy(out.answer);
    return out;
  }
  place.run([&] { out.answer = find_best(model, options, start, hooks); },
            progress.is_none() ? std::function<void()>() : std::function<void()>(look));
  return out;
}

nb::object labels_of(const Best& best, const std::vector<Value>& state) {
  std::vector<std::int8_t> labels;
  for (const Value level : state) labels.push_back(best.layout.label(level));
  const std::size_t size = labels.size();
  return nb::cast(array(std::move(labels), {size}));
}

Model model_of_sets(const Vertices& from, const Vertices& to, Index vertices, bool cliques, double beta) {
  SimpleGraph graph{vertices, {}};
  for (std::size_t k = 0; k < from.size(); ++k) {
    const auto [i, j] = std::minmax(from.data()[k], to.data()[k]);
    graph.edges.emplace_back(i, j);
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  graph.edges.erase(std::unique(graph.edges.begin(), graph.edges.end()), graph.edges.end());
  const char* name = cliques ? "clique" : "mis";
  auto network = std::make_shared<Network>(
      network_of_sets(std::move(graph), cliques ? VertexSets::cliques : VertexSets::independent, beta, name));
  network->name = name;
  Model model = network_model(network);
  model.objective = "size";
  return model;
}

}  // namespace

void bind_optimize(nb::module_& module) {
  nb::class_<Best>(module, "Best")
      .def_prop_ro("states",
                   [](const Best& it) {
                     nb::list out;
                     for (const Solution& solution : it.answer.solutions) out.append(labels_of(it, solution.state));
                     return out;
                   })
      .def_prop_ro("interrupted", [](const Best& it) { return it.answer.interrupted; })
      .def("json", [](const Best& it) { return nb::cast<nb::dict>(to_python(optimize_json(it.answer, it.layout))); })
      .def("text", [](const Best& it, std::size_t width) { return optimize_text(it.answer, it.layout, width); })
      .def("plot", [](const Best& it) { return optimize_plot(it.answer); });
  module.def("optimize_options", &described_options<OptimizeOptions>);
  module.def("optimize", &find, nb::arg("model"), nb::arg("settings"), nb::arg("target").none(), nb::arg("states"),
             nb::arg("fixed"), nb::arg("is_energy"), nb::arg("progress").none() = nb::none());
  module.def("model_of_sets", &model_of_sets, nb::arg("first"), nb::arg("second"), nb::arg("vertices"),
             nb::arg("cliques"), nb::arg("beta"));
}

}  // namespace poise::python
