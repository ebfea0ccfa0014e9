/// A run is resumed from the draws that go with its last state.
#include "run/run_store.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "run/checkpoint.hpp"
#include "store/zarr/reader.hpp"

namespace poise {

namespace {

/// Draws are read again in batches of about this size.
constexpr std::size_t kBatchBytes = std::size_t{1} << 26;

StoreOptions shape_of(const Model& model, const RunOptions& options, std::size_t observers) {
  StoreOptions shape;
  shape.chains = options.chains;
  shape.draws = options.seconds > 0 ? 0 : options.draws;
  shape.variables = options.keep == Keep::draws ? model.layout.variables : 0;
  for (const Index levels : model.layout.cardinalities) shape.levels = std::max<std::size_t>(shape.levels, levels);
  // log_prob before the model's statistics, what is observed and hamming behind them.
  shape.monitors = model.statistics.size() + observers + 2;
  shape.threads = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  return shape;
}

}  // namespace

RunStore::RunStore(std::string path, const Model& model, const RunOptions& run, std::size_t observers)
    : path_(std::move(path)), options_(shape_of(model, run, observers)), writer_(path_, options_) {}

void RunStore::take_back(std::size_t draws) {
  std::string note;
  root_ = zarr::read_last_state(path_, note).root;
  if (read_checkpoint(path_, note).draws != draws) {
    throw InputError(fmt::format("{} was changed by another program just now.", path_));
  }
  writer_.resume(root_, draws);
}

void RunStore::read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit) {
  const std::size_t bytes = options_.chains * (options_.variables + (options_.monitors + 2) * sizeof(double));
  const std::size_t most = std::max<std::size_t>(1, kBatchBytes / bytes);
  for (std::size_t first = 0; first < draws; first += most) {
    const std::size_t count = std::min(most, draws - first);
    Trace trace = zarr::read_store(path_, root_, {.first_draw = first, .most_draws = count}).trace;
    visit({trace.draws, std::move(trace.x), std::move(trace.monitors), std::move(trace.acceptance_rate),
           std::move(trace.n_steps)});
  }
}

void RunStore::save(const Checkpoint& checkpoint) { writer_.save(checkpoint_bytes(checkpoint)); }

}  // namespace poise
