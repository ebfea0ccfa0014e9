/// Weighted repair: what a change would do costs one look per constraint of the variable.
#include "models/network/support_breakout.hpp"

#include <algorithm>
#include <limits>

namespace poise::support {

Breakout::Breakout(const Constraints& constraints, const Domains& domains, Effort& effort)
    : constraints_(constraints),
      domains_(domains),
      effort_(effort),
      place_(constraints.size(), 0),
      weight_(constraints.size(), 1),
      number_(constraints.size(), Network::kFree),
      fewest_(std::numeric_limits<std::size_t>::max()) {}

void Breakout::set_violated(Index c, bool violated) {
  if (violated == (number_[c] != Network::kFree)) return;
  if (violated) {
    number_[c] = static_cast<Index>(violated_.size());
    violated_.push_back(c);
  } else {
    violated_[number_[c]] = violated_.back();
    number_[violated_.back()] = number_[c];
    violated_.pop_back();
    number_[c] = Network::kFree;
  }
}

void Breakout::start_from(const std::vector<Value>& x) {
  effort_.looks += constraints_.size();
  for (Index c = 0; c < constraints_.size(); ++c) {
    place_[c] = constraints_.place(c, x);
    set_violated(c, !constraints_.positive(c, place_[c]));
  }
  remember();
}

/// The weight of violated constraints after a change, less that before it.
std::int64_t Breakout::added_weight(const std::vector<Value>& x, Move move) const {
  std::int64_t sum = 0;
  for (const auto [c, stride] : constraints_.uses(move.variable)) {
    const int before = number_[c] != Network::kFree ? 1 : 0;
    const int after = constraints_.positive(c, place_[c] + stride * move.value - stride * x[move.variable]) ? 0 : 1;
    sum += (after - before) * static_cast<std::int64_t>(weight_[c]);
  }
  return sum;
}

/// Of all changes of one variable of a constraint, one of those that add least, each as likely as the others.
Breakout::Candidate Breakout::best_change(const std::vector<Value>& x, Index c, Rng& rng) {
  Candidate best;
  std::size_t equal = 0;
  for (const Constraints::Member& member : constraints_.members(c)) {
    const Index i = member.variable;
    if (domains_.count[i] < 2) continue;
    const std::size_t levels = domains_.start[i + 1] - domains_.start[i];
    effort_.looks += (domains_.count[i] - 1) * constraints_.uses(i).size();
    for (Index level = 0; level < levels; ++level) {
      if (level == x[i] || !domains_.allows(i, level)) continue;
      const Move move{i, static_cast<Value>(level)};
      const std::int64_t added = added_weight(x, move);
      if (added < best.added) equal = 0;
      if (added <= best.added && random_below(rng, ++equal) == 0) best = {move, added};
    }
  }
  return best;
}

void Breakout::change(std::vector<Value>& x, Move move) {
  ++effort_.changes;
  for (const auto [c, stride] : constraints_.uses(move.variable)) {
    place_[c] += stride * move.value - stride * x[move.variable];
    set_violated(c, !constraints_.positive(c, place_[c]));
  }
  x[move.variable] = move.value;
}

void Breakout::remember() {
  if (violated_.size() >= fewest_) return;
  fewest_ = violated_.size();
  std::copy_n(violated_.begin(), examples().size(), examples_.begin());
}

bool Breakout::search(std::vector<Value>& x, Rng& rng) {
  start_from(x);
  while (!violated_.empty() && !effort_.turn_over()) {
    const Index c = violated_[random_below(rng, violated_.size())];
    const Candidate best = best_change(x, c, rng);
    if (best.added == kNone) break;  // its variables have one level each: a zero that propagation did not get to
    if (best.added >= 0) ++weight_[c];
    change(x, best.move);
    remember();
  }
  return violated_.empty();
}

}  // namespace poise::support
