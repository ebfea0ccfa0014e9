/// Runs of every sampler on every kind of model, small ones, and what makes two of them the same.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <poise/network.hpp>
#include <poise/run.hpp>
#include "models/rbm/rbm.hpp"
#include "models/user/batch_target.hpp"
#include "support/selection_cases.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/table_model.hpp"

namespace poise::testing {

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

struct RunCase {
  std::string name;
  Model model;
  std::vector<std::string> samplers;
};

/// A sampler of the registry that no case lists joins the first case of every model that takes it.
inline void add_samplers_not_listed(std::vector<RunCase>& cases) {
  std::set<std::string> listed = {"auto"};
  for (const RunCase& which : cases) {
    for (const std::string& sampler : which.samplers) listed.insert(sampler.substr(0, sampler.find(':')));
  }
  for (const NameHelp& row : sampler_help()) {
    if (listed.contains(row.name)) continue;
    std::set<std::string> models;
    for (RunCase& which : cases) {
      if (!models.insert(which.model.name).second) continue;
      try {
        const poise::Run run(which.model, parse_sampler(row.name), {.chains = 1});
        which.samplers.push_back(row.name);
      } catch (const InputError&) {
        continue;  // the model refuses the sampler
      }
    }
  }
}

inline std::vector<RunCase> run_cases() {
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
  std::vector<RunCase> out;
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
  out.push_back({"own", table_model(small_categorical()), sparse});
  out.push_back({"callback",
                 callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Coins>(), {}),
                 {"lb:g=sqrt", "flsb", "gwg", "gibbs", "gibbs:block=2", "temper", "temper:of=flsb"}});
  out.push_back({"many changes of a lattice", make_model("ising:size=6,lambda=0.5,mu=1,sigma=2,seed=3"), many});
  out.push_back({"many changes of levels", make_model("potts:size=4,levels=3,coupling=0.6"), many});
  out.push_back(
      {"many changes of an rbm", rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(12, 5, 0.6, 4))), many});
  out.push_back({"many changes by callback",
                 callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Coins>(), {}), many});
  out.push_back({"selection",
                 selection_model(make_case({"default", {}}, 12)),
                 {"wtgs", "gibbs", "lb", "lsb", "temper", "temper:of=gibbs", "dlmc"}});
  add_samplers_not_listed(out);
  return out;
}

inline void expect_same(const RunResult& a, const RunResult& b, const std::string& what) {
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
  EXPECT_EQ(a.best, b.best) << what;
}

inline RunOptions short_run_of(std::size_t chains) {
  RunOptions options;
  options.chains = chains;
  options.warmup = 25;
  options.draws = 40;
  options.seed = 5;
  options.rao_blackwell = true;
  return options;
}

/// The rest of a short run.
inline RunResult complete(poise::Run& run) {
  run.warm_up();
  run.sample(short_run_of(1).draws - run.draws());
  return run.finish();
}

}  // namespace poise::testing
