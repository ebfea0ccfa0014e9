/// Kernels and targets of your own: they run on and with what is built in, and nothing is claimed of them that nobody
/// knows.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <poise/extend/check/conformance.hpp>
#include <poise/extend/check/exactness.hpp>
#include <poise/extend/engines/own_kernel.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include "support/run_cases.hpp"

namespace poise::own_kernel_test {

using namespace poise::testing;

/// A ring of variables with three levels, log p = -(sum of x_i)^2 over neighbours: sparse, and not linear in a level.
class QuadraticRing {
 public:
  struct State {
    std::vector<Value> x;
  };
  explicit QuadraticRing(Index sites) : sites_(sites) {}
  [[nodiscard]] Index num_variables() const { return sites_; }
  [[nodiscard]] Index num_moves() const { return 2 * sites_; }
  [[nodiscard]] Index cardinality(Index) const { return 3; }
  [[nodiscard]] std::size_t max_affected() const { return 6; }
  [[nodiscard]] State make_state(std::span<const Value> x) const { return {{x.begin(), x.end()}}; }
  [[nodiscard]] Value level(const State& state, Index i) const { return state.x[i]; }
  [[nodiscard]] double log_prob(const State& state) const {
    double sum = 0.0;
    for (Index i = 0; i < sites_; ++i) sum += term(state, i);
    return sum;
  }
  [[nodiscard]] Move move_at(const State& state, Index move) const {
    const auto k = static_cast<Value>(move % 2);
    return {move / 2, static_cast<Value>(k < state.x[move / 2] ? k : k + 1)};
  }
  [[nodiscard]] double log_ratio(const State& state, Move move) const {
    State after = state;
    after.x[move.variable] = move.value;
    const Index left = (move.variable + sites_ - 1) % sites_;
    return term(after, left) + term(after, move.variable) - term(state, left) - term(state, move.variable);
  }
  void log_ratios(const State& state, std::span<double> out) const {
    for (Index m = 0; m < num_moves(); ++m) out[m] = log_ratio(state, move_at(state, m));
  }
  template <class Visit>
  void for_each_affected(const State& state, Index move, Visit&& visit) const {
    State after = state;
    const Index i = move / 2;
    apply(after, move_at(state, move));
    AffectedLanes lanes{};
    lanes.log_ratios = broadcast8(-std::numeric_limits<double>::infinity());
    for (const Index j : {(i + sites_ - 1) % sites_, i, (i + 1) % sites_}) {
      for (Index k = 0; k < 2; ++k) {
        lanes.moves[lanes.count] = 2 * j + k;
        lanes.log_ratios.set(lanes.count++, log_ratio(after, move_at(after, 2 * j + k)));
      }
    }
    visit(lanes);
  }
  void apply(State& state, Move move) const { state.x[move.variable] = move.value; }

 private:
  [[nodiscard]] double term(const State& state, Index i) const {
    const double sum = state.x[i] + state.x[(i + 1) % sites_] - 2.0;
    return -0.3 * sum * sum;
  }
  Index sites_;
};

TEST(OwnTarget, OfSparseOnesNobodySaysThatLogPIsLinear) {
  EXPECT_TRUE(check_target(QuadraticRing(5)).ok()) << check_target(QuadraticRing(5)).text();
  const Model own = own_model("ring", std::make_shared<const QuadraticRing>(5));
  EXPECT_TRUE(own.sparse);
  EXPECT_FALSE(own.linear);
  EXPECT_TRUE(make_model("potts:size=4,levels=3,coupling=0.6").linear);
  for (const std::string& note : run(own, parse_sampler("gwg"), short_run_of(2)).notes) {
    EXPECT_EQ(note.find("linear"), std::string::npos) << note;
  }
}

TEST(AnyTarget, KeepsTheContractOfTheTargetInIt) {
  for (const RunCase& which : run_cases()) {
    const auto target = target_of(which.model);
    ASSERT_NE(target, nullptr) << which.name;
    EXPECT_EQ(target->num_variables(), which.model.layout.variables) << which.name;
  }
  const AnyTarget any(std::make_shared<const TableTarget>(small_categorical()));
  EXPECT_TRUE(check_target(any).ok()) << check_target(any).text();
}

TEST(OwnKernel, MakesTheDrawsOfTheSameKernelWithinTheTree) {
  const Model rbm = rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(12, 5, 0.6, 4)));
  const Sampler own = own_kernel("mine", InformedProposal<AnyTarget>(BalancingFunction(BalancingFunction::Kind::min)));
  const RunResult mine = run(rbm, own, short_run_of(3));
  const RunResult built_in = run(rbm, parse_sampler("lb:g=min"), short_run_of(3));
  EXPECT_EQ(mine.trace.x, built_in.trace.x);
  EXPECT_EQ(mine.empirical_marginals, built_in.empirical_marginals);
}

TEST(OwnKernel, RunsOnEveryModelAndResumes) {
  const Sampler own = own_kernel("mine", Gibbs<AnyTarget>());
  std::string before;
  for (const RunCase& which : run_cases()) {
    if (which.model.name == before) continue;  // models come up in several cases
    before = which.model.name;
    poise::Run run(which.model, own, short_run_of(2));
    run.warm_up();
    const std::string saved = run.save();
    const RunResult whole = complete(run);
    poise::Run other(which.model, own, short_run_of(2));
    other.load(saved);
    expect_same(whole, complete(other), which.name);
    EXPECT_EQ(make_report(whole).sampler, "mine");
  }
}

TEST(OwnKernel, ANameOfABuiltInSamplerIsRefused) {
  EXPECT_THROW(static_cast<void>(own_kernel("gibbs", Gibbs<AnyTarget>())), InputError);
  EXPECT_THROW(static_cast<void>(own_kernel("", Gibbs<AnyTarget>())), InputError);
  EXPECT_THROW(static_cast<void>(own_kernel("gibbs:block=2", Gibbs<AnyTarget>())), InputError);
}

TEST(Docs, CodeInAddingIsThatOfTheExamples) {
  const auto read = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(std::string(POISE_TEST_DATA) + "/../../" + path).rdbuf();
    return text.str();
  };
  const std::string code =
      read("examples/hard_core_ring.hpp") + read("examples/own_target.cpp") + read("examples/own_kernel.cpp");
  const std::string page = read("docs/adding.md");
  ASSERT_FALSE(page.empty());
  const std::string fence = "```";
  int blocks = 0;
  for (std::size_t at = page.find(fence + "cpp\n"); at != std::string::npos; at = page.find(fence + "cpp\n", at)) {
    const std::size_t begin = at + fence.size() + 4;
    at = page.find(fence, begin);
    ASSERT_NE(at, std::string::npos);
    const std::string block = page.substr(begin, at - begin);
    EXPECT_NE(code.find(block), std::string::npos) << block;
    at += fence.size();
    ++blocks;
  }
  EXPECT_GE(blocks, 3);
}

}  // namespace poise::own_kernel_test
