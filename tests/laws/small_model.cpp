/// Enumeration of small models, and the list of their kinds.
#include "laws/small_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include "laws/kinds.hpp"

namespace poise::laws {

namespace {

constexpr std::array<Kind, 21> kKinds = {{{"lattice", lattice},
                                          {"potts", potts},
                                          {"user-values", user_values},
                                          {"islands", islands},
                                          {"graph", graph},
                                          {"markov", markov},
                                          {"rbm", rbm},
                                          {"maxcut", maxcut},
                                          {"zeros", zeros},
                                          {"user-gradient", user_gradient},
                                          {"antiferromagnet", antiferromagnet},
                                          {"bayes", bayes},
                                          {"qubo", qubo},
                                          {"evidence", evidence},
                                          {"user-ratios", user_ratios},
                                          {"spin-glass", spin_glass},
                                          {"high-order", high_order},
                                          {"bernoulli", bernoulli},
                                          {"own-target", own_target},
                                          {"hidden-markov", hidden_markov},
                                          {"user-support", user_support}}};

}  // namespace

double Spins::log_prob(std::span<const Value> x) const {
  const auto spin = [&](Index i) { return x[i] != 0 ? 1.0 : -1.0; };
  double sum = constant;
  for (Index i = 0; i < field.size(); ++i) sum += field[i] * spin(i);
  for (const Coupling& one : couplings) sum += one.value * spin(one.i) * spin(one.j);
  return sum;
}

std::string Folder::write(const std::string& ending, const std::string& content) const {
  std::string file = (path / (stem + ending)).string();
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

Truth enumerate(const SmallModel& small) {
  Truth truth;
  StateSpace& space = truth.space;
  std::size_t size = 1;
  for (const Index levels : small.cardinalities) {
    space.strides.push_back(size);
    size *= levels;
  }
  double largest = kMinusInfinity;
  double smallest = std::numeric_limits<double>::infinity();
  std::vector<Value> x(small.cardinalities.size());
  std::vector<double> log_p;
  for (std::size_t s = 0; s < size; ++s) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<Value>(s / space.strides[i] % small.cardinalities[i]);
    }
    space.states.push_back(x);
    log_p.push_back(small.log_prob(x));
    largest = std::max(largest, log_p.back());
    if (log_p.back() > kMinusInfinity) smallest = std::min(smallest, log_p.back());
  }
  if (!std::isfinite(largest)) throw std::logic_error(small.recipe + " has no possible state");
  double sum = 0.0;
  for (const double one : log_p) sum += std::exp(one - largest);
  truth.log_partition = largest + std::log(sum);
  truth.spread = largest - smallest;
  truth.known.marginals = Marginals(small.cardinalities);
  double mean = 0.0;
  double square = 0.0;
  for (std::size_t s = 0; s < size; ++s) {
    const double p = std::exp(log_p[s] - truth.log_partition);
    space.probabilities.push_back(p);
    for (Index i = 0; i < x.size(); ++i) truth.known.marginals.of(i)[space.states[s][i]] += p;
    if (p == 0.0) continue;
    mean += p * log_p[s];
    square += p * (log_p[s] - largest) * (log_p[s] - largest);
  }
  truth.known.mean_log_prob = mean;
  truth.known.sd_log_prob = std::sqrt(std::max(0.0, square - (mean - largest) * (mean - largest)));
  return truth;
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

SmallModel make_small_model(std::uint64_t seed, std::uint64_t number, const Folder& folder) {
  const Kind& kind = kKinds[number % kKinds.size()];
  Dice dice(seed, number);
  SmallModel made = kind.make(dice, folder);
  made.kind = kind.name;
  return made;
}

}  // namespace poise::laws
