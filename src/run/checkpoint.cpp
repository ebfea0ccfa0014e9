/// What is in a checkpoint, and when one is written.
#include "run/checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <poise/types.hpp>

namespace poise {

namespace {

/// Draws go from the file of a finished run to a journal in batches of about this size.
constexpr std::size_t kBatchBytes = std::size_t{1} << 26;

/// log_prob before the model's statistics, what is observed and hamming behind them.
std::size_t num_monitors(const Model& model, std::size_t observers) { return model.statistics.size() + observers + 2; }

NetcdfOptions file_shape(const Model& model, const RunOptions& options, std::size_t observers) {
  NetcdfOptions shape;
  shape.chains = options.chains;
  shape.draws = options.seconds > 0 ? 0 : options.draws;
  shape.variables = options.keep == Keep::draws ? model.layout.variables : 0;
  for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  shape.monitors = num_monitors(model, observers);
  shape.threads = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  return shape;
}

/// Bytes of one draw of all chains.
std::size_t bytes_of_draw(const DrawShape& shape) {
  return shape.chains * (shape.variables + (shape.monitors + 2) * sizeof(double));
}

bool has_unfinished_run(const std::string& path) {
  std::string note;
  try {
    const Checkpoint found = read_checkpoint(path, note);
    // Where the draws have been removed, the state alone is good for nothing.
    std::error_code ignored;
    const auto holds_something = [&](const std::string& file) {
      const std::uintmax_t size = std::filesystem::file_size(file, ignored);
      return !ignored && size > 0;
    };
    return !found.finished && (found.draws == 0 || holds_something(path) || holds_something(journal_path(path)));
  } catch (const InputError&) {
    return false;  // nothing that could be resumed
  }
}

}  // namespace

std::string journal_path(const std::string& path) { return path + ".draws"; }

Checkpoint read_checkpoint(const std::string& path, std::string& note) {
  StoredState stored = read_state(path, note);
  Checkpoint found;
  try {
    found.command = std::move(stored.words.at("command"));
    found.draws = stored.words.at("draws").get<std::size_t>();
    found.finished = stored.words.at("finished").get<bool>();
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", checkpoint_path(path)));
  }
  found.state = std::move(stored.bytes);
  return found;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  write_state(path, {{{"command", checkpoint.command}, {"draws", checkpoint.draws}, {"finished", checkpoint.finished}},
                     checkpoint.state});
}

CheckpointedSink::CheckpointedSink(std::string path, const Model& model, const RunOptions& run,
                                   const CheckpointOptions& options, nlohmann::json command,
                                   std::optional<Checkpoint> resumed, std::size_t observers)
    : path_(std::move(path)),
      options_(options),
      command_(std::move(command)),
      resumed_(std::move(resumed)),
      shape_(draw_shape(model.layout, run.chains, num_monitors(model, observers), run.keep == Keep::draws)),
      file_(path_, file_shape(model, run, observers)),
      keeps_from_(Clock::now() + std::chrono::duration_cast<Clock::duration>(options.first)),
      due_(keeps_from_) {
  if (!options_.enabled) return;
  journal_.emplace(journal_path(path_), shape_);
  if (resumed_) {
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.interval);
    take_draws_back();
  } else if (has_unfinished_run(path_)) {
    throw InputError(
        fmt::format("{0} has an unfinished run: 'poise resume {0}' continues it; to begin anew, delete {1}", path_,
                    checkpoint_path(path_)));
  }
}

CheckpointedSink::~CheckpointedSink() { settle(); }

