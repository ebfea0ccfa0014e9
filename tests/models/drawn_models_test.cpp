/// Models whose parameters are drawn: they have the density that they say, and refuse what makes none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/ising/ising_model.hpp"
#include "models/network/potts.hpp"
#include "support/conformance.hpp"
#include "support/input.hpp"

namespace poise::drawn_models_test {

using namespace poise::testing;

GraphIsing target_of(const IsingModel& model) { return {model.field, model.edges}; }

/// log p of hidden levels and what is seen, as the model is defined: chain by chain, and by the noise.
double log_density(const HiddenMarkov& model, const Levels& x) {
  double sum = 0.0;
  for (Index t = 0; t < model.length; ++t) {
    double mean = model.offset;
    for (Index k = 0; k < model.chains; ++k) {
      const Value level = x[t * model.chains + k];
      mean += model.weights[k] * level;
      if (t == 0) {
        sum += std::log(level == 1 ? model.start : 1.0 - model.start);
      } else {
        sum += std::log(level == x[(t - 1) * model.chains + k] ? model.stay : 1.0 - model.stay);
      }
    }
    sum -= std::pow((model.seen[t] - mean) / model.sigma, 2) / 2.0;
  }
  return sum;
}

TEST(Fhmm, HasTheDensityOfItsDefinition) {
  for (const char* text : {"fhmm:length=3,chains=3", "fhmm:length=9,chains=1,start=0.7,stay=0.3,sigma=0.5,seed=7",
                           "fhmm:length=1,chains=8,sigma=1"}) {
    const Spec spec = parse_spec(text);
    const HiddenMarkov definition = draw_fhmm(spec);
    const GraphIsing target = target_of(make_fhmm(spec));
    const std::vector<Levels> states = all_states(target);
    const double first = target.log_prob(target.make_state(states[0])) - log_density(definition, states[0]);
    for (const Levels& x : states) {
      const auto state = target.make_state(x);
      EXPECT_NEAR(target.log_prob(state) - log_density(definition, x), first, 1e-12) << text;
      for (Index i = 0; i < target.num_variables(); ++i) {
        Levels flipped = x;
        flipped[i] = static_cast<Value>(1 - flipped[i]);
        EXPECT_NEAR(target.log_ratio(state, target.move_at(state, i)),
                    log_density(definition, flipped) - log_density(definition, x), 1e-12)
            << text;
      }
    }
  }
}

TEST(Fhmm, Conforms) { expect_conforms(target_of(make_fhmm(parse_spec("fhmm:length=5,chains=9"))), 500); }

TEST(Fhmm, IsDrawnByItsLaw) {
  const HiddenMarkov model = draw_fhmm(parse_spec("fhmm:length=20000,chains=20,start=0.5,stay=0.9,sigma=2,seed=3"));
  std::size_t stays = 0;
  double squares = 0.0;
  for (Index t = 0; t < model.length; ++t) {
    double rest = model.seen[t] - model.offset;
    for (Index k = 0; k < model.chains; ++k) {
      const auto level = model.truth[t * model.chains + k];
      if (level > 0) rest -= model.weights[k];
      if (t > 0 && level == model.truth[(t - 1) * model.chains + k]) ++stays;
    }
    squares += rest * rest;
  }
  // Six standard errors of a frequency and of a sample variance.
  const double transitions = (model.length - 1.0) * model.chains;
  EXPECT_NEAR(static_cast<double>(stays) / transitions, 0.9, 6.0 * std::sqrt(0.09 / transitions));
  EXPECT_NEAR(squares / model.length, 4.0, 6.0 * 4.0 * std::sqrt(2.0 / model.length));
}

TEST(Fhmm, NameAndSeedGiveTheSameModelAgain) {
  const IsingModel model = make_fhmm(parse_spec("fhmm:length=4,chains=3"));
  EXPECT_EQ(model.name, "fhmm:length=4,chains=3,start=0.1,stay=0.8,sigma=2,seed=1");
  EXPECT_EQ(make_fhmm(parse_spec(model.name)).field, model.field);
  EXPECT_NE(make_fhmm(parse_spec("fhmm:length=4,chains=3,seed=2")).field, model.field);
  EXPECT_EQ(make_model("fhmm").layout.variables, 10'000U);
}

TEST(Fhmm, RefusesWhatMakesNoModel) {
  const auto refused = [](const char* text) { return refusal([&] { make_fhmm(parse_spec(text)); }); };
  for (const char* text : {"fhmm:length=0", "fhmm:chains=0", "fhmm:start=0", "fhmm:start=1", "fhmm:stay=1.5",
                           "fhmm:sigma=0", "fhmm:seed=-1"}) {
    EXPECT_TRUE(holds(refused(text), "in model 'fhmm': found")) << refused(text);
  }
  EXPECT_TRUE(holds(refused("fhmm:lenght=3"), "length")) << refused("fhmm:lenght=3");
  EXPECT_TRUE(holds(refused("fhmm:length=1000000,chains=100"), "pairs")) << refused("fhmm:length=1000000,chains=100");
}

TEST(Fhmm, SmallOnesAreSolvedExactly) {
  const Network network = make_network("fhmm:length=3,chains=3");
  EXPECT_EQ(network.num_variables(), 9U);
  EXPECT_EQ(network.num_factors(), 9U + 3 * 3 + 2 * 3);
}

TEST(Bernoulli, LogOddsAreNormal) {
  const IsingModel model = make_bernoulli(parse_spec("bernoulli:size=100000,mu=1,sigma=0.5"));
  const GraphIsing target = target_of(model);
  const auto state = target.make_state(Levels(model.variables, 0));
  double sum = 0.0;
  double squares = 0.0;
  for (Index i = 0; i < model.variables; ++i) {
    const double odds = target.log_ratio(state, target.move_at(state, i));
    sum += odds;
    squares += (odds - 1.0) * (odds - 1.0);
  }
  const double count = model.variables;
  EXPECT_NEAR(sum / count, 1.0, 6.0 * 0.5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 0.25, 6.0 * 0.25 * std::sqrt(2.0 / count));
  EXPECT_EQ(make_bernoulli(parse_spec(model.name)).field, model.field);
  EXPECT_EQ(make_model("bernoulli").name, "bernoulli:size=10000,mu=0,sigma=0.5,seed=1");
}

TEST(Bernoulli, RefusesWhatMakesNoModel) {
  const auto refused = [](const char* text) { return refusal([&] { make_bernoulli(parse_spec(text)); }); };
  for (const char* text : {"bernoulli:size=0", "bernoulli:size=1e9", "bernoulli:sigma=-1", "bernoulli:seed=x"}) {
    EXPECT_TRUE(holds(refused(text), "in model 'bernoulli': found")) << refused(text);
  }
}

TEST(PottsFields, EveryLevelOfEverySiteHasItsOwn) {
  const Network plain = make_potts(parse_spec("potts:size=3,levels=4,coupling=0.5"));
  const Network drawn = make_potts(parse_spec("potts:size=3,levels=4,coupling=0.5,field=1,sigma=1.5,seed=2"));
  ASSERT_EQ(drawn.num_factors(), plain.num_factors() + 9);
  std::vector<double> fields;
  for (std::size_t f = 0; f < drawn.num_factors(); ++f) {
    if (drawn.scope(f).size() != 1) continue;
    ASSERT_EQ(drawn.table_size(f), 4U);
    for (std::size_t level = 0; level < 4; ++level) {
      fields.push_back(std::log(drawn.table(f)[level]) - (level == 0 ? 1.0 : 0.0));
      EXPECT_LE(std::abs(fields.back()), 1.5);
    }
  }
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(std::adjacent_find(fields.begin(), fields.end()), fields.end());
  EXPECT_LT(fields.front(), -0.9);
  EXPECT_GT(fields.back(), 0.9);
  EXPECT_EQ(drawn.name, "potts:size=3x3,levels=4,coupling=0.5,field=1,boundary=torus,sigma=1.5,seed=2");
  EXPECT_EQ(make_potts(parse_spec(drawn.name)).values, drawn.values);
}

TEST(PottsFields, RefusesWhatMakesNoModel) {
  const auto refused = [](const char* text) {
    return refusal([&] { static_cast<void>(make_potts(parse_spec(text))); });
  };
  EXPECT_TRUE(holds(refused("potts:seed=2"), "does not go with sigma=0"));
  EXPECT_TRUE(holds(refused("potts:sigma=-1"), "key 'sigma'"));
  EXPECT_TRUE(holds(refused("potts:field=200,sigma=200"), "fields of up to 400"));
  EXPECT_TRUE(holds(refused("potts:size=4096,levels=128,sigma=1"), "key 'sigma'"));
}

TEST(IsingDisc, IsHalfOfTheSquare) {
  const IsingModel model = make_ising(parse_spec("ising:size=50,mu=0.5,sigma=1.5,image=disc,boundary=open"));
  const auto inside = std::count(model.truth.begin(), model.truth.end(), 1);
  EXPECT_NEAR(static_cast<double>(inside) / 2500.0, 0.5, 0.01);
  EXPECT_GT(model.truth[25 * 50 + 25], 0);
  EXPECT_LT(model.truth[0], 0);
  EXPECT_TRUE(holds(model.name, "image=disc"));
}

}  // namespace poise::drawn_models_test
