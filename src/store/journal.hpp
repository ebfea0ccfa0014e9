/// The draws of a run that is under way, in a file that only ever grows at its end. Whatever happens to the program,
/// what was written before can be read; whatever happens to the machine, what was synced can.
///
/// A NetCDF file that is being written is not like that: a kill in the wrong millisecond leaves it unreadable. So while
/// a run lasts its draws are in both, and the journal is what it resumes from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/trace.hpp>
#include "base/state_file.hpp"

namespace poise {

/// Writes a bit for each label, set where it is `high`, eight to a byte and the first lowest; gives whether all are one
/// of the two. The bits behind the last label are zero.
bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to);

/// Labels from their bits.
void unpack_labels(const std::uint8_t* bits, std::int8_t low, std::int8_t high, std::span<std::int8_t> to);

/// What blocks of draws are like; of one run all are alike.
struct DrawShape {
  std::size_t chains = 0;
  std::size_t monitors = 0;       ///< log_prob included
  std::size_t variables = 0;      ///< 0 where states are not kept
  std::int8_t low = 0, high = 0;  ///< labels of two-valued variables, stored as bits; alike where there are more levels

  [[nodiscard]] bool has_bits() const { return low != high; }
  [[nodiscard]] std::size_t bytes_of_state() const { return has_bits() ? (variables + 7) / 8 : variables; }
  bool operator==(const DrawShape&) const = default;
};
[[nodiscard]] DrawShape draw_shape(const VariableLayout& layout, std::size_t chains, std::size_t monitors, bool states);

/// Failures to write are a std::runtime_error that names the file.
class DrawJournal {
 public:
  /// Takes hold of PATH, and throws an InputError where another program has, or where it cannot be written. What is in
  /// it stays until `begin` or `cut`.
  DrawJournal(std::string path, const DrawShape& shape);
  ~DrawJournal();
  DrawJournal(const DrawJournal&) = delete;
  DrawJournal& operator=(const DrawJournal&) = delete;

  /// Begins anew.
  void begin();
  void write(const DrawBatch& block);
  /// Waits until everything is on the disk.
  void sync();
  /// Removes the file: its draws are stored elsewhere.
  void remove();

  /// Draws per chain that are there as a whole. What is torn or of another shape does not count, nor what follows it.
  [[nodiscard]] std::size_t draws();
  /// Gives the first `draws` draws of each chain, which must be there, block by block.
  void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit);
  /// Continues behind the first `draws` draws of each chain; what follows them is dropped.
  void cut(std::size_t draws);

 private:
  struct BlockPosition {
    std::uint64_t offset;  // of the block in the file
    std::uint64_t size;    // of what follows its head
    std::size_t first;     // draws that come before
    std::size_t count;     // in it
  };

  void write_all(std::vector<std::string_view> chunks);
  [[nodiscard]] std::string read_at(std::uint64_t at, std::size_t count) const;
  [[nodiscard]] std::vector<BlockPosition> blocks();
  [[nodiscard]] DrawBatch block_at(const BlockPosition& at) const;
  /// The states of a block as they are stored.
  [[nodiscard]] std::string_view stored_states(const DrawBatch& block);
  [[noreturn]] void fail() const;

  std::string path_;
  DrawShape shape_;
  HeldFile file_;
  int descriptor_;
  std::uint64_t draws_ = 0;           // that were written
  std::vector<std::uint8_t> packed_;  // states of a block that came without bits
};

}  // namespace poise
