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

std::uint64_t cost_of_quenched(const Model& model) { return kCold.size() * sweeps_of(model) * model.layout.variables; }

WarmedPaths warmed_paths(const Model& model, const QuenchOptions& options, std::uint64_t sweeps, std::size_t points) {
  RunOptions own = own_options(options);
  own.given = quenched_states(model, options);
  if (own.given.empty()) return {};
  own.start = Start::given;
  own.seconds = options.seconds;
  Run run(model, parse_sampler(GibbsRow::name), own);
  run.warm_up();
  WarmedPaths out{options.chains, points, model.layout.variables, {}, {}};
  out.levels.resize(out.chains * points * out.variables);
  out.log_prob.resize(out.chains * points);
  const std::uint64_t steps = std::max<std::uint64_t>(1, sweeps / points) * run.engine().traits().steps_per_sweep;
  std::vector<double> log_prob(out.chains);
  for (std::size_t p = 0; p < points; ++p) {
    run.advance(steps);
    if (run.is_broken() || run.ended()) return {};
    const std::vector<Value> levels = run.states();
    observe_all(run.engine(), {0, out.chains}, {.log_prob = log_prob});
    for (std::size_t c = 0; c < out.chains; ++c) {
      out.log_prob[c * points + p] = log_prob[c];
      std::copy_n(levels.begin() + static_cast<std::ptrdiff_t>(c * out.variables), out.variables,
                  out.levels.begin() + static_cast<std::ptrdiff_t>((c * points + p) * out.variables));
    }
  }
  return out;
}

}  // namespace poise
