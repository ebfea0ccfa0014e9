/// Parallel tempering around any sampler: product chains in full, laws of many ladders, log Z, identity, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/ladder.hpp>
#include <poise/network.hpp>
#include <poise/run.hpp>
#include "engines/common/tempering/heat.hpp"
#include "engines/rows.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "models/network/markov_network.hpp"
#include "models/rbm/rbm.hpp"
#include "models/selection/selection_target.hpp"
#include "models/user/batch_target.hpp"
#include "support/conformance.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/table_model.hpp"

namespace poise::temper_test {

using namespace poise::testing;

/// Four three-valued variables with a state that is impossible, computed by a callback; calls and rows are counted.
class Wheels final : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      const Value* x = rows.data() + r * n;
      out[r] = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const int apart = x[i] - x[(i + 1) % n];
        out[r] += 1.5 * std::cos(2.1 * apart) + 0.2 * x[i];
      }
      if (x[0] == 2 && x[1] == 0) out[r] = -std::numeric_limits<double>::infinity();
    }
    ++calls;
    evaluated += out.size();
  }
  std::size_t calls = 0;
  std::size_t evaluated = 0;
};

Model wheels(const std::shared_ptr<Wheels>& function = std::make_shared<Wheels>()) {
  return callback_model("wheels", {std::vector<Index>(4, 3), {}}, function, {});
}

struct Case {
  std::string name;
  Model model;
  std::vector<std::string> inner = {"gibbs", "lb", "gibbs:block=2"};
};

/// "temper:of=gibbs,block=2" for "gibbs:block=2".
std::string tempered(std::string inner) {
  std::replace(inner.begin(), inner.end(), ':', ',');
  return "temper:of=" + inner;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"lattice", make_model("ising:size=2x3,lambda=0.9,mu=1,sigma=2,seed=3,boundary=open")});
  out.push_back({"graph", make_model("ising:size=2x2,lambda=0.6,mu=1,sigma=1")});
  out.push_back({"potts", make_model("potts:size=2,levels=3,coupling=1.1,boundary=open")});
  out.push_back({"zeros", network_model(std::make_shared<const Network>(mixed_network(0.3, 4)))});
  out.push_back(
      {"zeros and evidence", network_model(std::make_shared<const Network>(mixed_network_with_evidence(0.3, 4)))});
  RbmWeights weights = random_rbm(5, 3, 1.5, 4);
  out.push_back({"rbm", rbm_model("rbm", std::make_shared<const Rbm>(weights)), {"rbm-gibbs", "gibbs", "gwg", "lb"}});
  weights.visible_rates = {0.0F, 0.2F, 0.5F, 0.9F, 1.0F};
  out.push_back({"rbm with rates", rbm_model("rbm", std::make_shared<const Rbm>(weights)), {"rbm-gibbs", "lb"}});
  out.push_back({"callback", wheels(), {"gibbs"}});
  return out;
}

/// One rung of a product chain in full.
struct Rung {
  StateSpace space;
  TransitionMatrix sweep;     // of Gibbs
  std::vector<double> below;  // gains of all states for the pair with the rung below, and above
  std::vector<double> above;
};

const auto& target_of(const NetworkDescription& network) { return *network.target; }
const auto& target_of(const CallbackDescription& callback) { return *callback.target; }
template <class T>
const T& target_of(const std::shared_ptr<const T>& target) {
  return *target;
}

/// Gains are those of chains at all possible states, in an engine of the rung, as in a run.
Rung make_rung(const Model& model, const std::vector<double>& betas, std::size_t k) {
  Rung rung;
  const std::shared_ptr<const Heat> heat = make_heat(model);
  Model heated = model;
  heated.description = heat->at(betas[k]);
  std::visit(
      [&](const auto& description) {
        if constexpr (!std::is_same_v<decltype(description), const std::shared_ptr<const OwnDescription>&>) {
          const auto& target = target_of(description);
          rung.space = enumerate_states(target);
          rung.sweep = transition_matrix(Gibbs<std::remove_cvref_t<decltype(target)>>(), target, rung.space);
        }
      },
      heated.description);
  EngineOptions options;
  std::vector<std::size_t> possible;
  for (std::size_t s = 0; s < rung.space.size(); ++s) {
    if (rung.space.probabilities[s] == 0.0) continue;
    possible.push_back(s);
    options.starts.push_back(rung.space.states[s]);
  }
  options.reference = options.starts[0];
  const TunableEngine made = make_engine(heated, parse_sampler("gibbs"), options);
  const auto gains = [&](std::size_t pair) {
    std::vector<double> of_possible(possible.size());
    heat->gains({*made.engine, betas[k], {0, possible.size()}}, {betas[pair], betas[pair + 1]}, of_possible);
    std::vector<double> out(rung.space.size(), 0.0);
    for (std::size_t p = 0; p < possible.size(); ++p) out[possible[p]] = of_possible[p];
    return out;
  };
  if (k > 0) rung.below = gains(k - 1);
  if (k + 1 < betas.size()) rung.above = gains(k);
  return rung;
}

