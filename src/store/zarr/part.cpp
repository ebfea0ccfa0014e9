/// Chunks of a rank, and what ranks have in common.
#include "store/zarr/part.hpp"

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "store/zarr/reader.hpp"

namespace poise::zarr {

bool share_folder(const std::string& store, Collective& ranks, std::optional<Lock>& held) {
  const std::string folder = without_slash(store);
  const char* const wish = std::getenv("POISE_SHARED");
  bool sees = wish == nullptr || std::string_view(wish) != "off";
  std::string name;
  if (ranks.is_root() && sees) {
    std::random_device random;
    name = fmt::format("probe.{:08x}{:08x}", random(), random());
    try {
      write_probe(probe_path(folder, name));
    } catch (const std::runtime_error&) {
      name.clear();
    }
  }
  name = ranks.of_root(name);
  const std::string probe = probe_path(folder, name);
  sees = sees && !name.empty() && ::access(probe.c_str(), F_OK) == 0;
  if (!ranks.is_root() && sees) {
    try {
      held.emplace(rank_path(folder, ranks.rank()));
    } catch (const InputError&) {
      sees = false;
    }
  }
  bool shared = !ranks.any(!sees);
  if (ranks.is_root()) {
    if (!name.empty()) ::unlink(probe.c_str());
    for (int rank = 1; rank < ranks.size(); ++rank) {
      shared = shared && ::access(rank_path(folder, rank).c_str(), F_OK) == 0;
    }
  }
  shared = ranks.of_root(shared);
  if (!shared) held.reset();
  return shared;
}

Part::Part(std::string store, const StoreOptions& known)
    : store_(without_slash(std::move(store))), known_(known), pool_(known.threads) {}

void Part::make_column(const Array& array) {
  column_.emplace(array, state_shape(layout_), own_);
  if (array.sharded > 0) shards_.emplace(store_, array, own_);
}

void Part::begin(const VariableLayout& layout, std::size_t chains, Range own, const std::optional<Root>& root,
                 std::size_t draws) {
  layout_ = layout;
  chains_ = chains;
  own_ = own;
  const Array* const array = root ? root->find("posterior/x") : nullptr;
  if (array == nullptr || draws == 0) return;
  if (array->shape.size() < 2 || array->shape[0] != chains || array->chunk[1] == 0 ||
      (array->sharded > 0 && array->chunk[0] != 1)) {
    throw InputError(fmt::format("{} cannot be continued: it holds another run.", store_));
  }
  make_column(*array);
  const std::size_t full = draws - draws % column_->chunk_draws();
  column_->begin_at(full);
  if (shards_) shards_->begin_at(full);
  if (full == draws || own.count == 0) return;
  Trace trace = read_store(store_, *root,
                           {.series = false,
                            .first_draw = full,
                            .most_draws = draws - full,
                            .first_chain = own.first,
                            .most_chains = own.count})
                    .trace;
  DrawBatch waiting;
  waiting.count = trace.draws;
  waiting.x = std::move(trace.x);
  column_->add(waiting, own.first);
}

void Part::write(const DrawBatch& block) {
  if (block.count == 0 || block.x.empty() || own_.count == 0) return;
  if (!column_) {
    const Array array = states_array(layout_, chains_, known_);
    make_group(store_, array.path);
    make_column(array);
  }
  column_->add(block);
  has_new_ = true;
  write_chunks(false);
}

void Part::write_chunks(bool all) {
  if (shards_) {
    spent_ += shards_->write(*column_, all, pool_, files_);
    column_->drop_full();
    return;
  }
  const std::vector<Column::Chunk> chunks = column_->chunks(all);
  const std::size_t first = files_.size();
  files_.resize(first + chunks.size());
  pool_.for_each(chunks.size(), [&](std::size_t k) {
    files_[first + k] = write_new(store_, column_->path(chunks[k]), column_->encoded(chunks[k]));
  });
  column_->drop_full();
}

void Part::start() {
  if (syncing_.valid()) throw std::logic_error("zarr::Part: start() was called before the last one had ended");
  if (!std::exchange(has_new_, false)) return;
  const std::chrono::nanoseconds before = spent_;
  const auto begun = std::chrono::steady_clock::now();
  write_chunks(true);
  spent_ = before + (std::chrono::steady_clock::now() - begun);
  syncing_ = std::async(std::launch::async,
                        [this, files = std::exchange(files_, {})] { sync_folders(put_in_place(store_, files)); });
}

bool Part::is_busy() {
  if (!syncing_.valid()) return false;
  if (syncing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return true;
  syncing_.get();
  return false;
}

void Part::wait() {
  if (syncing_.valid()) syncing_.get();
}

}  // namespace poise::zarr
