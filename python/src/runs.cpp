/// Runs, and what is left of them: draws as arrays, reports, files.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "run/checkpoint.hpp"
#include <poise/extend/base/spec.hpp>
#include "store/netcdf.hpp"

#include "bindings.hpp"

namespace poise::python {

RunOptions run_options(const nb::dict& settings) {
  RunOptions options;
  take(settings, "chains", options.chains);
  if (settings.contains("warmup")) options.warmup = nb::cast<std::size_t>(settings["warmup"]);
  take(settings, "draws", options.draws);
  take(settings, "thin", options.thin);
  take(settings, "seed", options.seed);
  take(settings, "threads", options.threads);
  take(settings, "seconds", options.seconds);
  take(settings, "first_chain", options.first_chain);
  if (settings.contains("memory")) options.memory = nb::cast<double>(settings["memory"]) * 1024.0 * 1024.0 * 1024.0;
  if (settings.contains("keep")) {
    options.keep = nb::cast<std::string>(settings["keep"]) == "monitors" ? Keep::monitors : Keep::draws;
  }
  if (settings.contains("device")) options.device = device_of(settings["device"]);
  if (settings.contains("init")) {
    const auto init = nb::cast<std::string>(settings["init"]);
    options.start = init == "zeros" ? Start::zeros : init == "dispersed" ? Start::dispersed : Start::uniform;
  }
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
    case Phase::pilot: return "pilot";
    case Phase::initial: return "initial";
    case Phase::adaptation: return "adaptation";
    case Phase::sample: return "sample";
  }
  return "";
}

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

/// `path`: the file that has all draws; empty without one.
std::shared_ptr<Fit> make_fit(RunResult result, const std::string& path) {
  auto fit = std::make_shared<Fit>();
  const bool whole = result.trace.dropped == 0 && (result.options.keep != Keep::draws || !result.trace.x.empty());
  if (!path.empty() && !whole) {
    fit->path = path;
    FileReportOptions reading{.threads = result.options.threads};
    if (result.options.memory > 0.0) reading.memory = result.options.memory;
    fit->report = make_report(result, path, reading);
  } else {
    fit->report = make_report(result);
  }
  fit->stored.settings = settings_json(result);
  fit->stored.results = report_json(fit->report);
  fit->stored.layout = std::move(result.layout);
  fit->stored.trace = std::move(result.trace);
  fit->empirical_marginals = std::move(result.empirical_marginals);
  fit->warmup_trace = std::move(result.warmup_trace);
  return fit;
}

