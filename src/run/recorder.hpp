/// Takes the draws of a run in, hands them on block by block, and remembers as many of them as memory allows.
#pragma once

#include <unistd.h>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/run.hpp>
#include "base/thread_pool.hpp"
#include "run/best_state.hpp"

namespace poise {

/// What the options say or a third, in bytes: draws are held once, and a second time while they are handed over.
inline double memory_for_draws(const RunOptions& options) {
  if (options.memory > 0.0) return options.memory;
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / 3.0;
}

/// Bytes that one draw of one chain takes while it is held.
[[nodiscard]] double bytes_per_draw(const Model& model, Keep keep);

/// Draws are recorded block by block; a block is a range of draws of all chains.
///
/// What is held of all blocks stays below `RunOptions::memory`, however many there are: states are forgotten first, and
/// when the numbers of every draw have filled it, those of every second one go, then of every second one of these. So
/// what is left is evenly spaced. Sums over all draws are kept beside.
class Recorder {
 public:
  /// What is agreed among ranks, and what is not.
  struct Holding {
    double memory = 0.0;      ///< bytes that what is held may take
    bool hands_on = false;    ///< there is a sink, so states are recorded also when they are not held
    bool has_states = true;   ///< the states of all chains come to this rank
    bool gives_bits = false;  ///< EngineTraits::gives_bits
    unsigned threads = 1;     ///< that may take draws in
    std::vector<Observer> observers = {};
    bool states_stay = false;  ///< each rank's sink takes those of its own chains
  };
  Recorder(const Model& model, const RunOptions& options, const Holding& holding);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Draws of each chain, without the batch that is being filled.
  [[nodiscard]] std::size_t draws() const { return draws_; }

  /// Before the first draw: acceptance is counted from here.
  void begin(const Engine& engine);
  /// Says how many draws there will be in all: room for them, or no states from the start where they would not fit.
  void expect(std::size_t draws);

  /// Room for a block of that many draws, which `record` fills.
  void begin_block(std::size_t draws);
  /// Records the present states of a group; groups may do so at the same time. A draw is `steps` steps.
  void record(const Engine& engine, ChainGroup group, std::uint64_t steps);
  /// Moves a group on and records it, `draws` times.
  void advance_and_record(Engine& engine, ChainGroup group, std::uint64_t steps, std::size_t draws);
  /// The draws since `begin_block` that all chains have: chains stay equally long. Good until the next `begin_block`.
  /// Where chains are divided among ranks all of them call it, and afterwards have the numbers of all chains; states go
  /// where `to` says, unless they stay with sinks and nobody holds them.
  [[nodiscard]] const DrawBatch& end_block(const Division* division, Collective::To to);

  /// The draws of a block that was recorded before, after those that there are.
  void take(const DrawBatch& block);

  /// Whether the states of all draws are held; a trace without them has no x.
  [[nodiscard]] bool holds_states() const { return holds_states_; }
  /// Every so many of the draws so far are held.
  [[nodiscard]] std::size_t stride() const { return stride_; }

  [[nodiscard]] double mean_acceptance() const;
  /// Effective sample size of log p so far. Its autocorrelation is that of the last draws, where there are many.
  [[nodiscard]] double ess_log_prob() const;

  /// The best draw of the chains that were recorded here, by the model's objective or by log p, among those of all
  /// ranks where there are several.
  [[nodiscard]] BestState best(const Division* division) const;
  /// What a chain has of it, to be saved and loaded with the chain.
  [[nodiscard]] BestState& best_of(std::size_t chain) { return best_[chain]; }
  /// The name of the objective; empty where it is log p.
  [[nodiscard]] std::string objective() const { return objective_ == 0 ? "" : names_[objective_]; }
  void write_labels(std::span<const Value> levels, std::int8_t* to) const;

  /// Hands everything over as a trace; the recorder is empty afterwards.
  [[nodiscard]] Trace take();

  template <class A>
  void archive(A& archive) {
    archive(series_, acceptance_, steps_, x_, accepted_, draws_, stride_, holds_states_, accepted_sum_, recent_);
  }
  /// The same without draws, which are kept elsewhere.
  template <class A>
  void archive_rest(A& archive) {
    archive(accepted_);
  }

 private:
  /// Makes the buffers for observations at least so long.
  void make_room(std::size_t rows);
  /// Where observations of so many chains go in them.
  [[nodiscard]] Observables room_for(std::size_t first, std::size_t rows);
  void fill(ChainGroup group, std::size_t first, std::span<const Observables> draws, std::uint64_t steps);
  void for_each_chain(ChainGroup group, std::size_t draws, const std::function<void(ChainGroup)>& work);
  /// Takes note of the best of the draws of a group, whose numbers `fill` has just written; what was observed begins
  /// with chain `first`. Gives the chain whose present state is the best so far, or the number of chains.
  std::size_t find_best(ChainGroup group, std::size_t first, std::span<const Observables> draws);
  /// The state of number k of a draw, as a row.
  void fill_state(const Observables& draw, std::size_t k, std::span<std::uint8_t> to) const;
  void share(const Division& division, Collective::To to);
  void add_series(const DrawBatch& block, ChainGroup group);
  void add_sums(const DrawBatch& block, ChainGroup group);
  void stay_within_memory();
  void forget_states();
  void drop_every_second();
  [[nodiscard]] double held_bytes() const;
  [[nodiscard]] std::size_t chains() const { return accepted_.size(); }
  [[nodiscard]] bool records_states() const { return keep_ == Keep::draws || !observers_.empty(); }
  /// The states of the block.
  [[nodiscard]] States& block_states() { return keep_ == Keep::draws ? block_.x : observed_; }
  /// Has the observers look at the states of these chains.
  void observe_block(ChainGroup own);

  const VariableLayout& layout_;
  Keep keep_;  // of blocks
  bool hands_on_;
  bool has_states_;
  bool states_stay_;
  bool observes_bits_;  // two-valued states come as bits
  double memory_;
  std::vector<std::string> names_;
  std::size_t statistics_of_model_;
  std::size_t objective_ = 0;  // which monitor
  bool maximise_ = true;
  double log_constant_;
  double bytes_numbers_;  // of a draw of a chain, its state apart

  std::vector<std::vector<std::vector<double>>> series_;  // [monitor][chain][draw / stride]
  std::vector<std::vector<double>> acceptance_;           // [chain][draw / stride]
  std::vector<std::vector<std::int64_t>> steps_;
  std::vector<States> x_;  // of chains, where states are held
  std::size_t draws_ = 0;
  std::size_t stride_ = 1;
  bool holds_states_;             // or would, if they came to this rank
  std::vector<double> accepted_;  // of each chain at its last draw

  // Sums over all draws, by chain.
  std::vector<double> accepted_sum_;
  std::vector<std::vector<double>> recent_;  // log p of the last draws

  std::vector<BestState> best_;  // of groups, at their first chains

  std::vector<Observer> observers_;
  States observed_;                  // of the block, where states are not kept
  std::vector<std::int8_t> labels_;  // those of own chains, for observers

  DrawBatch block_;
  std::vector<std::size_t> filled_;  // draws of each chain in it
  unsigned threads_;
  std::unique_ptr<ThreadPool> pool_;  // once there is much to take in

  // Buffers for observations, chain by chain; of many draws, one after the other. They are kept: fresh memory would
  // cost more than to fill it.
  std::vector<double> log_prob_;
  std::vector<double> statistics_;
  std::vector<std::int64_t> distance_;
  std::vector<double> accepted_now_;
  std::vector<Value> levels_;
  std::vector<std::uint8_t> bits_;
};

}  // namespace poise
