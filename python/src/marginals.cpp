/// Marginals of networks, exact or sampled.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <mutex>

#include <poise/marginals.hpp>
#include <poise/network.hpp>
#include "exact/exact_inference.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

struct Answer {
  std::shared_ptr<Network> network;
  MarginalsAnswer answer;
};

MarginalsOptions marginals_options(const nb::dict& settings) {
  MarginalsOptions options;
  read_settings(settings, options);
  parse_sampler(options.sampler);
  return options;
}

Answer find(const std::shared_ptr<Network>& network, const nb::dict& settings, const nb::object& progress) {
  const MarginalsOptions options = marginals_options(settings);
  Answer out{network, {}};
  Interruptible place;
  std::mutex mutex;
  std::string title;
  Progress now;
  bool news = false;
  MarginalsHooks hooks;
  hooks.stop = &place.stop();
  if (!progress.is_none()) {
    hooks.progress = [&](const std::string& name, const Progress& heard) {
      const std::lock_guard lock(mutex);
      title = name;
      now = heard;
      news = true;
    };
  }
  const auto look = [&] {
    std::string name;
    Progress heard;
    {
      const std::lock_guard lock(mutex);
      if (!news) return;
      news = false;
      name = title;
      heard = now;
    }
    progress(name, heard.seconds, heard.seconds_left);
  };
  try {
    place.run([&] { out.answer = find_marginals(network, options, hooks); },
              progress.is_none() ? std::function<void()>() : std::function<void()>(look));
  } catch (const ExactStopped&) {
    out.answer.interrupted = true;
  }
  use_keywords(out.answer.elsewhere);
  if (out.answer.report) use_keywords(out.answer.report->warnings);
  return out;
}

/// The marginals of a run that averaged conditional probabilities, with the names of its model.
Answer of_run(const Fit& fit) {
  const VariableLayout& layout = fit.stored.layout;
  Answer out{std::make_shared<Network>(), {}};
  Network& network = *out.network;
  network.name = fit.report.model;
  network.names = layout.names;
  network.level_names = layout.level_names;
  for (Index i = 0; i < layout.variables; ++i) network.cardinalities.push_back(layout.cardinality(i));
  if (!layout.labels.empty() && network.level_names.empty()) {
    network.level_names.resize(layout.variables);
    for (Index i = 0; i < layout.variables; ++i) {
      for (Index k = 0; k < layout.cardinality(i); ++k) {
        network.level_names[i].push_back(std::to_string(layout.label(static_cast<Value>(k))));
      }
    }
  }
  MarginalsAnswer& answer = out.answer;
  answer.model = fit.report.model;
  answer.method = Method::sample;
  answer.reason = "the target is user code, and averages of conditional probabilities are its marginals";
  answer.marginals = fit.marginals->marginals;
  answer.counted = fit.marginals->counted;
  answer.mcse = fit.marginals->mcse;
  answer.report = fit.report;
  answer.seconds = fit.report.warmup_seconds + fit.report.sampling_seconds;
  if (fit.report.tempering && std::isfinite(fit.report.tempering->log_partition)) {
    answer.log_partition = fit.report.tempering->log_partition;
    answer.log_partition_error = fit.report.tempering->log_partition_error;
  }
  return out;
}

nb::list probabilities(const Marginals& marginals) {
  nb::list out;
  for (Index i = 0; i < marginals.num_variables(); ++i) {
    const auto values = marginals.of(i);
    out.append(array(std::vector<double>(values.begin(), values.end()), {values.size()}));
  }
  return out;
}

}  // namespace

void bind_marginals(nb::module_& module) {
  nb::class_<Answer>(module, "Answer")
      .def_prop_ro("probabilities", [](const Answer& it) { return probabilities(it.answer.marginals); })
      .def_prop_ro("mcse", [](const Answer& it) { return probabilities(it.answer.mcse); })
      .def_prop_ro("counted", [](const Answer& it) { return probabilities(it.answer.counted); })
      .def_prop_ro("interrupted", [](const Answer& it) { return it.answer.interrupted; })
      .def_prop_ro("network", [](const Answer& it) { return it.network; })
      .def_prop_ro("warnings", [](const Answer& it) { return to_python(it.answer.warnings()); })
      .def("mar", [](const Answer& it) { return mar_text(it.answer.marginals); })
      .def("json",
           [](const Answer& it) { return nb::cast<nb::dict>(to_python(marginals_json(it.answer, *it.network))); })
      .def("plot", [](const Answer& it, std::size_t most) { return marginals_plot(it.answer, *it.network, most); })
      .def("text", [](const Answer& it, std::size_t width, std::size_t most) {
        return marginals_text(it.answer, *it.network, width, most);
      });
  module.def("marginals_of_run", &of_run, nb::arg("fit"));
  module.def("marginals_options", &described_options<MarginalsOptions>);
  module.def("marginals", &find, nb::arg("network"), nb::arg("settings"), nb::arg("progress").none() = nb::none());
}

}  // namespace poise::python
