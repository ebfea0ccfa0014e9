/// Draws of many chains: what is recorded of them at once and on several threads is what is recorded one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/run.hpp>
#include "engines/rows.hpp"
#include "run/start.hpp"

namespace poise::recorder_test {

/// Chains of which several draws are made at once, in one group, as on a GPU.
class DrawsAtOnce final : public Engine {
 public:
  DrawsAtOnce(std::unique_ptr<Engine> own, std::size_t draws) : Engine(traits_of(*own, draws)), own_(std::move(own)) {}

  std::vector<ChainGroup> share_out(unsigned) override {
    groups_ = own_->share_out(1);
    return {{0, traits_.chains}};
  }
  void advance(ChainGroup, std::uint64_t steps) override {
    for (const ChainGroup& group : groups_) own_->advance(group, steps);
  }
  void observe(ChainGroup group, const Observables& out) const override { own_->observe(group, out); }
  void restart(std::size_t chain, std::span<const Value> levels) override { own_->restart(chain, levels); }
  void start_marginals(ChainGroup, bool rao_blackwell) override {
    for (const ChainGroup& group : groups_) own_->start_marginals(group, rao_blackwell);
  }
  void visit_marginals(ChainGroup) override {
    for (const ChainGroup& group : groups_) own_->visit_marginals(group);
  }
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return own_->rao_blackwell(chain); }
  void save_common(Saver& out) const override { own_->save_common(out); }
  void load_common(Loader& in) override { own_->load_common(in); }
  void save_chain(std::size_t chain, Saver& out) const override { own_->save_chain(chain, out); }
  void load_chain(std::size_t chain, Loader& in) override { own_->load_chain(chain, in); }

 private:
  static EngineTraits traits_of(const Engine& own, std::size_t draws) {
    EngineTraits traits = own.traits();
    traits.draws_at_once = draws;
    return traits;
  }

  std::unique_ptr<Engine> own_;
  std::vector<ChainGroup> groups_;
};

RunOptions options_of(std::size_t chains, Keep keep) {
  RunOptions options;
  options.chains = chains;
  options.warmup = 5;
  options.draws = 300;
  options.seed = 4;
  options.threads = 4;
  options.keep = keep;
  return options;
}

void expect_same(const Trace& here, const Trace& there) {
  EXPECT_EQ(here.monitors, there.monitors);
  EXPECT_EQ(here.acceptance_rate, there.acceptance_rate);
  EXPECT_EQ(here.n_steps, there.n_steps);
  EXPECT_EQ(here.x, there.x);
}

TEST(Recorder, DrawsAtOnceAreThoseOneByOne) {
  const Model model = make_model("ising:size=3,lambda=0.5,mu=1,sigma=2");
  for (const char* name : {"gibbs", "lb:g=sqrt"}) {
    const Sampler sampler = parse_sampler(name);
    for (const Keep keep : {Keep::monitors, Keep::draws}) {
      for (const std::size_t chains : {3, 700}) {
        const RunOptions options = options_of(chains, keep);
        const RunResult one_by_one = run(model, sampler, options);
        for (const std::size_t draws : {7, 256}) {
          TunableEngine made = make_engine(model, sampler, engine_options(model, options));
          made.engine = std::make_unique<DrawsAtOnce>(std::move(made.engine), draws);
          poise::Run many(model, sampler, options, std::move(made));
          many.warm_up();
          many.sample(options.draws);
          expect_same(many.finish().trace, one_by_one.trace);
        }
      }
    }
  }
}

/// Seven hundred chains are taken in on several threads, a hundred are not.
TEST(Recorder, ManyChainsAreThoseOfSmallerRuns) {
  const Model model = make_model("ising:size=3,lambda=0.5,mu=1,sigma=2");
  const Sampler sampler = parse_sampler("gibbs");
  RunOptions options = options_of(700, Keep::monitors);
  const RunResult all = run(model, sampler, options);
  options.chains = 100;
  for (std::size_t first = 0; first < 700; first += 100) {
    options.first_chain = first;
    const RunResult some = run(model, sampler, options);
    for (std::size_t monitor = 0; monitor < some.trace.monitors.size(); ++monitor) {
      const std::vector<double>& numbers = some.trace.monitors[monitor];
      const auto place = all.trace.monitors[monitor].begin() + static_cast<std::ptrdiff_t>(first * options.draws);
      EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), place));
    }
  }
}

/// States that engines give as bits are their levels: chains as bits and across lanes, few and many, one of a group.
TEST(Recorder, BitsAreLevels) {
  for (const char* name : {"ising:size=1x1,lambda=0.3", "ising:size=1x7,lambda=0.3", "ising:size=2x4,lambda=0.3",
                           "ising:size=3,lambda=0.3", "ising:size=7x9,lambda=0.3", "ising:size=5x13,lambda=0.3",
                           "potts:size=1x7,levels=2,coupling=0.5", "potts:size=5x13,levels=2,coupling=0.5"}) {
    const Model model = make_model(name);
    const std::size_t width = (model.layout.variables + 7) / 8;
    for (const std::size_t chains : {1, 3, 16, 70, 130}) {
      const RunOptions options = options_of(chains, Keep::draws);
      const TunableEngine made = make_engine(model, parse_sampler("gibbs"), engine_options(model, options));
      for (const ChainGroup& group : made.engine->share_out(1)) made.engine->advance(group, 3);
      for (const ChainGroup group : {ChainGroup{0, chains}, ChainGroup{chains / 2, 1}}) {
        std::vector<Value> levels(group.count * model.layout.variables);
        std::vector<std::uint8_t> bits(group.count * width, 0xff);
        made.engine->observe(group, {.levels = levels, .bits = bits});
        if (!made.engine->traits().gives_bits) continue;
        for (std::size_t k = 0; k < levels.size(); ++k) {
          const std::size_t chain = k / model.layout.variables, i = k % model.layout.variables;
          ASSERT_EQ(bits[chain * width + i / 8] >> i % 8 & 1, levels[k]) << name << " " << chains;
        }
        for (std::size_t chain = 0; chain < group.count; ++chain) {
          const unsigned rest = model.layout.variables % 8;
          if (rest != 0) ASSERT_EQ(bits[(chain + 1) * width - 1] >> rest, 0) << name << " " << chains;
        }
      }
    }
  }
}

}  // namespace poise::recorder_test
