/// The stages of warm-up, what is decided between two stretches of one, and what ranks tell each other in a round of
/// learning.
#include "run/warmup.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

namespace {

using Gradient = TransitionGradient;

/// What a learner, which pools all chains, reads of a transition gradient: not the moves, and only the acceptance of
/// the first entry, which all entries share where steps change many variables.
struct SharedEntry {
  double log_ratio;
  double transition;
  std::uint32_t position;
  std::uint32_t value;
};
struct SharedHead {
  double work_slope;
  double scale;
  double log_prob;
  double accept_prob;
  std::uint64_t many;
};
/// All chains look at the same variables, and so have as many.
struct GradientCounts {
  std::uint64_t entries;
  std::uint64_t sampled;

  [[nodiscard]] std::size_t bytes() const {
    return sizeof(SharedHead) + entries * sizeof(SharedEntry) + sampled * sizeof(Gradient::Entry);
  }
};

/// A position in the bytes that a rank tells of a chain.
template <class T>
T* at_offset(std::byte* chain, std::size_t offset) {
  return reinterpret_cast<T*>(chain + offset);
}

void pack_gradient(const Gradient& gradient, const GradientCounts& counts, std::byte* to) {
  if (gradient.entries.size() != counts.entries || gradient.sampled.size() != counts.sampled) {
    throw std::logic_error("chains have looked at different variables");
  }
  *at_offset<SharedHead>(to, 0) = {gradient.work_slope, gradient.scale, gradient.log_prob,
                                   gradient.entries.empty() ? 0.0 : gradient.entries[0].accept_prob, gradient.many};
  auto* entry = at_offset<SharedEntry>(to, sizeof(SharedHead));
  for (const Gradient::Entry& one : gradient.entries)
    *entry++ = {one.log_ratio, one.transition, one.position, one.value};
  std::copy(gradient.sampled.begin(), gradient.sampled.end(), reinterpret_cast<Gradient::Entry*>(entry));
}

void unpack_gradient(std::byte* from, const GradientCounts& counts, Gradient& gradient) {
  const auto* head = at_offset<SharedHead>(from, 0);
  gradient.work_slope = head->work_slope;
  gradient.scale = head->scale;
  gradient.log_prob = head->log_prob;
  gradient.many = head->many != 0;
  const auto* entry = at_offset<SharedEntry>(from, sizeof(SharedHead));
  gradient.entries.resize(counts.entries);
  for (Gradient::Entry& one : gradient.entries) {
    one = {0, entry->position, static_cast<Value>(entry->value), entry->log_ratio, 0.0, entry->transition};
    ++entry;
  }
  if (!gradient.entries.empty()) gradient.entries[0].accept_prob = head->accept_prob;
  const auto* sampled = reinterpret_cast<const Gradient::Entry*>(entry);
  gradient.sampled.assign(sampled, sampled + counts.sampled);
}

}  // namespace

void Warmup::share_observed() {
  const Division* division = chains_.engine().division();
  if (division == nullptr) return;
  const ChainGroup own = division->own();
  // The first chain is the root's.
  const GradientCounts counts =
      division->collective().of_root(GradientCounts{observed_[0].entries.size(), observed_[0].sampled.size()});
  const std::size_t width = counts.bytes();
  told_.resize(observed_.size() * width);
  for (std::size_t c = own.first; c < own.first + own.count; ++c)
    pack_gradient(observed_[c], counts, &told_[c * width]);
  division->gather(std::span(told_), {0, observed_.size()}, width);
  for (std::size_t c = 0; c < observed_.size(); ++c) {
    if (c < own.first || c >= own.first + own.count) unpack_gradient(&told_[c * width], counts, observed_[c]);
  }
}

void Warmup::share_gradients() {
  const Division* division = chains_.engine().division();
  if (division == nullptr) return;
  constexpr std::size_t kWidth = BalanceTable::kPoints;
  const ChainGroup own = division->own();
  std::vector<double> all(gradients_.size() * kWidth);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    std::copy(gradients_[c].begin(), gradients_[c].end(), all.begin() + static_cast<std::ptrdiff_t>(c * kWidth));
  }
  division->gather(std::span(all), {0, gradients_.size()}, kWidth);
  for (std::size_t c = 0; c < gradients_.size(); ++c) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(c * kWidth);
    gradients_[c].assign(first, first + static_cast<std::ptrdiff_t>(kWidth));
  }
}

