/// The registry of samplers: one row each, from the name on the command line to the kernel on a target.
///
/// A row has a `name`, a line of `help`, `read`, which takes its settings from the spec and gives the keys it knows,
/// and `make`, which makes chains on a target or refuses with a sentence. A row that derives from Contender is a
/// candidate of `auto`: it has `candidates`, the specs that make sense for a model, and `cost`, what they take there
/// (run/candidates.hpp). To add a sampler, write its kernel and its row.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <poise/extend/learning/transition_gradient_block.hpp>
#include <poise/extend/learning/transition_gradient_dense.hpp>
#include <poise/extend/learning/transition_gradient_many.hpp>
#include <poise/extend/learning/transition_gradient_sparse.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/hamming_ball.hpp>
#include <poise/extend/engines/candidates.hpp>
#include <poise/extend/engines/engine_of.hpp>
#include <poise/sampler.hpp>

namespace poise {

using SpecKeys = std::vector<std::string>;

/// A fixed function by the key `key`.
BalancingFunction::Kind read_function(SpecReader& reader, const char* key);
/// The settings of everything that learns; gives the keys.
SpecKeys read_learning(SpecReader& reader, SamplerSettings& settings);

/// Picks one of the others: a run makes the chains of its choice (src/run/race.hpp).
struct AutoRow {
  static constexpr const char* name = "auto";
  static constexpr const char* help =
      "the one of the others that gives most effective samples per unit of work in a short pilot; the default";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(const std::shared_ptr<const T>&, const SamplerSettings&, const EngineOptions&) {
    throw InputError("the sampler 'auto' has no chains of its own: let a run choose, or name the sampler");
  }
};

/// A row that `auto` knows of.
struct Contender {};

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
      // On the sparse targets there are, log p is linear in every variable: first-order ratios are the exact ones.
      return make_engine_of<T>(std::move(target), LocallyBalanced<T>(function), options);
    } else {
      const Ratios ratios = settings.first_order ? Ratios::first_order : Ratios::exact;
      return make_engine_of<T>(std::move(target), InformedProposal<T>(function, ratios), options);
    }
  }
};

