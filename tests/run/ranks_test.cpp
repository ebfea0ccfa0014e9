/// Runs that are divided among ranks: the draws are those of one process, whatever the number of ranks, and what goes
/// wrong on one ends all.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include <poise/extend/engines/division.hpp>
#include "support/run_cases.hpp"
#include "support/thread_ranks.hpp"

namespace poise::ranks_test {

using namespace poise::testing;

RunOptions short_run() { return short_run_of(5); }

void expect_no_error(const std::vector<std::exception_ptr>& errors, const std::string& what) {
  for (const std::exception_ptr& error : errors) EXPECT_EQ(words_of(error), "") << what;
}

TEST(Ranks, ChainsAreDividedInOrder) {
  for (const int size : {1, 2, 3, 7}) {
    for (const std::size_t chains : {1U, 2U, 5U, 64U}) {
      for (const std::size_t together : {1U, 2U}) {
        expect_no_error(on_ranks(size,
                                 [&](Collective& collective) {
                                   const Division division(collective, chains, together);
                                   std::size_t end = 0;
                                   for (int r = 0; r < size; ++r) {
                                     const ChainGroup own = division.of(r);
                                     EXPECT_EQ(own.first, end);
                                     EXPECT_TRUE(own.count == 0 || own.first % together == 0);
                                     EXPECT_EQ(own.count > 0, static_cast<std::size_t>(r) < division.busy());
                                     end += own.count;
                                   }
                                   EXPECT_EQ(end, chains);
                                   EXPECT_EQ(division.chains(), chains);
                                 }),
                        "division");
      }
    }
  }
}

TEST(Ranks, WhatIsToldArrives) {
  expect_no_error(on_ranks(7,
                           [](Collective& collective) {
                             const int mine = collective.rank();
                             EXPECT_EQ(collective.of_all(mine), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
                             EXPECT_EQ(collective.of_root(mine + 3), 3);
                             EXPECT_EQ(collective.of_root(std::string(mine == 0 ? "root" : "other rank")), "root");
                             EXPECT_TRUE(collective.any(mine == 6));
                             EXPECT_FALSE(collective.any(false));
                             const Division division(collective, 9);
                             std::vector<std::string> own;
                             for (std::size_t k = 0; k < division.own().count; ++k) {
                               own.emplace_back(division.own().first + k, 'x');
                             }
                             const std::vector<std::string> all = division.gather(own);
                             ASSERT_EQ(all.size(), 9U);
                             for (std::size_t c = 0; c < all.size(); ++c) EXPECT_EQ(all[c].size(), c);
                           }),
                  "what is told");
}

/// The main promise, for every sampler on every kind of model.
TEST(Ranks, DrawsAreThoseOfOneProcess) {
  const std::vector<RunCase> all = run_cases();
  int number = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    for (const std::string& name : all[k].samplers) {
      const Sampler sampler = parse_sampler(name);
      const RunResult whole = run(all[k].model, sampler, short_run());
      ++number;
      for (const int size : {number % 4 == 0 ? 1 : 2, number % 2 == 0 ? 3 : 7}) {
        const std::string what = all[k].name + " " + name + " on " + std::to_string(size);
        const auto to = size == 3 ? Collective::To::all : Collective::To::root;
        const auto errors = on_ranks(size, [&](Collective& collective) {
          RunOptions options = short_run();
          options.threads = size == 2 ? 3 : 1;
          const RunResult mine =
              run(run_cases()[k].model, sampler, options, {.collective = &collective, .draws_to = to});
          if (collective.is_root() || to == Collective::To::all) {
            expect_same(whole, mine, what);
            EXPECT_EQ(whole.warmup_trace.back().log_prob, mine.warmup_trace.back().log_prob) << what;
            EXPECT_EQ(whole.acceptance_rate, mine.acceptance_rate) << what;
            EXPECT_EQ(whole.frozen, mine.frozen) << what;
            EXPECT_EQ(whole.tempering.has_value(), mine.tempering.has_value()) << what;
            if (whole.tempering && mine.tempering) {
              EXPECT_EQ(whole.tempering->betas, mine.tempering->betas) << what;
              EXPECT_EQ(whole.tempering->round_trips, mine.tempering->round_trips) << what;
              EXPECT_EQ(whole.tempering->components, mine.tempering->components) << what;
            }
          } else {
            EXPECT_TRUE(mine.trace.x.empty()) << what;
            EXPECT_EQ(whole.trace.monitors, mine.trace.monitors) << what;
            EXPECT_EQ(whole.empirical_marginals, mine.empirical_marginals) << what;
          }
        });
        expect_no_error(errors, what);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Ranks, TheSamplerThatPicksItselfPicksTheSame) {
  for (const char* spec :
       {"ising:size=12,lambda=0.2", "ising:size=20,lambda=0.6", "ising:size=20,lambda=1.5,mu=0,sigma=0.5,seed=5"}) {
    RunOptions options;
    options.chains = 5;
    options.draws = 300;
    const RunResult whole = run(make_model(spec), parse_sampler("auto"), options);
    for (const int size : {2, 7}) {
      const auto errors = on_ranks(size, [&](Collective& collective) {
        const RunResult mine = run(make_model(spec), parse_sampler("auto"), options, {.collective = &collective});
        EXPECT_EQ(whole.sampler, mine.sampler);
        EXPECT_EQ(whole.choice->reason, mine.choice->reason);
        EXPECT_EQ(whole.trace.monitors, mine.trace.monitors) << spec << " on " << size;
        if (collective.is_root()) EXPECT_EQ(whole.trace.x, mine.trace.x) << spec << " on " << size;
      });
      expect_no_error(errors, spec);
    }
  }
}

/// Saved on so many ranks after some rounds; goes on with others.
TEST(Ranks, SavedOnSevenGoesOnOnTwo) {
  const std::vector<RunCase> all = run_cases();
  Rng choice(3, 3);
  std::size_t number = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    for (const std::string& name : all[k].samplers) {
      ++number;
      const Sampler sampler = parse_sampler(name);
      const RunResult whole = run(all[k].model, sampler, short_run());
      constexpr std::array<std::pair<int, int>, 4> kRanks = {{{7, 2}, {2, 7}, {1, 3}, {3, 1}}};
      for (const auto& [from, to] : {kRanks[number % 4]}) {
        const std::string what =
            all[k].name + " " + name + " from " + std::to_string(from) + " to " + std::to_string(to);
        std::vector<std::string> saved;
        expect_no_error(on_ranks(from,
                                 [&](Collective& collective) {
                                   RunHooks hooks{.collective = &collective};
                                   hooks.after_round = [&](const poise::Run& now) {
                                     std::string state = now.save();
                                     if (collective.is_root()) saved.push_back(std::move(state));
                                   };
                                   poise::Run first(run_cases()[k].model, sampler, short_run(), hooks);
                                   complete(first);
                                 }),
                        what);
        ASSERT_GT(saved.size(), 1U) << what;
        const std::string& state =
            saved[static_cast<std::size_t>(choice.uniform() * static_cast<double>(saved.size()))];
        expect_no_error(on_ranks(to,
                                 [&](Collective& collective) {
                                   poise::Run second(run_cases()[k].model, sampler, short_run(),
                                                     {.collective = &collective});
                                   second.load(state);
                                   const RunResult mine = complete(second);
                                   if (collective.is_root()) expect_same(whole, mine, what);
                                 }),
                        what);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// Saved while the sampler is watched, on so many ranks; resumed with others.
TEST(Ranks, AWatchSavedOnSevenIsResumedOnTwo) {
  const Sampler sampler = parse_sampler("auto");
  for (const char* spec : {"ising:size=12,lambda=0.2", "potts:size=12,levels=3,coupling=1.1"}) {
    RunOptions options;
    options.chains = 5;
    options.draws = 200;
    const RunResult whole = run(make_model(spec), sampler, options);
    constexpr std::array<std::pair<int, int>, 3> kRanks = {{{7, 2}, {1, 3}, {2, 1}}};
    for (const auto& [from, to] : kRanks) {
      const std::string what = std::string(spec) + " from " + std::to_string(from) + " to " + std::to_string(to);
      std::vector<std::string> saved;
      expect_no_error(on_ranks(from,
                               [&](Collective& collective) {
                                 RunHooks hooks{.collective = &collective};
                                 int rounds = 0;
                                 hooks.after_round = [&](const poise::Run& now) {
                                   if (++rounds % 16 != 1) return;
                                   std::string state = now.save();
                                   if (collective.is_root()) saved.push_back(std::move(state));
                                 };
                                 poise::Run first(make_model(spec), sampler, options, hooks);
                                 first.warm_up();
                               }),
                      what);
      ASSERT_GT(saved.size(), 5U) << what;
      for (std::size_t k = 0; k < saved.size(); k += 1 + saved.size() / 4) {
        expect_no_error(on_ranks(to,
                                 [&](Collective& collective) {
                                   poise::Run second(make_model(spec), sampler, options, {.collective = &collective});
                                   second.load(saved[k]);
                                   second.warm_up();
                                   second.sample(options.draws);
                                   const RunResult mine = second.finish();
                                   EXPECT_EQ(whole.choice->reason, mine.choice->reason) << what;
                                   EXPECT_EQ(whole.trace.monitors, mine.trace.monitors) << what;
                                   if (collective.is_root()) EXPECT_EQ(whole.trace.x, mine.trace.x) << what;
                                 }),
                        what);
      }
    }
  }
}

/// Coins that count the rows they are asked for, and do something in the end.
class Watched final : public BatchFunction {
 public:
  explicit Watched(std::function<void(std::size_t rows)> look) : look_(std::move(look)) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = rows.size() / out.size();
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = 0.0;
      for (std::size_t i = 0; i < n; ++i) out[r] += 0.1 * rows[r * n + i];
    }
    look_(out.size());
  }

 private:
  std::function<void(std::size_t rows)> look_;
};

Model watched_model(std::function<void(std::size_t)> look) {
  return callback_model("coins", {std::vector<Index>(6, 2), {}}, std::make_shared<Watched>(std::move(look)), {});
}

TEST(Ranks, EachAsksForItsOwnChains) {
  std::size_t alone = 0;
  run(watched_model([&](std::size_t rows) { alone += rows; }), parse_sampler("gibbs"), short_run());
  std::mutex mutex;
  std::vector<std::size_t> asked(3);
  expect_no_error(on_ranks(3,
                           [&](Collective& collective) {
                             std::size_t rows = 0;
                             run(watched_model([&](std::size_t more) { rows += more; }), parse_sampler("gibbs"),
                                 short_run(), {.collective = &collective});
                             const std::lock_guard lock(mutex);
                             asked[static_cast<std::size_t>(collective.rank())] = rows;
                           }),
                  "callback");
  EXPECT_EQ(asked[0] + asked[1] + asked[2], alone);
  EXPECT_EQ(asked[0], asked[1]);
  EXPECT_EQ(asked[0], 2 * asked[2]);
}

TEST(Ranks, AnErrorOfOneEndsAll) {
  for (const int size : {2, 7}) {
    for (const int calls : {0, 1, 40, 300}) {
      for (const bool bad_input : {false, true}) {
        const auto errors = on_ranks(size, [&](Collective& collective) {
          int left = calls;
          const Model model = watched_model([&](std::size_t) {
            if (collective.rank() != 1 || left-- > 0) return;
            if (bad_input) throw InputError("these coins are bad");
            throw std::runtime_error("a coin fell off the table");
          });
          run(model, parse_sampler("gibbs"), short_run(), {.collective = &collective});
        });
        for (const std::exception_ptr& error : errors) {
          ASSERT_TRUE(error) << calls;
          EXPECT_EQ(words_of(error), bad_input ? "these coins are bad" : "a coin fell off the table") << calls;
          bool was_bad_input = false;
          try {
            std::rethrow_exception(error);
          } catch (const InputError&) {
            was_bad_input = true;
          } catch (...) {
          }
          EXPECT_EQ(was_bad_input, bad_input);
        }
      }
    }
  }
}

TEST(Ranks, AStopByOneTargetStopsAll) {
  for (const int calls : {0, 1, 200, 300}) {
    std::mutex mutex;
    std::vector<RunResult> results(3);
    std::atomic<int> thrown{0};
    const auto errors = on_ranks(3, [&](Collective& collective) {
      int left = calls;
      const Model model = watched_model([&](std::size_t) {
        if (collective.rank() == 1 && left-- <= 0) throw RunStopped{};
      });
      try {
        RunResult mine = run(model, parse_sampler("gibbs"), short_run(),
                             {.collective = &collective, .draws_to = Collective::To::all});
        const std::lock_guard lock(mutex);
        results[static_cast<std::size_t>(collective.rank())] = std::move(mine);
      } catch (const RunStopped&) {
        ++thrown;  // before there were chains
      }
    });
    expect_no_error(errors, std::to_string(calls));
    EXPECT_TRUE(thrown == 0 || thrown == 3) << thrown;
    if (thrown == 3) continue;
    EXPECT_TRUE(results[0].interrupted);
    for (int r = 1; r < 3; ++r) {
      EXPECT_EQ(results[0].trace.draws, results[r].trace.draws);
      EXPECT_EQ(results[0].trace.x, results[r].trace.x);
    }
  }
}

TEST(Ranks, TheClockAndTheStopAreThoseOfAll) {
  const Model model = make_model("ising:size=8,lambda=0.3");
  for (const bool by_clock : {true, false}) {
    std::mutex mutex;
    std::vector<std::size_t> draws;
    const auto errors = on_ranks(3, [&](Collective& collective) {
      RunOptions options = short_run();
      options.draws = 1'000'000;
      options.thin = 100;
      options.keep = Keep::monitors;
      if (by_clock) options.seconds = 0.3;
      std::atomic<bool> stop{false};
      int told = 0;
      RunHooks hooks{.stop = &stop, .collective = &collective};
      if (collective.is_root()) hooks.progress = [&](const Progress&) { ++told; };
      hooks.after_round = [&](const poise::Run& now) {
        if (!by_clock && collective.rank() == 2 && now.draws() > 100) stop = true;
      };
      const RunResult mine = run(model, parse_sampler("gibbs"), options, hooks);
      EXPECT_EQ(mine.interrupted, !by_clock);
      EXPECT_TRUE(!collective.is_root() || told > 0);
      const std::lock_guard lock(mutex);
      draws.push_back(mine.trace.draws);
    });
    expect_no_error(errors, by_clock ? "clock" : "stop");
    ASSERT_EQ(draws.size(), 3U);
    EXPECT_GT(draws[0], 0U);
    EXPECT_EQ(draws[0], draws[1]);
    EXPECT_EQ(draws[0], draws[2]);
  }
}

TEST(Ranks, WhoEndsEarlyKeepsNobodyWaiting) {
  ThreadHub hub(2);
  std::string words;
  {
    const std::jthread early([&] {
      ThreadCollective collective(hub, 1);
      collective.leave();
    });
    ThreadCollective collective(hub, 0);
    try {
      collective.together(
          [&] { run(make_model("ising:size=4"), parse_sampler("gibbs"), short_run(), {.collective = &collective}); });
    } catch (const std::exception& error) {
      words = error.what();
    }
    collective.leave();
  }
  EXPECT_EQ(words, "a rank of this run has ended before the others");
}

TEST(Ranks, RanksWithoutChainsAreNamed) {
  std::vector<std::string> notes;
  expect_no_error(on_ranks(7,
                           [&](Collective& collective) {
                             const RunResult mine = run(make_model("ising:size=4"), parse_sampler("gibbs"), short_run(),
                                                        {.collective = &collective});
                             if (collective.is_root()) notes = mine.notes;
                           }),
                  "idle");
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0], "7 ranks for 5 chains: 2 of them have nothing to do");
}

}  // namespace poise::ranks_test
