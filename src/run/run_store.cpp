/// A NetCDF file with its journal, and a Zarr store, which is its own.
#include "run/run_store.hpp"

#include <algorithm>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "run/checkpoint.hpp"
#include "store/journal.hpp"
#include "store/netcdf.hpp"
#include "store/zarr/reader.hpp"
#include "store/zarr/writer.hpp"

namespace poise {

namespace {

/// Draws are read again in batches of about this size.
constexpr std::size_t kBatchBytes = std::size_t{1} << 26;

/// log_prob before the model's statistics, what is observed and hamming behind them.
std::size_t num_monitors(const Model& model, std::size_t observers) { return model.statistics.size() + observers + 2; }

StoreOptions shape_of(const Model& model, const RunOptions& options, std::size_t observers) {
  StoreOptions shape;
  shape.chains = options.chains;
  shape.draws = options.seconds > 0 ? 0 : options.draws;
  shape.variables = options.keep == Keep::draws ? model.layout.variables : 0;
  for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  shape.monitors = num_monitors(model, observers);
  shape.threads = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  return shape;
}

/// Draws in a batch that is read again.
std::size_t batch_draws(const StoreOptions& shape) {
  const std::size_t bytes = shape.chains * (shape.variables + (shape.monitors + 2) * sizeof(double));
  return std::max<std::size_t>(1, kBatchBytes / bytes);
}

DrawBatch batch_of(Trace trace) {
  return {trace.draws,
          std::move(trace.x),
          std::move(trace.monitors),
          std::move(trace.acceptance_rate),
          std::move(trace.n_steps),
          {}};
}

/// Three files belong to a run at PATH: PATH itself, PATH.checkpoint with the last state, and PATH.draws, the journal
/// of the draws, there only while the run is under way. A state counts the draws that it goes with, and the journal has
/// them on the disk before the state is.
class NetcdfStore final : public RunStore {
 public:
  NetcdfStore(std::string path, const Model& model, const RunOptions& run, bool has_states, std::size_t observers)
      : path_(std::move(path)),
        shape_(draw_shape(model.layout, run.chains, num_monitors(model, observers), run.keep == Keep::draws)),
        options_(shape_of(model, run, observers)),
        file_(path_, options_) {
    if (has_states) journal_.emplace(journal_path(path_), shape_);
  }
  ~NetcdfStore() override { static_cast<void>(settle()); }

  void take_back(std::size_t draws) override {
    resumed_ = draws;
    if (!journal_) return;
    const std::size_t in_journal = journal_->draws();
    if (in_journal > 0 && in_journal >= draws) {
      journal_->cut(draws);
      return;
    }
    if (draws > 0) check_file(draws, in_journal);
    journal_->begin();
    const std::size_t most = batch_draws(options_);
    for (std::size_t first = 0; first < draws; first += most) {
      const ReadOptions batch{
          .draws = shape_.variables > 0, .first_draw = first, .most_draws = std::min(most, draws - first)};
      journal_->write(batch_of(read_netcdf(path_, batch).trace));
    }
    if (draws > 0) journal_->sync();
  }

  void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit) override {
    journal_->read(draws, visit);
  }

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override {
    if (journal_ && !resumed_) {
      forget_earlier_run();
      journal_->begin();
    }
    file_.begin(layout, chains, monitor_names, settings);
    if (journal_ && resumed_) journal_->read(*resumed_, [&](const DrawBatch& block) { file_.write(block); });
  }

  [[nodiscard]] bool wants_bits() const override { return journal_.has_value(); }

  void write(const DrawBatch& block) override {
    std::future<void> written;
    if (journal_) written = std::async(std::launch::async, [&] { journal_->write(block); });
    file_.write(block);
    if (journal_) written.get();
  }

  void save(Checkpoint checkpoint) override {
    forget_earlier_run();
    writing_ = std::async(std::launch::async, [this, made = std::move(checkpoint)] {
      journal_->sync();
      write_checkpoint(path_, made);
    });
  }

  [[nodiscard]] std::string settle() override {
    if (!writing_.valid()) return "";
    try {
      writing_.get();
      saved_ = true;
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  void close_draws() override { file_.close_draws(); }
  void forget_states() override { leaves_states_ = false; }

  void finish(const std::string& results) override {
    file_.finish(results);
    if (!journal_) return;
    if (saved_ && !leaves_states_) remove_states(path_);
    remove_leftovers(path_);
    journal_->remove();
  }

 private:
  /// Its checkpoints would not go with the draws of this one.
  void forget_earlier_run() {
    static_cast<void>(settle());
    if (!saved_ && !resumed_) remove_states(path_);
  }

  /// Whether a finished run, which has no journal, has the draws in its file.
  void check_file(std::size_t draws, std::size_t in_journal) const {
    const Trace trace = read_netcdf(path_, {.draws = false, .series = false, .most_draws = 0}).trace;
    const std::size_t in_file = trace.all_draws();
    if (in_file >= draws && trace.chains == shape_.chains && trace.monitor_names.size() == shape_.monitors) return;
    throw InputError(
        fmt::format("the checkpoint of {0} goes with {1} draws of each chain, but {2} has {3} of them and {0} has {4}",
                    path_, draws, journal_path(path_), in_journal, in_file));
  }

  std::string path_;
  DrawShape shape_;
  StoreOptions options_;
  NetcdfSink file_;
  std::optional<DrawJournal> journal_;
  std::optional<std::size_t> resumed_;  // with so many draws
  std::future<void> writing_;           // of a checkpoint
  bool saved_ = false;
  bool leaves_states_ = true;
};

class ZarrStore final : public RunStore {
 public:
  ZarrStore(std::string path, const Model& model, const RunOptions& run, std::size_t observers)
      : path_(std::move(path)), options_(shape_of(model, run, observers)), writer_(path_, options_) {}

  void take_back(std::size_t draws) override {
    std::string note;
    root_ = zarr::read_last_state(path_, note).root;
    if (read_checkpoint(path_, note).draws != draws) {
      throw InputError(fmt::format("{} was changed by another program just now.", path_));
    }
    writer_.resume(root_, draws);
  }

  void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit) override {
    const std::size_t most = batch_draws(options_);
    for (std::size_t first = 0; first < draws; first += most) {
      const std::size_t count = std::min(most, draws - first);
      visit(batch_of(zarr::read_store(path_, root_, {.first_draw = first, .most_draws = count}).trace));
    }
  }

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override {
    writer_.begin(layout, chains, monitor_names, settings);
  }
  [[nodiscard]] bool wants_bits() const override { return writer_.wants_bits(); }
  void write(const DrawBatch& block) override { writer_.write(block); }
  void save(Checkpoint checkpoint) override { writer_.save(checkpoint_bytes(checkpoint)); }
  [[nodiscard]] std::string settle() override {
    writer_.settle();
    return "";
  }
  void close_draws() override { writer_.close_draws(); }
  void forget_states() override { writer_.forget_states(); }
  void finish(const std::string& results) override { writer_.finish(results); }

 private:
  std::string path_;
  StoreOptions options_;
  zarr::Root root_;  // of the state that the run is resumed from
  zarr::Writer writer_;
};

}  // namespace

std::unique_ptr<RunStore> make_run_store(const std::string& path, const Model& model, const RunOptions& run,
                                         bool has_states, std::size_t observers) {
  if (is_store(path)) return std::make_unique<ZarrStore>(path, model, run, observers);
  return std::make_unique<NetcdfStore>(path, model, run, has_states, observers);
}

}  // namespace poise
