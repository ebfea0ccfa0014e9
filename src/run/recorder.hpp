/// Keeps the draws of a run in memory and hands them on block by block.
#pragma once

#include <string>
#include <vector>

#include <poise/run/division.hpp>
#include <poise/run/run.hpp>

namespace poise {

/// Bytes that one draw of one chain takes while it is held.
[[nodiscard]] double bytes_per_draw(const Model& model, Keep keep);

/// Draws are recorded block by block; a block is a range of draws of all chains.
class Recorder {
 public:
  Recorder(const Model& model, const RunOptions& options);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::size_t draws() const { return series_[0][0].size(); }

  /// Before the first draw: acceptance is counted from here.
  void begin(const Engine& engine);
  /// Room for that many draws more.
  void reserve(std::size_t draws);

  /// Records the present states of a group; groups may do so at the same time. A draw is `steps` steps.
  void record(const Engine& engine, ChainGroup group, std::uint64_t steps);

  /// Drops what some chains have recorded beyond the draws that all have: chains stay equally long.
  void level_off();
  /// The same where chains are divided among ranks, and afterwards all ranks have the monitors of all chains; states are
  /// held where `to` says.
  void share(const Division& division, Collective::To to);

  /// The draws since `first`, as a block for a sink.
  [[nodiscard]] DrawBlock block_since(std::size_t first) const;
  /// Forgets the states that a sink has: they are not held in memory.
  void forget_states();
  /// Whether states are held; a trace without them has no x.
  [[nodiscard]] bool holds_states() const { return keep_ == Keep::draws && forgotten_ == 0; }

  [[nodiscard]] double mean_acceptance() const;
  [[nodiscard]] double ess_log_prob() const;

  /// Hands everything over as a trace; the recorder is empty afterwards.
  [[nodiscard]] Trace take();

  /// The draws of a block, after those that there are; their states only where `states`, and then those of all blocks.
  void take(const DrawBlock& block, bool states);

  template <class A>
  void archive(A& archive) {
    archive(series_, acceptance_, steps_, x_, accepted_, forgotten_);
    shared_ = draws();
  }
  /// The same without draws, which are kept elsewhere.
  template <class A>
  void archive_rest(A& archive) {
    archive(accepted_);
  }

 private:
  void append_states(std::size_t chain);

  const VariableLayout& layout_;
  Keep keep_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::vector<double>>> series_;  // [monitor][chain][draw]
  std::vector<std::vector<double>> acceptance_;           // [chain][draw]
  std::vector<std::vector<std::int64_t>> steps_;
  std::vector<std::vector<std::int8_t>> x_;  // [chain][(draw - forgotten) * variables + variable]
  std::size_t forgotten_ = 0;                // draws whose states only the sink has
  std::size_t shared_ = 0;                   // draws that all ranks know of
  std::vector<double> accepted_;             // of each chain at its last draw

  // Buffers for observations, chain by chain.
  std::vector<double> log_prob_;
  std::vector<double> statistics_;
  std::vector<std::int64_t> distance_;
  std::vector<double> accepted_now_;
  std::vector<Value> levels_;
};

}  // namespace poise
