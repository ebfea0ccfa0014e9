/// Ising models whose parameters are drawn: independent variables, and factorial hidden Markov models.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include "models/ising/ising_model.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {
namespace {

// Numbers of streams of drawn parameters; number 0 is that of Potts models.
constexpr std::uint64_t kBernoulliNumbers = 1;
constexpr std::uint64_t kHiddenChainNumbers = 2;

constexpr std::int64_t kMaxDrawn = 10'000'000;                  // variables
constexpr std::int64_t kMaxDrawnPairs = std::int64_t{1} << 25;  // some two GiB
constexpr double kLeastNoise = 1e-6;                            // below it couplings leave nothing to sample
constexpr double kMostOdds = 1e6;

/// The settings of a spec; `HiddenMarkov` has what is drawn besides.
struct HiddenChains : HiddenMarkov {
  std::uint64_t seed = 1;

  [[nodiscard]] std::int64_t variables() const { return std::int64_t{length} * chains; }
  [[nodiscard]] std::int64_t pairs() const {
    return std::int64_t{length} * chains * (chains - 1) / 2 + std::int64_t{length - 1} * chains;
  }
};

HiddenChains read_hidden_chains(const Spec& spec) {
  SpecReader reader(spec, "model");
  HiddenChains model;
  model.length = static_cast<Index>(reader.integer("length", model.length, 1, kMaxDrawn));
  model.chains = static_cast<Index>(reader.integer("chains", model.chains, 1, 10'000));
  const auto probability = [&](const char* key, double otherwise) {
    const double value = reader.real(key, otherwise);
    if (!(value > 0.0 && value < 1.0)) reader.reject(key, "a probability greater than 0 and less than 1");
    return value;
  };
  model.start = probability("start", model.start);
  model.stay = probability("stay", model.stay);
  model.sigma = reader.real("sigma", model.sigma, kLeastNoise, kLargest);
  model.seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0));
  if (model.variables() > kMaxDrawn || model.pairs() > kMaxDrawnPairs) {
    reader.problem(
        fmt::format("model 'fhmm': length={} and chains={} make {} variables and {} pairs that interact, "
                    "expected at most {} and {}",
                    model.length, model.chains, model.variables(), model.pairs(), kMaxDrawn, kMaxDrawnPairs));
  }
  reader.finish({"length", "chains", "start", "stay", "sigma", "seed"});
  return model;
}

/// Draws the weights and the hidden levels, then what is seen of them.
HiddenMarkov draw(const HiddenChains& model) {
  Rng rng = make_rng(model.seed, Stream::drawn_parameters, kHiddenChainNumbers);
  HiddenMarkov drawn = model;
  for (Index k = 0; k < model.chains; ++k) drawn.weights.push_back(rng.normal());
  drawn.offset = rng.normal();
  drawn.truth.resize(static_cast<std::size_t>(model.variables()));
  for (Index t = 0; t < model.length; ++t) {
    double seen = drawn.offset;
    for (Index k = 0; k < model.chains; ++k) {
      const std::size_t at = std::size_t{t} * model.chains + k;
      const bool before = t > 0 && drawn.truth[at - model.chains] > 0;
      const double on = t == 0 ? model.start : before ? model.stay : 1.0 - model.stay;
      drawn.truth[at] = rng.uniform() < on ? 1 : -1;
      if (drawn.truth[at] > 0) seen += drawn.weights[k];
    }
    drawn.seen.push_back(seen + model.sigma * rng.normal());
  }
  return drawn;
}

}  // namespace

HiddenMarkov draw_fhmm(const Spec& spec) { return draw(read_hidden_chains(spec)); }

/// With x = (1 + s) / 2, what is seen at time t has the mean b + sum_k w_k / 2 + sum_k w_k s_k / 2. Let r be the rest
/// of y_t after the first two terms. Then -(r - sum_k w_k s_k / 2)^2 / (2 sigma^2) is a constant, r w_k / (2 sigma^2)
/// for every spin and -w_k w_l / (4 sigma^2) for every pair of a time.
IsingModel make_fhmm(const Spec& spec) {
  const HiddenChains settings = read_hidden_chains(spec);
  HiddenMarkov drawn = draw(settings);
  IsingModel model;
  model.name = fmt::format("fhmm:length={},chains={},start={},stay={},sigma={},seed={}", settings.length,
                           settings.chains, settings.start, settings.stay, settings.sigma, settings.seed);
  model.is_posterior = true;
  model.variables = static_cast<Index>(settings.variables());
  model.field.assign(model.variables, 0.0);
  model.edges.reserve(static_cast<std::size_t>(settings.pairs()));
  const double precision = 1.0 / (settings.sigma * settings.sigma);
  const double middle = drawn.offset + std::accumulate(drawn.weights.begin(), drawn.weights.end(), 0.0) / 2.0;
  const double staying = 0.5 * std::log(settings.stay / (1.0 - settings.stay));
  for (Index t = 0; t < settings.length; ++t) {
    const Index first = t * settings.chains;
    const double rest = drawn.seen[t] - middle;
    for (Index k = 0; k < settings.chains; ++k) {
      model.field[first + k] = 0.5 * precision * rest * drawn.weights[k];
      if (t == 0) model.field[k] += 0.5 * std::log(settings.start / (1.0 - settings.start));
      if (t > 0) model.edges.push_back({first - settings.chains + k, first + k, staying});
      for (Index l = k + 1; l < settings.chains; ++l) {
        model.edges.push_back({first + k, first + l, -0.25 * precision * drawn.weights[k] * drawn.weights[l]});
      }
    }
  }
  model.observed = model.field;
  model.truth = std::move(drawn.truth);
  return model;
}

IsingModel make_bernoulli(const Spec& spec) {
  SpecReader reader(spec, "model");
  IsingModel model;
  model.variables = static_cast<Index>(reader.integer("size", 10'000, 1, kMaxDrawn));
  const double mu = reader.real("mu", 0.0, -kMostOdds, kMostOdds);
  const double sigma = reader.real("sigma", 0.5, 0.0, kMostOdds);
  const auto seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0));
  reader.finish({"size", "mu", "sigma", "seed"});
  Rng rng = make_rng(seed, Stream::drawn_parameters, kBernoulliNumbers);
  for (Index i = 0; i < model.variables; ++i) model.field.push_back(0.5 * (mu + sigma * rng.normal()));
  model.observed = model.field;
  model.name = fmt::format("bernoulli:size={},mu={},sigma={},seed={}", model.variables, mu, sigma, seed);
  return model;
}

}  // namespace poise
