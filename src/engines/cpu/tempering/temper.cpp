/// Which tempered engine a model gets.
#include "engines/cpu/tempering/temper.hpp"

#include <cmath>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "engines/common/collapsed_engine.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

Sampler usual_sampler(const Model& model) {
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    return parse_sampler(callback->target->function().has_gradient() ? "gwg" : "gibbs");
  }
  if (std::holds_alternative<std::shared_ptr<const SelectionTarget>>(model.description)) {
    return parse_sampler(WeightedGibbsRow::name);
  }
  const bool is_rbm = std::holds_alternative<std::shared_ptr<const Rbm>>(model.description);
  return parse_sampler(is_rbm ? "rbm-gibbs" : "gibbs");
}

}  // namespace

Sampler tempered_sampler(const Model& model, const Sampler& sampler) {
  return sampler.of ? *sampler.of : usual_sampler(model);
}

namespace {

/// Across lanes, if a layout is worth its while; nothing otherwise.
template <class T>
TunableEngine try_lanes(const std::shared_ptr<const T>& target, const EngineOptions& options,
                        const LadderMaker& maker) {
  if (target->num_moves() == 0) throw InputError("there is nothing to sample: no variable has more than one level");
  LaneSource source = lane_source(target);
  if (!LaneModel::fits(source)) return {};
  return maker.make(target, std::move(source), options);
}

TunableEngine temper_collapsed(const NetworkDescription& network, unsigned log_entries, const EngineOptions& options,
                               const LadderMaker& maker) {
  const CollapseOptions most{.most_entries = std::ldexp(1.0, static_cast<int>(log_entries))};
  const auto collapse = std::make_shared<const Collapse>(*network.network, most);
  bool fits = true;
  TunableEngine made =
      make_collapsed_engine(collapse, network, options, [&](const NetworkDescription& core, const EngineOptions& own) {
        TunableEngine inside = try_lanes(core.target, own, maker);
        fits = inside.engine != nullptr;
        return inside;
      });
  return fits ? std::move(made) : TunableEngine{};
}

}  // namespace

TunableEngine make_tempered_engine(const Model& model, const Sampler& sampler, const EngineOptions& options,
                                   const LadderMaker& maker) {
  const Sampler inner = tempered_sampler(model, sampler);
  if (is_single_site_gibbs(inner)) {
    TunableEngine made;
    if (const auto* network = std::get_if<NetworkDescription>(&model.description)) {
      made = sampler.settings.collapse > 0 ? temper_collapsed(*network, sampler.settings.collapse, options, maker)
                                           : try_lanes(network->target, options, maker);
    } else if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
      made = try_lanes(*graph, options, maker);
    } else if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
      // Replicas as bits would have a tile for every rung, and a call for each of them at every step.
      made = try_lanes(std::make_shared<const GraphIsing>(graph_at(**lattice, 1.0)), options, maker);
    }
    if (made.engine) return made;
  }
  if (!model.into_support) return make_rung_engines(model, inner, options);
  // The coldest of these engines cannot begin where there is no probability, as lanes can.
  EngineOptions possible = options;
  for (std::size_t c = 0; c < possible.starts.size(); ++c) {
    Rng rng = make_rng(options.seed, Stream::repair, options.first_chain + c);
    possible.starts[c] = model.into_support(std::move(possible.starts[c]), rng);
  }
  return make_rung_engines(model, inner, possible);
}

}  // namespace poise
