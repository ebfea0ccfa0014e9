/// How a stored run is begun, driven, resumed and reported on.
#include <poise/session.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <poise/report.hpp>
#include "base/options.hpp"
#include "run/checkpoint.hpp"
#include "run/recorder.hpp"
#include "store/run_file.hpp"

namespace poise {

namespace {

/// States of more values than this are not kept for a run to be continued from memory.
constexpr std::size_t kMostKept = 1'000'000;
/// Settings of models that name files.
constexpr std::array kFileKeys = {"file", "graph", "weights"};

bool names_file(const std::string& key) {
  return std::find(kFileKeys.begin(), kFileKeys.end(), key) != kFileKeys.end();
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && std::filesystem::is_regular_file(path, ignored);
}

/// The spec of a text that is no file.
std::optional<Spec> spec_of(const ModelSource& source) {
  if (source.spec) return source.spec;
  try {
    return parse_spec(source.text);
  } catch (const InputError&) {
    return std::nullopt;  // a path need not be a spec
  }
}

/// Whether a model is read from the file that its text names; the name of a model wins over a file of that name.
bool is_model_file(const ModelSource& source, const std::string& path) {
  const std::optional<Spec> spec = spec_of(source);
  const auto named = [&](const NameHelp& model) { return spec && model.name == spec->name; };
  return is_file(path) && std::none_of(model_help().begin(), model_help().end(), named);
}

nlohmann::json fingerprints(const ModelSource& source) {
  std::vector<std::string> names = {is_model_file(source, source.text) ? source.text : "", source.files.field,
                                    source.files.evidence};
  if (const std::optional<Spec> spec = spec_of(source)) {
    for (const auto& [key, value] : spec->settings) {
      if (names_file(key)) names.push_back(value);
    }
  }
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& name : names) {
    if (is_file(name)) files.push_back(file_fingerprint(name));
  }
  return files;
}

std::string hex_of(std::span<const Value> levels) {
  std::string out;
  for (const Value level : levels) fmt::format_to(std::back_inserter(out), "{:02x}", level);
  return out;
}

std::vector<Value> levels_of(const std::string& hex) {
  std::vector<Value> levels(hex.size() / 2);
  for (std::size_t k = 0; k < levels.size(); ++k) {
    std::from_chars(hex.data() + 2 * k, hex.data() + 2 * k + 2, levels[k], 16);
  }
  return levels;
}

std::vector<std::string> names_of(const std::vector<Observer>& observers) {
  std::vector<std::string> names;
  for (const Observer& observer : observers) names.push_back(observer.name);
  return names;
}

/// Whose values a file has can only be asked on by those who have the functions.
void check_observers(const std::vector<Observer>& observers, const nlohmann::json& command) {
  const std::vector<std::string> stored = command.value("observers", std::vector<std::string>());
  if (names_of(observers) == stored) return;
  if (stored.empty()) throw InputError("observe: the run that is resumed has no such functions");
  throw InputError(
      fmt::format("the run observes {}, functions of the Python script that began it: poise.resume(file, "
                  "observe={{\"{}\": function}}) continues it there",
                  fmt::join(stored, ", "), fmt::join(stored, "\": function, \"")));
}

nlohmann::json command_of(const Model& model, const SessionOptions& options, const std::vector<Observer>& observers) {
  std::error_code ignored;
  nlohmann::json command = {{"program", kSessionProgram},
                            {"model", {{"name", model.name}}},
                            {"sampler", options.sampler},
                            {"checkpoints", options_json(options.checkpoints)},
                            {"outputs", options.outputs},
                            {"files", fingerprints(options.source)},
                            {"folder", std::filesystem::current_path(ignored).string()}};
  const ModelSource& source = options.source;
  if (source.is_known()) {
    command["model"].update(
        {{"text", source.text}, {"field", source.files.field}, {"evidence", source.files.evidence}});
  }
  if (source.spec) command["model"]["spec"] = {source.spec->name, source.spec->settings};
  if (options.run.start == Start::given) command["given"] = hex_of(options.run.given);
  if (!observers.empty()) command["observers"] = names_of(observers);
  return command;
}

void read_command(const nlohmann::json& command, StoredSession& stored) {
  const nlohmann::json& model = command.at("model");
  stored.model_name = model.at("name").get<std::string>();
  ModelSource& source = stored.options.source;
  source.text = model.value("text", "");
  source.files = {model.value("field", ""), model.value("evidence", "")};
  if (model.contains("spec")) {
    Spec& spec = source.spec.emplace();
    model.at("spec").at(0).get_to(spec.name);
    model.at("spec").at(1).get_to(spec.settings);
  }
  command.at("sampler").get_to(stored.options.sampler);
  read_options_json(command.at("options"), stored.options.run);
  read_options_json(command.at("checkpoints"), stored.options.checkpoints);
  if (command.contains("given")) stored.options.run.given = levels_of(command.at("given").get<std::string>());
  command.at("outputs").get_to(stored.options.outputs);
}

}  // namespace

