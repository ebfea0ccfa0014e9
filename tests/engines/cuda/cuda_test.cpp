/// Chains on a GPU: the same draws as on the CPU, bit by bit, whatever the number of chains and their division. Skipped
/// where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include <poise/extend/engines/tuner.hpp>
#include "engines/cuda/flips/flip_chains.hpp"
#include "engines/rows.hpp"
#include "models/ising/ising_model.hpp"
#include "run/start.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/cuda/parity.hpp"
#include "support/small_targets.hpp"

namespace poise::cuda_test {

using namespace poise::testing;

Model spec_model(const char* spec) { return ising_model(make_ising(parse_spec(spec))); }

/// A graph in which nobody has more than `degree` neighbours, couplings of both signs.
Model graph_model(Index n, Index degree, std::uint64_t seed) {
  Rng rng(seed, 1);
  IsingModel model;
  model.variables = n;
  model.name = "graph";
  model.field = random_field(n, 1.0, seed);
  std::vector<Index> degrees(n, 0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) {
      if (degrees[i] == degree || degrees[j] == degree || rng.uniform() < 0.9) continue;
      model.edges.push_back({i, j, 2.0 * rng.uniform() - 1.0});
      ++degrees[i], ++degrees[j];
    }
  }
  return ising_model(std::move(model));
}

RunOptions short_run(std::size_t chains, Device device) { return short_run_on(device, chains); }

void expect_same(const RunResult& here, const RunResult& there) {
  EXPECT_EQ(here.trace.x, there.trace.x);
  EXPECT_EQ(here.trace.monitors, there.trace.monitors);
  EXPECT_EQ(here.trace.acceptance_rate, there.trace.acceptance_rate);
  EXPECT_EQ(here.empirical_marginals, there.empirical_marginals);
}

TEST_F(OnGpu, DrawsAreThoseOfTheCpu) {
  const Model models[] = {spec_model("ising:size=7x9,lambda=0.4,mu=1,sigma=2"),
                          spec_model("ising:size=12x12,lambda=0.3"),
                          spec_model("ising:size=64x192,lambda=0.3"),
                          spec_model("ising:size=100x131,lambda=0.3,boundary=open"),
                          spec_model("ising:size=6x5,lambda=0.5,mu=1,sigma=2,boundary=open"),
                          graph_model(40, 3, 1),
                          graph_model(60, 4, 2),
                          graph_model(60, 5, 3),
                          graph_model(80, 6, 4)};
  for (const Model& model : models) {
    for (const std::size_t chains : {1, 3, 5, 33, 100, 700}) {
      SCOPED_TRACE(model.name + ", " + std::to_string(chains));
      for (const std::uint64_t first : {0, 37}) {
        RunOptions cpu = short_run(chains, Device::cpu);
        RunOptions cuda = short_run(chains, Device::cuda);
        cpu.first_chain = cuda.first_chain = first;
        expect_same(run(model, parse_sampler("gibbs"), cpu), run(model, parse_sampler("gibbs"), cuda));
      }
    }
  }
}

TEST_F(OnGpu, ManySweepsAreCounted) {
  const Model model = spec_model("ising:size=5x5,lambda=0.3,mu=1,sigma=2");
  RunOptions cpu = short_run(40, Device::cpu);
  RunOptions cuda = short_run(40, Device::cuda);
  cpu.draws = cuda.draws = 7;
  cpu.thin = cuda.thin = 131;  // planes of bits are full after 255
  expect_same(run(model, parse_sampler("gibbs"), cpu), run(model, parse_sampler("gibbs"), cuda));
}

/// Many draws are recorded in one call: some of them while the sweeps of the next ones go on.
TEST_F(OnGpu, MonitorsOfManyDrawsAreThoseOfTheCpu) {
  for (const Model& model : {spec_model("ising:size=7x9,lambda=0.4,mu=1,sigma=2"), graph_model(80, 6, 4)}) {
    for (const std::size_t chains : {2, 40, 700}) {
      for (const std::uint64_t thin : {1, 2, 17}) {
        SCOPED_TRACE(model.name + ", " + std::to_string(chains) + ", " + std::to_string(thin));
        RunOptions cpu = short_run(chains, Device::cpu);
        RunOptions cuda = short_run(chains, Device::cuda);
        cpu.draws = cuda.draws = 115;
        cpu.thin = cuda.thin = thin;
        cpu.keep = cuda.keep = Keep::monitors;
        expect_same(run(model, parse_sampler("gibbs"), cpu), run(model, parse_sampler("gibbs"), cuda));
      }
    }
  }
}