/// Distributions over the states of all rungs together, the first rung changing slowest.
class ProductChain {
 public:
  explicit ProductChain(std::vector<Rung> rungs) : rungs_(std::move(rungs)), states_(rungs_[0].space.size()) {}

  [[nodiscard]] std::vector<double> stationary() const {
    std::vector<double> p = {1.0};
    for (const Rung& rung : rungs_) {
      std::vector<double> next;
      for (const double so_far : p) {
        for (const double one : rung.space.probabilities) next.push_back(so_far * one);
      }
      p = std::move(next);
    }
    return p;
  }

  /// After a sweep of every rung.
  [[nodiscard]] std::vector<double> swept(std::vector<double> p) const {
    for (std::size_t k = 0; k < rungs_.size(); ++k) {
      std::vector<double> next(p.size(), 0.0);
      for (std::size_t s = 0; s < p.size(); ++s) {
        if (p[s] == 0.0) continue;
        const std::size_t here = state(s, k);
        for (std::size_t to = 0; to < states_; ++to) {
          next[s - here * stride(k) + to * stride(k)] += p[s] * rungs_[k].sweep[here][to];
        }
      }
      p = std::move(next);
    }
    return p;
  }

  /// After the swaps of a step.
  [[nodiscard]] std::vector<double> swapped(std::vector<double> p, std::size_t step) const {
    for (std::size_t pair = step % 2; pair + 1 < rungs_.size(); pair += 2) {
      std::vector<double> next(p.size(), 0.0);
      for (std::size_t s = 0; s < p.size(); ++s) {
        if (p[s] == 0.0) continue;
        const std::size_t x = state(s, pair), y = state(s, pair + 1);
        const double accepted = swap_probability(rungs_[pair].above[x], rungs_[pair + 1].below[y]);
        next[s + y * stride(pair) + x * stride(pair + 1) - x * stride(pair) - y * stride(pair + 1)] += p[s] * accepted;
        next[s] += p[s] * (1.0 - accepted);
      }
      p = std::move(next);
    }
    return p;
  }

 private:
  [[nodiscard]] std::size_t stride(std::size_t k) const {
    std::size_t stride = 1;
    for (std::size_t later = k + 1; later < rungs_.size(); ++later) stride *= states_;
    return stride;
  }
  [[nodiscard]] std::size_t state(std::size_t s, std::size_t k) const { return s / stride(k) % states_; }

  std::vector<Rung> rungs_;
  std::size_t states_;
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::abs(a[k] - b[k]));
  return largest;
}

TEST(Temper, ProductChainsLeaveTheirDistributionAlone) {
  for (const Case& which : cases()) {
    for (const std::vector<double>& betas : {std::vector<double>{0.0, 1.0}, {0.3, 1.0}, {0.0, 0.45, 1.0}}) {
      std::vector<Rung> rungs;
      for (std::size_t k = 0; k < betas.size(); ++k) rungs.push_back(make_rung(which.model, betas, k));
      if (std::pow(static_cast<double>(rungs[0].space.size()), static_cast<double>(betas.size())) > 3e5) continue;
      const ProductChain chain(std::move(rungs));
      const std::vector<double> stationary = chain.stationary();
      std::vector<double> p = stationary;
      for (std::size_t step = 0; step < 2; ++step) {
        const std::vector<double> swapped = chain.swapped(stationary, step);
        EXPECT_LE(largest_difference(swapped, stationary), 1e-12) << which.name << " swaps of step " << step;
        p = chain.swapped(chain.swept(p), step);
      }
      EXPECT_LE(largest_difference(p, stationary), 1e-12) << which.name;
    }
  }
}

/// A heated RBM is a target like any other, and its block Gibbs decides by bounds what the exact rule would.
TEST(Temper, HeatedRbmsKeepTheContract) {
  const Rbm cold(random_rbm(6, 3, 1.2, 5));
  const Rbm::Base base = {{-2.0, -1.0, 0.0, 0.5, 1.0, 2.0}, {-1.5, 0.5, 0.0}};
  for (const double beta : {0.0, 0.3, 0.8}) {
    const Rbm heated = cold.heated(beta, base);
    expect_conforms(heated, 200);
    RbmWeights weights = cold.weights();
    for (float& weight : weights.weights) weight = static_cast<float>(beta * weight);
    const auto mix = [&](std::vector<float>& biases, const std::vector<double>& hot) {
      for (std::size_t k = 0; k < hot.size(); ++k) {
        biases[k] = static_cast<float>(beta * biases[k] + (1.0 - beta) * hot[k]);
      }
    };
    mix(weights.visible_bias, base.visible);
    mix(weights.hidden_bias, base.hidden);
    const StateSpace space = enumerate_states(heated);
    for (const std::vector<Value>& x : space.states) {
      // The plain numbers are floats.
      EXPECT_NEAR(heated.log_prob(heated.make_state(x)), plain_log_prob(weights, x), 1e-5);
      const Rbm::State state = cold.make_state(x);
      EXPECT_NEAR(heated.log_prob(heated.make_state(x)) - cold.log_prob(state),
                  cold.log_prob_change(state, 1.0, beta, base), 1e-12);
    }
  }
}

