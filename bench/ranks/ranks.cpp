/// What it costs to be several: started by mpirun, measures how long messages of ranks take, and counts those of runs.
///
///     mpirun -n 2 build/release/bench/poise_ranks
#include <chrono>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include <poise/run.hpp>
#include "base/ranks/ranks.hpp"

namespace {

using namespace poise;
using Clock = std::chrono::steady_clock;

/// Hands everything on, and counts it.
class Counting final : public Collective {
 public:
  explicit Counting(Collective& inner) : inner_(inner) {}
  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }

  std::size_t meetings = 0;
  std::size_t exchanges = 0;
  std::size_t bytes = 0;  // of all ranks, heads apart

 protected:
  void exchange_heads(std::span<Head> heads) override {
    ++meetings;
    std::vector<std::size_t> ends;
    for (std::size_t r = 0; r < heads.size(); ++r) ends.push_back(r + 1);
    inner_.gather(heads, ends);
  }
  void exchange(std::span<std::byte> all, std::span<const std::size_t> ends, To to) override {
    ++exchanges;
    bytes += all.size();
    inner_.gather(all, ends, to);
  }

 private:
  Collective& inner_;
};

double microseconds(Collective& ranks, std::size_t bytes_each) {
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<char> all(size * bytes_each);
  std::vector<std::size_t> ends;
  for (std::size_t r = 0; r < size; ++r) ends.push_back((r + 1) * bytes_each);
  const int repeats = bytes_each < 100'000 ? 2000 : 50;
  double best = 1e300;
  for (int go = 0; go < 5; ++go) {
    const Clock::time_point began = Clock::now();
    for (int k = 0; k < repeats; ++k) ranks.gather(std::span<char>(all), ends);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - began).count() / repeats);
  }
  return 1e6 * best;
}

void count_run(Collective& ranks, const char* spec, const char* sampler, std::size_t chains) {
  Counting counting(ranks);
  RunOptions options;
  options.chains = chains;
  options.draws = 200;
  options.keep = Keep::draws;
  std::size_t rounds = 0;
  Run run(make_model(spec), parse_sampler(sampler), options,
          {.after_round = [&](const Run&) { ++rounds; }, .collective = &counting});
  const std::size_t at_first = counting.meetings;
  const Clock::time_point began = Clock::now();
  run.warm_up();
  const double warmup = std::chrono::duration<double>(Clock::now() - began).count();
  const std::size_t meetings = counting.meetings - at_first;
  const std::size_t bytes = counting.bytes;
  rounds = 0;
  run.sample(options.draws);
  const auto per_round = static_cast<double>(std::max<std::size_t>(1, rounds));
  const double of_round = static_cast<double>(counting.meetings - at_first - meetings) / per_round;
  const double of_draw = static_cast<double>(counting.bytes - bytes) / static_cast<double>(options.draws);
  if (!ranks.is_root()) return;
  fmt::print(
      "{:<40} {:<8} {:>4} chains  warm-up: {:>6} meetings, {:>9.3f} MB in {:.2f} s  sampling: {:.1f} meetings a "
      "round, {:.0f} bytes a draw of all chains\n",
      spec, sampler, chains, meetings, 1e-6 * static_cast<double>(bytes), warmup, of_round, of_draw);
}

}  // namespace

int main() {
  const std::shared_ptr<Collective> ranks = start_ranks();
  if (!ranks) {
    fmt::print(stderr, "start it with mpirun -n 2 or more\n");
    return 2;
  }
  for (const std::size_t bytes : {8U, 48U, 1024U, 65536U, 1048576U}) {
    const double time = microseconds(*ranks, bytes);
    if (ranks->is_root()) fmt::print("{:>8} bytes of each of {} ranks to all: {:.1f} us\n", bytes, ranks->size(), time);
  }
  count_run(*ranks, "ising:size=64,lambda=0.4", "gibbs", 64);
  count_run(*ranks, "ising:size=32,lambda=0.4,mu=0.5,sigma=1", "lsb", 64);
  count_run(*ranks, "potts:size=16,levels=3,coupling=0.8", "temper", 16);
  ranks->leave();
  return 0;
}
