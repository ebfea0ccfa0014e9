/// Rounds of annealing and replica exchange in turn.
#include "inference/optimize/spin_search.hpp"

namespace poise {

namespace {

// Random streams of a search: two for each kind of round, and two of its own.
constexpr std::uint64_t kStreams = 8;

TemperatureRange range_of(const SpinProblem& problem, std::uint64_t seed, std::uint64_t number) {
  Rng rng = make_rng(seed, Stream::annealing, kStreams * number + 4);
  return measure_temperatures(problem, rng);
}

}  // namespace

SpinSearch::SpinSearch(const SpinProblem& problem, std::uint64_t seed, std::uint64_t number)
    : problem_(&problem),
      range_(range_of(problem, seed, number)),
      annealing_(problem, range_, seed, kStreams / 2 * number),
      exchange_(problem, range_, seed, kStreams / 2 * number + 1),
      crossover_(problem),
      rng_(make_rng(seed, Stream::annealing, kStreams * number + 5)) {}

void SpinSearch::start_from(std::span<const Spin> spins, SearchRecord& record) {
  const std::int64_t value = problem_->value(spins);
  record.add(value, spins);
  champion_.take(value, spins, crossover_, rng_);
  annealing_.start_from(starts_++ % 32, spins);  // lanes are 32 at least
  exchange_.start_from(champion_.spins);
}

void SpinSearch::hear_of(std::int64_t value, std::span<const Spin> spins, SearchRecord& record) {
  champion_.take(value, spins, crossover_, rng_);
  record.add_better(champion_.value, champion_.spins);
}

void SpinSearch::round(SearchRecord& record) {
  const bool anneals = anneals_next();
  ++rounds_;
  if (anneals) {
    annealing_.round(record);
  } else {
    exchange_.round(record);
  }
  const Champion& one = anneals ? annealing_.champion() : exchange_.champion();
  champion_.take(one.value, one.spins, crossover_, rng_);
  record.add_better(champion_.value, champion_.spins);
}

bool SpinSearch::anneals_next() const {
  constexpr std::uint64_t kTrial = 8;
  if (!annealing_.crosses_well()) return rounds_ % kTrial == 0;
  if (rounds_ < kTrial || annealing_.champion().value == exchange_.champion().value) return rounds_ % 2 == 0;
  const bool annealing_leads = annealing_.champion().value > exchange_.champion().value;
  return (rounds_ % 4 != 0) == annealing_leads;
}

void SpinSearch::save(Saver& out) {
  annealing_.save(out);
  exchange_.save(out);
  out(champion_, rounds_, starts_, rng_);
}

void SpinSearch::load(Loader& in) {
  annealing_.load(in);
  exchange_.load(in);
  in(champion_, rounds_, starts_, rng_);
}

}  // namespace poise
