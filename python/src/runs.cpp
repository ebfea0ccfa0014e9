/// Runs, and what is left of them: draws as arrays, reports, files.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <poise/session.hpp>
#include "run/checkpoint.hpp"
#include "store/zarr/writer.hpp"

#include "bindings.hpp"

namespace poise::python {

RunOptions run_options(const nb::dict& settings) {
  RunOptions options;
  read_settings(settings, options);
  if (settings.contains("rao_blackwell")) options.rao_blackwell = nb::cast<bool>(settings["rao_blackwell"]);
  if (settings.contains("given")) {
    const auto given = nb::cast<nb::ndarray<const Value, nb::c_contig, nb::device::cpu>>(settings["given"]);
    options.start = Start::given;
    options.given.assign(given.data(), given.data() + given.size());
  }
  return options;
}

namespace {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::initial: return "initial";
    case Phase::adaptation: return "adaptation";
    case Phase::settled: return "settled";
    case Phase::sample: return "sample";
  }
  return "";
}

}  // namespace

nb::dict progress_dict(const Progress& progress) {
  nb::dict out;
  out["phase"] = phase_name(progress.phase);
  out["done"] = progress.done;
  out["total"] = progress.total;
  out["seconds"] = progress.seconds;
  out["steps_per_second"] = progress.steps_per_second;
  out["acceptance_rate"] = progress.acceptance_rate;
  out["log_prob"] = progress.log_prob;
  out["ess_log_prob"] = progress.ess_log_prob;
  return out;
}

