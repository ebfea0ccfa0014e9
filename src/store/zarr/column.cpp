/// From batches of draws to chunks.
#include "store/zarr/column.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "store/label_bits.hpp"
#include "store/zarr/codec.hpp"

namespace poise::zarr {

namespace {

constexpr std::size_t kMostDraws = 256;                        // in a chunk of states
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;      // of a chunk of states, unpacked
constexpr std::size_t kWaitingBytes = std::size_t{128} << 20;  // of states of all chains that wait
constexpr std::size_t kWaitingNumbers = std::size_t{1} << 20;  // of a series, of all chains
constexpr std::size_t kChunkNumbers = std::size_t{1} << 16;
constexpr std::size_t kMostSharded = 4096;                         // chunks in a file: its index stays small
constexpr std::size_t kUnknownSharded = 256;                       // where the clock ends the run
constexpr std::size_t kFewestInSeries = 64, kMostInSeries = 8192;  // draws in a chunk of a series

template <class T>
const std::uint8_t* as_bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::uint8_t*>(values.data());
}

}  // namespace

StateShape state_shape(const VariableLayout& layout) {
  const BitLabels labels = bit_labels(layout);
  StateShape shape{layout.variables, labels.low, labels.high, -1};
  Index levels = 2;
  for (const Index cardinality : layout.cardinalities) levels = std::max(levels, cardinality);
  const auto is_label = [&](int value) {
    for (Index level = 0; level < levels; ++level) {
      if (layout.label(static_cast<Value>(level)) == value) return true;
    }
    return false;
  };
  for (int value = -1; value <= std::numeric_limits<std::int8_t>::max(); ++value) {
    if (is_label(value)) continue;
    shape.fill = static_cast<std::int8_t>(value);
    break;
  }
  return shape;
}

std::size_t states_chunk_draws(const StateShape& states, std::size_t chains) {
  const std::size_t fitting = kChunkBytes / std::max<std::size_t>(states.variables, 1);
  const std::size_t waiting = kWaitingBytes / std::max<std::size_t>(chains * states.bytes(), 1);
  return std::clamp<std::size_t>(std::min(fitting, waiting), 1, kMostDraws);
}

namespace {

/// The fewest chunks of a chain in a file with which there are not too many files; 0 where each is a file.
std::size_t chunks_in_file(const StoreOptions& known, std::size_t chunk_draws) {
  if (known.chains == 0) return 0;
  if (known.draws == 0) return kUnknownSharded;
  const std::size_t chunks = (known.draws - 1) / chunk_draws + 1;
  const std::size_t files = std::max<std::size_t>(1, known.most_files / known.chains);  // of a chain
  return chunks <= files ? 0 : std::min((chunks - 1) / files + 1, kMostSharded);
}

}  // namespace

Array states_array(const VariableLayout& layout, std::size_t chains, const StoreOptions& known) {
  const StateShape states = state_shape(layout);
  Array x{"posterior/x",     "int8", {chains, 0}, {1, states_chunk_draws(states, chains)}, states.fill,
          {"chain", "draw"}, ""};
  x.sharded = chunks_in_file(known, x.chunk[1]);
  const auto add = [&](const char* name, std::size_t length) {
    x.shape.push_back(length);
    x.chunk.push_back(length);
    x.dimensions.emplace_back(name);
  };
  if (layout.is_lattice()) {
    add("row", layout.rows);
    add("column", layout.columns);
  } else {
    // Not "variable": xarray, and with it the summary of ArviZ, uses that name for a dimension of its own.
    add("x_variable", layout.variables);
  }
  return x;
}

std::vector<std::size_t> series_chunk(std::size_t chains) {
  const std::size_t draws = std::clamp(kWaitingNumbers / chains, kFewestInSeries, kMostInSeries);
  return {std::clamp<std::size_t>(kChunkNumbers / draws, 1, chains), draws};
}

Column::Column(Array array, Source source, const StateShape& states, std::size_t monitor)
    : array_(std::move(array)),
      source_(source),
      states_(states),
      monitor_(monitor),
      width_(source == Source::states ? states.bytes() : sizeof(double)),
      held_(array_.shape[0]) {}

