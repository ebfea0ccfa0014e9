/// Models of spins: lattices, graphs, glasses, max-cut, QUBO, independent variables, hidden Markov models.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "laws/kinds.hpp"
#include "models/ising/ising_model.hpp"

namespace poise::laws {

namespace {

/// Numbers as text that reads back as the same ones.
std::string number(double value) { return fmt::format("{:.17g}", value); }

/// What all kinds have in common once their numbers are known.
SmallModel finish(SmallModel made, Spins spins) {
  made.model = make_model(made.text, made.files);
  made.cardinalities.assign(spins.field.size(), 2);
  made.log_prob = [spins](std::span<const Value> x) { return spins.log_prob(x); };
  made.spins = std::move(spins);
  if (has_network(made.text)) {
    made.network = std::make_shared<const Network>(make_network(made.text, made.files));
  }
  return made;
}

/// None, the same everywhere, or one for each variable.
std::vector<double> draw_field(Dice& dice, Index variables) {
  std::vector<double> field(variables, 0.0);
  const Index form = dice.below(4);
  const double scale = dice.pick({0.01, 0.2, 0.7, 1.5});
  for (double& value : field) value = form < 2 ? 0.0 : form == 2 ? scale : scale * dice.normal();
  return field;
}

bool has_field(const Spins& spins) {
  for (const double value : spins.field) {
    if (value != 0.0) return true;
  }
  return false;
}

/// A file of couplings, and one of fields where there are any.
SmallModel as_graph(const Spins& spins, const Folder& folder) {
  SmallModel made;
  std::string edges = fmt::format("{} {}\n", spins.field.size(), spins.couplings.size());
  for (const Spins::Coupling& one : spins.couplings) {
    edges += fmt::format("{} {} {}\n", one.i + 1, one.j + 1, number(one.value));
  }
  made.text = "ising:graph=" + folder.write(".graph", edges);
  if (has_field(spins)) {
    std::string fields;
    for (const double value : spins.field) fields += number(value) + "\n";
    made.files.field = folder.write(".field", fields);
  }
  made.recipe = fmt::format("{} spins, {} couplings", spins.field.size(), spins.couplings.size());
  return finish(std::move(made), spins);
}

/// A random connected graph: every variable after the first has an edge to one before it, others are there by chance.
template <class Value>
void draw_edges(Dice& dice, Spins& spins, double density, Value&& value) {
  const auto n = static_cast<Index>(spins.field.size());
  for (Index j = 1; j < n; ++j) {
    const Index parent = dice.below(j);
    for (Index i = 0; i < j; ++i) {
      if (i == parent || dice.chance(density)) spins.couplings.push_back({i, j, value()});
    }
  }
}

SmallModel lattice_with(Dice& dice, const Folder& folder, double sign) {
  struct Size {
    Index rows, columns;
  };
  const Size size = dice.pick<Size>({{1, 6}, {2, 2}, {2, 4}, {3, 3}, {3, 4}, {2, 5}, {1, 10}, {4, 3}});
  const bool torus = dice.chance(0.6);
  const double coupling = sign * dice.strength();
  Spins spins;
  spins.field = draw_field(dice, size.rows * size.columns);
  // Each site with the next one in its row and its column; on a torus of two sites that is the same pair twice.
  const auto join = [&](Index r, Index c, Index to_r, Index to_c) {
    const bool wraps = to_r == size.rows || to_c == size.columns;
    const Index i = r * size.columns + c;
    const Index j = to_r % size.rows * size.columns + to_c % size.columns;
    if (i != j && (torus || !wraps)) spins.couplings.push_back({i, j, coupling});
  };
  for (Index r = 0; r < size.rows; ++r) {
    for (Index c = 0; c < size.columns; ++c) {
      join(r, c, r, c + 1);
      join(r, c, r + 1, c);
    }
  }
  SmallModel made;
  made.text = fmt::format("ising:lambda={},boundary={}", coupling, torus ? "torus" : "open");
  if (has_field(spins)) {
    std::string rows;
    for (Index i = 0; i < spins.field.size(); ++i) {
      rows += number(spins.field[i]) + ((i + 1) % size.columns == 0 ? "\n" : " ");
    }
    made.files.field = folder.write(".field", rows);
  } else {
    made.text += fmt::format(",size={}x{}", size.rows, size.columns);
  }
  made.recipe = fmt::format("{}x{} {}, coupling {}{}", size.rows, size.columns, torus ? "torus" : "open", coupling,
                            has_field(spins) ? ", field" : "");
  return finish(std::move(made), std::move(spins));
}

}  // namespace

SmallModel lattice(Dice& dice, const Folder& folder) { return lattice_with(dice, folder, 1.0); }
SmallModel antiferromagnet(Dice& dice, const Folder& folder) { return lattice_with(dice, folder, -1.0); }

SmallModel graph(Dice& dice, const Folder& folder) {
  Spins spins;
  spins.field = draw_field(dice, dice.between(2, 11));
  const double strength = dice.strength();
  draw_edges(dice, spins, dice.pick({0.0, 0.2, 0.6}), [&] { return strength; });
  return as_graph(spins, folder);
}

SmallModel spin_glass(Dice& dice, const Folder& folder) {
  Spins spins;
  spins.field = draw_field(dice, dice.between(4, 11));
  const double strength = dice.strength();
  const bool signs = dice.chance(0.5);
  draw_edges(dice, spins, dice.pick({0.2, 0.5, 1.0}), [&] {
    return signs ? dice.pick({-strength, strength}) : strength * dice.normal();
  });
  return as_graph(spins, folder);
}

SmallModel maxcut(Dice& dice, const Folder& folder) {
  // An edge of weight w adds beta w (1 - x_i x_j) / 2 to log p.
  const double beta = dice.pick({0.02, 0.5, 1.0, 2.0, 6.0});
  Spins spins;
  spins.field.assign(dice.between(2, 11), 0.0);
  draw_edges(dice, spins, dice.pick({0.1, 0.4, 1.0}), [&] { return dice.chance(0.7) ? 1.0 : dice.normal(); });
  std::string edges = fmt::format("{} {}\n", spins.field.size(), spins.couplings.size());
  for (Spins::Coupling& one : spins.couplings) {
    edges += fmt::format("{} {} {}\n", one.i + 1, one.j + 1, number(one.value));
    spins.constant += 0.5 * beta * one.value;
    one.value *= -0.5 * beta;
  }
  SmallModel made;
  made.text = fmt::format("maxcut:file={},beta={}", folder.write(".mc", edges), beta);
  made.recipe = fmt::format("{} vertices, {} edges, beta {}", spins.field.size(), spins.couplings.size(), beta);
  return finish(std::move(made), std::move(spins));
}

SmallModel qubo(Dice& dice, const Folder& folder) {
  const double beta = dice.pick({0.02, 0.5, 1.0, 3.0});
  const bool binary = dice.chance(0.6);
  const bool maximises = dice.chance(0.4);
  const Index n = dice.between(2, 10);
  const double density = dice.pick({0.2, 0.6, 1.0});
  const double scale = maximises ? beta : -beta;
  Spins spins;
  spins.field.assign(n, 0.0);
  std::string text = fmt::format("# vartype={}\n", binary ? "BINARY" : "SPIN");
  for (Index i = 0; i < n; ++i) {
    for (Index j = i; j < n; ++j) {
      if (i != j && !dice.chance(density)) continue;
      const double q = dice.normal();
      text += fmt::format("{} {} {}\n", i, j, number(q));
      // Zeros and ones are (1 + s) / 2, so that a product is (1 + s_i + s_j + s_i s_j) / 4.
      if (i == j) {
        spins.field[i] += scale * q * (binary ? 0.5 : 1.0);
        spins.constant += binary ? 0.5 * scale * q : 0.0;
      } else if (binary) {
        spins.constant += 0.25 * scale * q;
        spins.field[i] += 0.25 * scale * q;
        spins.field[j] += 0.25 * scale * q;
        spins.couplings.push_back({i, j, 0.25 * scale * q});
      } else {
        spins.couplings.push_back({i, j, scale * q});
      }
    }
  }
  SmallModel made;
  made.text =
      fmt::format("qubo:file={},beta={},sense={}", folder.write(".qubo", text), beta, maximises ? "max" : "min");
  made.recipe =
      fmt::format("{} {} variables, beta {}, {}", n, binary ? "binary" : "spin", beta, maximises ? "max" : "min");
  return finish(std::move(made), std::move(spins));
}

SmallModel bernoulli(Dice& dice, const Folder& /*folder*/) {
  SmallModel made;
  made.text = fmt::format("bernoulli:size={},mu={},sigma={},seed={}", dice.between(2, 11), dice.pick({0.0, 0.5, -2.0}),
                          dice.pick({0.0, 0.01, 0.5, 2.0}), dice.seed());
  made.recipe = made.text;
  Spins spins;
  spins.field = make_bernoulli(parse_spec(made.text)).field;  // drawn by the library; what they mean is ours
  return finish(std::move(made), std::move(spins));
}

SmallModel hidden_markov(Dice& dice, const Folder& /*folder*/) {
  SmallModel made;
  made.text =
      fmt::format("fhmm:length={},chains={},start={},stay={},sigma={},seed={}", dice.between(1, 4), dice.between(2, 3),
                  dice.pick({0.1, 0.5}), dice.pick({0.5, 0.8, 0.95}), dice.pick({0.4, 1.0, 2.0, 10.0}), dice.seed());
  made.recipe = made.text;
  const HiddenMarkov drawn = draw_fhmm(parse_spec(made.text));
  made.model = make_model(made.text);
  made.network = std::make_shared<const Network>(make_network(made.text));
  made.cardinalities.assign(std::size_t{drawn.length} * drawn.chains, 2);
  made.has_constant = false;  // what does not depend on hidden levels is left out
  made.log_prob = [drawn](std::span<const Value> x) {
    double sum = 0.0;
    for (Index t = 0; t < drawn.length; ++t) {
      double mean = drawn.offset;
      for (Index k = 0; k < drawn.chains; ++k) {
        const Value now = x[t * drawn.chains + k];
        mean += drawn.weights[k] * now;
        const double on = t == 0 ? drawn.start : x[(t - 1) * drawn.chains + k] == 1 ? drawn.stay : 1.0 - drawn.stay;
        sum += std::log(now == 1 ? on : 1.0 - on);
      }
      sum -= 0.5 * std::pow((drawn.seen[t] - mean) / drawn.sigma, 2);
    }
    return sum;
  };
  return made;
}

}  // namespace poise::laws