/// Places of draws are used again and again, and made anew where draws have other numbers of sweeps.
TEST_F(OnGpu, PlacesOfDrawsAreUsedAgain) {
  const Model model = graph_model(80, 6, 4);
  const Sampler gibbs = parse_sampler("gibbs");
  const auto numbers = [&](Device device) {
    EngineOptions options = engine_options(model, short_run(70, device));
    options.device = device;
    const std::unique_ptr<Engine> engine = make_engine(model, gibbs, options).engine;
    const ChainGroup all = engine->share_out(1).front();
    std::vector<double> log_prob;
    for (const auto& [steps, draws] : {std::pair(1, 700), std::pair(2, 300), std::pair(1, 65), std::pair(1, 640)}) {
      std::vector<double> found(draws * all.count);
      std::vector<Observables> wanted(draws);
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        wanted[k].log_prob = std::span(found).subspan(k * all.count, all.count);
      }
      engine->advance_and_observe(all, steps, wanted);
      log_prob.insert(log_prob.end(), found.begin(), found.end());
    }
    return log_prob;
  };
  EXPECT_EQ(numbers(Device::cpu), numbers(Device::cuda));
}

/// A state saved on one device goes on on the other.
TEST_F(OnGpu, GoesOnFromAState) {
  const Model model = graph_model(60, 6, 3);
  const Sampler gibbs = parse_sampler("gibbs");
  const RunOptions cpu = short_run(70, Device::cpu);
  const RunOptions cuda = short_run(70, Device::cuda);
  for (const auto& [from, to] : {std::pair(cpu, cuda), std::pair(cuda, cpu), std::pair(cuda, cuda)}) {
    poise::Run first(model, gibbs, from);
    first.warm_up();
    first.sample(5);
    poise::Run second(model, gibbs, to);
    second.load(first.save());
    second.sample(7);
    expect_same(run(model, gibbs, cpu), second.finish());
  }
}

/// All states of a small lattice, and their probabilities.
struct Enumerated {
  std::shared_ptr<const LatticeIsing> target;
  std::vector<std::vector<Value>> states;
  std::vector<double> probability;

  explicit Enumerated(std::shared_ptr<const LatticeIsing> the_target) : target(std::move(the_target)) {
    const Index n = target->num_variables();
    double sum = 0.0;
    for (std::size_t number = 0; number < std::size_t{1} << n; ++number) {
      states.push_back(state_of_number(number, n));
      probability.push_back(std::exp(target->log_prob(target->make_state(states.back()))));
      sum += probability.back();
    }
    for (double& p : probability) p /= sum;
  }
};

std::vector<Enumerated> small_lattices() {
  const auto make = [](Index rows, Index columns, Boundary boundary, double coupling) {
    return Enumerated(std::make_shared<const LatticeIsing>(rows, columns, boundary, coupling,
                                                           random_field(rows * columns, 1.0, rows)));
  };
  std::vector<Enumerated> out;
  out.push_back(make(3, 3, Boundary::torus, 0.4));
  out.push_back(make(3, 4, Boundary::torus, -0.7));
  out.push_back(make(2, 5, Boundary::open, 0.6));
  out.push_back(make(1, 6, Boundary::open, 0.5));
  return out;
}

