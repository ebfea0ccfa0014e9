/// Which samplers `auto` tries on a model, and what they cost there: counted work, so the same on every computer.
///
/// Work is in nanoseconds of one core of the computer that the table of costs was measured on (src/run/costs.cpp). On
/// callback targets it is rows that user code evaluates: how long one takes is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/sampler.hpp>
#include <poise/types.hpp>

namespace poise {

struct Model;

enum class ModelKind { lattice, graph, network, rbm, callback, own };

/// What independent draws by a junction tree take.
struct ExactFacts {
  double bytes = 0.0;
  double planning = 0.0;    ///< looks at edges
  double operations = 0.0;  ///< table entries visited
};

/// What costs depend on.
struct ModelFacts {
  ModelKind kind = ModelKind::own;
  std::size_t chains = 1;
  Index variables = 0;
  Index free = 0;                   ///< variables that can change
  Index moves = 0;                  ///< single changes of a state
  Index most_levels = 2;            ///< of a variable
  double affected = 0.0;            ///< moves whose ratio a move changes, on average; 0 where the target is not sparse
  Index hidden = 0;                 ///< units of an RBM
  bool bits = false;                ///< Gibbs keeps chains as bits
  bool lanes = false;               ///< or across lanes
  bool clusters = false;            ///< of variables that like to be alike (engines/cpu/chains/bonds.hpp)
  bool gradient = false;            ///< user code has one
  bool log_ratios = false;          ///< user code has all ratios of a state in one row
  std::optional<ExactFacts> exact;  ///< networks whose junction tree fits memory
};

/// What a sampler takes on a model. Evaluations are counted by the chains themselves; what a step is expected to need
/// says the cost of a run before it has begun.
struct SamplerCost {
  double setup = 0.0;  ///< before the first step
  // The cost of one evaluation.
  double target = 0.0;
  double ratio = 0.0;
  double gradient = 0.0;
  Evals step;                         ///< that one step of one chain is expected to make
  std::uint64_t steps_per_sweep = 1;  ///< as the kernel has it
  double learning = 1.0;              ///< steps of a warm-up that learns cost this many times as much

  [[nodiscard]] double of(const Evals& evals) const {
    return target * static_cast<double>(evals.target) + ratio * static_cast<double>(evals.ratio) +
           gradient * static_cast<double>(evals.gradient);
  }
};

struct Candidate {
  Sampler sampler;
  SamplerCost cost;
  bool independent = false;  ///< draws are known to be independent of each other
};

[[nodiscard]] ModelFacts model_facts(const Model& model, std::size_t chains);

/// What the rows of the registry say of a model.
[[nodiscard]] std::vector<Candidate> find_candidates(const ModelFacts& facts);

/// The cost of a sampler on a model, where its row is a contender.
[[nodiscard]] std::optional<SamplerCost> sampler_cost(const Sampler& sampler, const ModelFacts& facts);

/// "ns" or "rows".
[[nodiscard]] std::string work_unit(ModelKind kind);

}  // namespace poise
