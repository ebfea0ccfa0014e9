/// One array of a store that grows by draws: what waits for its chunk to be full, and chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <poise/trace.hpp>
#include "store/run_file.hpp"
#include "store/zarr/metadata.hpp"

namespace poise::zarr {

/// How states are held and stored: two-valued ones as bits.
struct StateShape {
  std::size_t variables = 0;
  std::int8_t low = 0, high = 0;  ///< labels of two-valued variables; alike where there are more levels
  std::int8_t fill = -1;          ///< marks what is missing: no label, where one is left

  [[nodiscard]] bool has_bits() const { return low != high; }
  [[nodiscard]] std::size_t bytes() const { return has_bits() ? (variables + 7) / 8 : variables; }
};
[[nodiscard]] StateShape state_shape(const VariableLayout& layout);

/// Draws in a chunk of states, which is of one chain and has all variables.
[[nodiscard]] std::size_t states_chunk_draws(const StateShape& states, std::size_t chains);
/// The array of the states of so many chains, none of which has a draw yet. What is known of the run says how many
/// chunks a file has.
[[nodiscard]] Array states_array(const VariableLayout& layout, std::size_t chains, const StoreOptions& known);
/// Chains and draws in a chunk of a series.
[[nodiscard]] std::vector<std::size_t> series_chunk(std::size_t chains);

class Column {
 public:
  enum class Source { states, monitor, acceptance_rate, n_steps };

  /// `monitor` is which one.
  Column(Array array, Source source, const StateShape& states, std::size_t monitor = 0);
  /// The states of some of the chains.
  Column(Array array, const StateShape& states, Range chains);

  [[nodiscard]] Array& array() { return array_; }
  [[nodiscard]] Source source() const { return source_; }
  [[nodiscard]] std::size_t chunk_draws() const { return array_.chunk[1]; }
  [[nodiscard]] bool is_sharded() const { return array_.sharded > 0; }
  /// Says how many draws of each chain were written before; a multiple of those in a chunk.
  void begin_at(std::size_t draws) { written_ = draws; }
  /// The first chain of the block is number `first_chain`.
  void add(const DrawBatch& block, std::size_t first_chain = 0);

  struct Chunk {
    std::size_t first_chain = 0;
    std::size_t first_draw = 0;  // among those that wait
    std::size_t draws = 0;
  };
  /// Chunks of what waits: those that are full or, for `all`, the last one too.
  [[nodiscard]] std::vector<Chunk> chunks(bool all) const;
  [[nodiscard]] std::string path(const Chunk& chunk) const;
  [[nodiscard]] std::string encoded(const Chunk& chunk) const;
  /// Forgets draws in full chunks.
  void drop_full();

 private:
  [[nodiscard]] std::string encoded_states(const Chunk& chunk) const;
  [[nodiscard]] std::string encoded_series(const Chunk& chunk) const;

  Array array_;
  Source source_;
  StateShape states_;
  std::size_t monitor_;
  std::size_t width_;            // bytes of a draw of a chain
  std::size_t first_chain_ = 0;  // of those that are here
  std::size_t written_ = 0;      // draws in full chunks
  std::size_t waiting_ = 0;
  std::vector<std::vector<std::uint8_t>> held_;  // by chains, from the first one on
};

}  // namespace poise::zarr