/// Cold states of many ladders after some steps, each of them independent of the others.
std::vector<std::vector<Value>> cold_states(const Model& model, const std::string& sampler, std::size_t ladders) {
  RunOptions options;
  options.chains = ladders;
  options.seed = 11;
  options.start = Start::uniform;
  options.warmup = 0;
  poise::Run run(model, parse_sampler(sampler), options);
  run.advance(30);
  const std::vector<Value> all = run.states();
  std::vector<std::vector<Value>> out;
  const std::size_t n = model.layout.variables;
  for (std::size_t c = 0; c < ladders; ++c) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(c * n);
    out.emplace_back(first, first + static_cast<std::ptrdiff_t>(n));
    for (Index i = 0; i < n; ++i) {
      if (model.layout.levels(i) == 1) out.back()[i] = 0;
    }
  }
  return out;
}

TEST(Temper, ColdStatesHaveTheLawOfTheModel) {
  constexpr std::size_t kLadders = 600;
  for (const Case& which : cases()) {
    const Rung cold = make_rung(which.model, {0.5, 1.0}, 1);
    for (const std::string& inner : which.inner) {
      std::vector<double> seen(cold.space.size(), 0.0);
      for (const auto& x : cold_states(which.model, tempered(inner), kLadders)) {
        seen[cold.space.number(x)] += 1.0;
      }
      double chi2 = 0.0, cells = 0.0, rare_seen = 0.0, rare_expected = 0.0;
      const auto add = [&](double found, double expected) {
        chi2 += (found - expected) * (found - expected) / expected;
        cells += 1.0;
      };
      for (std::size_t s = 0; s < seen.size(); ++s) {
        const double expected = kLadders * cold.space.probabilities[s];
        if (expected == 0.0) {
          ASSERT_EQ(seen[s], 0.0) << which.name << " " << inner;
        } else if (expected < 10.0) {  // too rare for a normal distribution: counted together
          rare_seen += seen[s];
          rare_expected += expected;
        } else {
          add(seen[s], expected);
        }
      }
      if (rare_expected >= 10.0) add(rare_seen, rare_expected);
      EXPECT_LT(std::abs(chi2 - (cells - 1.0)), 6.0 * std::sqrt(2.0 * cells)) << which.name << " " << inner;
    }
  }
}

/// log Z by enumeration, from log p of the model itself.
double log_partition(const Model& model) {
  double out = 0.0;
  std::visit(
      [&](const auto& description) {
        if constexpr (!std::is_same_v<decltype(description), const std::shared_ptr<const OwnDescription>&>) {
          const auto& target = target_of(description);
          const StateSpace space = enumerate_states(target);
          double sum = 0.0;
          for (const auto& x : space.states) sum += std::exp(target.log_prob(target.make_state(x)));
          out = std::log(sum);
        }
      },
      model.description);
  return out;
}

TEST(Temper, KnowsTheNormalisingConstant) {
  for (const Case& which : cases()) {
    RunOptions options;
    options.chains = 8;
    options.draws = 8000;
    options.seed = 3;
    options.keep = Keep::monitors;
    poise::Run run(which.model, parse_sampler("temper"), options);
    run.warm_up();
    run.sample(options.draws);
    const TemperingReport report = *run.engine().tempering();
    if (which.name == "callback") {  // nobody knows how many states are impossible
      EXPECT_TRUE(std::isnan(report.log_partition));
      continue;
    }
    const double error = std::isnan(report.log_partition_error) ? 0.0 : report.log_partition_error;
    EXPECT_LT(error, 0.05) << which.name;
    EXPECT_NEAR(report.log_partition, log_partition(which.model), 6.0 * error + 1e-9) << which.name;
    if (report.betas.size() == 1) continue;  // networks of which nothing is left when variables are summed out
    EXPECT_GT(report.round_trips, 100U) << which.name;
    EXPECT_EQ(report.betas.front(), 0.0);
    EXPECT_EQ(report.betas.back(), 1.0);
  }
}

