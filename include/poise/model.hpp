/// A model as the runner and the program see it: a name, a layout, and a description that chains can be made from.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/spec.hpp>
#include <poise/trace.hpp>

namespace poise {

class BatchFunction;
class BatchTarget;
class FiberScheduler;
class GraphIsing;
class LatticeIsing;
class MarkovNetwork;
class Rbm;
class SelectionTarget;
struct BatchShape;
struct EngineOptions;
struct IsingModel;
struct Network;
struct Sampler;
struct TunableEngine;

/// A network, with the target that was made from it.
struct NetworkDescription {
  std::shared_ptr<const Network> network;
  std::shared_ptr<const MarkovNetwork> target;
};

/// A callback target, and the scheduler by which one call serves all chains.
struct CallbackDescription {
  std::shared_ptr<BatchTarget> target;
  std::shared_ptr<FiberScheduler> fibers;
};

/// A C++ target of the user's, behind a virtual class: `own_model` in run/own_model.hpp makes one.
class OwnDescription {
 public:
  virtual ~OwnDescription() = default;
  /// Chains of a sampler on this target.
  [[nodiscard]] virtual TunableEngine make_engine(const Sampler& sampler, const EngineOptions& options) const = 0;
};

/// What is sampled, as data, so that any back end can make its chains from it. Shared and never changed.
using Description = std::variant<std::shared_ptr<const LatticeIsing>, std::shared_ptr<const GraphIsing>,
                                 NetworkDescription, std::shared_ptr<const Rbm>, std::shared_ptr<const SelectionTarget>,
                                 CallbackDescription, std::shared_ptr<const OwnDescription>>;

/// A distribution to sample. Cheap to copy: what is large in it is shared.
struct Model {
  std::string name;
  VariableLayout layout;
  Description description;
  std::vector<std::string> statistics;  ///< names of the model's own statistics
  /// The statistic that one would optimise, where the model comes from such a problem, and in which direction.
  std::string objective;
  bool maximise = true;

  /// What targets leave out of log p and runs add to it: log_prob and log Z of `maxcut` are those of exp(beta cut), of
  /// `qubo` those of exp(-beta energy), or exp(beta energy) with sense=max, with the numbers as the file has them.
  double log_constant = 0.0;

  std::optional<SpinScale> spins;  ///< of spin models, whose energy and order parameter are reported

  std::vector<double> observed;  ///< the image behind a segmentation model; may be empty

  /// Whether a move changes the ratios of few others, so that exact ratios of all moves are cheap to keep.
  bool sparse = false;
  /// Whether log p is known to be linear in every variable, the others given: first-order ratios are then the exact
  /// ones. It is not known of user targets.
  bool linear = false;
  /// Makes a state one of positive probability, near the given one; throws InputError where it cannot. Empty where
  /// every state has positive probability, or where this is not known.
  std::function<std::vector<Value>(std::vector<Value>, Rng)> into_support;
  /// Levels of each variable that zeros in the tables do not rule out by themselves; empty where nothing is ruled out.
  /// A variable that could take several but is frozen at one has chains that do not see the whole distribution.
  std::vector<Index> possible_levels;

  /// How many levels of variable i are not ruled out.
  [[nodiscard]] Index possible(Index i) const {
    return possible_levels.empty() ? layout.levels(i) : possible_levels[i];
  }
  /// Set where chains take turns on one thread, because log p of all of them is computed in one call.
  [[nodiscard]] std::shared_ptr<FiberScheduler> fibers() const;
};

// Models of what is there already.

/// The model that numbers of an Ising model stand for.
[[nodiscard]] Model ising_model(IsingModel ising);
/// The same as a network of tables over single sites and pairs. Throws InputError where a field or coupling is too
/// strong for a table.
[[nodiscard]] Network ising_network(IsingModel ising);
/// The model of a network. Where its tables hold zeros, chains start from states that were repaired.
[[nodiscard]] Model network_model(const std::shared_ptr<const Network>& network);
/// The model of a restricted Boltzmann machine, its hidden units summed out.
[[nodiscard]] Model rbm_model(std::string name, const std::shared_ptr<const Rbm>& rbm);
/// The model of a target that user code computes, for all chains in one call. `layout` has the names and labels.
[[nodiscard]] Model callback_model(std::string name, BatchShape shape, std::shared_ptr<BatchFunction> function,
                                   VariableLayout layout);

// Models by name.

/// Files that go with a model and have options of their own.
struct ModelFiles {
  std::string field;     ///< of an Ising model: an image or numbers
  std::string evidence;  ///< of a network: a file, or `variable=level,variable=level`
};

/// A model by its name on the command line: a spec such as "ising:size=64,lambda=0.4", or a file by its ending. Throws
/// InputError.
[[nodiscard]] Model make_model(const std::string& text, const ModelFiles& files = {});
/// The same from a spec that is no text any more: values may hold any character.
[[nodiscard]] Model make_model(const Spec& spec, const ModelFiles& files = {});

/// Whether `text` names a model that `make_network` gives as a network.
[[nodiscard]] bool has_network(const std::string& text);
/// The same model as a network with its evidence, for exact inference: every model but `rbm`.
[[nodiscard]] Network make_network(const std::string& text, const ModelFiles& files = {});
/// The same, or nothing where the model is no network, or has fields or couplings that are too strong for a table.
[[nodiscard]] std::optional<Network> find_network(const std::string& text, const ModelFiles& files = {});

/// The models there are, a line of help each.
const std::vector<NameHelp>& model_help();

}  // namespace poise