struct LsbRow : BalancedRow, Contender {
  static constexpr const char* name = "lsb";
  static constexpr const char* help =
      "locally balanced, balancing function learned in warm-up (a monotone spline); lsb:block=4 over the "
      "configurations "
      "of random blocks";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct LbRow : BalancedRow, Contender {
  static constexpr const char* name = "lb";
  static constexpr const char* help =
      "locally balanced with a fixed function: lb:g=sqrt (or barker, min, max); lb:block=4 over those of random blocks";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct Lsb1Row : BalancedRow {
  static constexpr const char* name = "lsb1";
  static constexpr const char* help = "learned mixture of sqrt, barker, min and max";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
};

struct Lsb2Row : BalancedRow {
  static constexpr const char* name = "lsb2";
  static constexpr const char* help = "learned network: lsb2:hidden=10, or lsb2:net=monotone,blocks=20,units=20";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
};

struct GwgRow : BalancedRow, Contender {
  static constexpr const char* name = "gwg";
  static constexpr const char* help =
      "Gibbs With Gradients: ratios to first order, from one gradient; gwg:g=barker (min, max) for other functions";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct FlsbRow : BalancedRow, Contender {
  static constexpr const char* name = "flsb";
  static constexpr const char* help =
      "the same, balancing function learned (a spline); flsb1 a mixture, flsb2 a network";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct Flsb1Row : BalancedRow {
  static constexpr const char* name = "flsb1";
  static constexpr const char* help = "learned mixture with first-order ratios";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
};

struct Flsb2Row : BalancedRow {
  static constexpr const char* name = "flsb2";
  static constexpr const char* help = "learned network with first-order ratios";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
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
      "discrete Langevin Monte Carlo: many variables a step, each relaxing for a time tau, for one gradient or one "
      "look "
      "at all ratios; tau is tuned in warm-up (tune=variance, or tune=acceptance,target=0.574) or given: "
      "dlmc:g=sqrt,tau=0.7";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
};

struct DlsbRow : FactorisedRow<FactorisedForm::relaxation>, Contender {
  static constexpr const char* name = "dlsb";
  static constexpr const char* help = "the same, balancing function and tau learned together in warm-up (a spline)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct DmalaRow : FactorisedRow<FactorisedForm::langevin> {
  static constexpr const char* name = "dmala";
  static constexpr const char* help =
      "discrete Metropolis-adjusted Langevin: many variables a step, changes penalised by 1/(2 alpha), which is tuned "
      "as "
      "tau is or given: dmala:g=sqrt,alpha=0.2";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
};

struct PasRow {
  static constexpr const char* name = "pas";
  static constexpr const char* help =
      "path auxiliary: a path of changes of different variables, of 1 to 2 radius - 1 of them; the radius is tuned as "
      "tau is or given: pas:g=sqrt,radius=8";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    const Ratios ratios = cheap_ratios(*target);
    const BalancingFunction function(settings.function, settings.level);
    return make_engine_of<T>(std::move(target), PathProposal<T>(function, ratios), options);
  }
};

struct GibbsRow : Contender {
  static constexpr const char* name = "gibbs";
  static constexpr const char* help =
      "single-site Gibbs, all variables in turn, colour by colour; gibbs:block=2 for random blocks";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    if (settings.block > 1) return make_engine_of<T>(std::move(target), BlockGibbs<T>(settings.block), options);
    return make_engine_of<T>(std::move(target), Gibbs<T>(), options);
  }
};

struct HammingBallRow {
  static constexpr const char* name = "hb";
  static constexpr const char* help = "Hamming ball on random blocks: hb:block=10,radius=1";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(std::shared_ptr<const T> target, const SamplerSettings& settings,
                            const EngineOptions& options) {
    return make_engine_of<T>(std::move(target), HammingBall<T>(settings.block, settings.radius), options);
  }
};

/// For models that have clusters only: made where their engines are (run/bonds.hpp says which).
struct ClusterRow : Contender {
  template <Target T>
  static TunableEngine make(const std::shared_ptr<const T>&, const SamplerSettings&, const EngineOptions&) {
    throw InputError("the samplers 'sw' and 'wolff' take Ising and Potts models only, and this model is none");
  }
};

struct SwendsenWangRow : ClusterRow {
  static constexpr const char* name = "sw";
  static constexpr const char* help =
      "Swendsen-Wang: all clusters of like variables a step; Ising and Potts models without field that like to be "
      "alike";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

struct WolffRow : ClusterRow {
  static constexpr const char* name = "wolff";
  static constexpr const char* help =
      "Wolff: one cluster after another, for the same models; a step makes as many as warm-up finds to be a sweep, or "
      "wolff:clusters=10";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
};

/// Tempering around another sampler: made for a whole model (src/run/temper.hpp), not for a target.
struct TemperRow {
  static constexpr const char* name = "temper";
  static constexpr const char* help =
      "parallel tempering around another sampler, for what does not mix: temper:of=gibbs (or lb, lsb, ..., with their "
      "settings); networks are collapsed first, to tables of 2^12 entries (collapse=0: not)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(const std::shared_ptr<const T>&, const SamplerSettings&, const EngineOptions&) {
    throw InputError("the sampler 'temper' takes models that Poise can heat, and this target is not one of them");
  }
};

/// For RBMs only: made where their engines are (src/run/rbm_engine.cpp).
struct RbmGibbsRow : Contender {
  static constexpr const char* name = "rbm-gibbs";
  static constexpr const char* help = "an RBM's own Gibbs: hidden units, then visible ones";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(const std::shared_ptr<const T>&, const SamplerSettings&, const EngineOptions&) {
    throw InputError("the sampler 'rbm-gibbs' takes restricted Boltzmann machines only, and this model is none");
  }
};

/// For networks only: made where their engines are (src/run/network_engine.cpp).
struct ExactRow : Contender {
  static constexpr const char* name = "exact";
  static constexpr const char* help =
      "independent draws by a junction tree, for networks of small width: exact:memory=4 (GiB)";
  static SpecKeys read(SpecReader& reader, SamplerSettings& settings);
  static std::vector<std::string> candidates(const ModelFacts& facts);
  static SamplerCost cost(const ModelFacts& facts, const SamplerSettings& settings);
  template <Target T>
  static TunableEngine make(const std::shared_ptr<const T>&, const SamplerSettings&, const EngineOptions&) {
    throw InputError(
        "the sampler 'exact' takes networks only (.uai and .bif files, and potts), and this model is none");
  }
};

/// In the order of the help.
using SamplerRows =
    std::tuple<AutoRow, LsbRow, LbRow, Lsb1Row, Lsb2Row, GwgRow, FlsbRow, Flsb1Row, Flsb2Row, DlmcRow, DlsbRow,
               DmalaRow, PasRow, GibbsRow, HammingBallRow, SwendsenWangRow, WolffRow, TemperRow, RbmGibbsRow, ExactRow>;

/// Whether a sampler is that of a row.
template <class Row>
[[nodiscard]] bool is_row(const Sampler& sampler) {
  return []<std::size_t... k>(std::size_t row, std::index_sequence<k...>) {
    return ((row == k && std::is_same_v<Row, std::tuple_element_t<k, SamplerRows>>) || ...);
  }
  (sampler.row, std::make_index_sequence<std::tuple_size_v<SamplerRows>>());
}

/// Whether a sampler is Gibbs of one variable at a time, which has layouts for many chains.
[[nodiscard]] inline bool is_single_site_gibbs(const Sampler& sampler) {
  return is_row<GibbsRow>(sampler) && sampler.settings.block == 1;
}

/// Whether a sampler has a balancing function.
[[nodiscard]] inline bool is_balanced(const Sampler& sampler) {
  if (sampler.settings.many) return true;
  return []<std::size_t... k>(std::size_t row, std::index_sequence<k...>) {
    return ((row == k && std::is_base_of_v<BalancedRow, std::tuple_element_t<k, SamplerRows>>) || ...);
  }
  (sampler.row, std::make_index_sequence<std::tuple_size_v<SamplerRows>>());
}

/// Chains of any sampler on any target.
template <Target T>
TunableEngine make_engine(std::shared_ptr<const T> target, const Sampler& sampler, const EngineOptions& options) {
  if (target->num_moves() == 0) throw InputError("there is nothing to sample: no variable has more than one level");
  TunableEngine made;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    static_cast<void>(
        ((sampler.row == k &&
          (made = std::tuple_element_t<k, SamplerRows>::template make<T>(target, sampler.settings, options), true)) ||
         ...));
  }
  (std::make_index_sequence<std::tuple_size_v<SamplerRows>>());
  return made;
}

}  // namespace poise
