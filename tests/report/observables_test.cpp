/// Observables of spin models against enumeration, and error bars that cover.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <poise/report.hpp>
#include <poise/run.hpp>

namespace poise::observables_test {

std::map<std::string, Observable> observables(const Report& report) {
  std::map<std::string, Observable> out;
  for (const Observable& one : report.observables) out.emplace(one.name, one);
  return out;
}

/// All states of spins on a torus, with their weights: the truth by the definitions.
std::map<std::string, double> truth(Index side, double coupling) {
  const unsigned sites = side * side;
  double z = 0, e = 0, e2 = 0, m1 = 0, m2 = 0, m4 = 0;
  for (unsigned state = 0; state < 1U << sites; ++state) {
    const auto spin = [&](Index r, Index c) { return (state >> (r % side * side + c % side) & 1U) != 0 ? 1.0 : -1.0; };
    double energy = 0, sum = 0;
    for (Index r = 0; r < side; ++r) {
      for (Index c = 0; c < side; ++c) {
        energy -= spin(r, c) * (spin(r + 1, c) + spin(r, c + 1));
        sum += spin(r, c);
      }
    }
    const double weight = std::exp(-coupling * energy), m = std::abs(sum) / sites;
    z += weight;
    e += weight * energy;
    e2 += weight * energy * energy;
    m1 += weight * m;
    m2 += weight * m * m;
    m4 += weight * m * m * m * m;
  }
  e /= z, e2 /= z, m1 /= z, m2 /= z, m4 /= z;
  return {{"energy", e / sites},
          {"abs_m", m1},
          {"m2", m2},
          {"m4", m4},
          {"specific_heat", coupling * coupling * (e2 - e * e) / sites},
          {"susceptibility", sites * (m2 - m1 * m1)},
          {"binder", 1 - m4 / (3 * m2 * m2)}};
}

/// Many short runs with fixed seeds: values are within errors of the truth as often as normal ones are.
TEST(Observables, AreThoseOfEnumerationAndErrorsCover) {
  const auto exact = truth(4, 0.35);
  constexpr int kRuns = 400;
  std::map<std::string, int> covered;
  std::map<std::string, double> bias;
  for (int seed = 1; seed <= kRuns; ++seed) {
    RunOptions options;
    options.warmup = 50;
    options.draws = 400;
    options.seed = static_cast<std::uint64_t>(seed);
    options.threads = 1;
    options.keep = Keep::monitors;
    const auto found =
        observables(make_report(run(make_model("ising:size=4,lambda=0.35"), parse_sampler("gibbs"), options)));
    ASSERT_EQ(found.size(), exact.size());
    for (const auto& [name, value] : exact) {
      const Observable& one = found.at(name);
      covered[name] += std::abs(one.value - value) < one.error ? 1 : 0;
      bias[name] += (one.value - value) / one.error / kRuns;
      EXPECT_LT(std::abs(one.value - value), 6 * one.error) << name << " of seed " << seed;
      EXPECT_GT(one.tau, 0.3) << name;
    }
  }
  for (const auto& [name, count] : covered) {
    // Six standard errors of a fraction of 400 runs; a cumulant of few draws is biased by a part of its error.
    EXPECT_NEAR(static_cast<double>(count) / kRuns, 0.6827, 6 * std::sqrt(0.6827 * 0.3173 / kRuns)) << name;
    EXPECT_LT(std::abs(bias[name]), 0.6) << name;
  }
}

TEST(Observables, AreCountedAsUsersDo) {
  const auto of = [](const std::string& model, const std::string& sampler) {
    RunOptions options;
    options.warmup = 100;
    options.draws = 400;
    return observables(make_report(run(make_model(model), parse_sampler(sampler), options)));
  };
  // Ordered, and its energy is that of satisfied edges, in units of the coupling, whatever its sign and the lattice.
  EXPECT_NEAR(of("ising:size=6,lambda=2", "wolff").at("energy").value, -2.0, 0.02);
  EXPECT_NEAR(of("ising:size=6,lambda=-2", "gibbs").at("energy").value, -2.0, 0.4);
  EXPECT_NEAR(of("potts:size=6,levels=3,coupling=4", "wolff").at("energy").value, -2.0, 0.02);
  EXPECT_NEAR(of("potts:size=6,levels=3,coupling=4", "wolff").at("abs_m").value, 1.0, 0.02);
  // With a field the energy is -log p.
  EXPECT_NEAR(of("potts:size=6,levels=3,coupling=1,field=9", "gibbs").at("energy").value, -11.0, 0.1);
  EXPECT_TRUE(of("ising:size=6,lambda=1,mu=1,sigma=1", "gibbs").empty()) << "a posterior is no spin model";
  EXPECT_TRUE(of("fhmm:length=5,chains=3", "gibbs").empty());
  EXPECT_TRUE(of("bernoulli:size=5", "gibbs").empty());
}

TEST(Observables, AreChosenByName) {
  Report report;
  report.observables = {{"energy", 1, 0.1, 1}, {"m2", 2, 0.1, 1}, {"binder", 3, 0.1, 1}};
  Report some = report;
  keep_observables(some, "binder,energy");
  ASSERT_EQ(some.observables.size(), 2U);
  EXPECT_EQ(some.observables[0].name, "binder");
  keep_observables(some, "none");
  EXPECT_TRUE(some.observables.empty());
  keep_observables(report, "all");
  EXPECT_EQ(report.observables.size(), 3U);
  EXPECT_THROW(keep_observables(report, "energie"), InputError);
  EXPECT_THROW(keep_observables(report, ""), InputError);
}

}  // namespace poise::observables_test
