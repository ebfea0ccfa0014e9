/// What a run keeps: draws, monitors and per-draw statistics of every chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <poise/states.hpp>
#include <poise/types.hpp>

namespace poise {

/// How the variables of a model are laid out and named in draws, files and pictures.
struct VariableLayout {
  Index variables = 0;
  Index rows = 0;  ///< rows and columns of a lattice; both 0 when the variables are a plain list
  Index columns = 0;
  std::vector<Index> sides;  ///< of a lattice of three dimensions and more, the last one changing fastest; not in files
  std::vector<std::int8_t> labels;   ///< what levels are called in output: {-1, +1} for spins; empty: the level itself
  std::vector<std::string> names;    ///< of variables; empty: x[0], x[1], ...
  std::vector<Index> cardinalities;  ///< of variables; empty: all binary
  std::vector<std::vector<std::string>> level_names;  ///< of each variable's levels; empty: their labels
  /// The level of a variable that is observed and never moves, -1 for the others; empty: none is observed.
  std::vector<std::int16_t> observed;

  [[nodiscard]] bool is_lattice() const { return rows > 0 && columns > 0; }
  [[nodiscard]] bool is_observed(Index i) const { return !observed.empty() && observed[i] >= 0; }
  [[nodiscard]] Index cardinality(Index i) const { return cardinalities.empty() ? 2 : cardinalities[i]; }
  /// Levels that a variable can take: 1 when it is observed.
  [[nodiscard]] Index levels(Index i) const { return is_observed(i) ? 1 : cardinality(i); }
  [[nodiscard]] std::int8_t label(Value level) const {
    return labels.empty() ? static_cast<std::int8_t>(level) : labels[level];
  }
};

/// What the observables of a spin model are counted in.
struct SpinScale {
  double sites = 0;       ///< N
  double coupling = 1;    ///< log p = -coupling E, E being the energy
  std::string order;      ///< the monitor that has the order parameter
  double order_size = 1;  ///< what it is divided by: N where it is a sum over sites
};

/// The draws of all chains for a range of draw numbers; x is empty when draws are not kept.
/// Everything is stored chain by chain: entry (chain, draw) of `count` draws is at chain * count + draw.
struct DrawBatch {
  std::size_t count = 0;                      ///< draws per chain in this block
  States x;                                   ///< row chain * count + draw
  std::vector<std::vector<double>> monitors;  ///< one array per monitor, in the order of Trace::monitor_names
  std::vector<double> acceptance_rate;        ///< mean acceptance probability over the steps of the draw
  std::vector<std::int64_t> n_steps;          ///< steps taken for the draw
};

/// All that was recorded of one phase, in memory, or as much of it as there is room for. monitors[0] is always
/// log_prob.
struct Trace {
  std::size_t chains = 0;
  std::size_t draws = 0;    ///< per chain, that are here
  std::size_t stride = 1;   ///< every so many of all draws are here
  std::size_t dropped = 0;  ///< per chain, that are not
  std::vector<std::string> monitor_names;
  std::vector<std::vector<double>> monitors;  ///< [monitor][chain * draws + draw]
  std::vector<double> acceptance_rate;        ///< [chain * draws + draw]
  std::vector<std::int64_t> n_steps;          ///< [chain * draws + draw]
  States x;                                   ///< row chain * draws + draw; empty when not kept

  [[nodiscard]] std::size_t all_draws() const { return draws + dropped; }
};

/// Where draws go while a run is under way (a file, memory, a notebook). Called from one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Called once before the first block. `settings` is a JSON object: what was run.
  virtual void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
                     const std::string& settings) = 0;
  /// Where ranks divide the chains among them: whether the sink of each rank takes the states of that rank's chains.
  /// Those of other chains are then undefined in its blocks. The same on all ranks.
  [[nodiscard]] virtual bool takes_own_states() const { return false; }
  /// Called before `begin` where it does: which chains these are.
  virtual void set_own_chains(std::size_t /*first*/, std::size_t /*count*/) {}
  /// The next draws of all chains.
  virtual void write(const DrawBatch& block) = 0;
  /// Called once after the last block, also when the run was interrupted. `results` is the final JSON report.
  virtual void finish(const std::string& results) = 0;
};

}  // namespace poise
