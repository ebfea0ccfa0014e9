/// Starting states: uniform, zeros, dispersed, given; inside the support where the model can say how.
#include "run/start.hpp"

#include <cstddef>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/engine.hpp>

namespace poise {

namespace {

/// Random states that are tried for a chain whose start has probability zero: before the two extreme ones, and after.
constexpr unsigned kFirstRandomStarts = 10;
constexpr unsigned kRandomStarts = 100;

/// Every free variable at its lowest or highest level.
std::vector<Value> extreme_state(const Model& model, bool highest) {
  std::vector<Value> x(model.layout.variables);
  for (Index i = 0; i < model.layout.variables; ++i) {
    const auto level = static_cast<Value>(highest ? model.layout.levels(i) - 1 : 0);
    x[i] = model.layout.is_observed(i) ? static_cast<Value>(model.layout.observed[i]) : level;
  }
  return x;
}

std::vector<Value> dispersed_state(const Model& model, std::uint64_t seed, std::uint64_t chain) {
  const std::uint64_t role = chain % 4;
  if (role == 1 || role == 2) return extreme_state(model, role == 2);
  Rng rng = make_rng(seed, Stream::start, role == 3 ? chain - 3 : chain);
  std::vector<Value> x = uniform_state(model, rng);
  if (role == 0) return x;
  for (Index i = 0; i < model.layout.variables; ++i) {
    if (!model.layout.is_observed(i)) x[i] = static_cast<Value>(model.layout.levels(i) - 1 - x[i]);
  }
  return x;
}

std::vector<Value> first_start(const Model& model, const RunOptions& options, std::size_t c) {
  const std::uint64_t number = options.first_chain + c;
  switch (options.start) {
    case Start::given: {
      const std::size_t n = model.layout.variables;
      const auto first = options.given.begin() + static_cast<std::ptrdiff_t>(options.given.size() == n ? 0 : c * n);
      return {first, first + static_cast<std::ptrdiff_t>(n)};
    }
    case Start::zeros: return std::vector<Value>(model.layout.variables, 0);
    case Start::uniform: {
      Rng rng = make_rng(options.seed, Stream::start, number);
      return uniform_state(model, rng);
    }
    case Start::dispersed: return dispersed_state(model, options.seed, number);
  }
  return {};
}

}  // namespace

std::vector<Value> uniform_state(const Model& model, Rng& rng) {
  std::vector<Value> x(model.layout.variables);
  for (Index i = 0; i < model.layout.variables; ++i) {
    const auto level = static_cast<Value>(rng.uniform() * model.layout.levels(i));
    x[i] = model.layout.is_observed(i) ? static_cast<Value>(model.layout.observed[i]) : level;
  }
  return x;
}

EngineOptions engine_options(const Model& model, const RunOptions& options, FirstStates states,
                             std::shared_ptr<const Division> division) {
  ChainGroup own{0, options.chains};
  if (division) own = division->own().count > 0 ? division->own() : ChainGroup{0, 1};
  EngineOptions made;
  made.seed = options.seed;
  made.first_chain = options.first_chain + own.first;
  made.device = options.device;
  made.division = std::move(division);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    std::vector<Value> x = first_start(model, options, c);
    if (states == FirstStates::possible && options.start != Start::given && model.into_support) {
      x = model.into_support(std::move(x), make_rng(options.seed, Stream::repair, options.first_chain + c));
    }
    made.starts.push_back(std::move(x));
  }
  Rng rng = make_rng(options.seed, Stream::reference);
  made.reference = uniform_state(model, rng);
  const bool asked_for = options.start == Start::given || options.start == Start::zeros;
  if (asked_for || model.into_support) return made;
  // Where single changes cannot reach all of the support, chains that begin in the same part of it agree: random states
  // go first, and every second chain tries the highest levels before the lowest.
  made.other_start = [&model, seed = options.seed, first = made.first_chain, random = Rng(0, 0)](
                         std::size_t c, unsigned attempt) mutable -> std::vector<Value> {
    if (attempt == 0) random = make_rng(seed, Stream::retry, first + c);
    if (attempt == kFirstRandomStarts || attempt == kFirstRandomStarts + 1) {
      return extreme_state(model, (first + c + attempt - kFirstRandomStarts) % 2 == 1);
    }
    if (attempt >= kFirstRandomStarts + 2 + kRandomStarts) return {};
    return uniform_state(model, random);
  };
  return made;
}

}  // namespace poise
