/// Answers in closed form: Ising lattices by Kaufman's formula, planted states on trees and on complete graphs by
/// symmetry and by sums over magnetizations, mixtures, and many small parts at once by enumeration of each.
#include "laws/large_models.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "laws/dice.hpp"
#include "laws/kinds.hpp"
#include "models/ising/ising_model.hpp"

namespace poise::laws {

namespace {

double log_sum(std::span<const double> logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double one : logs) sum += std::exp(one - largest);
  return largest + std::log(sum);
}

/// Marginals of spins from the means of each.
Marginals of_means(std::span<const double> means) {
  Marginals out(std::vector<Index>(means.size(), 2));
  for (Index i = 0; i < means.size(); ++i) {
    out.of(i)[0] = 0.5 * (1.0 - means[i]);
    out.of(i)[1] = 0.5 * (1.0 + means[i]);
  }
  return out;
}

std::vector<double> draw_signs(Dice& dice, std::size_t count) {
  std::vector<double> signs(count);
  for (double& sign : signs) sign = dice.pick({-1.0, 1.0});
  return signs;
}

LargeModel square_lattice(Dice& dice) {
  const Index side = dice.pick<Index>({8, 12, 16});
  const double critical = 0.5 * std::log(1.0 + std::numbers::sqrt2);
  const double coupling = critical * dice.pick({0.3, 0.7, 0.9, 1.0, 1.1, 1.3});
  LargeModel made;
  made.model = make_model(fmt::format("ising:size={},lambda={}", side, coupling));
  made.known.marginals = of_means(std::vector<double>(std::size_t{side} * side, 0.0));
  // Derivatives of log Z by the coupling: mean and variance of the sum over edges.
  const double h = 1e-3;
  const double below = kaufman_log_partition(side, side, coupling - h);
  const double here = kaufman_log_partition(side, side, coupling);
  const double above = kaufman_log_partition(side, side, coupling + h);
  made.known.mean_log_prob = coupling * (above - below) / (2.0 * h);
  made.known.sd_log_prob = coupling * std::sqrt((above - 2.0 * here + below) / (h * h));
  made.recipe = fmt::format("{}x{} torus at {:.2f} of the critical coupling", side, side, coupling / critical);
  return made;
}

/// A random tree with a planted state: couplings favour it or its mirror image, and a field at one spin says which.
/// Along an edge the mean is multiplied by the hyperbolic tangent of the coupling.
LargeModel planted_tree(Dice& dice) {
  const Index n = dice.pick<Index>({60, 150});
  const double strength = dice.pick({0.3, 0.8, 1.5, 3.0});
  const double field = dice.pick({0.0, 0.3, 1.0});
  const std::vector<double> planted = draw_signs(dice, n);
  IsingModel ising;
  ising.variables = n;
  ising.name = "planted tree";
  ising.field.assign(n, 0.0);
  ising.field[0] = field * planted[0];
  std::vector<double> means(n, std::tanh(field) * planted[0]);
  for (Index j = 1; j < n; ++j) {
    const Index i = dice.below(j);
    const double coupling = strength * planted[i] * planted[j];
    ising.edges.push_back({i, j, coupling});
    means[j] = means[i] * std::tanh(coupling);
  }
  LargeModel made;
  made.model = ising_model(std::move(ising));
  made.known.marginals = of_means(means);
  made.recipe = fmt::format("{} spins, coupling {}, field {}", n, strength, field);
  return made;
}

/// All pairs of a planted state, or all triples: log p depends on the overlap with it alone, so that sums have n + 1
/// terms. Pairs have two modes below the transition, triples one beside the disordered one.
LargeModel planted_overlap(Dice& dice) {
  const bool triples = dice.chance(0.5);
  const Index n = triples ? 20 : dice.pick<Index>({40, 80});
  const double strength = triples ? dice.pick({0.5, 1.0, 1.5, 2.0}) : dice.pick({0.5, 0.9, 1.1, 1.4});
  const double field = dice.pick({0.0, 0.02, 0.1});
  const std::vector<double> planted = draw_signs(dice, n);
  const double scale = triples ? 2.0 * strength / (n * n) : strength / n;
  LargeModel made;
  if (triples) {
    Network network;
    network.name = "planted triples";
    network.cardinalities.assign(n, 2);
    for (Index k = 0; k < n; ++k) {
      network.add_factor(std::array{k}, std::array{std::exp(-field * planted[k]), std::exp(field * planted[k])});
      for (Index j = 0; j < k; ++j) {
        for (Index i = 0; i < j; ++i) {
          std::vector<double> table;
          for (Index x = 0; x < 8; ++x) {
            const int ups = std::popcount(x);
            table.push_back(std::exp((ups % 2 == 1 ? scale : -scale) * planted[i] * planted[j] * planted[k]));
          }
          network.add_factor(std::array{i, j, k}, table);
        }
      }
    }
    made.model = network_model(std::make_shared<const Network>(std::move(network)));
  } else {
    IsingModel ising;
    ising.variables = n;
    ising.name = "planted pairs";
    for (Index j = 0; j < n; ++j) {
      ising.field.push_back(field * planted[j]);
      for (Index i = 0; i < j; ++i) ising.edges.push_back({i, j, scale * planted[i] * planted[j]});
    }
    made.model = ising_model(std::move(ising));
  }
  // m is the sum of spins relative to the planted state; sums over pairs and triples are polynomials in it.
  std::vector<double> logs;
  std::vector<double> log_p;
  std::vector<double> overlaps;
  const double size = n;
  for (Index ups = 0; ups <= n; ++ups) {
    const double m = 2.0 * ups - size;
    const double sum = triples ? (m * m * m - (3.0 * size - 2.0) * m) / 6.0 : (m * m - size) / 2.0;
    log_p.push_back(scale * sum + field * m);
    logs.push_back(log_p.back() + std::lgamma(size + 1) - std::lgamma(ups + 1.0) - std::lgamma(size - ups + 1.0));
    overlaps.push_back(m / size);
  }
  const double log_z = log_sum(logs);
  double overlap = 0.0;
  double mean = 0.0;
  double square = 0.0;
  for (Index k = 0; k <= n; ++k) {
    const double p = std::exp(logs[k] - log_z);
    overlap += p * overlaps[k];
    mean += p * log_p[k];
    square += p * log_p[k] * log_p[k];
  }
  std::vector<double> means = planted;
  for (double& one : means) one *= overlap;
  made.known.marginals = of_means(means);
  made.known.mean_log_prob = mean;
  made.known.sd_log_prob = std::sqrt(std::max(0.0, square - mean * mean));
  made.recipe = fmt::format("{} of {} spins, strength {}, field {}", triples ? "triples" : "pairs", n, strength, field);
  return made;
}

/// Many small networks with zeros as one, beside each other.
LargeModel archipelago(Dice& dice) {
  const Folder nowhere{std::filesystem::temp_directory_path(), fmt::format("poise-laws-{}", dice.seed())};
  Network all;
  all.name = "archipelago";
  std::vector<double> marginals;
  for (Index part = dice.pick<Index>({5, 15}); part > 0; --part) {
    const SmallModel small = dice.chance(0.5) ? islands(dice, nowhere) : zeros(dice, nowhere);
    const Truth truth = enumerate(small);
    const Index first = all.num_variables();
    const Network& network = *small.network;
    all.cardinalities.insert(all.cardinalities.end(), network.cardinalities.begin(), network.cardinalities.end());
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      std::vector<Index> scope(network.scope(f).begin(), network.scope(f).end());
      for (Index& i : scope) i += first;
      all.add_factor(scope, network.table(f));
    }
    marginals.insert(marginals.end(), truth.known.marginals.values.begin(), truth.known.marginals.values.end());
    std::filesystem::remove(small.text);
  }
  LargeModel made;
  made.known.marginals = Marginals(all.cardinalities);
  made.known.marginals.values = std::move(marginals);
  made.recipe = fmt::format("{} variables with zeros in {} tables", all.num_variables(), all.num_factors());
  made.model = network_model(std::make_shared<const Network>(std::move(all)));
  return made;
}