/// The kernel's own probabilities keep the distribution, and its proposals are those of the function.
TEST_F(OnGpu, FlipsAreExact) {
  for (const Enumerated& all : small_lattices()) {
    const LatticeIsing& target = *all.target;
    const Index n = target.num_variables();
    for (const auto kind : {BalancingFunction::Kind::sqrt, BalancingFunction::Kind::barker,
                            BalancingFunction::Kind::min, BalancingFunction::Kind::max}) {
      const BalancingFunction function(kind);
      CudaLattice lattice{target.rows(), target.columns(), target.is_torus(), {}, {}, std::vector<Value>(n, 0)};
      std::vector<double> log_g;
      for (unsigned code = 0; code < cuda::kSiteCodes; ++code) {
        for (Index i = 0; i < n; ++i) {
          lattice.log_ratios.push_back(target.coded_log_ratio(i, code < 5 ? code : LatticeIsing::kUp + code - 5));
          log_g.push_back(function.log_g(lattice.log_ratios.back()));
        }
      }
      CudaFlipChains chains(lattice, all.states.size(), 1, 0);
      chains.set_weights(log_g);
      for (std::size_t s = 0; s < all.states.size(); ++s) chains.set_levels(s, all.states[s]);
      const CudaFlipChains::Probabilities found = chains.probabilities();
      for (std::size_t s = 0; s < all.states.size(); ++s) {
        const auto state = target.make_state(all.states[s]);
        double total = 0.0;
        std::vector<double> weights(n);
        for (Index i = 0; i < n; ++i) {
          total += weights[i] = std::exp(function.log_g(target.log_ratio(state, target.move_at(state, i))));
        }
        for (Index i = 0; i < n; ++i) {
          const std::size_t k = s * n + i;
          const std::size_t other = s ^ (std::size_t{1} << i);
          ASSERT_NEAR(found.proposal[k], weights[i] / total, 1e-12);
          const double there = all.probability[s] * found.proposal[k] * found.acceptance[k];
          const double back = all.probability[other] * found.proposal[other * n + i] * found.acceptance[other * n + i];
          ASSERT_NEAR(there, back, 1e-12) << s << ' ' << i;
        }
      }
    }
  }
}

/// A lattice as a model of its own.
Model model_of(const LatticeIsing& target) {
  IsingModel ising;
  ising.rows = target.rows();
  ising.columns = target.columns();
  ising.torus = target.is_torus();
  ising.coupling = target.coupling();
  for (Index i = 0; i < target.num_variables(); ++i) ising.field.push_back(target.field(i));
  ising.variables = target.num_variables();
  return ising_model(ising);
}

/// What one step leads to, counted, has the probabilities of the transition.
TEST_F(OnGpu, OneStepHasItsProbabilities) {
  constexpr std::size_t chains = 200000;
  const BalancingFunction function(BalancingFunction::Kind::sqrt);
  for (const Enumerated& all : small_lattices()) {
    const LatticeIsing& target = *all.target;
    const Index n = target.num_variables();
    const auto weights_of = [&](std::size_t s, std::vector<double>& out) {
      const auto state = target.make_state(all.states[s]);
      double total = 0.0;
      out.resize(n);
      for (Index i = 0; i < n; ++i) {
        total += out[i] = std::exp(function.log_g(target.log_ratio(state, target.move_at(state, i))));
      }
      return total;
    };
    for (const std::size_t s : {std::size_t{0}, all.states.size() / 3, all.states.size() - 1}) {
      RunOptions options = short_run(chains, Device::cuda);
      options.start = Start::given;
      options.given = all.states[s];
      poise::Run run(model_of(target), parse_sampler("lb:g=sqrt"), options);
      run.advance(1);
      const std::vector<Value> states = run.states();
      std::vector<double> count(n + 1, 0.0);
      for (std::size_t c = 0; c < chains; ++c) {
        const std::size_t changed = number_of_state(std::span(states).subspan(c * n, n)) ^ s;
        ASSERT_LE(std::popcount(changed), 1);
        ++count[changed == 0 ? n : static_cast<std::size_t>(std::countr_zero(changed))];
      }
      std::vector<double> weights, others, expected(n + 1, 0.0);
      const double total = weights_of(s, weights);
      expected[n] = chains;
      for (Index i = 0; i < n; ++i) {
        const double accepted = std::min(1.0, total / weights_of(s ^ std::size_t{1} << i, others));
        expected[i] = chains * weights[i] / total * accepted * n / (n + 1.0);  // one step in n + 1 rests
        expected[n] -= expected[i];
      }
      expected[n] = std::max(0.0, expected[n]);
      for (Index i = 0; i <= n; ++i) {
        EXPECT_NEAR(count[i], expected[i], 6.0 * std::sqrt(expected[i]) + 1.0) << s << ' ' << i;
      }
    }
  }
}

/// Where p is flat every change is accepted, and still draws a sweep apart are even and odd.
TEST_F(OnGpu, ParityOfFlipsIsNotThatOfSteps) {
  for (const char* spec :
       {"ising:size=3x3,lambda=0,boundary=open", "ising:size=5x2,lambda=0,boundary=open", "ising:size=4x4,lambda=0",
        "ising:size=2x40,lambda=0,boundary=open", "ising:size=3x33,lambda=0"}) {
    expect_parity_of_a_sweep(spec_model(spec), "lb:g=sqrt");
    expect_parity_of_a_sweep(spec_model(spec), "lb:g=min");
  }
}