std::string path_from(const StoredSession& stored, const std::string& path) {
  const std::filesystem::path folder = stored.checkpoint->command.value("folder", "");
  std::error_code ignored;
  const bool is_here = path.empty() || folder.empty() || !std::filesystem::is_directory(folder, ignored);
  return is_here ? path : (folder / path).string();
}

StoredSession read_session(const std::string& path, Collective* ranks) {
  StoredSession stored;
  stored.checkpoint = std::make_shared<Checkpoint>();
  Checkpoint& found = *stored.checkpoint;
  const bool is_root = ranks == nullptr || ranks->is_root();
  if (is_root) found = read_checkpoint(path, stored.note);
  if (is_root) stored.finished = found.finished && is_complete(path);
  if (ranks != nullptr) {
    // The other ranks need no state yet, nor a file system that has the file.
    found.command = nlohmann::json::parse(ranks->of_root(found.command.dump()));
    found.draws = ranks->of_root(found.draws);
    stored.finished = ranks->of_root(stored.finished);
    stored.note = ranks->of_root(stored.note);
  }
  stored.draws = found.draws;
  try {
    found.command.at("program").get_to(stored.program);
    if (stored.program == kSessionProgram) read_command(found.command, stored);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("the checkpoint of {} is damaged", path));
  }
  if (stored.program == kSessionProgram && is_root && !is_store(path)) {
    throw InputError(fmt::format("{} was begun by a version that stored runs as NetCDF: only that resumes it", path));
  }
  stored.options.out = std::filesystem::absolute(path).lexically_normal().string();
  stored.options.checkpoints.always = true;
  return stored;
}

Model StoredSession::make_model() const {
  const ModelSource& source = options.source;
  if (!source.is_known()) {
    throw InputError(
        fmt::format("the model of {} exists only in the Python script that began it, as code or as arrays: "
                    "poise.resume(file, model) continues the run there",
                    options.out));
  }
  for (nlohmann::json file : checkpoint->command.at("files")) {
    file["path"] = path_from(*this, file.at("path").get<std::string>());
    check_fingerprint(file);
  }
  ModelFiles files{path_from(*this, source.files.field), path_from(*this, source.files.evidence)};
  if (!is_file(files.evidence)) files.evidence = source.files.evidence;  // typed, unless a file is missing
  const std::string path = path_from(*this, source.text);
  std::optional<Spec> spec = spec_of(source);
  const bool from_spec = spec && !is_model_file(source, path);
  if (from_spec) {
    for (auto& [key, value] : spec->settings) {
      if (names_file(key)) value = path_from(*this, value);
    }
  }
  Model model = from_spec ? poise::make_model(*spec, files) : poise::make_model(path, files);
  model.name = model_name;
  return model;
}

void StoredSession::ask_for(std::optional<std::size_t> wanted) {
  if (!wanted) {
    if (!finished) return;
    throw InputError(
        fmt::format("the run at {} is finished: it has {} draws of each chain; --draws N makes it longer (draws=N in "
                    "Python)",
                    options.out, draws));
  }
  if (options.run.seconds > 0.0) throw InputError("draws: the run was asked for so many seconds, not for draws");
  if (*wanted < draws) {
    throw InputError(
        fmt::format("draws: found {}, but {} has {} draws of each chain already", *wanted, options.out, draws));
  }
  options.run.draws = *wanted;
}

struct Session::Work {
  Model model;
  SessionOptions options;
  RunHooks hooks;
  Sampler sampler;
  std::optional<CheckpointedSink> sink = {};
  bool resumes = false;
  std::string state_before = {};  // of a run in memory
  DrawBatch draws_before = {};
  bool keeps_state = false;
  RunResult result = {};
  std::string state = {};