/// Two products of coins by user code, each on the side where the other is not. Every chain is in one of them, and all
/// may be in the same.
LargeModel mixture(Dice& dice) {
  const Index n = dice.pick<Index>({14, 24});
  const double weight = dice.pick({0.3, 0.5});
  const double field = dice.pick({0.3, 0.8, 1.3});
  const std::vector<double> sides = draw_signs(dice, n);
  SmallModel hidden;
  hidden.cardinalities.assign(n, 2);
  hidden.log_prob = [=](std::span<const Value> x) {
    double sum = 0.0;
    for (Index i = 0; i < n; ++i) sum += x[i] == 1 ? sides[i] : -sides[i];
    return log_sum(std::array{std::log(weight) + field * sum, std::log(1.0 - weight) - field * sum});
  };
  LargeModel made;
  made.model = hidden_in_user_code(hidden);
  std::vector<double> means = sides;
  for (double& one : means) one *= (2.0 * weight - 1.0) * std::tanh(field);
  made.known.marginals = of_means(means);
  made.recipe = fmt::format("{} coins, weight {}, field {}", n, weight, field);
  return made;
}

/// All triples by user code, beside the first-order transition: the disordered phase, where random states lead, is one
/// of two. log p depends on the overlap with a planted state alone.
LargeModel first_order(Dice& dice) {
  const Index n = dice.pick<Index>({30, 60});
  const double wanted = dice.pick({0.3, 0.6, 0.95});
  const bool has_gradient = dice.chance(0.5);
  const std::vector<double> planted = draw_signs(dice, n);
  const double size = n;
  const auto mean_of = [=](double strength) {
    std::vector<double> logs;
    for (Index ups = 0; ups <= n; ++ups) {
      const double m = 2.0 * ups - size;
      logs.push_back(strength * m * m * m / (size * size) - std::lgamma(ups + 1.0) - std::lgamma(size - ups + 1.0));
    }
    const double log_z = log_sum(logs);
    double mean = 0.0;
    for (Index ups = 0; ups <= n; ++ups) mean += std::exp(logs[ups] - log_z) * (2.0 * ups - size) / size;
    return mean;
  };
  double low = 0.1;
  double high = 5.0;
  for (int k = 0; k < 40; ++k) {
    const double middle = 0.5 * (low + high);
    (mean_of(middle) < wanted ? low : high) = middle;
  }
  LargeModel made;
  made.model = planted_user_triples(planted, low, has_gradient);
  std::vector<double> means = planted;
  for (double& one : means) one *= mean_of(low);
  made.known.marginals = of_means(means);
  made.recipe = fmt::format("{} spins, overlap {}{}", n, wanted, has_gradient ? ", with a gradient" : "");
  return made;
}