namespace {

/// A chain that accepts no more than this is caught where its steps do not lead out.
constexpr double kTrapped = 0.02;
/// With a step length that was given: as many tell whether it is too long for the start.
constexpr std::uint64_t kFirstSteps = 16;

/// A balancing function that will be used for as long as it takes.
constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();
/// Updates of the function at most, however long the warm-up.
constexpr std::uint64_t kRounds = 1000;
/// Variables that an update looks at, over all chains: more would not make a pooled gradient better.
constexpr std::size_t kPooledVariables = std::size_t{1} << 16;

struct Moments {
  double mean;
  double variance;
};

Moments moments(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0.0;
  for (const double value : values) mean += value / count;
  double square = 0.0;
  for (const double value : values) square += (value - mean) * (value - mean);
  return {mean, square / (count - 1.0)};
}

}  // namespace

bool RiseDetector::still_rising() const {
  const std::size_t quarter = series_[0].size() / 4;
  if (quarter < 8) return true;
  return std::any_of(series_.begin(), series_.end(), [&](const std::vector<double>& series) {
    const std::span<const double> values(series);
    const Moments late = moments(values.last(quarter));
    const Moments early = moments(values.last(2 * quarter).first(quarter));
    const double error = std::sqrt((late.variance + early.variance) / static_cast<double>(quarter));
    return late.mean - early.mean > 2.0 * error + 1e-9 * std::abs(late.mean);
  });
}

void StepLength::add(double acceptance_rate, double wanted) {
  constexpr double kGain = 1.5, kDecay = 0.6;
  constexpr double kLeast = -14.0;  // hardly anything changes
  const double gain = kGain * std::pow(static_cast<double>(++updates_), -kDecay);
  level_ = std::clamp(level_ + gain * (acceptance_rate - wanted), kLeast, most_);
  if (std::has_single_bit(updates_)) {
    sums_ = {sums_[1], 0.0};
    counts_ = {counts_[1], 0};
  }
  sums_[1] += level_;
  counts_[1] += 1;
}

double StepLength::average() const {
  const std::uint64_t count = counts_[0] + counts_[1];
  return count > 0 ? (sums_[0] + sums_[1]) / static_cast<double>(count) : level_;
}

Warmup::Warmup(Chains& chains, const Sampler& sampler, TunableEngine& tunable, const WarmupPlan& plan)
    : chains_(chains),
      sampler_(sampler),
      tuner_(sampler.learns() || sampler.settings.many ? tunable.tuner.get() : nullptr),
      self_tuning_(tunable.self_tuning.get()),
      ladder_(tunable.ladder.get()),
      plan_(plan),
      step_length_(sampler.settings.level, sampler.settings.most_level),
      rise_(chains.count()) {
  outcome_.function = given_function();
  outcome_.objective = std::numeric_limits<double>::quiet_NaN();
}

BalancingFunction Warmup::given_function() const {
  return BalancingFunction(sampler_.settings.function, sampler_.settings.level);
}

void Warmup::start() {
  record();
  if (self_tuning_ != nullptr && plan_.steps > 0) self_tuning_->start();
  // A step length that was given may be too long for the way from a random state, where it would never accept.
  if (plan_.follow) {
    stage_ = plan_.steps > 0 ? Stage::initial : Stage::done;
    return;
  }
  const bool has_initial_phase = sampler_.learns() || (sampler_.settings.many && tuner_ != nullptr);
  if (!has_initial_phase) {
    stage_ = plan_.steps > 0 ? Stage::plain : Stage::done;
  } else if (sampler_.settings.paper_schedule) {
    start_adaptation();
  } else {
    // Where steps change many variables, the function that was asked for.
    if (!sampler_.settings.many) set_function(BalancingFunction(BalancingFunction::Kind::sqrt), kForGood);
    stage_ = Stage::initial;
    if (plan_.steps / 2 == 0) next_stage();
  }
}

std::uint64_t Warmup::round(std::uint64_t most) {
  if (pending_ == 0) begin();
  std::uint64_t steps = std::min(pending_, most);
  if (ladder_ != nullptr) steps = std::min(steps, ladder_->steps_left());
  if (steps > 0) chains_.advance(steps);
  outcome_.steps += steps;
  pending_ -= steps;
  if (ladder_ != nullptr && steps > 0) ladder_->made(steps);
  if (pending_ == 0) end();
  return steps;
}