  Work(Model the_model, SessionOptions the_options, RunHooks the_hooks, Checkpoint* resumed)
      : model(std::move(the_model)),
        options(std::move(the_options)),
        hooks(std::move(the_hooks)),
        sampler(parse_sampler(options.sampler)),
        resumes(resumed != nullptr) {
    options.run.check(model, !options.out.empty());
    if (resumes) check_observers(hooks.observers, resumed->command);
    if (options.out.empty()) return;
    SessionOptions decided = options;  // so that a resumed run need not decide again
    decided.run.device = device_of_run(model, sampler, options.run);
    nlohmann::json command = resumes ? resumed->command : command_of(model, decided, hooks.observers);
    command["options"] = options_json(decided.run);
    std::optional<Checkpoint> before;
    if (resumes) before = {command, resumed->draws, resumed->finished, std::move(resumed->state)};
    sink.emplace(options.out, model, options.run, options.checkpoints, std::move(command), std::move(before),
                 hooks.observers.size(), hooks.collective);
    hooks.sink = &*sink;
    hooks.after_round = [this](const Run& now) { sink->after_round(now); };
    if (hooks.collective == nullptr || !options.checkpoints.enabled) return;
    hooks.collective->say_on_loss(
        fmt::format("'poise resume {}' continues from the last checkpoint, if there is one", options.out));
  }

  /// Whether this rank ends the store.
  [[nodiscard]] bool finishes() const { return sink && (hooks.collective == nullptr || hooks.collective->is_root()); }
  /// Brings states that ranks have written themselves into the result of the root, where they fit: to diagnose them
  /// there takes less time than from the store, and pictures are made of them.
  void read_states() {
    Trace& trace = result.trace;
    if (!finishes() || !sink->takes_own_states() || trace.dropped > 0 || !trace.x.empty()) return;
    const double bytes = bytes_per_draw(model, options.run.keep) * static_cast<double>(trace.draws * trace.chains);
    if (trace.draws == 0 || bytes > memory_for_draws(options.run)) return;
    trace.x = read_run(options.out, {.series = false}).trace.x;
  }
};

Session::Session(Model model, SessionOptions options, RunHooks hooks, const std::shared_ptr<Checkpoint>& resumed)
    : work_(std::make_unique<Work>(std::move(model), std::move(options), std::move(hooks), resumed.get())) {}

Session::~Session() = default;

void Session::continue_from(std::string state, const Trace& draws) {
  work_->state_before = std::move(state);
  work_->draws_before = {draws.draws, draws.x, draws.monitors, draws.acceptance_rate, draws.n_steps};
}

void Session::keep_state() { work_->keeps_state = true; }
RunResult& Session::result() { return work_->result; }
std::string& Session::state() { return work_->state; }

void Session::run(const std::function<void(std::size_t)>& begun) {
  Work& work = *work_;
  const RunOptions& options = work.options.run;
  Run run(work.model, work.sampler, options, work.hooks);
  if (work.resumes) work.sink->load(run);
  if (!work.state_before.empty()) {
    run.load_rest(work.state_before);
    run.take_draws(std::exchange(work.draws_before, {}));
  }
  if (begun) begun(run.draws());
  run.warm_up();
  const std::size_t wanted = options.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : options.draws;
  run.sample(wanted - std::min(wanted, run.draws()));
  if (work.sink) work.sink->after_last_round(run, !run.stopped());
  const bool is_small = options.chains * work.model.layout.variables <= kMostKept;
  if (work.keeps_state && is_small && !run.stopped()) work.state = run.save_rest();
  work.result = run.finish();
  const Trace& trace = work.result.trace;
  const bool has_states = options.keep != Keep::draws || !trace.x.empty();
  if (trace.dropped > 0 || !has_states) work.state.clear();
  if (!work.sink) return;
  const std::vector<std::string>& notes = work.sink->notes();
  work.result.notes.insert(work.result.notes.end(), notes.begin(), notes.end());
}

Report Session::finish() {
  Work& work = *work_;
  // Where all ranks have the draws, they may read the file: not before it is complete, nor while it is written to.
  const bool all_read =
      work.hooks.collective != nullptr && work.hooks.draws_to == Collective::To::all && !work.options.out.empty();
  const auto wait_for_all = [&] { return all_read && work.hooks.collective->any(false); };
  wait_for_all();
  work.read_states();
  FileReportOptions reading{.threads = work.options.run.threads};
  if (work.options.run.memory > 0.0) reading.memory = work.options.run.memory;
  Report report =
      work.options.out.empty() ? make_report(work.result) : make_report(work.result, work.options.out, reading);
  wait_for_all();
  if (work.finishes())
    work.sink->finish(report_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return report;
}

}  // namespace poise
