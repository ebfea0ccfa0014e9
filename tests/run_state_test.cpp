/// A run is an object: saved between any two rounds and loaded into a fresh one, it goes on bit by bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <poise/network/network.hpp>
#include <poise/run/own_model.hpp>
#include <poise/run/run.hpp>
#include <poise/target/batch_target.hpp>
#include <poise/target/rbm.hpp>
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"

namespace poise {
namespace {

using namespace poise::testing;

/// Independent coins with a field, computed by a callback.
class Coins final : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = 0.0;
      for (std::size_t i = 0; i < n; ++i) out[r] += rows[r * n + i] * (0.3 + 0.1 * static_cast<double>(i));
    }
  }
  [[nodiscard]] bool has_gradient() const override { return true; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    log_prob(rows, log_p);
    const std::size_t n = rows.size() / log_p.size();
    for (std::size_t k = 0; k < rows.size(); ++k) out[k] = 0.3 + 0.1 * static_cast<double>(k % n);
  }
};

struct Case {
  std::string name;
  Model model;
  std::vector<std::string> samplers;
};

std::vector<Case> cases() {
  const std::vector<std::string> sparse = {
      "lsb",        "lsb1",       "lsb2:hidden=4", "lsb:objective=mi-bound,schedule=paper",
      "lb:g=max",   "gibbs",      "gibbs:block=3", "hb:block=4,radius=2",
      "lb:block=3", "lsb:block=3"};
  const std::vector<std::string> many = {
      "dlmc", "dlmc:g=min,tau=0.5", "dlsb", "dmala", "pas", "pas:radius=2", "dlmc:tune=acceptance,target=0.7"};
  std::vector<std::string> dense = sparse;
  dense.insert(dense.end(), {"gwg", "flsb"});
  dense.insert(dense.end(), {"temper:of=lsb", "temper:of=gwg"});
  std::vector<std::string> networks = sparse;
  networks.insert(networks.end(), {"exact", "temper", "temper:collapse=0", "temper:collapse=3"});
  std::vector<std::string> rbms = dense;
  rbms.insert(rbms.end(), {"rbm-gibbs", "temper", "temper:of=dlsb"});
  const std::vector<std::string> tempered = {"temper", "temper:of=lsb", "temper:of=gibbs,block=2"};
  std::vector<Case> out;
  out.push_back({"lattice", make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3"), sparse});
  out.push_back({"tempered lattice", make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3"), tempered});
  out.push_back({"tempered graph", make_model("ising:size=2x4,lambda=0.3,sigma=1"), tempered});
  out.push_back({"tempered zeros", network_model(std::make_shared<const Network>(mixed_network(0.2, 4))), tempered});
  out.push_back({"odd torus", make_model("ising:size=5x7,lambda=0.3"), {"gibbs", "lsb"}});
  out.push_back({"small torus", make_model("ising:size=2x4,lambda=0.3,sigma=1"), sparse});
  out.push_back({"potts", make_model("potts:size=4,levels=3,coupling=0.6"), networks});
  out.push_back({"clusters", make_model("potts:size=4,levels=3,coupling=0.6"), {"sw", "wolff", "wolff:clusters=3"}});
  out.push_back({"lattice of clusters", make_model("ising:size=12,lambda=0.4"), {"sw", "wolff"}});
  out.push_back({"zeros", network_model(std::make_shared<const Network>(mixed_network(0.2, 4))), networks});
  out.push_back({"rbm", rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(12, 5, 0.6, 4))), rbms});
  out.push_back({"own", own_model("table", std::make_shared<const TableTarget>(small_categorical())), sparse});
  out.push_back({"callback",
                 callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Coins>(), {}),
                 {"lb:g=sqrt", "flsb", "gwg", "gibbs", "gibbs:block=2", "temper", "temper:of=flsb"}});
  out.push_back({"many changes of a lattice", make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3"), many});
  out.push_back({"many changes of levels", make_model("potts:size=4,levels=3,coupling=0.6"), many});
  out.push_back(
      {"many changes of an rbm", rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(12, 5, 0.6, 4))), many});
  out.push_back({"many changes by callback",
                 callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Coins>(), {}), many});
  return out;
}

