/// What is in a checkpoint, and when one is written.
#include "run/checkpoint.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "store/run_file.hpp"
#include "store/zarr/reader.hpp"

namespace poise {

namespace {

bool has_unfinished_run(const std::string& path) {
  std::string note;
  try {
    return !read_checkpoint(path, note).finished;
  } catch (const InputError&) {
    return false;  // nothing that could be resumed
  }
}

StoredState stored(const Checkpoint& checkpoint) {
  return {{{"command", checkpoint.command}, {"draws", checkpoint.draws}, {"finished", checkpoint.finished}},
          checkpoint.state};
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path, std::string& note) {
  StoredState stored =
      is_store(path) ? parse_state(zarr::read_last_state(path, note).state, path) : read_state(path, note);
  Checkpoint found;
  try {
    found.command = std::move(stored.words.at("command"));
    found.draws = stored.words.at("draws").get<std::size_t>();
    found.finished = stored.words.at("finished").get<bool>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("the checkpoint of {} is damaged", path));
  }
  found.state = std::move(stored.bytes);
  return found;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) { write_state(path, stored(checkpoint)); }

std::string checkpoint_bytes(const Checkpoint& checkpoint) { return state_bytes(stored(checkpoint)); }

bool is_complete(const std::string& path) { return !is_store(path) || !zarr::read_root(path).results.empty(); }

CheckpointedSink::CheckpointedSink(std::string path, const Model& model, const RunOptions& run,
                                   const CheckpointOptions& options, nlohmann::json command,
                                   std::optional<Checkpoint> resumed, std::size_t observers)
    : path_(std::move(path)),
      options_(options),
      command_(std::move(command)),
      resumed_(std::move(resumed)),
      store_(path_, model, run, observers),
      keeps_from_(Clock::now() + std::chrono::duration_cast<Clock::duration>(options.first)),
      due_(keeps_from_) {
  if (!options_.enabled) return;
  if (resumed_) {
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.interval);
    store_.take_back(resumed_->draws);
  } else if (has_unfinished_run(path_)) {
    throw InputError(
        fmt::format("{0} has an unfinished run: 'poise resume {0}' continues it; to begin anew, delete {0}", path_));
  }
}

CheckpointedSink::~CheckpointedSink() {
  try {
    store_.settle();
  } catch (const std::exception&) {
    // No caller is left to be told.
  }
}

void CheckpointedSink::load(CheckpointedSink* sink, Run& run) {
  Collective* const ranks = run.collective();
  std::string path = sink != nullptr ? sink->path_ : "";
  if (ranks != nullptr) path = ranks->of_root(path);
  try {
    if (ranks == nullptr) {
      run.load_rest(sink->resumed_->state);
    } else {
      run.load_rest(ranks->of_root(sink != nullptr ? sink->resumed_->state : ""));
    }
  } catch (const InputError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw InputError(fmt::format("{} cannot be resumed: {}", path, error.what()));
  }
  if (sink != nullptr) {
    sink->store_.read(sink->resumed_->draws, [&](const DrawBatch& block) {
      if (block.count > 0) run.take_draws(block);
    });
    if (ranks != nullptr) run.take_draws({});  // which says that there are no more
  } else {
    while (run.take_draws({}) > 0) continue;
  }
}

void CheckpointedSink::begin(const VariableLayout& layout, std::size_t chains,
                             const std::vector<std::string>& monitor_names, const std::string& settings) {
  store_.settle();
  store_.begin(layout, chains, monitor_names, settings);
}

void CheckpointedSink::write(const DrawBatch& block) { store_.write(block); }

void CheckpointedSink::finish(const std::string& results) { store_.finish(results); }

void CheckpointedSink::after_round(CheckpointedSink* sink, const Run& run) {
  // A launcher kills ranks about a second after it has told them to stop, and a busy machine may take longer to write
  // the last state. So a run on ranks has one on the disk before its first draw.
  const bool is_first =
      sink != nullptr && sink->options_.enabled && run.collective() != nullptr && !sink->resumed_ && !sink->has_first_;
  bool due = is_first || (sink != nullptr && sink->options_.enabled && Clock::now() >= sink->due_);
  if (run.collective() != nullptr) due = run.collective()->of_root(due);
  if (!due) return;
  save(sink, run, false);
  if (sink == nullptr) return;
  sink->due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(sink->options_.interval);
  if (!is_first) return;
  sink->store_.settle();
  sink->has_first_ = true;
}

void CheckpointedSink::after_last_round(CheckpointedSink* sink, const Run& run, bool finished) {
  bool wanted = false;
  if (sink != nullptr && sink->options_.enabled) {
    wanted = sink->options_.always || sink->resumed_ || !finished || Clock::now() >= sink->keeps_from_;
    if (!wanted) sink->store_.forget_states();
  }
  if (run.collective() != nullptr) wanted = run.collective()->of_root(wanted);
  if (wanted) save(sink, run, finished);
  if (sink != nullptr) sink->store_.settle();
}

void CheckpointedSink::save(CheckpointedSink* sink, const Run& run, bool finished) {
  if (run.collective() == nullptr) {
    sink->write_state(run, finished, [&] { return run.save_rest(); });
    return;
  }
  if (run.is_broken()) {
    if (sink != nullptr) sink->write_state(run, finished, [&] { return run.save_rest(); });  // which says why not
    return;
  }
  std::string state = run.save_rest();
  if (sink != nullptr) sink->write_state(run, finished, [&] { return std::move(state); });
}

void CheckpointedSink::write_state(const Run& run, bool finished, const std::function<std::string()>& state) {
  store_.settle();
  Checkpoint made{command_, run.draws(), finished, ""};
  try {
    made.state = state();
  } catch (const std::exception& error) {
    note_failure(error.what());
    return;
  }
  store_.save(made);
}

void CheckpointedSink::note_failure(const std::string& reason) {
  const std::string note = fmt::format("no checkpoint could be written: {}", reason);
  if (notes_.empty() || notes_.back() != note) notes_.push_back(note);
}

}  // namespace poise