TEST(Temper, DrawsDoNotDependOnThreads) {
  for (const Case& which : cases()) {
    for (const std::string& inner : which.inner) {
      std::vector<RunResult> results;
      for (const unsigned threads : {1U, 2U, 3U}) {
        RunOptions options;
        options.chains = 5;
        options.draws = 30;
        options.warmup = 70;  // the ladder is spaced anew once
        options.threads = threads;
        results.push_back(poise::run(which.model, parse_sampler(tempered(inner)), options));
      }
      for (const RunResult& result : results) {
        EXPECT_EQ(result.trace.x, results[0].trace.x) << which.name << " " << inner;
        EXPECT_EQ(result.trace.monitors, results[0].trace.monitors) << which.name << " " << inner;
        EXPECT_EQ(result.evals.of_target(), results[0].evals.of_target()) << which.name << " " << inner;
      }
    }
  }
}

/// Also before and after the ladder was spaced anew, and with another number of rungs.
TEST(Temper, ARunThatIsSavedGoesOnBitByBit) {
  for (const Case& which : cases()) {
    for (const std::string& inner : {which.inner[0], std::string("lsb")}) {
      if (which.name == "callback" && inner == "lsb") continue;  // learned with gradients there
      RunOptions options;
      options.chains = 3;
      options.draws = 15;
      options.warmup = 110;
      std::vector<std::string> saved;
      RunHooks hooks;
      hooks.after_round = [&](const poise::Run& run) { saved.push_back(run.save()); };
      const Sampler sampler = parse_sampler(tempered(inner));
      const RunResult whole = poise::run(which.model, sampler, options, hooks);
      for (std::size_t round = 0; round < saved.size(); round += 1 + saved.size() / 7) {
        poise::Run other(which.model, sampler, options);
        other.load(saved[round]);
        EXPECT_EQ(other.save().size(), saved[round].size());
        other.warm_up();
        other.sample(options.draws - other.draws());
        const RunResult rest = other.finish();
        EXPECT_EQ(whole.trace.x, rest.trace.x) << which.name << " " << inner << " round " << round;
        EXPECT_EQ(whole.trace.monitors, rest.trace.monitors) << which.name << " " << inner << " round " << round;
        EXPECT_EQ(whole.evals.of_target(), rest.evals.of_target()) << which.name << " " << inner;
      }
    }
  }
}

TEST(Temper, LearnsOneFunctionForAllRungs) {
  RunOptions options;
  options.chains = 4;
  options.draws = 20;
  options.warmup = 200;
  const RunResult result = run(make_model("ising:size=6,lambda=0.5,sigma=1"), parse_sampler("temper:of=lsb"), options);
  EXPECT_FALSE(result.log_phi.empty());
  EXPECT_TRUE(std::isfinite(result.objective));
}

/// A sweep of all replicas of all ladders takes as many calls as a sweep of one chain, and a few for swaps.
TEST(Temper, OneCallServesAllRungsOfAllLadders) {
  const auto function = std::make_shared<Wheels>();
  RunOptions options;
  options.chains = 6;
  options.warmup = 0;
  poise::Run run(wheels(function), parse_sampler("temper:of=gibbs"), options);
  const std::size_t calls = function->calls, rows = function->evaluated;
  run.advance(50);
  EXPECT_LE(function->calls - calls, 50U * 6U);
  EXPECT_GT(function->evaluated - rows, 40U * (function->calls - calls));
}

/// What user code throws comes out of all rungs.
TEST(Temper, FailuresOfUserCodeComeOut) {
  class Failing final : public BatchFunction {
   public:
    void log_prob(std::span<const Value>, std::span<double> out) override {
      if (++calls > 200) throw InputError("user code has had enough");
      std::fill(out.begin(), out.end(), 0.0);
    }
    int calls = 0;
  };
  RunOptions options;
  options.chains = 3;
  options.draws = 1000;
  const Model model = callback_model("failing", {std::vector<Index>(4, 2), {}}, std::make_shared<Failing>(), {});
  EXPECT_THROW(poise::run(model, parse_sampler("temper:of=gibbs"), options), InputError);
}

TEST(Temper, RefusesWhatItCannotHeat) {
  RunOptions options;
  options.draws = 1;
  const Model own = table_model(small_categorical());
  const auto message = [&](const Model& model, const std::string& sampler) -> std::string {
    try {
      run(model, parse_sampler(sampler), options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(own, "temper").find("models that Poise can heat"), std::string::npos);
  EXPECT_NE(message(make_model("ising:size=3"), "temper:of=rbm-gibbs").find("rbm-gibbs"), std::string::npos);
  EXPECT_NE(message(make_model("ising:size=3"), "temper:of=exact").find("expected a sampler"), std::string::npos);
  EXPECT_NE(message(wheels(), "temper:of=gwg").find("gradient"), std::string::npos);
}

}  // namespace poise::temper_test