namespace {

/// `path`: the file that has all draws; empty without one.
std::shared_ptr<Fit> make_fit(Session& session, const std::string& path) {
  auto fit = std::make_shared<Fit>();
  fit->report = session.finish();
  use_keywords(fit->report.warnings);
  RunResult& result = session.result();
  const bool whole = result.trace.dropped == 0 && (result.options.keep != Keep::draws || !result.trace.x.empty());
  if (!whole) fit->path = path;
  if (result.options.rao_blackwell) fit->marginals = marginals_of(result, fit->report);
  fit->stored.settings = settings_json(result);
  fit->stored.results = report_json(fit->report);
  fit->stored.layout = std::move(result.layout);
  fit->stored.trace = std::move(result.trace);
  fit->empirical_marginals = std::move(result.empirical_marginals);
  fit->warmup_trace = std::move(result.warmup_trace);
  fit->state = std::move(session.state());
  return fit;
}

/// Functions of arrays of states, which the engine calls from any thread and copies without the lock.
using Observers = std::vector<std::pair<std::string, nb::callable>>;

std::vector<Observer> observers_of(const Observers& given, Index variables) {
  std::vector<Observer> out;
  for (const auto& [name, function] : given) {
    const std::shared_ptr<nb::callable> held(new nb::callable(function), [](nb::callable* callable) {
      const nb::gil_scoped_acquire acquire;
      delete callable;
    });
    out.push_back(
        {name, [held, variables](std::span<const std::int8_t> states, std::size_t count, std::span<double> values) {
           const nb::gil_scoped_acquire acquire;
           const nb::object found =
               (*held)(array(std::vector<std::int8_t>(states.begin(), states.end()), {count, variables}));
           const auto numbers = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig>>(found);
           if (numbers.size() != count) throw std::length_error("an observer gave too few values");
           std::copy_n(numbers.data(), count, values.begin());
         }});
  }
  return out;
}

std::string settings_text(const Fit& fit) {
  return fit.stored.settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What a run continues from: nothing, its files, or an earlier result.
struct Before {
  std::shared_ptr<Checkpoint> checkpoint = {};
  std::shared_ptr<const Fit> fit = {};
};

/// The run on this thread, where the target is Python code, or on another, while this one looks after signals.
std::shared_ptr<Fit> sample_here(const Model& model, const SessionOptions& options, const nb::object& shown,
                                 const Observers& observers, const Before& before) {
  const nb::object progress = is_root() ? shown : nb::none();
  // Every rank gets the draws: what a script does with them next, it does on all.
  RunHooks hooks{.observers = observers_of(observers, model.layout.variables),
                 .collective = ranks(),
                 .draws_to = Collective::To::all};
  std::optional<Session> session;
  const auto begin = [&] {
    session.emplace(model, options, hooks, before.checkpoint);
    session->keep_state();
    if (before.fit) session->continue_from(before.fit->state, before.fit->stored.trace);
  };
  bool interrupted = false;
  if (model.fibers() != nullptr) {
    std::optional<nb::python_error> raised;
    std::atomic<bool> stop{false};
    hooks.stop = &stop;
    if (!progress.is_none()) {
      hooks.progress = [&](const Progress& now) {
        const nb::gil_scoped_acquire acquire;
        try {
          progress(progress_dict(now));
        } catch (nb::python_error& error) {
          if (!raised) raised.emplace(error);
          stop = true;
        }
      };
    }
    begin();
    {
      const nb::gil_scoped_release release;
      session->run();
    }
    if (raised && !raised->matches(PyExc_KeyboardInterrupt)) throw *raised;
    interrupted = raised.has_value();
  } else {
    Interruptible place;
    std::mutex mutex;
    std::vector<Progress> news;  // the last word on every phase since the last look
    hooks.stop = &place.stop();
    if (!progress.is_none()) {
      hooks.progress = [&](const Progress& now) {
        const std::lock_guard lock(mutex);
        if (!news.empty() && news.back().phase == now.phase) news.pop_back();
        news.push_back(now);
      };
    }
    const auto look = [&] {
      std::vector<Progress> heard;
      {
        const std::lock_guard lock(mutex);
        heard.swap(news);
      }
      for (const Progress& now : heard) progress(progress_dict(now));
    };
    begin();
    place.run([&] { session->run(); }, progress.is_none() ? std::function<void()>() : std::function<void()>(look));
    interrupted = place.stop();  // also when the signal came at the very end
  }
  session->result().interrupted = session->result().interrupted || interrupted;
  const nb::gil_scoped_release release;
  return make_fit(*session, options.out);
}

std::shared_ptr<Fit> sample_together(const Model& model, const SessionOptions& options, const nb::object& progress,
                                     const Observers& observers, const Before& before = {}) {
  std::shared_ptr<Fit> fit;
  together([&] { fit = sample_here(model, options, progress, observers, before); });
  return fit;
}

/// The text or the name of a model, the settings of a spec, the files of a field and of evidence.
using Source =
    std::tuple<std::string, std::optional<std::vector<std::pair<std::string, std::string>>>, std::string, std::string>;

ModelSource model_source(const std::optional<Source>& given) {
  if (!given) return {};
  const auto& [text, settings, field, evidence] = *given;
  if (!settings) return {text, {}, {field, evidence}};
  return {"", Spec{text, *settings}, {field, evidence}};
}

std::shared_ptr<Fit> sample(const Model& model, const std::string& sampler, const nb::dict& settings,
                            const nb::object& progress, const std::string& out, const std::optional<Source>& source,
                            const Observers& observers) {
  SessionOptions options{.source = model_source(source), .sampler = sampler, .run = run_options(settings), .out = out};
  read_settings(settings, options.checkpoints);
  options.checkpoints.enabled = !settings.contains("checkpoint") || options.checkpoints.always;
  if (options.checkpoints.always) options.checkpoints.first = {};  // before the first draw
  return sample_together(model, options, progress, observers);
}

std::shared_ptr<Fit> extend(const std::shared_ptr<Fit>& fit, const Model& model, const std::string& sampler,
                            const nb::dict& settings, const nb::object& progress, const Observers& observers) {
  return sample_together(model, {.sampler = sampler, .run = run_options(settings)}, progress, observers, {.fit = fit});
}

StoredSession stored_session(const std::string& path) {
  StoredSession stored;
  together([&] { stored = read_session(path, ranks()); });
  if (stored.program == kSessionProgram) return stored;
  throw InputError(fmt::format("{} was begun by '{}': 'poise resume' continues it", path, stored.program));
}

/// Resumes it; `settings` are those that are changed. Gives the fit, and all settings for it to be extended with.
std::pair<std::shared_ptr<Fit>, nb::dict> resume(StoredSession& stored, const Model& model, const nb::dict& settings,
                                                 const nb::object& progress, const Observers& observers) {
  const bool longer = settings.contains("draws");
  const std::optional<std::size_t> wanted =
      longer ? std::optional(nb::cast<std::size_t>(settings["draws"])) : std::nullopt;
  stored.ask_for(wanted);
  read_settings(settings, stored.options.run);
  const auto fit = sample_together(model, stored.options, progress, observers, {.checkpoint = stored.checkpoint});
  auto all = nb::cast<nb::dict>(to_python(options_json(stored.options.run)));
  if (stored.options.run.start == Start::given) {
    all["given"] = array(stored.options.run.given, {stored.options.run.given.size()});
  }
  return {fit, all};
}

void save(const Fit& fit, const std::string& path) {
  const Trace& trace = fit.stored.trace;
  StoreOptions shape{.chains = trace.chains, .draws = trace.draws, .monitors = trace.monitor_names.size()};
  if (!trace.x.empty()) shape.variables = fit.stored.layout.variables;
  for (const Index levels : fit.stored.layout.cardinalities) {
    shape.levels = std::max<std::size_t>(shape.levels, levels);
  }
  shape.threads = std::max(1U, std::thread::hardware_concurrency());
  zarr::Writer store(path, shape);
  store.begin(fit.stored.layout, trace.chains, trace.monitor_names, settings_text(fit));
  store.write({trace.draws, trace.x, trace.monitors, trace.acceptance_rate, trace.n_steps});
  if (!fit.stored.results.is_null()) store.finish(json_text(fit.stored.results));
}

/// Draws that take more than `gibibytes` stay in the file.
std::shared_ptr<Fit> load(const std::string& path, double gibibytes) {
  auto fit = std::make_shared<Fit>();
  const double memory = gibibytes * 1024.0 * 1024.0 * 1024.0;
  fit->stored = read_run(path, {.draws = false, .series = false, .most_draws = 0});
  const Trace& head = fit->stored.trace;
  const double width = (fit->stored.has_states ? static_cast<double>(States(fit->stored.layout).row_bytes()) : 0.0) +
                       8.0 * static_cast<double>(head.monitor_names.size() + 2);
  if (static_cast<double>(head.chains) * static_cast<double>(head.all_draws()) * width <= memory) {
    fit->stored = read_run(path);
    fit->report = make_report(fit->stored);
  } else {
    fit->path = path;
    fit->report = make_report(path, {.memory = memory});
  }
  use_keywords(fit->report.warnings);
  return fit;
}

/// The trace with the series of all draws, from the file where they are only there.
const Trace& whole_series(Fit& fit) {
  Trace& trace = fit.stored.trace;
  if (trace.dropped == 0 || fit.path.empty()) return trace;
  const std::size_t draws = trace.all_draws();
  const nb::gil_scoped_release release;
  trace = read_run(fit.path, {.draws = false, .most_draws = draws}).trace;
  trace.dropped = 0;
  return trace;
}

nb::object draws(const std::shared_ptr<Fit>& fit) {
  const Trace& trace = fit->stored.trace;
  const VariableLayout& layout = fit->stored.layout;
  if (trace.x.empty() && trace.all_draws() > 0) return nb::none();
  const nb::object owner = nb::cast(fit);
  if (trace.x.has_bits() && fit->labels.empty()) fit->labels = trace.x.unpack();
  const auto* const labels =
      trace.x.has_bits() ? fit->labels.data() : reinterpret_cast<const std::int8_t*>(trace.x.bytes().data());
  if (layout.is_lattice()) {
    return nb::cast(view(labels, {trace.chains, trace.draws, layout.rows, layout.columns}, owner));
  }
  return nb::cast(view(labels, {trace.chains, trace.draws, layout.variables}, owner));
}

nb::dict monitors(const std::shared_ptr<Fit>& fit) {
  const Trace& trace = whole_series(*fit);
  const nb::object owner = nb::cast(fit);
  nb::dict out;
  for (std::size_t k = 0; k < trace.monitor_names.size(); ++k) {
    out[trace.monitor_names[k].c_str()] = view(trace.monitors[k].data(), {trace.chains, trace.draws}, owner);
  }
  return out;
}

/// A list of columns: what a data frame is made of.
nb::dict variable_rows(const Fit& fit) {
  std::vector<double> mean, mcse, ess, r_hat;
  std::vector<std::int64_t> variable, transitions;
  std::vector<std::uint8_t> estimated;
  nb::list names, status;
  if (fit.report.variables) {
    const VariableNames name{fit.report.variable_names, fit.report.level_names};
    for (const VariableRow& row : fit.report.variables->rows) {
      names.append(nb::str(name(row).c_str()));
      variable.push_back(row.variable);
      mean.push_back(row.mean);
      mcse.push_back(row.mcse);
      ess.push_back(row.ess);
      r_hat.push_back(row.r_hat);
      transitions.push_back(static_cast<std::int64_t>(row.transitions));
      estimated.push_back(row.is_estimate ? 1 : 0);
      const std::string_view text = to_string(row.status);
      status.append(nb::str(text.data(), text.size()));
    }
  }
  const std::size_t rows = mean.size();
  nb::dict out;
  out["name"] = names;
  out["variable"] = array(std::move(variable), {rows});
  out["mean"] = array(std::move(mean), {rows});
  out["mcse"] = array(std::move(mcse), {rows});
  out["ess"] = array(std::move(ess), {rows});
  out["r_hat"] = array(std::move(r_hat), {rows});
  out["transitions"] = array(std::move(transitions), {rows});
  out["status"] = status;
  out["estimated"] = array(std::move(estimated), {rows});
  return out;
}

}  // namespace

void bind_runs(nb::module_& module) {
  nb::class_<Fit>(module, "Fit")
      .def_prop_ro("draws", [](const std::shared_ptr<Fit>& fit) { return draws(fit); })
      .def_prop_ro("monitors", [](const std::shared_ptr<Fit>& fit) { return monitors(fit); })
      .def_prop_ro(
          "acceptance_rate",
          [](const std::shared_ptr<Fit>& fit) {
            const Trace& trace = whole_series(*fit);
            return view(trace.acceptance_rate.data(), {trace.chains, trace.draws}, nb::cast(fit));
          },
          nb::rv_policy::reference)
      .def_prop_ro(
          "n_steps",
          [](const std::shared_ptr<Fit>& fit) {
            const Trace& trace = whole_series(*fit);
            return view(trace.n_steps.data(), {trace.chains, trace.draws}, nb::cast(fit));
          },
          nb::rv_policy::reference)
      .def_prop_ro(
          "empirical_marginals",
          [](const std::shared_ptr<Fit>& fit) {
            return view(fit->empirical_marginals.data(), {fit->empirical_marginals.size()}, nb::cast(fit));
          },
          nb::rv_policy::reference)
      .def_prop_ro(
          "warmup_trace",
          [](const Fit& fit) {
            std::vector<double> points;
            for (const WarmupPoint& point : fit.warmup_trace) {
              points.push_back(static_cast<double>(point.step));
              points.push_back(point.log_prob);
            }
            const std::size_t rows = points.size() / 2;
            return array(std::move(points), {rows, 2});
          },
          nb::rv_policy::reference)
      .def_prop_ro("monitor_names", [](const Fit& fit) { return fit.stored.trace.monitor_names; })
      .def_prop_ro("path", [](const Fit& fit) { return fit.path; })
      .def_prop_ro("chains", [](const Fit& fit) { return fit.stored.trace.chains; })
      .def_prop_ro("num_draws", [](const Fit& fit) { return fit.stored.trace.all_draws(); })
      .def_prop_ro("interrupted", [](const Fit& fit) { return fit.report.interrupted; })
      .def_prop_ro("can_extend", [](const Fit& fit) { return !fit.state.empty(); })
      .def_prop_ro("warnings", [](const Fit& fit) { return to_python(fit.report.warnings); })
      .def_prop_ro("notes", [](const Fit& fit) { return fit.report.notes; })
      .def_prop_ro("names", [](const Fit& fit) { return fit.stored.layout.names; })
      .def_prop_ro("level_names", [](const Fit& fit) { return fit.stored.layout.level_names; })
      .def_prop_ro("shape",
                   [](const Fit& fit) {
                     const VariableLayout& layout = fit.stored.layout;
                     return layout.is_lattice() ? std::vector<Index>{layout.rows, layout.columns}
                                                : std::vector<Index>{layout.variables};
                   })
      .def_prop_ro("is_lattice", [](const Fit& fit) { return fit.stored.layout.is_lattice(); })
      .def_prop_ro("settings", [](const Fit& fit) { return settings_text(fit); })
      .def_prop_ro(
          "results",
          [](const Fit& fit) { return fit.stored.results.is_null() ? std::string() : json_text(fit.stored.results); })
      .def("report", [](const Fit& fit) { return nb::cast<nb::dict>(to_python(report_json(fit.report))); })
      .def("variables", &variable_rows)
      .def(
          "text", [](const Fit& fit, std::size_t width) { return report_text(fit.report, width); },
          nb::arg("width") = 100)
      .def("html", [](const Fit& fit) { return report_html(fit.report, fit.stored.trace); })
      .def("plot", [](const Fit& fit) { return run_plot(fit.report, fit.stored.trace); })
      .def("save", &save, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());

  nb::class_<StoredSession>(module, "StoredSession")
      .def_ro("note", &StoredSession::note)
      .def_prop_ro("sampler", [](const StoredSession& stored) { return stored.options.sampler; })
      .def("make_model", &StoredSession::make_model);
  module.def("stored_session", &stored_session, nb::arg("path"));
  module.def("run_options", &described_options<RunOptions>);
  module.def("sample", &sample, nb::arg("model"), nb::arg("sampler"), nb::arg("settings"),
             nb::arg("progress").none() = nb::none(), nb::arg("out") = "", nb::arg("source").none() = nb::none(),
             nb::arg("observers") = Observers());
  module.def("extend", &extend, nb::arg("fit"), nb::arg("model"), nb::arg("sampler"), nb::arg("settings"),
             nb::arg("progress").none() = nb::none(), nb::arg("observers") = Observers());
  module.def("resume", &resume, nb::arg("stored"), nb::arg("model"), nb::arg("settings"),
             nb::arg("progress").none() = nb::none(), nb::arg("observers") = Observers());
  module.def("load", &load, nb::arg("path"), nb::arg("memory"), nb::call_guard<nb::gil_scoped_release>());
  const auto reports = [](const std::vector<std::shared_ptr<Fit>>& fits) {
    std::vector<Report> out;
    for (const auto& fit : fits) out.push_back(fit->report);
    return out;
  };
  module.def("comparison_text", [reports](const std::vector<std::shared_ptr<Fit>>& fits, std::size_t width) {
    return comparison_text(reports(fits), width);
  });
  module.def("comparison_plot",
             [reports](const std::vector<std::shared_ptr<Fit>>& fits) { return comparison_plot(reports(fits)); });
  module.def("comparison_json", [reports](const std::vector<std::shared_ptr<Fit>>& fits) {
    return nb::cast<nb::dict>(to_python(comparison_json(reports(fits))));
  });
}

}  // namespace poise::python