std::string settings_text(const Fit& fit) {
  return fit.stored.settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

NetcdfOptions file_shape(const VariableLayout& layout, std::size_t chains, std::size_t draws, std::size_t monitors) {
  NetcdfOptions shape;
  shape.chains = chains;
  shape.draws = draws;
  shape.variables = layout.variables;
  for (const Index levels : layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  shape.monitors = monitors;
  shape.threads = std::max(1U, std::thread::hardware_concurrency());
  return shape;
}

/// Where the words of a run are kept that is begun here.
constexpr const char* kProgram = "poise.sample";

/// What a run is to go on from: nothing, its files, or an earlier result.
struct Before {
  std::optional<Checkpoint> checkpoint;
  std::shared_ptr<const Fit> fit;
};

/// States of more values than this are not kept with a result for it to be made longer.
constexpr std::size_t kMostKept = 1'000'000;

DrawBlock all_draws(const Trace& trace) {
  return {trace.draws, trace.x, trace.monitors, trace.acceptance_rate, trace.n_steps, {}};
}

/// The run itself; `state` is what it can go on from.
RunResult drive(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks,
                CheckpointedSink* sink, const Before& before, std::string& state) {
  Run run(model, sampler, options, hooks);
  if (before.checkpoint) CheckpointedSink::load(sink, run);
  if (before.fit) {
    run.load_rest(before.fit->state);
    run.take_draws(all_draws(before.fit->stored.trace));
  }
  run.warm_up();
  const std::size_t wanted = options.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : options.draws;
  run.sample(wanted - std::min(wanted, run.draws()));
  if (hooks.after_round) CheckpointedSink::after_last_round(sink, run, !run.stopped());
  if (!run.stopped() && options.chains * model.layout.variables <= kMostKept) state = run.save_rest();
  RunResult result = run.finish();
  // To be made longer, it needs all its draws.
  const bool has_states = options.keep != Keep::draws || !result.trace.x.empty();
  if (result.trace.dropped > 0 || !has_states) state.clear();
  return result;
}

CheckpointOptions checkpoint_options(const nb::dict& settings) {
  CheckpointOptions options;
  take(settings, "checkpoint", options.always);
  options.enabled = !settings.contains("checkpoint") || options.always;
  if (settings.contains("checkpoint_every")) {
    options.interval = std::chrono::duration<double>(nb::cast<double>(settings["checkpoint_every"]));
  }
  if (options.always) options.first = options.interval;
  return options;
}

/// The run on this thread, where the target is Python code, or on another, while this one looks after signals.
std::shared_ptr<Fit> sample_here(const Model& model, const std::string& sampler_name, const nb::dict& settings,
                                 const nb::object& shown, const std::string& out, const std::string& words,
                                 const Before& before) {
  const nb::object progress = is_root() ? shown : nb::none();
  const Sampler sampler = parse_sampler(sampler_name);
  const RunOptions options = run_options(settings);
  options.check(model, !out.empty());
  std::optional<CheckpointedSink> sink;
  if (!out.empty() && is_root()) {
    NetcdfOptions shape =
        file_shape(model.layout, options.chains, options.seconds > 0 ? 0 : options.draws, model.statistics.size() + 2);
    if (options.keep != Keep::draws) shape.variables = 0;
    sink.emplace(out, shape, draw_shape(model.layout, shape.chains, shape.monitors, shape.variables > 0),
                 checkpoint_options(settings),
                 nlohmann::json{{"program", kProgram}, {"model", model.name}, {"words", words}}, before.checkpoint);
  }
  RunResult result;
  std::string state;
  CheckpointedSink* const file = sink ? &*sink : nullptr;
  if (ranks() != nullptr && !out.empty()) {
    ranks()->say_on_loss(fmt::format("poise.resume({}) goes on from the last checkpoint, if there is one", quote(out)));
  }
  // Every rank gets the draws: what a script does with them next, it does on all.
  RunHooks hooks{.sink = file, .collective = ranks(), .draws_to = Collective::To::all};
  if (!out.empty()) hooks.after_round = [&](const Run& run) { CheckpointedSink::after_round(file, run); };
  const auto work = [&] { result = drive(model, sampler, options, hooks, file, before, state); };
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
    {
      const nb::gil_scoped_release release;
      work();
    }
    if (raised && !raised->matches(PyExc_KeyboardInterrupt)) throw *raised;
    result.interrupted = result.interrupted || raised;
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
    place.run(work, progress.is_none() ? std::function<void()>() : std::function<void()>(look));
    result.interrupted = result.interrupted || place.stop();  // also when the signal came at the very end
  }
  const nb::gil_scoped_release release;
  if (sink) result.notes.insert(result.notes.end(), sink->notes().begin(), sink->notes().end());
  if (sink) sink->close_draws();
  std::shared_ptr<Fit> fit = make_fit(std::move(result), out);
  fit->state = std::move(state);
  if (sink) sink->finish(json_text(fit->stored.results));
  return fit;
}

std::shared_ptr<Fit> sample_from(const Model& model, const std::string& sampler_name, const nb::dict& settings,
                                 const nb::object& progress, const std::string& out, const std::string& words,
                                 const Before& before) {
  std::shared_ptr<Fit> fit;
  together([&] { fit = sample_here(model, sampler_name, settings, progress, out, words, before); });
  return fit;
}

/// Read by the root; the others need no state.
Checkpoint read_at_root(const std::string& path, std::string& note) {
  Checkpoint found;
  if (is_root()) found = read_checkpoint(path, note);
  Collective* const all = ranks();
  if (all == nullptr) return found;
  found.command = nlohmann::json::parse(all->of_root(found.command.dump()));
  found.draws = all->of_root(found.draws);
  found.finished = all->of_root(found.finished);
  note = all->of_root(note);
  return found;
}

std::shared_ptr<Fit> sample(const Model& model, const std::string& sampler_name, const nb::dict& settings,
                            const nb::object& progress, const std::string& out, const std::string& words) {
  return sample_from(model, sampler_name, settings, progress, out, words, {});
}

/// By name: what `auto` will be.
const char* device_of_settings(const Model& model, const std::string& sampler_name, const nb::dict& settings) {
  return device_of_run(model, parse_sampler(sampler_name), run_options(settings)) == Device::cuda ? "cuda" : "cpu";
}

std::shared_ptr<Fit> extend(const std::shared_ptr<Fit>& fit, const Model& model, const std::string& sampler_name,
                            const nb::dict& settings, const nb::object& progress) {
  return sample_from(model, sampler_name, settings, progress, "", "", {std::nullopt, fit});
}

/// What a run was begun with, for Python to read: its words, its draws so far, and whether it is finished.
nb::dict checkpoint_of(const std::string& path) {
  std::string note;
  Checkpoint found;
  bool has_journal = false;
  together([&] {
    found = read_at_root(path, note);
    has_journal = ::access(journal_path(path).c_str(), F_OK) == 0;
    if (ranks() != nullptr) has_journal = ranks()->of_root(has_journal);
  });
  if (found.command.value("program", "") != kProgram) {
    throw InputError(fmt::format("{} was begun by the program: 'poise resume' goes on with it", path));
  }
  nb::dict out;
  out["words"] = found.command.at("words").get<std::string>();
  out["model"] = found.command.at("model").get<std::string>();
  out["draws"] = found.draws;
  out["finished"] = found.finished && !has_journal;
  out["note"] = note;
  return out;
}

std::shared_ptr<Fit> resume(const Model& model, const std::string& sampler_name, const nb::dict& settings,
                            const nb::object& progress, const std::string& path, const std::string& words) {
  std::string note;
  Before before;
  together([&] { before.checkpoint = read_at_root(path, note); });
  return sample_from(model, sampler_name, settings, progress, path, words, before);
}

void save(const Fit& fit, const std::string& path) {
  const Trace& trace = fit.stored.trace;
  NetcdfOptions shape = file_shape(fit.stored.layout, trace.chains, trace.draws, trace.monitor_names.size());
  if (trace.x.empty()) shape.variables = 0;
  NetcdfSink sink(path, shape);
  sink.begin(fit.stored.layout, trace.chains, trace.monitor_names, settings_text(fit));
  sink.write({trace.draws, trace.x, trace.monitors, trace.acceptance_rate, trace.n_steps});
  if (!fit.stored.results.is_null()) sink.finish(json_text(fit.stored.results));
}

/// Draws that take more than `gibibytes` stay in the file.
std::shared_ptr<Fit> load(const std::string& path, double gibibytes) {
  auto fit = std::make_shared<Fit>();
  const double memory = gibibytes * 1024.0 * 1024.0 * 1024.0;
  fit->stored = read_netcdf(path, {.draws = false, .series = false, .most_draws = 0});
  const Trace& head = fit->stored.trace;
  const double width = (fit->stored.has_states ? static_cast<double>(fit->stored.layout.variables) : 0.0) +
                       8.0 * static_cast<double>(head.monitor_names.size() + 2);
  if (static_cast<double>(head.chains) * static_cast<double>(head.all_draws()) * width <= memory) {
    fit->stored = read_netcdf(path);
    fit->report = make_report(fit->stored);
  } else {
    fit->path = path;
    fit->report = make_report(path, {.memory = memory});
  }
  return fit;
}

/// The trace with the series of all draws, from the file where they are only there.
const Trace& whole_series(Fit& fit) {
  Trace& trace = fit.stored.trace;
  if (trace.dropped == 0 || fit.path.empty()) return trace;
  const std::size_t draws = trace.all_draws();
  const nb::gil_scoped_release release;
  trace = read_netcdf(fit.path, {.draws = false, .most_draws = draws}).trace;
  trace.dropped = 0;
  return trace;
}

nb::object draws(const std::shared_ptr<Fit>& fit) {
  const Trace& trace = fit->stored.trace;
  const VariableLayout& layout = fit->stored.layout;
  if (trace.x.empty() && trace.all_draws() > 0) return nb::none();
  const nb::object owner = nb::cast(fit);
  if (layout.is_lattice()) {
    return nb::cast(view(trace.x.data(), {trace.chains, trace.draws, layout.rows, layout.columns}, owner));
  }
  return nb::cast(view(trace.x.data(), {trace.chains, trace.draws, layout.variables}, owner));
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
      .def_prop_ro("warnings", [](const Fit& fit) { return fit.report.warnings; })
      .def_prop_ro("notes", [](const Fit& fit) { return fit.report.notes; })
      .def_prop_ro("names", [](const Fit& fit) { return fit.stored.layout.names; })
      .def_prop_ro("level_names", [](const Fit& fit) { return fit.stored.layout.level_names; })
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
      .def("save", &save, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());

  module.def("sample", &sample, nb::arg("model"), nb::arg("sampler"), nb::arg("settings"),
             nb::arg("progress").none() = nb::none(), nb::arg("out") = "", nb::arg("words") = "");
  module.def("device_of_run", &device_of_settings, nb::arg("model"), nb::arg("sampler"), nb::arg("settings"));
  module.def("extend", &extend, nb::arg("fit"), nb::arg("model"), nb::arg("sampler"), nb::arg("settings"),
             nb::arg("progress").none() = nb::none());
  module.def("checkpoint_of", &checkpoint_of, nb::arg("path"));
  module.def("resume", &resume, nb::arg("model"), nb::arg("sampler"), nb::arg("settings"), nb::arg("progress").none(),
             nb::arg("path"), nb::arg("words"));
  module.def("load", &load, nb::arg("path"), nb::arg("memory"), nb::call_guard<nb::gil_scoped_release>());
  const auto reports = [](const std::vector<std::shared_ptr<Fit>>& fits) {
    std::vector<Report> out;
    for (const auto& fit : fits) out.push_back(fit->report);
    return out;
  };
  module.def("comparison_text", [reports](const std::vector<std::shared_ptr<Fit>>& fits, std::size_t width) {
    return comparison_text(reports(fits), width);
  });
  module.def("comparison_json", [reports](const std::vector<std::shared_ptr<Fit>>& fits) {
    return nb::cast<nb::dict>(to_python(comparison_json(reports(fits))));
  });
}

}  // namespace poise::python