Column::Column(Array array, const StateShape& states, Range chains) : Column(std::move(array), Source::states, states) {
  first_chain_ = chains.first;
  held_.resize(chains.count);
}

void Column::add(const DrawBatch& block, std::size_t first_chain) {
  const std::size_t bytes = block.count * width_;
  const std::size_t first = first_chain_ - first_chain;  // in the block
  const auto take = [&](const std::uint8_t* from) {
    from += first * bytes;
    for (std::size_t chain = 0; chain < held_.size(); ++chain) {
      held_[chain].insert(held_[chain].end(), from + chain * bytes, from + (chain + 1) * bytes);
    }
  };
  switch (source_) {
    case Source::monitor: take(as_bytes(block.monitors[monitor_])); break;
    case Source::acceptance_rate: take(as_bytes(block.acceptance_rate)); break;
    case Source::n_steps: take(as_bytes(block.n_steps)); break;
    case Source::states: {
      if (block.x.row_bytes() != width_) {
        throw std::invalid_argument("zarr::Writer: the states of a block are not those of its layout");
      }
      take(block.x.bytes().data());
    }
  }
  waiting_ += block.count;
}

std::vector<Column::Chunk> Column::chunks(bool all) const {
  std::vector<Chunk> found;
  for (std::size_t draw = 0; draw < waiting_; draw += chunk_draws()) {
    const std::size_t draws = std::min(chunk_draws(), waiting_ - draw);
    if (draws < chunk_draws() && !all) break;
    for (std::size_t chain = 0; chain < held_.size(); chain += array_.chunk[0]) {
      found.push_back({first_chain_ + chain, draw, draws});
    }
  }
  return found;
}

std::string Column::path(const Chunk& chunk) const {
  std::vector<std::size_t> key(array_.chunk.size(), 0);
  key[0] = chunk.first_chain / array_.chunk[0];
  key[1] = (written_ + chunk.first_draw) / chunk_draws();
  return chunk_path(array_, key);
}

std::string Column::encoded(const Chunk& chunk) const {
  return source_ == Source::states ? encoded_states(chunk) : encoded_series(chunk);
}

std::string Column::encoded_states(const Chunk& chunk) const {
  const std::uint8_t* const from = held_[chunk.first_chain - first_chain_].data() + chunk.first_draw * width_;
  if (states_.has_bits()) {
    const LabelBits labels{{from, chunk.draws * width_}, chunk.draws, states_.variables, states_.low, states_.high};
    return encode(labels, (chunk_draws() - chunk.draws) * states_.variables, states_.fill);
  }
  std::string bytes(chunk_draws() * width_, static_cast<char>(states_.fill));
  std::memcpy(bytes.data(), from, chunk.draws * width_);
  return encode(bytes);
}

std::string Column::encoded_series(const Chunk& chunk) const {
  const std::size_t chains = array_.chunk[0];
  std::string bytes;
  bytes.reserve(chains * chunk_draws() * width_);
  const double missing = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t no_count = kNoCount;
  const char* const fill =
      source_ == Source::n_steps ? reinterpret_cast<const char*>(&no_count) : reinterpret_cast<const char*>(&missing);
  for (std::size_t k = 0; k < chains; ++k) {
    const std::size_t chain = chunk.first_chain + k;
    const std::size_t draws = chain < held_.size() ? chunk.draws : 0;
    if (draws > 0) {
      bytes.append(reinterpret_cast<const char*>(held_[chain].data()) + chunk.first_draw * width_, draws * width_);
    }
    for (std::size_t draw = draws; draw < chunk_draws(); ++draw) bytes.append(fill, width_);
  }
  return encode(bytes);
}

void Column::drop_full() {
  const std::size_t full = waiting_ - waiting_ % chunk_draws();
  if (full == 0) return;
  for (auto& chain : held_) chain.erase(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(full * width_));
  written_ += full;
  waiting_ -= full;
}

}  // namespace poise::zarr
