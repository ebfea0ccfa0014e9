/// The registry of samplers: one row each, from the name on the command line to the kernel on a target.
///
/// A row has a `name`, a line of `help`, `read`, which takes its settings from the spec and gives the keys it knows,
/// and `make`, which makes chains on a target. A sampler that runs on some built-in models only has, in place of
/// `make`, the `refusal` for all others; its chains are made in src/engines/cpu. docs/adding.md says how to
/// add a sampler.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <poise/extend/engines/engine_of.hpp>
#include <poise/extend/engines/own_kernel.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/learning/transition_gradient_block.hpp>
#include <poise/extend/learning/transition_gradient_many.hpp>
#include <poise/extend/learning/transition_gradient_single.hpp>
#include <poise/sampler.hpp>

namespace poise {

using SpecKeys = std::vector<std::string>;

// What several rows read. Each gives the keys it knows.

/// A fixed balancing function by the key `key`.
BalancingFunction::Kind read_function(SpecReader& reader, const char* key);
/// The settings of everything that learns.
SpecKeys read_learning(SpecReader& reader, SamplerSettings& settings);
/// The same of a learned network.
SpecKeys read_network_family(SpecReader& reader, SamplerSettings& settings);
/// Whether the step length is given by `key`, or how it is tuned.
SpecKeys read_tuning(SpecReader& reader, SamplerSettings& settings, const char* key);
/// The number of variables that are updated together.
Index read_block(SpecReader& reader);

/// A row without settings.
struct PlainRow {
  static SpecKeys read(SpecReader&, SamplerSettings&) { return {}; }
};

/// Picks one of the others: a run makes the chains of its choice.
struct AutoRow : PlainRow {
  static constexpr const char* name = "auto";
  static constexpr const char* help =
      "one of the others, by the model; replaced in warm-up where its chains do not mix. The default";
  static constexpr const char* refusal =
      "the sampler 'auto' has no chains of its own: let a run choose, or name the sampler";
};

/// Throws InputError where a balancing function cannot be learned over the configurations of such blocks.
void check_learned_block(const std::vector<Index>& cardinalities, Index block);

/// Balanced proposals, of single changes by the kernel that fits the target, or of random blocks.
struct BalancedRow {
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    const BalancingFunction function(settings.function);
    if (settings.block > 1) {
      if (settings.family != FunctionFamily::fixed)
        check_learned_block(BlockScratch<T>(*target).free_cardinalities(*target), settings.block);
      return make_engine_of<T>(std::move(target), BlockBalanced<T>(function, settings.block), options);
    }
    if constexpr (SparseTarget<T>) {
      // Exact ratios of a sparse target cost no more than a gradient, so first-order samplers use them as well.
      return make_engine_of<T>(std::move(target), LocallyBalanced<T>(function), options);
    } else {
      const Ratios ratios = settings.first_order ? Ratios::first_order : Ratios::exact;
      return make_engine_of<T>(std::move(target), InformedProposal<T>(function, ratios), options);
    }
  }
};

struct LsbRow : BalancedRow {
  static constexpr const char* name = "lsb";
  static constexpr const char* help =
      "locally balanced single changes by exact ratios, balancing function learned in warm-up (a monotone spline); "
      "lsb:block=4 over the configurations of random blocks";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.family = FunctionFamily::spline;
    settings.block = read_block(reader);
    SpecKeys keys = read_learning(reader, settings);
    keys.emplace_back("block");
    if (settings.block > 1 && settings.learn.objective != LearningObjectiveKind::variance) {
      throw InputError("sampler 'lsb': blocks learn by objective=variance only");
    }
    return keys;
  }
};

struct LbRow : BalancedRow {
  static constexpr const char* name = "lb";
  static constexpr const char* help =
      "the same with a fixed function: lb:g=sqrt (or barker, min, max); lb:block=4 over random blocks";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.function = read_function(reader, "g");
    settings.block = read_block(reader);
    return {"g", "block"};
  }
};

