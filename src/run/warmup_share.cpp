/// What ranks tell each other in a round of learning.
#include "run/warmup.hpp"

#include <algorithm>
#include <stdexcept>

namespace poise {

namespace {

using Gradient = TransitionGradient;

/// Of a transition gradient what a learner, who pools all chains, looks at: not the moves, and of the acceptance of
/// entries that of the first, which all have where steps change many variables.
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

/// Where the parts of a chain begin in what is told of it.
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

}  // namespace poise