void Warmup::begin() {
  const std::uint64_t done = outcome_.steps;
  switch (stage_) {
    case Stage::plain:
    case Stage::rest: pending_ = std::min(std::max(decision_length(), done / 64), plan_.steps - done); break;
    case Stage::initial: pending_ = std::min(decision_length(), initial_end() - done); break;
    case Stage::adaptation: {
      learn();
      const auto share = static_cast<unsigned __int128>(available_) * (round_ + 1) / planned_;
      pending_ = adaptation_start_ + static_cast<std::uint64_t>(share) - done;
      break;
    }
    case Stage::done: break;
  }
  stretch_length_ = pending_;
  if (stage_ == Stage::initial) before_ = proposals_ ? *proposals_ : total_proposals(chains_.engine());
}

void Warmup::end() {
  std::vector<double> log_prob(chains_.count());
  if (stage_ == Stage::initial) {
    std::vector<ProposalCounts> proposals(log_prob.size());
    observe_all(chains_.engine(), {0, log_prob.size()}, {.log_prob = log_prob, .proposals = proposals});
    proposals_.emplace();
    for (const ProposalCounts& one : proposals) *proposals_ += one;
  } else {
    observe_all(chains_.engine(), {0, log_prob.size()}, {.log_prob = log_prob});
    proposals_.reset();
  }
  const double sum = std::accumulate(log_prob.begin(), log_prob.end(), 0.0);
  outcome_.trace.push_back({outcome_.steps, sum / static_cast<double>(log_prob.size())});
  // The other half is made with the kernel as it will be.
  if (self_tuning_ != nullptr && outcome_.steps >= plan_.steps / 2) self_tuning_->freeze();
  switch (stage_) {
    case Stage::plain:
    case Stage::rest:
      if (outcome_.steps >= plan_.steps) stage_ = Stage::done;
      break;
    case Stage::initial: {
      const double count = proposals_->count - before_.count;
      // Where nothing was proposed, nothing was refused, and nothing is known.
      const double rate = count > 0.0 ? (proposals_->accepted - before_.accepted) / count : 1.0;
      if (!sampler_.learns() && !plan_.follow && !escaped_ && rate > kTrapped) {
        next_stage();
        break;
      }
      if (count > 0.0) sampler_.settings.many ? tune_level(rate) : escape_trap(rate);
      for (std::size_t c = 0; c < log_prob.size(); ++c) rise_.add(c, log_prob[c]);
      const bool may_end = sampler_.settings.tuning != StepTuning::acceptance && !plan_.follow;
      if (outcome_.steps >= initial_end() || (may_end && !rise_.still_rising())) next_stage();
      break;
    }
    case Stage::adaptation:
      if (++round_ >= rounds_) next_stage();
      break;
    case Stage::done: break;
  }
}

void Warmup::next_stage() {
  if (stage_ == Stage::initial) {
    outcome_.initial_steps = outcome_.steps;
    if (plan_.follow) {
      stage_ = Stage::done;
      return;
    }
    if (sampler_.learns() && sampler_.settings.tuning != StepTuning::acceptance) {
      start_adaptation();
      return;
    }
    set_function(
        sampler_.learns() ? BalancingFunction(sampler_.settings.function, step_length_.average()) : given_function(),
        kForGood);
  } else {
    freeze();
  }
  // Chains near stationarity with a function that has settled need no more, but half of a warm-up is always made.
  if (plan_.may_end_early) plan_.steps = std::max(outcome_.steps, plan_.steps / 2);
  stage_ = outcome_.steps < plan_.steps ? Stage::rest : Stage::done;
}

void Warmup::start_adaptation() {
  stage_ = Stage::adaptation;
  learner_.emplace(sampler_.make_function(step_length_.average()), sampler_.settings.learn);
  observed_.resize(chains_.count());
  gradients_.resize(chains_.count());
  adaptation_start_ = outcome_.steps;
  if (sampler_.settings.paper_schedule) {
    rounds_ = planned_ = available_ = std::min(plan_.steps, plan_.learning);
  } else {
    available_ = plan_.steps - outcome_.steps;
    // A round looks at every variable a few times over, so it should move a good fraction of them on.
    const std::uint64_t sweep = chains_.engine().traits().steps_per_sweep;
    const std::uint64_t useful = std::max<std::uint64_t>(1, available_ / (sweep / 64 + 1));
    rounds_ = planned_ = std::min({available_, kRounds, useful});
  }
  if (rounds_ == 0) next_stage();
}

