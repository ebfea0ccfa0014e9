/// A run is resumed from the draws that go with its last state.
#include "run/run_store.hpp"

#include <algorithm>
#include <cstdlib>
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
  if (const char* const most = std::getenv("POISE_MOST_FILES")) {
    shape.most_files = std::max<std::size_t>(1, std::strtoull(most, nullptr, 10));
  }
  return shape;
}

}  // namespace

RunStore::RunStore(std::string path, const Model& model, const RunOptions& run, std::size_t observers,
                   Collective* ranks)
    : path_(std::move(path)), options_(shape_of(model, run, observers)), ranks_(ranks) {
  if (ranks_ == nullptr || ranks_->is_root()) writer_.emplace(path_, options_);
}

void RunStore::take_back(std::size_t draws) {
  resumed_ = draws;
  if (!writer_) return;
  std::string note;
  root_ = zarr::read_last_state(path_, note).root;
  if (read_checkpoint(path_, note).draws != draws) {
    throw InputError(fmt::format("{} was changed by another program just now.", path_));
  }
  writer_->resume(root_, draws);
}

void RunStore::meet() {
  if (ranks_ == nullptr || options_.variables == 0 || !zarr::share_folder(path_, *ranks_, held_)) return;
  options_.most_files = ranks_->of_root(options_.most_files);
  part_.emplace(path_, options_);
  if (writer_) writer_->leave_states();
}

void RunStore::begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
                     const std::string& settings) {
  settle();
  if (writer_) writer_->begin(layout, chains, monitor_names, settings);
  begun_ = true;
  if (!part_) return;
  // Once they have heard of it, nothing of an earlier run is left that the root would remove.
  const std::string stored = ranks_->of_root(writer_ && resumed_ > 0 ? zarr::root_text(root_) : std::string());
  if (!writer_ && resumed_ > 0) root_ = zarr::parse_root(stored, path_);
  part_->begin(layout, chains, own_, resumed_ > 0 ? std::optional(root_) : std::nullopt, resumed_);
}

void RunStore::write(const DrawBatch& block) {
  if (part_) with_part([&] { part_->write(block); });
  if (writer_) writer_->write(block);
  if (part_) agree();
}

/// What goes wrong with a part ends the run as a failure of the root does, in the same words.
template <class Body>
void RunStore::with_part(Body&& body) {
  try {
    body();
  } catch (const InputError&) {
    throw;
  } catch (const std::runtime_error& error) {
    std::string what = error.what();
    while (!what.empty() && what.back() == '.') what.pop_back();
    const std::string kept = durable_ == 0 ? "" : fmt::format("; {} draws of each chain are in {}", durable_, path_);
    throw std::runtime_error(fmt::format("{}{}.", what, kept));
  }
}

void RunStore::agree() {
  struct News {
    std::uint64_t is_busy, is_due, durable, spent;
  };
  News mine{};
  with_part([&] { mine.is_busy = part_->is_busy(); });
  mine.spent = static_cast<std::uint64_t>(part_->take_time().count());
  if (writer_) mine.is_due = writer_->is_due();
  if (writer_) mine.durable = writer_->committed_draws();
  const std::vector<News> all = ranks_->of_all(mine);
  durable_ = all[0].durable;
  const auto slowest =
      std::max_element(all.begin(), all.end(), [](const News& a, const News& b) { return a.spent < b.spent; });
  if (writer_) writer_->add_time(std::chrono::nanoseconds(slowest->spent));
  if (waits_) {
    if (std::all_of(all.begin(), all.end(), [](const News& one) { return one.is_busy == 0; })) release();
  } else if (all[0].is_due != 0) {
    std::shared_future<void> others = start_parts();
    if (writer_) writer_->commit(std::move(others));
  }
}

std::shared_future<void> RunStore::start_parts() {
  with_part([&] { part_->start(); });
  waits_ = true;
  if (!writer_) return {};
  parts_.emplace();
  return parts_->get_future().share();
}

void RunStore::release() {
  waits_ = false;
  if (!parts_) return;
  parts_->set_value();
  parts_.reset();
}

void RunStore::settle() {
  if (waits_) {
    with_part([&] { part_->wait(); });
    static_cast<void>(ranks_->any(false));
    release();
  }
  if (writer_) writer_->settle();
}

void RunStore::close_draws() {
  settle();
  if (part_) {
    static_cast<void>(start_parts());
    settle();
  }
  if (writer_) writer_->close_draws();
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

void RunStore::save(const Checkpoint& checkpoint) {
  std::shared_future<void> others;
  if (part_ && begun_) others = start_parts();
  if (writer_) writer_->save(checkpoint_bytes(checkpoint), std::move(others));
}

}  // namespace poise
