/// Rounds of all chains, and what is kept of them.
#include "inference/network_search/search.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "models/network/support.hpp"

namespace poise::network_search {

namespace {

/// Rounds that a limit of sweeps is cut into, and the sweeps of a round where there is none: then rounds grow, so that
/// what is done between them costs little.
constexpr double kRounds = 16.0;
constexpr double kFirstRound = 400.0;
constexpr double kLongestRound = 20000.0;
constexpr double kGrowth = 1.3;

/// The best different states.
class Elite {
 public:
  explicit Elite(std::size_t count) : count_(std::max<std::size_t>(1, count)) {}

  void add(const Scored& state, std::uint64_t arrivals) {
    for (Found& found : found_) {
      if (found.state.x != state.x) continue;
      found.count += arrivals;
      return;
    }
    const auto after =
        std::find_if(found_.begin(), found_.end(), [&](const Found& found) { return found.state.value < state.value; });
    found_.insert(after, {state, arrivals});
    if (found_.size() > count_) found_.pop_back();
  }
  [[nodiscard]] const Scored& best() const { return found_.front().state; }
  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] std::vector<Found> take() && {
    for (Found& found : found_) found.count = std::max<std::uint64_t>(1, found.count);
    return std::move(found_);
  }

 private:
  std::size_t count_;
  std::vector<Found> found_;
};

/// A state without zeros, for chains to begin at or to be crossed with; nothing, and why, where it was not found.
std::optional<Scored> possible_state(const LogNetwork& network, const SearchOptions& options, std::string& why) {
  Rng rng = make_rng(options.seed, Stream::repair);
  const Domains domains = propagate_zeros(network.network());
  try {
    Scored state;
    state.x =
        repair(network.network(), domains, std::vector<Value>(network.size(), 0), rng, {.stop = options.halt.stop});
    state.value = network.value(state.x);
    return state;
  } catch (const InputError& error) {
    why = error.what();
    return {};
  }
}

}  // namespace

std::vector<Found> search(const LogNetwork& network, const std::vector<std::vector<Value>>& starts,
                          const SearchOptions& options) {
  const Annealer annealer(network);
  const double entries = std::clamp(options.memory / (2.0 * kChains * sizeof(double)), 4096.0, kMostEntries);
  std::vector<std::unique_ptr<Chain>> chains;
  for (std::size_t c = 0; c < kChains; ++c) {
    chains.push_back(
        std::make_unique<Chain>(network, annealer, make_rng(options.seed, Stream::network_search, c), entries));
  }
  Elite elite(options.solutions);
  for (std::size_t k = 0; k < starts.size(); ++k) {
    Scored state{starts[k], network.value(starts[k])};
    elite.add(state, 0);
    chains[k % kChains]->start_at(std::move(state));
  }
  std::string why_none;
  const bool needs_state = network.has_zeros() && (elite.empty() || !network.is_possible(elite.best().x));
  if (needs_state) {
    if (const std::optional<Scored> state = possible_state(network, options, why_none)) {
      elite.add(*state, 0);
      for (const std::unique_ptr<Chain>& chain : chains) {
        if (!chain->has_best()) chain->remember(*state);
      }
    }
  }
  const unsigned all = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  ThreadPool pool(std::min<unsigned>(all, kChains));
  Part part(network);
  Rng rng = make_rng(options.seed, Stream::network_search, kChains);
  const double most = options.sweeps ? *options.sweeps : std::numeric_limits<double>::infinity();
  double length = options.sweeps ? std::max(1.0, most / kRounds) : kFirstRound;
  double sweeps = 0.0;
  for (bool more = true; more;) {
    length = std::min(length, most - sweeps);
    pool.for_each(kChains, [&](std::size_t c) { chains[c]->advance(length * network.sweep_looks(), options.halt); });
    sweeps += length;
    if (!options.sweeps) length = std::min(kLongestRound, kGrowth * length);
    for (const std::unique_ptr<Chain>& chain : chains) {
      for (const Scored& end : chain->take_ends()) elite.add(end, 1);
      elite.add(chain->best(), 0);
    }
    Scored champion = elite.best();
    for (const std::unique_ptr<Chain>& chain : chains) {
      champion = cross(network, part, champion, chain->best(), {kCrossing, entries}, rng);
    }
    elite.add(champion, 0);
    // The others keep to themselves: crossed with each other they would soon be all the same.
    if (elite.best().value > chains[0]->best().value + network.rounding()) chains[0]->start_at(elite.best());
    more = sweeps < most && !options.halt.now();
    if (options.target && elite.best().value >= *options.target && network.is_possible(elite.best().x)) more = false;
    if (options.progress && !options.progress(elite.best(), sweeps, std::min(1.0, sweeps / most))) more = false;
  }
  if (!network.is_possible(elite.best().x)) throw InputError(why_none);
  return std::move(elite).take();
}

}  // namespace poise::network_search
