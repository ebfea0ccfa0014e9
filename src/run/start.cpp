/// Starting states: uniform, zeros, dispersed, given; inside the support where the model can say how.
#include <poise/run/start.hpp>

#include <cstddef>
#include <utility>

namespace poise {

namespace {

/// The stream that draws what belongs to a run rather than to a chain, beyond all chains and the learning streams.
constexpr std::uint64_t kRunStream = ~std::uint64_t{0};
/// Starting states have streams of their own, so that a chain's first step does not depend on how it began.
constexpr std::uint64_t kStartStreams = std::uint64_t{1} << 62;
constexpr std::uint64_t kRepairStreams = kStartStreams + (std::uint64_t{1} << 61);

std::vector<Value> uniform_state(const Model& model, Rng rng) {
  std::vector<Value> x(model.layout.variables);
  for (Index i = 0; i < model.layout.variables; ++i) {
    const auto level = static_cast<Value>(rng.uniform() * model.layout.levels(i));
    x[i] = model.layout.is_observed(i) ? static_cast<Value>(model.layout.observed[i]) : level;
  }
  return x;
}

std::vector<Value> dispersed_state(const Model& model, std::uint64_t seed, std::uint64_t chain) {
  const std::uint64_t role = chain % 4;
  std::vector<Value> x = uniform_state(model, Rng(seed, kStartStreams + (role == 3 ? chain - 3 : chain)));
  if (role == 0) return x;
  for (Index i = 0; i < model.layout.variables; ++i) {
    if (model.layout.is_observed(i)) continue;
    const auto highest = static_cast<Value>(model.layout.levels(i) - 1);
    x[i] = role == 1 ? Value{0} : role == 2 ? highest : static_cast<Value>(highest - x[i]);
  }
  return x;
}

}  // namespace

std::vector<std::vector<Value>> starting_states(const Model& model, const RunOptions& options) {
  std::vector<std::vector<Value>> starts(options.chains);
  for (std::size_t c = 0; c < options.chains; ++c) {
    const std::uint64_t number = options.first_chain + c;
    switch (options.start) {
      case Start::given: {
        const std::size_t n = model.layout.variables;
        const std::size_t first = options.given.size() == n ? 0 : c * n;
        starts[c].assign(options.given.begin() + static_cast<std::ptrdiff_t>(first),
                         options.given.begin() + static_cast<std::ptrdiff_t>(first + n));
        break;
      }
      case Start::zeros: starts[c].assign(model.layout.variables, 0); break;
      case Start::uniform: starts[c] = uniform_state(model, Rng(options.seed, kStartStreams + number)); break;
      case Start::dispersed: starts[c] = dispersed_state(model, options.seed, number); break;
    }
    if (options.start != Start::given && model.into_support) {
      starts[c] = model.into_support(std::move(starts[c]), Rng(options.seed, kRepairStreams + number));
    }
  }
  return starts;
}

std::vector<Value> reference_state(const Model& model, std::uint64_t seed) {
  return uniform_state(model, Rng(seed, kRunStream));
}

}  // namespace poise
