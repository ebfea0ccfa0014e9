/// How the recorder finds the best draw of all chains.
#include "run/best_state.hpp"

#include <poise/extend/base/archive.hpp>
#include "run/recorder.hpp"

namespace poise {

std::size_t Recorder::find_best(ChainGroup group, std::size_t first, std::span<const Observables> draws) {
  BestState& best = best_[group.first];
  std::size_t found = chains();
  for (std::size_t k = 0; k < draws.size(); ++k) {
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      const std::size_t at = filled_[c] - draws.size() + k;  // in the block
      const double value = block_.monitors[objective_][c * block_.count + at];
      if (!best.is_better(value, maximise_)) continue;
      best.any = true;
      best.value = value;
      best.draw = draws_ + at;
      best.chain = found = c;
      best.levels.clear();
      if (!draws[k].bits.empty()) {
        const auto bits = draws[k].bits.subspan((c - first) * block_.x.row_bytes(), block_.x.row_bytes());
        for (Index i = 0; i < layout_.variables; ++i) best.levels.push_back(bits[i / 8] >> i % 8 & 1U);
      } else if (!draws[k].levels.empty()) {
        const auto levels = draws[k].levels.subspan((c - first) * layout_.variables, layout_.variables);
        best.levels.assign(levels.begin(), levels.end());
      }
    }
  }
  return found;
}

BestState Recorder::best(const Division* division) const {
  BestState best;
  for (const BestState& one : best_) {
    if (best.is_behind(one, maximise_)) best = one;
  }
  if (division == nullptr) return best;
  Saver mine;
  mine(best);
  Collective& ranks = division->collective();
  const std::vector<std::size_t> one_each(static_cast<std::size_t>(ranks.size()), 1);
  for (const std::string& bytes : ranks.gather_strings({mine.take()}, one_each)) {
    BestState other;
    Loader in(bytes);
    in(other);
    if (best.is_behind(other, maximise_)) best = std::move(other);
  }
  return best;
}

}  // namespace poise
