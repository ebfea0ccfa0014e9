/// A group of chains behind one virtual class: hot loops are inside, names and types stay outside.
///
/// An engine moves chains on and tells where they are. It has no way to change how it moves: what warm-up learns goes
/// through a Tuner (engines/tuner.hpp), which is made together with the engine and is gone before the first draw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <poise/devices.hpp>
#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/concepts.hpp>
#include <poise/extend/engines/ladder.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/types.hpp>

namespace poise {

/// A range of chains that one thread moves on together.
struct ChainGroup {
  std::size_t first;
  std::size_t count;
};

/// What all chains of a tile have in common.
struct TileProgress {
  std::uint64_t sweeps = 0;
  std::uint64_t counts = 0;    ///< 1 while levels are counted
  std::uint64_t averages = 0;  ///< 1 while conditional probabilities are summed
};

/// Shares chains out in groups of at most `most`, as equal as can be, a multiple of the threads in number if possible.
std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most = 4);

/// Chains that share words of memory, and so go in groups of whole words where there are enough for all threads.
struct WordShape {
  std::size_t chains;      ///< of a word
  std::size_t most_words;  ///< of a group
};
std::vector<ChainGroup> group_words(std::size_t chains, std::uint64_t first_chain, unsigned threads, WordShape shape);

class Division;

/// What an engine needs besides its target and kernel.
struct EngineOptions {
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;  ///< number, and so random stream, of the first chain
  Device device = Device::cpu;
  std::vector<std::vector<Value>> starts;  ///< one state per chain
  std::vector<Value> reference;            ///< the state that the Hamming distance is measured from
  /// Other states for a chain whose start has probability zero, attempt after attempt; an empty one ends the search.
  /// Without this function such a start is refused.
  std::function<std::vector<Value>(std::size_t chain, unsigned attempt)> other_start;
  /// Where chains of one run are divided among ranks: whose they are. The engine has those of its own rank, and
  /// `first_chain` and `starts` are theirs.
  std::shared_ptr<const Division> division;
};

/// What does not change while chains run.
struct EngineTraits {
  std::size_t chains = 0;
  Index variables = 0;
  Index entries = 0;                  ///< pairs of a variable and one of its levels above 0
  std::size_t statistics = 0;         ///< the model's own, of a state
  std::uint64_t steps_per_sweep = 1;  ///< steps that give every variable one chance to change, on average
  std::uint64_t chunk = 1;            ///< steps that take milliseconds
  std::size_t group = 1;              ///< chains that are moved on together at most: more would not make them faster
  std::size_t draws_at_once = 1;      ///< draws that `advance_and_observe` is best asked for at most; if more than one,
                                      ///< all chains are one group
  bool together = false;              ///< all chains are moved on by one call
  bool of_device = false;             ///< saved states are those of a GPU: no other device resumes from them
  bool gives_bits = false;            ///< `observe` fills Observables::bits
  bool independent = false;           ///< every step gives a state of its own from the distribution: no warm-up needed
  /// What single precision adds to the error of `rao_blackwell` at most, by entry; empty where it averages doubles.
  std::vector<double> rounding = {};

  /// What the target and the number of chains tell.
  template <class T>
  [[nodiscard]] static EngineTraits of(const T& target, std::size_t chains) {
    EngineTraits traits;
    traits.chains = chains;
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    if constexpr (requires { target.statistic_names(); }) traits.statistics = target.statistic_names().size();
    return traits;
  }
  /// Steps of sweeps that update about so many variables.
  void set_chunk(std::uint64_t updates) { chunk = std::max<std::uint64_t>(1, updates / std::max<Index>(1, variables)); }
};

/// What is wanted of the present states of a group of chains, chain after chain; spans that are empty are not filled.
struct Observables {
  std::span<double> log_prob = {};
  std::span<double> statistics = {};      ///< in the order of Model::statistics
  std::span<std::int64_t> distance = {};  ///< variables that differ from EngineOptions::reference
  std::span<double> accepted = {};        ///< acceptance probabilities, summed since the start
  std::span<Value> levels = {};           ///< of all variables
  /// The same of two-valued variables where EngineTraits::gives_bits: a bit for each, the first lowest, every chain
  /// from a byte of its own on.
  std::span<std::uint8_t> bits = {};
  std::span<std::uint8_t> frozen = {};         ///< of each variable: whether every other level has probability zero now
  std::span<double> empirical_marginals = {};  ///< fraction of steps at each entry since `start_marginals`
  std::span<Evals> evals = {};                 ///< since the start
  std::span<ProposalCounts> proposals = {};    ///< since the start; while a function is learned or a length is tuned

