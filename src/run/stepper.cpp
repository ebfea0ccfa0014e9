/// An ensemble, its pool, and a word on whether the target is still the same.
#include <poise/run/stepper.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <poise/run/start.hpp>
#include <poise/run/warmup.hpp>

namespace poise {

Stepper::Stepper(Model model, const Sampler& sampler, const RunOptions& options)
    : model_(std::move(model)), sampler_(sampler) {
  options.check(model_);
  ensemble_ = model_.make_ensemble(sampler_, {options.seed, options.first_chain, starting_states(model_, options),
                                              reference_state(model_, options.seed)});
  if (model_.fibers) {
    pool_ = std::make_unique<ThreadPool>(model_.fibers);
  } else {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const auto chains = static_cast<unsigned>(std::min<std::size_t>(options.chains, 4 * cores));
    pool_ = std::make_unique<ThreadPool>(std::min(options.threads == 0 ? cores : options.threads, chains));
  }
}

void Stepper::refresh() {
  if (!stale_) return;
  const std::vector<Value> levels = states();
  const std::size_t n = model_.layout.variables;
  pool_->for_each(num_chains(), [&](std::size_t c) { ensemble_->restart(c, {levels.data() + c * n, n}); });
  stale_ = false;
}

void Stepper::step(std::uint64_t steps, const std::function<bool()>& go_on) {
  refresh();
  const std::vector<ChainGroup> groups = pool_->groups(num_chains(), ensemble_->group_size());
  for (std::uint64_t done = 0; done < steps;) {
    const std::uint64_t chunk = std::min(ensemble_->chunk(), steps - done);
    steps_ += chunk;
    pool_->for_each(groups.size(), [&](std::size_t g) { ensemble_->advance(groups[g].first, groups[g].count, chunk); });
    done += chunk;
    if (done < steps && go_on && !go_on()) return;
  }
}

void Stepper::warm_up(std::uint64_t steps, const std::function<bool()>& go_on) {
  refresh();
  const WarmupOutcome outcome =
      poise::warm_up(*ensemble_, sampler_, steps, *pool_, [&](Phase, std::uint64_t) { return !go_on || go_on(); });
  steps_ += outcome.steps;
}

std::vector<Value> Stepper::states() const {
  const std::size_t n = model_.layout.variables;
  std::vector<Value> levels(num_chains() * n);
  for (std::size_t c = 0; c < num_chains(); ++c) ensemble_->levels(c, {levels.data() + c * n, n});
  return levels;
}

void Stepper::set_states(std::span<const Value> levels) {
  const std::size_t n = model_.layout.variables;
  if (levels.size() != num_chains() * n) {
    throw InputError(fmt::format("the states are {} values, expected {}: {} chains of {} variables", levels.size(),
                                 num_chains() * n, num_chains(), n));
  }
  for (std::size_t k = 0; k < levels.size(); ++k) {
    const auto i = static_cast<Index>(k % n);
    if (levels[k] < model_.layout.cardinality(i)) continue;
    throw InputError(fmt::format("variable {} of chain {} is set to level {}, but it has only {} levels", i, k / n,
                                 levels[k], model_.layout.cardinality(i)));
  }
  pool_->for_each(num_chains(), [&](std::size_t c) { ensemble_->restart(c, levels.subspan(c * n, n)); });
  stale_ = false;
}

std::vector<double> Stepper::log_prob() {
  refresh();
  std::vector<double> out(num_chains());
  pool_->for_each(num_chains(), [&](std::size_t c) { out[c] = ensemble_->log_prob(c); });
  return out;
}

double Stepper::acceptance_rate() const {
  double accepted = 0.0;
  for (std::size_t c = 0; c < num_chains(); ++c) accepted += ensemble_->accepted(c);
  return accepted / (static_cast<double>(steps_) * static_cast<double>(num_chains()));
}

Evals Stepper::evals() const {
  Evals sum;
  for (std::size_t c = 0; c < num_chains(); ++c) sum += ensemble_->evals(c);
  return sum;
}

}  // namespace poise