void CheckpointedSink::take_draws_back() {
  const std::size_t wanted = resumed_->draws;
  const std::size_t in_journal = journal_->draws();
  if (in_journal > 0 && in_journal >= wanted) {
    journal_->cut(wanted);
    return;
  }
  std::size_t in_file = 0;
  if (wanted > 0) {
    const Trace trace = read_netcdf(path_, {.draws = false, .series = false, .most_draws = 0}).trace;
    in_file = trace.all_draws();
    if (in_file < wanted || trace.chains != shape_.chains || trace.monitor_names.size() != shape_.monitors) {
      throw InputError(fmt::format(
          "the checkpoint of {0} goes with {1} draws of each chain, but {2} has {3} of them and {0} has {4}", path_,
          wanted, journal_path(path_), in_journal, in_file));
    }
    journal_->begin();
    const std::size_t most = std::max<std::size_t>(1, kBatchBytes / bytes_of_draw(shape_));
    for (std::size_t first = 0; first < wanted; first += most) {
      const ReadOptions batch{
          .draws = shape_.variables > 0, .first_draw = first, .most_draws = std::min(most, wanted - first)};
      Trace found = read_netcdf(path_, batch).trace;
      journal_->write({found.draws,
                       std::move(found.x),
                       std::move(found.monitors),
                       std::move(found.acceptance_rate),
                       std::move(found.n_steps),
                       {}});
    }
    journal_->sync();
    return;
  }
  journal_->begin();
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
    sink->journal_->read(sink->resumed_->draws, [&](const DrawBatch& block) {
      if (block.count > 0) run.take_draws(block);
    });
    if (ranks != nullptr) run.take_draws({});  // which says that there are no more
  } else {
    while (run.take_draws({}) > 0) continue;
  }
}

void CheckpointedSink::begin(const VariableLayout& layout, std::size_t chains,
                             const std::vector<std::string>& monitor_names, const std::string& settings) {
  if (journal_ && !resumed_) {
    forget_earlier_run();
    journal_->begin();
  }
  file_.begin(layout, chains, monitor_names, settings);
  if (resumed_) journal_->read(resumed_->draws, [&](const DrawBatch& block) { file_.write(block); });
}

void CheckpointedSink::write(const DrawBatch& block) {
  std::future<void> written;
  if (journal_) written = std::async(std::launch::async, [&] { journal_->write(block); });
  file_.write(block);
  if (journal_) written.get();
}

void CheckpointedSink::finish(const std::string& results) {
  file_.finish(results);
  if (!journal_) return;
  if (has_first_ && leaves_none_) remove_states(path_);
  remove_leftovers(path_);
  journal_->remove();
}

void CheckpointedSink::after_round(CheckpointedSink* sink, const Run& run) {
  // A launcher kills ranks about a second after it has told them to stop, and a busy machine may take longer to write
  // the last state. So a run on ranks has one on the disk before its first draw.
  const bool is_first =
      sink != nullptr && sink->journal_ && run.collective() != nullptr && !sink->resumed_ && !sink->has_first_;
  bool due = is_first || (sink != nullptr && sink->journal_ && Clock::now() >= sink->due_);
  if (run.collective() != nullptr) due = run.collective()->of_root(due);
  if (!due) return;
  save(sink, run, false);
  if (sink == nullptr) return;
  sink->due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(sink->options_.interval);
  if (!is_first) return;
  sink->settle();
  sink->has_first_ = true;
}

void CheckpointedSink::after_last_round(CheckpointedSink* sink, const Run& run, bool finished) {
  bool wanted = false;
  if (sink != nullptr && sink->journal_) {
    wanted = sink->options_.always || sink->resumed_ || !finished || Clock::now() >= sink->keeps_from_;
    sink->leaves_none_ = !wanted;
  }
  if (run.collective() != nullptr) wanted = run.collective()->of_root(wanted);
  if (wanted) save(sink, run, finished);
  if (sink != nullptr) sink->settle();
}

/// Its checkpoints would not go with the draws of this one.
void CheckpointedSink::forget_earlier_run() {
  settle();
  if (saved_ || resumed_) return;
  remove_states(path_);
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
  forget_earlier_run();
  try {
    writing_ = std::async(std::launch::async, [this, made = Checkpoint{command_, run.draws(), finished, state()}] {
      journal_->sync();
      write_checkpoint(path_, made);
    });
  } catch (const std::exception& error) {
    note_failure(error);
  }
}

void CheckpointedSink::settle() {
  if (!writing_.valid()) return;
  try {
    writing_.get();
    saved_ = true;
  } catch (const std::exception& error) {
    note_failure(error);
  }
}

void CheckpointedSink::note_failure(const std::exception& error) {
  const std::string note = fmt::format("no checkpoint could be written: {}", error.what());
  if (notes_.empty() || notes_.back() != note) notes_.push_back(note);
}

}  // namespace poise
