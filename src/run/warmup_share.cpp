/// What ranks tell each other in a round of learning.
#include "warmup.hpp"

namespace poise {

namespace {

/// Of a transition gradient what a learner, who pools all chains, looks at: not the moves, and of the acceptance of
/// entries that of the first, which all have where steps change many variables.
template <class A>
void archive_for_learner(A& archive, TransitionGradient& gradient) {
  std::vector<Index> positions;
  std::vector<Value> values;
  std::vector<double> log_ratios;
  std::vector<double> transitions;
  double accept_prob = gradient.entries.empty() ? 0.0 : gradient.entries[0].accept_prob;
  for (const TransitionGradient::Entry& entry : gradient.entries) {
    positions.push_back(entry.position);
    values.push_back(entry.value);
    log_ratios.push_back(entry.log_ratio);
    transitions.push_back(entry.transition);
  }
  archive(positions, values, log_ratios, transitions, accept_prob, gradient.sampled, gradient.many, gradient.work_slope,
          gradient.scale, gradient.log_prob);
  gradient.entries.resize(positions.size());
  for (std::size_t k = 0; k < positions.size(); ++k) {
    TransitionGradient::Entry& entry = gradient.entries[k];
    entry.position = positions[k];
    entry.value = values[k];
    entry.log_ratio = log_ratios[k];
    entry.transition = transitions[k];
    if (k == 0) entry.accept_prob = accept_prob;
  }
}

}  // namespace

void Warmup::share_observed() {
  const Division* division = chains_.engine().division();
  if (division == nullptr) return;
  const ChainGroup own = division->own();
  std::vector<std::string> mine;
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    Saver out;
    archive_for_learner(out, observed_[c]);
    mine.push_back(out.take());
  }
  const std::vector<std::string> all = division->gather(mine);
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (c >= own.first && c < own.first + own.count) continue;
    Loader in(all[c]);
    archive_for_learner(in, observed_[c]);
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

}  // namespace poise