struct Lsb1Row : BalancedRow {
  static constexpr const char* name = "lsb1";
  static constexpr const char* help = "LSB 1 of the paper: a learned mixture of sqrt, barker, min and max";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.family = FunctionFamily::mixture;
    return read_learning(reader, settings);
  }
};

struct Lsb2Row : BalancedRow {
  static constexpr const char* name = "lsb2";
  static constexpr const char* help =
      "LSB 2 of the paper: a learned network; lsb2:hidden=10, or lsb2:net=monotone,blocks=20,units=20";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) { return read_network_family(reader, settings); }
};

struct GwgRow : BalancedRow {
  static constexpr const char* name = "gwg";
  static constexpr const char* help =
      "Gibbs With Gradients: one variable a step, all ratios to first order from one gradient; gwg:g=sqrt (or barker, "
      "min, max)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.first_order = true;
    settings.function = read_function(reader, "g");
    return {"g"};
  }
};

struct FlsbRow : BalancedRow {
  static constexpr const char* name = "flsb";
  static constexpr const char* help = "lsb with first-order ratios from one gradient";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.first_order = true;
    settings.family = FunctionFamily::spline;
    return read_learning(reader, settings);
  }
};

struct Flsb1Row : BalancedRow {
  static constexpr const char* name = "flsb1";
  static constexpr const char* help = "lsb1 with first-order ratios";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.first_order = true;
    return Lsb1Row::read(reader, settings);
  }
};

struct Flsb2Row : BalancedRow {
  static constexpr const char* name = "flsb2";
  static constexpr const char* help = "lsb2 with first-order ratios";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.first_order = true;
    return read_network_family(reader, settings);
  }
};

/// Whether a kernel that changes many variables a step has exact ratios on a target, or first-order ones: the latter
/// where one gradient gives them.
template <Target T>
Ratios cheap_ratios(const T& target) {
  if constexpr (requires { target.function().has_gradient(); }) {
    if (target.function().has_gradient()) return Ratios::first_order;
    if (target.function().has_log_ratios()) return Ratios::exact;
    throw InputError(
        "samplers that change many variables a step need the gradient of log p or all its log ratios, and this target "
        "has neither");
  } else {
    return GradientTarget<T> && !SparseTarget<T> ? Ratios::first_order : Ratios::exact;
  }
}

/// Proposals that change all variables at once, each by itself.
template <FactorisedForm form>
struct FactorisedRow {
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    const Ratios ratios = cheap_ratios(*target);
    const BalancingFunction function(settings.function, settings.level);
    return make_engine_of<T>(std::move(target), FactorisedProposal<T>(form, function, ratios), options);
  }
};

struct DlmcRow : FactorisedRow<FactorisedForm::relaxation> {
  static constexpr const char* name = "dlmc";
  static constexpr const char* help =
      "discrete Langevin Monte Carlo: many variables a step from one gradient; step length tuned in warm-up "
      "(tune=variance, or tune=acceptance,target=0.574) or given: dlmc:g=sqrt,tau=0.7";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.function = read_function(reader, "g");
    settings.level = std::log(reader.real("tau", 0.1, 1e-6, 1e6));
    settings.most_level = std::log(kMostRate);  // all rates are at least tau
    return read_tuning(reader, settings, "tau");
  }
};

struct DlsbRow : FactorisedRow<FactorisedForm::relaxation> {
  static constexpr const char* name = "dlsb";
  static constexpr const char* help =
      "many variables a step from one gradient (or all ratios): dlmc with balancing function and step length learned "
      "in warm-up. For models of your own with a gradient";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.many = true;
    settings.family = FunctionFamily::spline;
    settings.tuning = StepTuning::objective;
    settings.level = std::log(0.1);
    settings.most_level = std::log(kMostRate);
    const bool entropy = reader.choice("objective", "variance", {"variance", "entropy"}) == "entropy";
    settings.learn.objective = entropy ? LearningObjectiveKind::entropy : LearningObjectiveKind::variance;
    settings.learn.rate = reader.real("rate", settings.learn.rate, 1e-8, 10.0);
    settings.learn.ridge = reader.real("ridge", settings.learn.ridge, 0.0, 1e6);
    return {"objective", "rate", "ridge"};
  }
};