  [[nodiscard]] bool wants_state() const {
    return !log_prob.empty() || !statistics.empty() || !distance.empty() || !levels.empty() || !bits.empty();
  }
};

class Engine {
 public:
  explicit Engine(const EngineTraits& traits) : traits_(traits) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const EngineTraits& traits() const { return traits_; }

  /// The groups in which `threads` threads will move the chains on. Called before they begin, by no two at once.
  virtual std::vector<ChainGroup> share_out(unsigned threads);

  // Different chains may be handled by different threads at the same time; what takes a group touches its chains only.

  /// Moves the chains on. Several together may be faster than one by one; what they do is the same.
  virtual void advance(ChainGroup group, std::uint64_t steps) = 0;
  virtual void observe(ChainGroup group, const Observables& out) const = 0;
  /// Moves the chains on by so many steps and observes them, once for each of `draws`, which want the same. Where
  /// chains are far away, on a GPU, many draws together take less time than one by one.
  virtual void advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws);
  /// Puts a chain at a state and computes everything anew, as after the target has changed.
  virtual void restart(std::size_t chain, std::span<const Value> levels) = 0;

  /// Swaps the states of a chain and of the chain of the same number in an engine for the same model at another
  /// temperature, made by the same sampler. Counts continue. Engines whose chains never do so throw.
  virtual void exchange(std::size_t chain, Engine& other);

  /// Starts counting how long variables are at their levels and, if asked to, averaging P(variable at level | all
  /// others).
  virtual void start_marginals(ChainGroup group, bool rao_blackwell) = 0;
  /// At a recorded draw. Adds the conditional probabilities of the present states to the averages, if these are wanted
  /// and the kernel does not average them over every step because it computes them anyway.
  virtual void visit_marginals(ChainGroup group) = 0;
  [[nodiscard]] virtual RaoBlackwell rao_blackwell(std::size_t chain) const = 0;

  /// Tempering statistics; empty unless this engine runs parallel tempering.
  [[nodiscard]] virtual std::optional<TemperingReport> tempering() const { return {}; }

  /// Everything that the next step depends on, and what was counted: what all chains have in common, which is loaded
  /// first, and what each has for itself. An engine that loads it was made for the same model and sampler.
  virtual void save_common(Saver& out) const = 0;
  virtual void load_common(Loader& in) = 0;
  virtual void save_chain(std::size_t chain, Saver& out) const = 0;
  virtual void load_chain(std::size_t chain, Loader& in) = 0;

  /// Where chains are divided among ranks, and this is all of them as seen from one: whose they are. What takes a chain
  /// or a group takes those of this rank only; engines/division.hpp has what looks at all of them.
  [[nodiscard]] virtual const Division* division() const { return nullptr; }

 protected:
  /// What is number k's of numbers that each chain has `width` of.
  static auto row(auto span, std::size_t k, std::size_t width) { return span.subspan(k * width, width); }

  /// What is wanted of the state of a chain, as number k.
  template <class T>
  void observe_state(const T& target, const typename T::State& state, std::span<const Value> reference, std::size_t k,
                     const Observables& out) const {
    if (!out.log_prob.empty()) out.log_prob[k] = target.log_prob(state);
    if (!out.statistics.empty()) target.statistics(state, row(out.statistics, k, traits_.statistics));
    if (out.levels.empty() && out.bits.empty() && out.distance.empty()) return;
    const std::vector<Value> levels = levels_of(target, state);
    if (!out.levels.empty()) std::copy(levels.begin(), levels.end(), row(out.levels, k, traits_.variables).begin());
    if (!out.bits.empty()) set_bits(levels, row(out.bits, k, (levels.size() + 7) / 8));
    if (out.distance.empty()) return;
    out.distance[k] = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) out.distance[k] += levels[i] != reference[i] ? 1 : 0;
  }

  /// Levels 0 and 1 as bits.
  static void set_bits(std::span<const Value> levels, std::span<std::uint8_t> to) {
    std::fill(to.begin(), to.end(), std::uint8_t{0});
    for (std::size_t i = 0; i < levels.size(); ++i)
      to[i / 8] = static_cast<std::uint8_t>(to[i / 8] | levels[i] << i % 8);
  }

  EngineTraits traits_;
};

// Sums over all chains of a run, whichever rank has them.

/// Acceptance probabilities of all chains so far, summed.
[[nodiscard]] double total_accepted(const Engine& engine);
/// Proposals of all chains so far.
[[nodiscard]] ProposalCounts total_proposals(const Engine& engine);
/// log p, averaged over chains.
[[nodiscard]] double mean_log_prob(const Engine& engine);
/// Evaluations by all chains so far.
[[nodiscard]] Evals total_evals(const Engine& engine);

}  // namespace poise