/// Chains that begin with draws from the distribution stay there.
TEST_F(OnGpu, StepsKeepTheLaw) {
  for (const char* sampler : {"lb:g=sqrt", "lb:g=barker", "gibbs"}) {
    for (const Enumerated& all : small_lattices()) {
      const std::vector<double> count =
          counts_after(model_of(*all.target), parse_sampler(sampler), all.probability, 40);
      double sum = 0.0;
      for (const double c : count) sum += c;
      std::vector<double> expected = all.probability;
      for (double& e : expected) e *= sum;
      EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << sampler << ' ' << count.size();
    }
  }
}

/// A chain does not depend on how many others there are, nor a run on where it was saved.
TEST_F(OnGpu, FlipsDependOnSeedAndChain) {
  const Model model = spec_model("ising:size=40x37,lambda=0.4,mu=1,sigma=2,boundary=open");
  for (const char* sampler : {"lb:g=sqrt", "lb:g=min"}) {
    RunOptions options = short_run(9, Device::cuda);
    options.thin = 77;
    const RunResult whole = run(model, parse_sampler(sampler), options);
    poise::Run first(model, parse_sampler(sampler), options);
    first.warm_up();
    first.sample(5);
    poise::Run second(model, parse_sampler(sampler), options);
    second.load(first.save());
    second.sample(7);
    const RunResult resumed = second.finish();
    EXPECT_EQ(whole.trace.x, resumed.trace.x);
    EXPECT_EQ(whole.trace.monitors, resumed.trace.monitors);
    EXPECT_EQ(whole.empirical_marginals, resumed.empirical_marginals);
    for (std::size_t k = 0; k < whole.trace.acceptance_rate.size(); ++k) {
      ASSERT_NEAR(whole.trace.acceptance_rate[k], resumed.trace.acceptance_rate[k], 1e-12);  // sums in other pieces
    }
    options.first_chain = 6;
    options.chains = 3;
    const RunResult part = run(model, parse_sampler(sampler), options);
    const std::size_t size = part.trace.x.size();
    EXPECT_TRUE(
        std::equal(part.trace.x.begin(), part.trace.x.end(), whole.trace.x.end() - static_cast<std::ptrdiff_t>(size)));
  }
}

TEST_F(OnGpu, LearnsAsTheCpuDoes) {
  const Model model = spec_model("ising:case=3");
  RunOptions options = short_run(16, Device::cuda);
  options.warmup = 400;
  options.draws = 400;
  options.keep = Keep::monitors;
  const RunResult there = run(model, parse_sampler("lsb"), options);
  options.device = Device::cpu;
  const RunResult here = run(model, parse_sampler("lsb"), options);
  EXPECT_NEAR(there.acceptance_rate, here.acceptance_rate, 0.03);
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  EXPECT_NEAR(mean(there.trace.monitors[0]) / mean(here.trace.monitors[0]), 1.0, 0.01);
}

TEST_F(OnGpu, RefusesWhatDoesNotRunThere) {
  const RunOptions options = short_run(4, Device::cuda);
  EXPECT_THROW(poise::Run(graph_model(60, 4, 3), parse_sampler("sw"), options), InputError);
  EXPECT_THROW(poise::Run(spec_model("ising:size=5x65"), parse_sampler("gwg"), options), InputError);
}

TEST_F(OnGpu, TooManyChainsAreASentence) {
  RunOptions options = short_run(1, Device::cuda);
  options.keep = Keep::monitors;
  options.chains = std::size_t{1} << 20;
  const Model model = spec_model("ising:size=3000x3000,lambda=0.3");  // 1 TB of states
  EXPECT_THROW(
      {
        EngineOptions engine;
        engine.device = Device::cuda;
        engine.starts.assign(options.chains, {});
        (void)make_engine(model, parse_sampler("gibbs"), engine);
      },
      InputError);
}

TEST(Devices, WithoutAGpuThereIsASentence) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THROW(require_cuda(), InputError);
  EXPECT_THROW(poise::Run(spec_model("ising:size=4"), parse_sampler("gibbs"), short_run(2, Device::cuda)), InputError);
}

}  // namespace poise::cuda_test