struct DmalaRow : FactorisedRow<FactorisedForm::langevin> {
  static constexpr const char* name = "dmala";
  static constexpr const char* help =
      "discrete Metropolis-adjusted Langevin: many variables a step, with a penalty 1/(2 alpha) on each change, tuned "
      "as above or given: dmala:g=sqrt,alpha=0.2";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.function = read_function(reader, "g");
    settings.level = -0.5 / reader.real("alpha", 0.15, 1e-3, 1e6);
    settings.most_level = 0.0;  // no penalty at all
    return read_tuning(reader, settings, "alpha");
  }
};

struct PasRow {
  static constexpr const char* name = "pas";
  static constexpr const char* help =
      "path auxiliary sampler: a path of 1 to 2 radius - 1 changes, tuned as above or given: pas:g=sqrt,radius=8";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.function = read_function(reader, "g");
    settings.level = std::log(static_cast<double>(reader.integer("radius", 8, 1, 1000000)));
    return read_tuning(reader, settings, "radius");
  }
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    const Ratios ratios = cheap_ratios(*target);
    const BalancingFunction function(settings.function, settings.level);
    return make_engine_of<T>(std::move(target), PathProposal<T>(function, ratios), options);
  }
};

struct GibbsRow {
  static constexpr const char* name = "gibbs";
  static constexpr const char* help =
      "single-site Gibbs, all variables in turn; gibbs:block=2 draws random blocks of variables together";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.block = read_block(reader);
    return {"block"};
  }
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    if (settings.block > 1) return make_engine_of<T>(std::move(target), BlockGibbs<T>(settings.block), options);
    return make_engine_of<T>(std::move(target), Gibbs<T>(), options);
  }
};

struct HammingBallRow {
  static constexpr const char* name = "hb";
  static constexpr const char* help = "Hamming ball sampler on random blocks: hb:block=10,radius=1";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.block = static_cast<Index>(reader.integer("block", 10, 1, 1000));
    settings.radius = static_cast<unsigned>(reader.integer("radius", 1, 1, 10));
    return {"block", "radius"};
  }
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    return make_engine_of<T>(std::move(target), HammingBall<T>(settings.block, settings.radius), options);
  }
};

/// Cluster algorithms run on models that have clusters; src/engines/cpu/chains/bonds.hpp says which, and makes them.
struct ClusterRow {
  static constexpr const char* refusal =
      "the samplers 'sw' and 'wolff' take Ising and Potts models only, and this model is none";
};

struct SwendsenWangRow : ClusterRow, PlainRow {
  static constexpr const char* name = "sw";
  static constexpr const char* help = "Swendsen-Wang: all clusters at once, for the same models";
};

struct WolffRow : ClusterRow {
  static constexpr const char* name = "wolff";
  static constexpr const char* help =
      "Wolff clusters, one after another, for Ising and Potts models without field whose couplings are not negative; a "
      "step makes as many as a sweep needs, or wolff:clusters=10";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.clusters = static_cast<std::uint64_t>(reader.integer("clusters", 0, 1, 1000000000));
    return {"clusters"};
  }
};

/// Tempering around another sampler: made for a whole model (src/engines/cpu/tempering), not for a target.
struct TemperRow {
  static constexpr const char* name = "temper";
  static constexpr const char* help =
      "parallel tempering (replica exchange), for models whose chains do not mix: temper:of=gibbs (or lb, lsb, "
      "rbm-gibbs, ..., with their settings). Networks are first reduced by summing variables out, in tables of 2^12 "
      "entries (collapse=0: not at all)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.collapse = static_cast<unsigned>(reader.integer("collapse", settings.collapse, 0, 24));
    return {"of", "collapse"};
  }
  static constexpr const char* refusal =
      "the sampler 'temper' takes models that Poise can heat, and this target is not one of them";
};