RunOptions short_run() {
  RunOptions options;
  options.chains = 3;
  options.warmup = 25;
  options.draws = 40;
  options.seed = 5;
  options.rao_blackwell = true;
  return options;
}

RunResult complete(poise::Run& run) {
  run.warm_up();
  run.sample(short_run().draws - run.draws());
  return run.finish();
}

void expect_same(const RunResult& a, const RunResult& b, const std::string& what) {
  EXPECT_EQ(a.trace.x, b.trace.x) << what;
  EXPECT_EQ(a.trace.monitors, b.trace.monitors) << what;
  EXPECT_EQ(a.trace.acceptance_rate, b.trace.acceptance_rate) << what;
  EXPECT_EQ(a.log_phi, b.log_phi) << what;
  EXPECT_EQ(a.empirical_marginals, b.empirical_marginals) << what;
  EXPECT_EQ(a.rao_blackwell, b.rao_blackwell) << what;
  EXPECT_EQ(a.rao_blackwell_mcse, b.rao_blackwell_mcse) << what;
  EXPECT_EQ(a.evals.of_target(), b.evals.of_target()) << what;
  EXPECT_EQ(a.warmup_evals.balance, b.warmup_evals.balance) << what;
  EXPECT_EQ(a.initial_steps, b.initial_steps) << what;
  EXPECT_EQ(a.warmup_steps, b.warmup_steps) << what;
}

TEST(RunState, ARunThatIsSavedAndLoadedGoesOnBitByBit) {
  Rng choice(7, 7);
  for (const Case& which : cases()) {
    for (const std::string& name : which.samplers) {
      const Sampler sampler = parse_sampler(name);
      std::vector<std::string> saved;
      RunHooks hooks;
      hooks.after_round = [&](const poise::Run& run) { saved.push_back(run.save()); };
      poise::Run run(which.model, sampler, short_run(), hooks);
      saved.push_back(run.save());
      const RunResult whole = complete(run);
      ASSERT_GT(saved.size(), 2U) << which.name << " " << name;
      for (int k = 0; k < 5; ++k) {
        const auto round = k == 0 ? 0 : static_cast<std::size_t>(choice.uniform() * static_cast<double>(saved.size()));
        RunOptions options = short_run();
        options.threads = k % 2 == 0 ? 1 : 3;
        poise::Run other(which.model, sampler, options);
        other.load(saved[round]);
        expect_same(
            whole, complete(other),
            which.name + " " + name + ", round " + std::to_string(round) + " of " + std::to_string(saved.size()));
      }
    }
  }
}

TEST(RunState, DrawsDoNotDependOnHowTheyAreAskedFor) {
  const Model model = make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3");
  poise::Run run(model, parse_sampler("lsb"), short_run());
  run.warm_up();
  for (const std::size_t draws : {1U, 7U, 0U, 32U}) run.sample(draws);
  expect_same(poise::run(model, parse_sampler("lsb"), short_run()), run.finish(), "in four goes");
}

TEST(RunState, AnotherRunsStateIsRefused) {
  const Model model = make_model("ising:size=6,lambda=0.5");
  poise::Run lsb(model, parse_sampler("lsb"), short_run());
  const std::string saved = lsb.save();
  poise::Run gibbs(model, parse_sampler("gibbs"), short_run());
  EXPECT_THROW(gibbs.load(saved), std::runtime_error);
  EXPECT_THROW(lsb.load(saved.substr(0, saved.size() / 2)), std::runtime_error);
  EXPECT_THROW(lsb.load(""), std::runtime_error);
}

TEST(RunState, NothingCanBeTunedOnceSamplingHasBegun) {
  poise::Run run(make_model("ising:size=6,lambda=0.5"), parse_sampler("lsb"), short_run());
  run.warm_up();
  run.sample(2);
  EXPECT_THROW(run.warm_up({.steps = 10}), std::logic_error);
}

}  // namespace
}  // namespace poise
