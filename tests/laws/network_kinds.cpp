/// Networks: Potts lattices, Markov and Bayesian networks, with and without zeros, islands and evidence.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "laws/kinds.hpp"

namespace poise::laws {

namespace {

/// In the form of UAI files, the numbers such that they read back as the same ones.
std::string uai_text(const Network& network, const char* type) {
  std::string out = fmt::format("{}\n{}\n", type, network.num_variables());
  for (const Index levels : network.cardinalities) out += fmt::format("{} ", levels);
  out += fmt::format("\n{}\n", network.num_factors());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    out += fmt::format("{}", network.scope(f).size());
    for (const Index i : network.scope(f)) out += fmt::format(" {}", i);
    out += "\n";
  }
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    out += fmt::format("{}\n", network.table_size(f));
    for (const double value : network.table(f)) out += fmt::format("{:.17g} ", value);
    out += "\n";
  }
  return out;
}

double log_product(const Network& network, std::span<const Value> x) {
  double sum = 0.0;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    std::size_t place = 0;
    for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
    sum += std::log(network.table(f)[place]);
  }
  return sum;
}

/// The model of a file with these tables, where some variables may be observed.
SmallModel finish(const Network& network, const Folder& folder, const char* type, const Evidence& seen = {}) {
  SmallModel made;
  made.text = folder.write(".uai", uai_text(network, type));
  if (!seen.empty()) {
    std::string text = fmt::format("{}", seen.size());
    for (const Observation& one : seen) text += fmt::format(" {} {}", one.variable, one.level);
    made.files.evidence = folder.write(".evid", text);
  }
  made.model = make_model(made.text, made.files);
  made.network = std::make_shared<const Network>(make_network(made.text, made.files));
  made.cardinalities = network.cardinalities;
  made.log_prob = [network, seen](std::span<const Value> x) {
    for (const Observation& one : seen) {
      if (x[one.variable] != one.level) return kMinusInfinity;
    }
    return log_product(network, x);
  };
  made.recipe = fmt::format("{} variables, {} factors{}", network.num_variables(), network.num_factors(),
                            seen.empty() ? "" : fmt::format(", {} observed", seen.size()));
  return made;
}

/// Variables of 2 to 5 levels, as many as fit.
Network draw_variables(Dice& dice, Index fewest, Index most) {
  Network network;
  network.name = "random";
  const Index wanted = dice.between(fewest, most);
  const bool binary = dice.chance(0.3);
  std::size_t states = 1;
  while (network.num_variables() < wanted) {
    const Index levels = binary ? 2 : dice.between(2, 5);
    if (states * levels > kMostStates) break;
    states *= levels;
    network.cardinalities.push_back(levels);
  }
  return network;
}

std::vector<Index> draw_scope(Dice& dice, Index variables, Index size) {
  std::vector<Index> all(variables);
  std::iota(all.begin(), all.end(), 0U);
  for (Index k = 0; k < size; ++k) std::swap(all[k], all[k + dice.below(variables - k)]);
  all.resize(size);
  return all;
}

struct TableOptions {
  double strength = 1.0;  ///< logs of entries lie between -strength and strength
  double zeros = 0.0;     ///< fraction of entries that are zero
};

/// A factor with random entries, positive at each of the states in `alive`.
void add_table(Dice& dice, Network& network, std::span<const Index> scope, const TableOptions& options,
               std::span<const std::vector<Value>> alive) {
  std::size_t size = 1;
  for (const Index i : scope) size *= network.cardinalities[i];
  std::vector<double> table(size);
  for (double& value : table) {
    value = std::exp(dice.uniform(-options.strength, options.strength));
    if (dice.chance(options.zeros)) value = 0.0;
  }
  for (const std::vector<Value>& x : alive) {
    std::size_t place = 0;
    for (const Index i : scope) place = place * network.cardinalities[i] + x[i];
    if (table[place] == 0.0) table[place] = 1.0;
  }
  network.add_factor(scope, table);
}