/// For RBMs only: made in src/engines/cpu/chains/rbm_engine.cpp.
struct RbmGibbsRow : PlainRow {
  static constexpr const char* name = "rbm-gibbs";
  static constexpr const char* help =
      "block Gibbs of a restricted Boltzmann machine: all hidden units, then all visible ones";
  static constexpr const char* refusal =
      "the sampler 'rbm-gibbs' takes restricted Boltzmann machines only, and this model is none";
};

/// For selection models only: made in src/engines/cpu/chains/selection_engine.cpp.
struct WeightedGibbsRow {
  static constexpr const char* name = "wtgs";
  static constexpr const char* help =
      "weighted tempered Gibbs, for variable selection, as a jump process; wtgs:k=1 flips of variables that are "
      "certain for each unit of time";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.elsewhere = reader.real("k", settings.elsewhere, 1e-3, 1e6);
    return {"k"};
  }
  static constexpr const char* refusal =
      "the sampler 'wtgs' takes models of variable selection only, and this model is none";
};

/// For models with a junction tree: made in src/engines/cpu/chains/exact_engine.cpp.
struct ExactRow {
  static constexpr const char* name = "exact";
  static constexpr const char* help =
      "independent draws by a junction tree, for networks and Ising models of small width, and for other models of at "
      "most 4096 states; exact:memory=4 (GiB)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings) {
    settings.memory = reader.real("memory", settings.memory, 1e-6, 1e6);
    return {"memory"};
  }
  static constexpr const char* refusal =
      "the sampler 'exact' takes networks, Ising models, and other models of at most 4096 states, and this is none";
};

/// In the order of the help: what most users need comes first.
using SamplerRows = std::tuple<AutoRow, GibbsRow, ExactRow, TemperRow, WolffRow, SwendsenWangRow, RbmGibbsRow,
                               WeightedGibbsRow, DlsbRow, DlmcRow, DmalaRow, PasRow, GwgRow, LsbRow, LbRow, FlsbRow,
                               Lsb1Row, Lsb2Row, Flsb1Row, Flsb2Row, HammingBallRow>;

/// Calls `use` with std::type_identity<Row> of the row of a sampler; not at all for your own kernel.
template <class Use>
void with_row(const Sampler& sampler, Use&& use) {
  [&]<class... Rows>(std::tuple<Rows...>*) {
    std::size_t k = 0;
    ((k++ == sampler.row ? use(std::type_identity<Rows>()) : void()), ...);
  }(static_cast<SamplerRows*>(nullptr));
}

/// Whether the row of a sampler is this one, or derives from it.
template <class Row>
[[nodiscard]] bool is_row(const Sampler& sampler) {
  bool found = false;
  with_row(sampler, [&]<class R>(std::type_identity<R>) { found = std::is_base_of_v<Row, R>; });
  return found;
}

/// Whether a sampler is Gibbs of one variable at a time, which has layouts for many chains.
[[nodiscard]] inline bool is_single_site_gibbs(const Sampler& sampler) {
  return is_row<GibbsRow>(sampler) && sampler.settings.block == 1;
}

/// Whether a sampler has a balancing function.
[[nodiscard]] inline bool is_balanced(const Sampler& sampler) {
  return sampler.settings.many || is_row<BalancedRow>(sampler);
}

/// Chains of any sampler on any target.
template <Target T>
TunableEngine make_engine(std::shared_ptr<const T> target, const Sampler& sampler, const EngineOptions& options) {
  if (target->num_moves() == 0) throw InputError("there is nothing to sample: no variable has more than one level");
  if (sampler.own) return sampler.own->make_engine(std::make_shared<const AnyTarget>(std::move(target)), options);
  TunableEngine made;
  with_row(sampler, [&]<class Row>(std::type_identity<Row>) {
    if constexpr (requires { Row::refusal; }) {
      throw InputError(Row::refusal);
    } else {
      made = Row::template make<T>(std::move(target), sampler.settings, options);
    }
  });
  return made;
}

}  // namespace poise
