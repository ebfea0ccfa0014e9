/// Gibbs chains of the model at low temperatures, one after the other.
#include "run/quench.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <variant>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/samplers.hpp>
#include <poise/run.hpp>
#include "engines/common/tempering/heat.hpp"
#include "engines/rows.hpp"

namespace poise {

namespace {

/// Inverse temperatures, the coldest first: at 4 chains go downhill, at 2 and 1.4 domains grow.
constexpr std::array<double, 3> kCold = {4.0, 2.0, 1.4};
/// Sweeps at each; of user code, whose variables take a call each, as many as so many calls allow.
constexpr std::uint64_t kSweeps = 32;
constexpr std::uint64_t kFewestSweeps = 4;
constexpr std::uint64_t kMostSweepsOfCalls = 8;
constexpr std::uint64_t kCalls = 4000;
/// Random numbers of these chains are those of chains that no run has.
constexpr std::uint64_t kFirstQuenched = std::uint64_t{1} << 41;

std::uint64_t sweeps_of(const Model& model) {
  if (model.fibers() == nullptr) return kSweeps;
  const std::uint64_t affordable = kCalls / kCold.size() / model.layout.variables;
  return std::clamp(affordable, kFewestSweeps, kMostSweepsOfCalls);
}

bool can_be_quenched(const Model& model, const Sampler& sampler) {
  const bool has_kind = std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description) ||
                        std::holds_alternative<std::shared_ptr<const GraphIsing>>(model.description) ||
                        std::holds_alternative<NetworkDescription>(model.description) ||
                        std::holds_alternative<CallbackDescription>(model.description);
  return has_kind && why_not(Device::cpu, model, sampler).empty();
}

RunOptions own_options(const QuenchOptions& options) {
  RunOptions own;
  own.chains = options.chains;
  own.warmup = 0;
  own.thin = 1;
  own.seed = options.seed;
  own.first_chain = kFirstQuenched + options.first_chain;
  own.threads = 1;
  own.keep = Keep::monitors;
  own.device = Device::cpu;
  own.seconds = options.seconds / static_cast<double>(kCold.size());
  return own;
}

}  // namespace

std::vector<Value> quenched_states(const Model& model, const QuenchOptions& options) {
  const Sampler sampler = parse_sampler(GibbsRow::name);
  if (options.chains == 0 || !can_be_quenched(model, sampler)) return {};
  RunOptions own = own_options(options);
  try {
    const std::shared_ptr<const Heat> heat = make_heat(model);
    for (const double beta : kCold) {
      Model cold = model;
      cold.description = heat->at(beta);
      Run run(std::move(cold), sampler, own);
      run.warm_up();
      run.advance(sweeps_of(model) * run.engine().traits().steps_per_sweep);
      if (run.is_broken() || run.stopped()) return {};
      own.given = run.states();
      own.start = Start::given;
    }
  } catch (const InputError&) {
    return {};  // weights that overflow when cooled, or no state of positive probability
  }
  return std::move(own.given);
}

WarmedStates warmed_states(const Model& model, const QuenchOptions& options) {
  RunOptions own = own_options(options);
  own.given = quenched_states(model, options);
  if (own.given.empty()) return {};
  own.start = Start::given;
  Run run(model, parse_sampler(GibbsRow::name), own);
  run.warm_up();
  run.advance(sweeps_of(model) * run.engine().traits().steps_per_sweep);
  if (run.is_broken() || run.stopped()) return {};
  WarmedStates out{run.states(), std::vector<double>(options.chains)};
  observe_all(run.engine(), {0, options.chains}, {.log_prob = out.log_prob});
  return out;
}

std::uint64_t cost_of_warmed(const Model& model) {
  return (kCold.size() + 1) * sweeps_of(model) * model.layout.variables;
}

}  // namespace poise