std::vector<Value> draw_state(Dice& dice, const Network& network) {
  std::vector<Value> x;
  for (const Index levels : network.cardinalities) x.push_back(static_cast<Value>(dice.below(levels)));
  return x;
}

/// Factors of single variables and pairs, and now and then of three.
Network draw_markov(Dice& dice, const TableOptions& options, std::span<const std::vector<Value>> alive,
                    Network network) {
  const Index n = network.num_variables();
  for (Index i = 0; i < n; ++i) {
    if (dice.chance(0.4)) add_table(dice, network, std::array{i}, {dice.pick({0.01, 0.5, 1.5}), 0.0}, alive);
  }
  for (Index j = 1; j < n; ++j) add_table(dice, network, std::array{dice.below(j), j}, options, alive);
  for (Index extra = dice.below(n + 1); extra > 0; --extra) {
    const Index size = std::min(n, dice.pick<Index>({2, 2, 3}));
    add_table(dice, network, draw_scope(dice, n, size), options, alive);
  }
  return network;
}

/// P(child | parents) in the order of scopes, the child last.
Network draw_bayes(Dice& dice, Network network) {
  const double sharpness = dice.pick({0.1, 0.7, 2.0, 4.0});
  const bool certain = dice.chance(0.3);
  for (Index child = 0; child < network.num_variables(); ++child) {
    std::vector<Index> scope = draw_scope(dice, child, std::min(child, dice.below(4)));
    scope.push_back(child);
    const Index levels = network.cardinalities[child];
    std::size_t rows = 1;
    for (const Index i : scope) rows *= network.cardinalities[i];
    rows /= levels;
    std::vector<double> table;
    for (std::size_t row = 0; row < rows; ++row) {
      const bool one_level = certain && dice.chance(0.4);
      const Index which = dice.below(levels);
      std::vector<double> p(levels);
      for (Index k = 0; k < levels; ++k)
        p[k] = one_level ? (k == which ? 1.0 : 0.0) : std::exp(sharpness * dice.normal());
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);
      for (const double value : p) table.push_back(value / sum);
    }
    network.add_factor(scope, table);
  }
  return network;
}

}  // namespace

SmallModel potts(Dice& dice, const Folder& /*folder*/) {
  const Index levels = dice.between(2, 5);
  struct Size {
    Index rows, columns;
  };
  const Size size = levels == 2   ? dice.pick<Size>({{3, 3}, {2, 4}, {1, 9}, {3, 4}})
                    : levels == 3 ? dice.pick<Size>({{2, 3}, {1, 6}, {2, 2}, {1, 7}})
                                  : dice.pick<Size>({{2, 2}, {1, 4}, {1, 5}});
  const bool torus = dice.chance(0.6);
  const double coupling = dice.strength() * (dice.chance(0.8) ? 1.0 : -1.0);
  const double field = dice.pick({0.0, 0.0, 0.3, -1.0});
  SmallModel made;
  made.text = fmt::format("potts:size={}x{},levels={},coupling={},field={},boundary={}", size.rows, size.columns,
                          levels, coupling, field, torus ? "torus" : "open");
  made.recipe = made.text;
  made.model = make_model(made.text);
  made.network = std::make_shared<const Network>(make_network(made.text));
  made.cardinalities.assign(std::size_t{size.rows} * size.columns, levels);
  made.log_prob = [=](std::span<const Value> x) {
    double sum = 0.0;
    for (Index r = 0; r < size.rows; ++r) {
      for (Index c = 0; c < size.columns; ++c) {
        const Value here = x[r * size.columns + c];
        if (here == 0) sum += field;
        const bool has_right = size.columns > 1 && (torus || c + 1 < size.columns);
        const bool has_below = size.rows > 1 && (torus || r + 1 < size.rows);
        if (has_right && here == x[r * size.columns + (c + 1) % size.columns]) sum += coupling;
        if (has_below && here == x[(r + 1) % size.rows * size.columns + c]) sum += coupling;
      }
    }
    return sum;
  };
  return made;
}