void Warmup::learn() {
  set_function(learner_->balancing_function(), available_ / planned_ * chains_.count());
  TransitionGradientOptions needs = learner_->objective().needs();
  needs.max_variables = std::min<Index>(
      needs.max_variables, static_cast<Index>(std::max<std::size_t>(1, kPooledVariables / chains_.count())));
  chains_.for_each_chain([&](std::size_t c) { tuner_->observe(c, needs, observed_[c]); });
  share_observed();
  learner_->observe(observed_);
  chains_.for_each_chain([&](std::size_t c) {
    std::vector<double> coefficients;
    learner_->objective().coefficients(observed_[c], coefficients);
    gradients_[c].assign(BalanceTable::kPoints, 0.0);
    tuner_->backward(c, observed_[c], coefficients, gradients_[c]);
  });
  share_gradients();
  outcome_.objective = learner_->objective().value(observed_);
  const double progress = plan_.average ? static_cast<double>(round_) / static_cast<double>(rounds_) : 0.0;
  if (!sampler_.settings.paper_schedule && 2 * (round_ + 1) < rounds_) {
    settled_.add(learner_->table(), observed_);
    // As many rounds as it took to get here follow, at a falling rate and averaged.
    if (settled_.settled()) rounds_ = 2 * (round_ + 1);
  }
  learner_->update(observed_, gradients_, progress);
}

void Warmup::set_function(const BalancingFunction& function, std::uint64_t steps) {
  outcome_.function = function;
  tuner_->set_function(function, steps);
  chains_.for_each_chain([&](std::size_t c) { tuner_->reweigh(c); });
}

void Warmup::freeze() { set_function(learner_->freeze(), kForGood); }

void Warmup::finish() {
  if (self_tuning_ != nullptr) self_tuning_->freeze();
  if (stage_ == Stage::adaptation) freeze();
  if (stage_ == Stage::initial) {
    outcome_.initial_steps = outcome_.steps;
    if (!sampler_.learns() && !plan_.follow) set_function(given_function(), kForGood);
  }
  if (pending_ > 0 && pending_ < stretch_length_) record();
  pending_ = 0;
  stage_ = Stage::done;
}

void Warmup::extend(std::uint64_t steps) {
  if (steps <= plan_.steps || stage_ == Stage::initial || stage_ == Stage::adaptation) return;
  plan_.steps = steps;
  if (stage_ == Stage::done) stage_ = Stage::rest;
}

std::uint64_t Warmup::decision_length() const {
  if (stage_ == Stage::initial && !sampler_.learns() && !escaped_ && !plan_.follow) return kFirstSteps;
  // An eighth of a sweep is fine enough to see log p rise; a long warm-up is not cut into more than a few thousand.
  return std::max({std::uint64_t{1}, chains_.engine().traits().steps_per_sweep / 8, plan_.steps / 4096});
}

void Warmup::escape_trap(double acceptance_rate) {
  // Under strong couplings a flip towards higher probability can raise the ratios of its neighbours so much that Z(x')
  // dwarfs Z(x) and the flip is refused. A bounded g cannot be trapped so; the initial phase then continues with
  // t/(1+t).
  if (escaped_ || acceptance_rate > kTrapped) return;
  escaped_ = true;
  set_function(BalancingFunction(BalancingFunction::Kind::barker), kForGood);
}

void Warmup::tune_level(double acceptance_rate) {
  escaped_ = true;
  step_length_.add(acceptance_rate, sampler_.settings.acceptance);
  set_function((plan_.follow ? outcome_.function : given_function()).with_level(step_length_.level()), kForGood);
}

void Warmup::record() { outcome_.trace.push_back({outcome_.steps, mean_log_prob(chains_.engine())}); }

void Warmup::save(Saver& out) const {
  out(outcome_, stage_, pending_, before_, stretch_length_, escaped_, step_length_, rise_, settled_, adaptation_start_,
      available_, rounds_, planned_, round_, plan_);
  out(learner_.has_value());
  if (learner_) out(*learner_);
  if (ladder_ != nullptr) out(*ladder_);
}

void Warmup::load(Loader& in) {
  proposals_.reset();
  in(outcome_, stage_, pending_, before_, stretch_length_, escaped_, step_length_, rise_, settled_, adaptation_start_,
     available_, rounds_, planned_, round_, plan_);
  bool learning = false;
  in(learning);
  learner_.reset();
  if (learning) {
    learner_.emplace(sampler_.make_function(), sampler_.settings.learn);
    in(*learner_);
    observed_.resize(chains_.count());
    gradients_.resize(chains_.count());
  }
  if (ladder_ != nullptr) in(*ladder_);
}

void Warmup::save_chain(std::size_t chain, Saver& out) const {
  if (tuner_ != nullptr) tuner_->save_chain(chain, out);
}

void Warmup::load_chain(std::size_t chain, Loader& in) {
  if (tuner_ != nullptr) tuner_->load_chain(chain, in);
}

}  // namespace poise