struct LargeKind {
  const char* name;
  LargeModel (*make)(Dice& dice);
};
constexpr std::array<LargeKind, 6> kLargeKinds = {{{"large lattice", square_lattice},
                                                   {"planted tree", planted_tree},
                                                   {"planted overlap", planted_overlap},
                                                   {"archipelago", archipelago},
                                                   {"mixture", mixture},
                                                   {"first order", first_order}}};

}  // namespace

double kaufman_log_partition(Index rows, Index columns, double coupling) {
  // Z = (2 sinh 2K)^(nm/2) / 2 times the sum of four products over r = 0 .. n-1 of 2 cosh or 2 sinh of m gamma_k / 2,
  // with k = 2r + 1 in two of them and k = 2r in the others. cosh gamma_k = cosh 2K coth 2K - cos(pi k / n), all
  // positive but gamma_0 = 2K + log tanh K, which changes its sign at the critical point.
  const double n = rows;
  const double m = columns;
  const auto gamma = [&](Index k) {
    if (k == 0) return 2.0 * coupling + std::log(std::tanh(coupling));
    return std::acosh(std::cosh(2.0 * coupling) / std::tanh(2.0 * coupling) - std::cos(std::numbers::pi * k / n));
  };
  struct Product {
    Index odd;
    double sign;  // +1: cosh, -1: sinh
  };
  std::vector<double> logs;
  std::vector<double> signs;
  for (const Product product : {Product{1, 1.0}, Product{1, -1.0}, Product{0, 1.0}, Product{0, -1.0}}) {
    double log = 0.0;
    double sign = 1.0;
    for (Index r = 0; r < rows; ++r) {
      const double half = 0.5 * m * gamma(2 * r + product.odd);
      log += std::abs(half) + std::log1p(product.sign * std::exp(-2.0 * std::abs(half)));
      if (half < 0.0 && product.sign < 0.0) sign = -sign;
    }
    logs.push_back(log);
    signs.push_back(sign);
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (std::size_t k = 0; k < logs.size(); ++k) sum += signs[k] * std::exp(logs[k] - largest);
  return 0.5 * n * m * std::log(2.0 * std::sinh(2.0 * coupling)) + largest + std::log(sum) - std::log(2.0);
}

LargeModel make_large_model(std::uint64_t seed, std::uint64_t number) {
  const LargeKind& kind = kLargeKinds[number % kLargeKinds.size()];
  Dice dice(seed, (std::uint64_t{1} << 40) + number);
  LargeModel made = kind.make(dice);
  made.kind = kind.name;
  return made;
}

}  // namespace poise::laws