SmallModel markov(Dice& dice, const Folder& folder) {
  const Network variables = draw_variables(dice, 2, 9);
  return finish(draw_markov(dice, {dice.strength(), 0.0}, {}, variables), folder, "MARKOV");
}

SmallModel zeros(Dice& dice, const Folder& folder) {
  const Network variables = draw_variables(dice, 2, 8);
  const std::vector<std::vector<Value>> alive = {draw_state(dice, variables), draw_state(dice, variables)};
  return finish(draw_markov(dice, {dice.pick({0.3, 1.0, 2.0}), dice.pick({0.1, 0.3, 0.5})}, alive, variables), folder,
                "MARKOV");
}

/// Pairs and parities of which most entries are zero, so that single changes do not join all states.
SmallModel islands(Dice& dice, const Folder& folder) {
  Network network = draw_variables(dice, 2, 7);
  const Index n = network.num_variables();
  std::vector<std::vector<Value>> alive;
  for (Index k = dice.between(2, 4); k > 0; --k) alive.push_back(draw_state(dice, network));
  const double strength = dice.pick({0.3, 1.0, 2.0});
  for (Index j = 1; j < n; ++j) {
    const double emptiness = dice.pick({0.0, 0.6, 0.8, 0.9});
    const Index other = dice.below(j);
    add_table(dice, network, std::array{j, other}, {strength, emptiness}, alive);
  }
  if (n > 2 && dice.chance(0.4)) {
    // The levels add up to the same parity as in one of the states that are to stay.
    const std::vector<Index> scope = draw_scope(dice, n, 3);
    std::vector<double> table;
    Index wanted = 0;
    for (const Index i : scope) wanted += alive.front()[i];
    for (Index a = 0; a < network.cardinalities[scope[0]]; ++a) {
      for (Index b = 0; b < network.cardinalities[scope[1]]; ++b) {
        for (Index c = 0; c < network.cardinalities[scope[2]]; ++c) {
          table.push_back((a + b + c) % 2 == wanted % 2 ? 1.0 : 0.0);
        }
      }
    }
    network.add_factor(scope, table);
  }
  return finish(network, folder, "MARKOV");
}

SmallModel bayes(Dice& dice, const Folder& folder) {
  return finish(draw_bayes(dice, draw_variables(dice, 2, 9)), folder, "BAYES");
}

SmallModel evidence(Dice& dice, const Folder& folder) {
  const bool directed = dice.chance(0.5);
  const Network variables = draw_variables(dice, 4, 9);
  const Index n = variables.num_variables();
  const std::vector<std::vector<Value>> alive = {draw_state(dice, variables)};
  Network network = directed ? draw_bayes(dice, variables)
                             : draw_markov(dice, {dice.strength(), dice.pick({0.0, 0.0, 0.3})}, alive, variables);
  // What is seen has to be possible: a state of positive probability says what.
  std::vector<Value> x = alive.front();
  for (int attempt = 0; attempt < 1000 && log_product(network, x) == kMinusInfinity; ++attempt) {
    x = draw_state(dice, network);
  }
  const char* type = directed ? "BAYES" : "MARKOV";
  if (log_product(network, x) == kMinusInfinity) {
    network = draw_markov(dice, {1.0, 0.0}, {}, variables);
    type = "MARKOV";
  }
  Evidence seen;
  for (const Index i : draw_scope(dice, n, dice.between(1, n - 2))) seen.push_back({i, x[i]});
  return finish(network, folder, type, seen);
}

SmallModel high_order(Dice& dice, const Folder& folder) {
  Network network = draw_variables(dice, 4, 10);
  const Index n = network.num_variables();
  const std::vector<std::vector<Value>> alive = {draw_state(dice, network)};
  const TableOptions options{dice.pick({0.01, 0.3, 1.0, 2.0, 4.0}), dice.pick({0.0, 0.0, 0.2})};
  for (Index k = dice.between(1, n); k > 0; --k) {
    add_table(dice, network, draw_scope(dice, n, std::min(n, dice.between(3, 5))), options, alive);
  }
  return finish(network, folder, "MARKOV");
}

}  // namespace poise::laws
