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
                                   std::optional<Checkpoint> resumed, std::size_t observers, Collective* ranks)
    : path_(std::move(path)),
      options_(options),
      command_(std::move(command)),
      resumed_(std::move(resumed)),
      ranks_(ranks != nullptr && ranks->size() > 1 ? ranks : nullptr),
      store_(path_, model, run, observers, ranks_),
      keeps_from_(Clock::now() + std::chrono::duration_cast<Clock::duration>(options.first)),
      due_(keeps_from_) {
  if (options_.enabled && resumed_) {
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.interval);
    store_.take_back(resumed_->draws);
  } else if (options_.enabled && is_root() && has_unfinished_run(path_)) {
    throw InputError(
        fmt::format("{0} has an unfinished run: 'poise resume {0}' continues it; to begin anew, delete {0}", path_));
  }
  store_.meet();
}

void CheckpointedSink::load(Run& run) {
  const std::string path = ranks_ != nullptr ? ranks_->of_root(path_) : path_;
  try {
    if (ranks_ == nullptr) {
      run.load_rest(resumed_->state);
    } else {
      run.load_rest(ranks_->of_root(is_root() ? resumed_->state : ""));
    }
  } catch (const InputError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw InputError(fmt::format("{} cannot be resumed: {}", path, error.what()));
  }
  if (is_root()) {
    store_.read(resumed_->draws, [&](const DrawBatch& block) {
      if (block.count > 0) run.take_draws(block);
    });
    if (ranks_ != nullptr) run.take_draws({});  // which says that there are no more
  } else {
    while (run.take_draws({}) > 0) continue;
  }
}

void CheckpointedSink::begin(const VariableLayout& layout, std::size_t chains,
                             const std::vector<std::string>& monitor_names, const std::string& settings) {
  store_.begin(layout, chains, monitor_names, settings);
}

void CheckpointedSink::write(const DrawBatch& block) { store_.write(block); }

void CheckpointedSink::finish(const std::string& results) { store_.finish(results); }

void CheckpointedSink::after_round(const Run& run) {
  if (!options_.enabled) return;
  // A launcher kills ranks about a second after it has told them to stop, and a busy machine may take longer to write
  // the last state. So a run on ranks has one on the disk before its first draw.
  const bool is_first = ranks_ != nullptr && !resumed_ && !has_first_;
  bool due = is_first || Clock::now() >= due_;
  if (ranks_ != nullptr) due = ranks_->of_root(due);
  if (!due) return;
  save(run, false);
  due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.interval);
  if (!is_first) return;
  store_.settle();
  has_first_ = true;
}

void CheckpointedSink::after_last_round(const Run& run, bool finished) {
  bool wanted = options_.enabled && (options_.always || resumed_ || !finished || Clock::now() >= keeps_from_);
  if (ranks_ != nullptr) wanted = ranks_->of_root(wanted);
  if (options_.enabled && !wanted) store_.forget_states();
  if (wanted) save(run, finished);
  store_.close_draws();
}

void CheckpointedSink::save(const Run& run, bool finished) {
  store_.settle();
  Checkpoint made{command_, run.draws(), finished, ""};
  try {
    made.state = run.save_rest();
  } catch (const std::exception& error) {
    if (ranks_ != nullptr && !run.is_broken()) throw;  // others do not know of it
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
