/// Max-cut and quadratic functions of binary variables: files, and the Ising models they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/model.hpp>
#include <poise/run.hpp>
#include "models/ising/ising_model.hpp"
#include "support/input.hpp"

namespace poise::objective_input_test {

using testing::refusal;
using testing::TemporaryFile;

/// The two sums of log p(x), where bit i of `state` is 1 for a spin of +1.
double log_weight(const IsingModel& model, unsigned state) {
  const auto spin = [&](Index i) { return (state >> i & 1U) != 0 ? 1.0 : -1.0; };
  double sum = 0;
  for (Index i = 0; i < model.variables; ++i) sum += model.field[i] * spin(i);
  for (const Edge& edge : model.edges) sum += edge.coupling * spin(edge.i) * spin(edge.j);
  return sum;
}

/// That log p is `beta` times the objective, up to a constant, and that the objective is found from log p.
void expect_objective(const IsingModel& model, double beta, const std::function<double(unsigned)>& objective) {
  const double shift = log_weight(model, 0) - beta * objective(0);
  for (unsigned state = 0; state < 1U << model.variables; ++state) {
    const double weight = log_weight(model, state);
    EXPECT_NEAR(weight - beta * objective(state), shift, 1e-12);
    EXPECT_NEAR(model.objective_scale * weight + model.objective_constant, objective(state), 1e-12);
  }
}

double bit(unsigned state, Index i) { return state >> i & 1U; }

// ---- max-cut

TEST(MaxcutTest, LogProbabilityIsBetaTimesTheCut) {
  const TemporaryFile file("4 5 0\n1 2 1\n2 3 -2.5\n1 3\n3 4 0.75\n2 4 3\n");
  const IsingModel model = make_maxcut(parse_spec("maxcut:beta=0.5,file=" + file.path()));
  EXPECT_EQ(model.name, "maxcut:file=" + file.path() + ",beta=0.5");
  EXPECT_EQ(model.variables, 4U);
  EXPECT_FALSE(model.is_lattice());
  EXPECT_EQ(model.objective, "cut");
  EXPECT_EQ(model.field, std::vector<double>(4, 0.0));
  EXPECT_EQ(model.observed, model.field);
  expect_objective(model, 0.5, [](unsigned x) {
    const auto apart = [&](Index i, Index j) { return bit(x, i) != bit(x, j) ? 1.0 : 0.0; };
    return apart(0, 1) - 2.5 * apart(1, 2) + apart(0, 2) + 0.75 * apart(2, 3) + 3 * apart(1, 3);
  });
}

TEST(MaxcutTest, FirstLineMayHaveAThirdNumber) {
  EXPECT_EQ(parse_maxcut("2 1\n1 2\n", "g").edges[0].coupling, 1);
  EXPECT_EQ(parse_maxcut("2 1 0\n1 2 -3\n", "g").edges[0].coupling, -3);
  const auto reject = [](const std::string& content) { return refusal([&] { parse_maxcut(content, "g"); }); };
  EXPECT_EQ(reject("2 1 x\n1 2 -3\n"), "g, line 1: found 'x', expected a finite number");
  EXPECT_EQ(reject("2 1 0 0\n1 2 -3\n"), "g, line 1: found 4 words, expected a line 'variables edges'");
  EXPECT_EQ(reject("99999999 1 0\n1 2 1\n"),
            "g, line 1: found '99999999', expected a number of variables from 1 to 1000019, as a file may have a "
            "million more variables than bytes");
  EXPECT_EQ(reject("2 2\n1 2 1\n2 1 1\n"),
            "g, line 3: found the edge 2 1 of line 2 again, expected each edge once, in either direction");
}

TEST(MaxcutTest, RefusesSettingsThatMeanNothing) {
  const TemporaryFile file("2 1\n1 2 1e50\n");
  const auto reject = [](const std::string& spec) { return refusal([&] { make_maxcut(parse_spec(spec)); }); };
  EXPECT_EQ(reject("maxcut"), "no key 'file' in model 'maxcut', expected maxcut:file=FILE");
  EXPECT_EQ(reject("maxcut:sense=max,file=x"), "unknown key 'sense' in model 'maxcut' (known: file, beta, T)");
  EXPECT_EQ(reject("maxcut:beta=0,file=x"),
            "key 'beta' in model 'maxcut': found '0', expected a finite number from 1e-100 to 1e+100");
  EXPECT_EQ(reject("maxcut:file=no/such"), "no/such: cannot be opened, expected a file that can be read");
  EXPECT_EQ(reject("maxcut:beta=2e60,file=" + file.path()),
            file.path() +
                ": found a field or coupling of -1e+110 from its numbers and beta=2e+60, expected at most "
                "1e+100 in size");
}

// ---- QUBO

TEST(QuboTest, LogProbabilityIsBetaTimesTheEnergy) {
  const TemporaryFile file("0 0 -1\n0 1 1.5\n2 1 -4.5\n3 3 0.25\n");
  const auto energy = [](unsigned x) {
    return -bit(x, 0) + 1.5 * bit(x, 0) * bit(x, 1) - 4.5 * bit(x, 1) * bit(x, 2) + 0.25 * bit(x, 3);
  };
  const IsingModel model = make_qubo(parse_spec("qubo:file=" + file.path()));
  EXPECT_EQ(model.name, "qubo:file=" + file.path() + ",beta=1,sense=min");
  EXPECT_EQ(model.variables, 4U);
  EXPECT_EQ(model.objective, "energy");
  EXPECT_EQ(model.observed, model.field);
  expect_objective(model, -1, energy);
  expect_objective(make_qubo(parse_spec("qubo:sense=max,beta=2,file=" + file.path())), 2, energy);
}

TEST(QuboTest, SpinsAreLeftAsTheyAre) {
  const TemporaryFile file("# vartype=SPIN\n0 0 -1\n0 1 1.5\n");
  expect_objective(make_qubo(parse_spec("qubo:beta=3,file=" + file.path())), -3, [](unsigned x) {
    const double s = 2 * bit(x, 0) - 1;
    return -s + 1.5 * s * (2 * bit(x, 1) - 1);
  });
}

/// The function of a draw as it is given is the `energy` of that draw, for zeros and ones and for spins.
TEST(QuboTest, DrawsAreWhatTheFunctionTakes) {
  const std::string terms = "0 0 -1\n0 1 1.5\n2 1 -4.5\n3 3 0.25\n";
  for (const bool spins : {false, true}) {
    const TemporaryFile file((spins ? "# vartype=SPIN\n" : "") + terms);
    RunOptions options;
    options.chains = 2;
    options.warmup = 5;
    options.draws = 20;
    const RunResult result = run(make_model("qubo:file=" + file.path()), parse_sampler("gibbs"), options);
    const Trace& trace = result.trace;
    const auto which = std::find(trace.monitor_names.begin(), trace.monitor_names.end(), "energy");
    ASSERT_NE(which, trace.monitor_names.end());
    const std::vector<double>& energies = trace.monitors[which - trace.monitor_names.begin()];
    ASSERT_EQ(energies.size(), 40U);
    for (std::size_t draw = 0; draw < energies.size(); ++draw) {
      std::vector<std::int8_t> x(4);
      trace.x.unpack(draw, x);
      EXPECT_NEAR(-x[0] + 1.5 * x[0] * x[1] - 4.5 * x[1] * x[2] + 0.25 * x[3], energies[draw], 1e-12) << spins;
    }
  }
}

TEST(QuboTest, CoordinateListAddsUpWhatIsRepeated) {
  const Qubo qubo =
      parse_qubo("# a matrix, vartype: BINARY\n0 1 2 # more\n\n1,0,3\n2 2 1\n1 1 4\n1 1 0.5\n2 1 -1\n", "q");
  EXPECT_FALSE(qubo.spins);
  EXPECT_EQ(qubo.linear, (std::vector<double>{0, 4.5, 1}));
  ASSERT_EQ(qubo.quadratic.size(), 2U);
  EXPECT_EQ(qubo.quadratic[0].i, 0U);
  EXPECT_EQ(qubo.quadratic[0].j, 1U);
  EXPECT_EQ(qubo.quadratic[0].coupling, 5);
  EXPECT_EQ(qubo.quadratic[1].i, 1U);
  EXPECT_EQ(qubo.quadratic[1].j, 2U);
  EXPECT_EQ(qubo.quadratic[1].coupling, -1);
}

TEST(QuboTest, QbsolvFormHasAHeader) {
  const Qubo qubo =
      parse_qubo("c made by hand\np  qubo  0  5  2  1\nc nodes\n0 0 3.4\n3 3 -2\nc couplers\n0  3   2.2\n", "q");
  EXPECT_EQ(qubo.linear, (std::vector<double>{3.4, 0, 0, -2, 0}));
  ASSERT_EQ(qubo.quadratic.size(), 1U);
  EXPECT_EQ(qubo.quadratic[0].coupling, 2.2);
  EXPECT_EQ(parse_qubo("p qubo unconstrained 3 0 0\n", "q").linear.size(), 3U);
}

TEST(QuboTest, RefusesWithFileLineAndWord) {
  const auto reject = [](const std::string& content) { return refusal([&] { parse_qubo(content, "q"); }); };
  EXPECT_EQ(reject("# nothing\n"), "q: found no numbers, expected lines 'i j value'");
  EXPECT_EQ(reject("0 0 1\n3 2\n"), "q, line 2: found 2 words, expected 'i j value'");
  EXPECT_EQ(reject("0 0 x\n"), "q, line 1: found 'x', expected a finite number");
  EXPECT_EQ(reject("0 0 1e200\n"), "q, line 1: found '1e200', expected a number from -1e+100 to 1e+100");
  EXPECT_EQ(reject("-1 0 1\n"), "q, line 1: found '-1', expected the number of a variable, from 0 to 1000006");
  EXPECT_EQ(reject("0 4000000000 1\n"),
            "q, line 1: found '4000000000', expected the number of a variable, from 0 to 1000014, as a file may have a "
            "million more variables than bytes");
  EXPECT_EQ(reject("# vartype=REAL\n0 0 1\n"), "q, line 1: found vartype 'REAL', expected SPIN or BINARY");
  EXPECT_EQ(reject("# vartype=SPIN\n0 0 1\n# vartype=BINARY\n"),
            "q, line 3: found vartype 'BINARY', expected one for the whole file");
  EXPECT_EQ(reject("p qubo 0 4 4\n"),
            "q, line 1: found a line of 5 words that begins with 'p', expected 'p qubo topology variables diagonals "
            "couplers'");
  EXPECT_EQ(reject("p qubo 0 99999999 0 0\n"),
            "q, line 1: found '99999999', expected a number of variables from 1 to 1000022, as a file may have a "
            "million more variables than bytes");
  EXPECT_EQ(reject("p qubo 0 2 1 0\n2 2 1\n"), "q, line 2: found '2', expected the number of a variable, from 0 to 1");
  EXPECT_EQ(reject("c\np qubo 0 2 1 1\n1 1 1\n"),
            "q: found 1 diagonals and 0 couplers, expected 1 and 1 as line 2 declares");
  EXPECT_EQ(reject("p qubo 0 2 0 2\n0 1 1\n1 0 2\n"),
            "q, line 3: found the pair 0 1 of line 2 again, expected each pair once");
  EXPECT_EQ(
      refusal([] { make_qubo(parse_spec("qubo:sense=maximum,beta=-1")); }),
      "3 problems in model 'qubo':\n  - no key 'file' in model 'qubo', expected qubo:file=FILE\n  - key 'beta' in "
      "model 'qubo': found '-1', expected a finite number from 1e-100 to 1e+100\n  - key 'sense' in model 'qubo': "
      "found 'maximum', expected min or max");
}

}  // namespace poise::objective_input_test
