/// Steps of an RBM as a warp of a GPU makes them, on the host, where lanes are threads: local steps, and what is
/// proposed and counted elsewhere, against the same numbers one by one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include <cuda_runtime.h>

#include <cuda_fp16.h>

#include "support/cuda/host_warp.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/small_rbms.hpp"

// The names are those of the device. NOLINTBEGIN(bugprone-reserved-identifier)

namespace poise::cuda {

struct HostThread {
  unsigned x;
};
static thread_local HostThread threadIdx{};

inline void __syncthreads() {}
inline int __syncthreads_or(int mine) { return mine; }
inline bool __any_sync(unsigned, bool mine) { return __ballot_sync(~0U, mine) != 0; }
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
void atomicOr(T* to, T value) {
  __atomic_fetch_or(to, value, __ATOMIC_RELAXED);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64U);
}
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline long long __float2ll_rn(float x) { return std::llrint(x); }

}  // namespace poise::cuda

// NOLINTEND(bugprone-reserved-identifier)

#include "engines/cuda/rbm/rbm_walk.cuh"

namespace poise {
namespace cuda_rbm_walk_test {

using namespace poise::testing;

/// One chain of an RBM, with the memory of kernels.
class HostRbmChain {
 public:
  using Walk = cuda::RbmWalk<cuda::GradientFunction::sqrt, 32>;

  HostRbmChain(const RbmWeights& weights, std::uint64_t number)
      : words_((weights.visible + 31) / 32),
        stride_((weights.visible + 3) / 4 * 4),
        hidden_stride_((weights.hidden + 127) / 128 * 128),
        units_(std::size_t{weights.visible} * hidden_stride_, 0),
        hidden_bias_(hidden_stride_, -(std::int64_t{1} << 61)),
        activations_(2 * hidden_stride_),
        bias_(stride_, 0.0F),
        on_(hidden_stride_),
        gradients_(stride_, __float2half(0.0F)),
        state_(words_, 0),
        flips_(words_, 0),
        up_(weights.visible, 0),
        own_(2 * words_, 0) {
    constexpr double unit = 0x1p-40;
    const auto in_units = [](double value) { return std::int64_t{std::llround(value / unit)}; };
    for (Index j = 0; j < weights.hidden; ++j) {
      hidden_bias_[j] = in_units(weights.hidden_bias[j]);
      for (Index i = 0; i < weights.visible; ++i) {
        units_[i * hidden_stride_ + j] = in_units(weights.weights[std::size_t{j} * weights.visible + i]);
      }
    }
    for (Index i = 0; i < weights.visible; ++i) {
      visible_bias_.push_back(in_units(weights.visible_bias[i]));
      bias_[i] = weights.visible_bias[i];
    }
    rbm_ = {weights.visible,
            static_cast<std::uint32_t>(stride_),
            static_cast<std::uint32_t>(hidden_stride_),
            unit,
            static_cast<float>(unit),
            static_cast<float>(1.0 / unit),
            units_.data(),
            hidden_bias_.data(),
            visible_bias_.data(),
            bias_.data()};
    view_.chains = 1;
    view_.variables = weights.visible;
    view_.words = static_cast<std::uint32_t>(words_);
    view_.first_chain = number;
    view_.seed = 5;
    view_.state = state_.data();
    view_.flips = flips_.data();
    view_.level = &level_;
    view_.stretch = 1.0;
    view_.forth = &forth;
    view_.steps = &steps;
    view_.accepted = &accepted;
    view_.unchanged = &unchanged;
    view_.local_accepted = &local_accepted;
    view_.up = up_.data();
    view_.half = &half_;
    view_.activations = activations_.data();
    view_.linear = linear_;
    view_.log_prob = log_prob_;
    view_.gradients = view_.proposed_gradients = gradients_.data();
    view_.on = on_.data();
    law_.form = cuda::GradientForm::relaxation;
    law_.length = 0.3F;
    law_.log_length = std::log(0.3F);
  }

  void set_levels(const std::vector<Value>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) state_[i / 32] |= std::uint32_t{x[i]} << i % 32;
  }
  [[nodiscard]] Value level(Index i) const { return static_cast<Value>(state_[i / 32] >> i % 32 & 1U); }
  [[nodiscard]] bool flips(Index i) const { return (flips_[i / 32] >> i % 32 & 1U) != 0; }
  [[nodiscard]] double log_prob() const { return rbm_.unit * static_cast<double>(log_prob_[half_]); }
  [[nodiscard]] std::int64_t up(Index i) const { return up_[i]; }
  [[nodiscard]] std::vector<std::int64_t> activations() const { return activations_; }
  [[nodiscard]] std::span<__half> gradients() { return gradients_; }
  [[nodiscard]] const cuda::GradientLaw& law() const { return law_; }
  [[nodiscard]] const cuda::RbmChainsView& view() const { return view_; }
  [[nodiscard]] std::uint64_t level() const { return level_; }

  /// Calls work(walk) on all lanes.
  template <class Work>
  void run(const Work& work) {
    typename cuda::Reduction<32>::Rooms rooms{};
    cuda::HostWarp::run([&](unsigned lane) {
      cuda::threadIdx.x = lane;
      Walk walk(rbm_, view_, {view_, law_, cuda::Reduction<32>(rooms), own_.data(), own_.data() + words_, 0, lane});
      work(walk);
    });
  }
  void prepare() {
    run([&](Walk& walk) {
      walk.load_words();
      walk.make_many(walk.state, rbm_.hidden_bias, 0, 0);
    });
  }

  double forth = 0.0;
  std::uint64_t steps = 0;
  double accepted = 0.0, unchanged = 0.0, local_accepted = 0.0;

 private:
  std::size_t words_, stride_, hidden_stride_;
  std::vector<std::int64_t> units_, hidden_bias_, visible_bias_, activations_;
  std::vector<float> bias_;
  std::vector<__half> on_, gradients_;
  std::vector<std::uint32_t> state_, flips_;
  std::vector<std::int64_t> up_;
  std::vector<std::uint32_t> own_;
  std::uint64_t level_ = 0;
  std::uint8_t half_ = 0;
  std::int64_t linear_[2] = {}, log_prob_[2] = {};
  cuda::RbmView rbm_{};
  cuda::RbmChainsView view_{};
  cuda::GradientLaw law_{};
};

std::vector<Value> random_state(Index n, std::uint64_t seed) {
  Rng rng(seed, 3);
  std::vector<Value> x(n);
  for (Value& level : x) level = rng.uniform() < 0.5 ? 0 : 1;
  return x;
}

/// A decision is another one only where a random number lies within the rounding of log p to floats.
TEST(CudaRbmWalk, LocalStepsAreThoseOfTheHost) {
  for (const auto& [visible, hidden] : {std::pair<Index, Index>{5, 3}, {40, 130}, {100, 20}}) {
    const RbmWeights weights = random_rbm(visible, hidden, 0.4, visible);
    const std::uint32_t tries = 1 + visible / 12;
    int moved = 0;
    for (std::uint64_t number = 0; number < 4; ++number) {
      SCOPED_TRACE(std::to_string(visible) + ' ' + std::to_string(number));
      HostRbmChain chain(weights, number);
      const std::vector<Value> start = random_state(visible, number);
      std::vector<Value> x = start;
      chain.set_levels(x);
      chain.steps = 31;
      chain.prepare();
      ASSERT_NEAR(chain.log_prob(), plain_log_prob(weights, x), 1e-4);
      chain.run([&](HostRbmChain::Walk& walk) {
        walk.load_words();
        walk.make_local_step(tries);
      });
      const std::uint64_t calls = (visible + 3) / 4 + 1;
      for (std::uint32_t k = 0; k < tries; ++k) {
        const cuda::Philox words = cuda::philox(31 * calls + k, number, 5);
        const std::uint32_t unit = cuda::one_of(visible, words.word[0]);
        std::vector<Value> other = x;
        other[unit] = static_cast<Value>(1 - other[unit]);
        const double gain = plain_log_prob(weights, other) - plain_log_prob(weights, x);
        const double level = cuda::level_of(static_cast<std::uint64_t>(words.word[2]) << 32 | words.word[3]);
        if (level < std::exp(std::min(0.0, gain))) x = other;
      }
      for (Index i = 0; i < visible; ++i) {
        ASSERT_EQ(chain.level(i), x[i]) << i;
        ASSERT_EQ(chain.up(i), x[i] == start[i] ? 0 : (x[i] == 0 ? 32 : -32));
      }
      const bool changes = x != start;
      moved += changes ? 1 : 0;
      EXPECT_EQ(chain.accepted, changes ? 1.0 : 0.0);
      EXPECT_EQ(chain.local_accepted, changes ? 1.0 : 0.0);
      EXPECT_EQ(chain.unchanged, 0.0);
      EXPECT_EQ(chain.steps, 32U);
      // What is kept is what belongs to the state, however it was reached.
      HostRbmChain fresh(weights, number);
      fresh.set_levels(x);
      fresh.prepare();
      EXPECT_EQ(chain.log_prob(), fresh.log_prob());
      const std::vector<std::int64_t> found = chain.activations(), expected = fresh.activations();
      EXPECT_TRUE(
          std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2), expected.begin()));
    }
    EXPECT_GT(moved, 0);
  }
}

/// Proposals of many changes are drawn from their chances, one of none is seen as that, and a local one is of one
/// variable; what becomes of them is counted.
TEST(CudaRbmWalk, ProposalsAreThoseOfTheHost) {
  constexpr Index n = 75;
  const RbmWeights weights = random_rbm(n, 3, 0.1, 2);
  HostRbmChain chain(weights, 4);
  const std::vector<Value> x = random_state(n, 9);
  chain.set_levels(x);
  Rng rng(8, 8);
  for (__half& gradient : chain.gradients()) gradient = __float2half(static_cast<float>(rng.normal()));
  for (const std::uint64_t step : {0U, 7U, 31U}) {
    const bool local = cuda::is_local_step(step);
    bool changes = false, accepted[3] = {};
    chain.accepted = chain.unchanged = chain.local_accepted = 0.0;
    double back = 0.0;
    chain.run([&](HostRbmChain::Walk& walk) {
      walk.load_words();
      local ? walk.choose_local(step) : walk.choose_many(walk.gradients(), step);
      walk.reduction.wait();
      walk.store_flips();
      walk.reduction.wait();
      const bool some = walk.load_words_and_look();
      const double log_back = walk.log_back_of_many(walk.gradients());
      const bool found[3] = {walk.decide(0.75F, 0, cuda::GradientChange::some),
                             walk.decide(3.0F, ~0ULL >> 1U, cuda::GradientChange::local),
                             walk.decide(0.25F, ~0ULL >> 1U, cuda::GradientChange::none)};
      if (walk.thread != 0) return;
      changes = some;
      back = log_back;
      std::copy(found, found + 3, accepted);
    });
    const std::uint64_t calls = (n + 3) / 4 + 1;
    double log_forth = 0.0, log_back = 0.0;
    unsigned count = 0;
    for (Index i = 0; i < n; ++i) {
      const float gradient = __half2float(chain.gradients()[i]) + weights.visible_bias[i];
      const auto chance_of = [&](bool on) {
        return cuda::chance<cuda::GradientFunction::sqrt>(chain.law(), on ? -gradient : gradient);
      };
      const std::uint32_t there = chance_of(x[i] != 0), back_again = chance_of((x[i] != 0) != chain.flips(i));
      const bool flips = cuda::philox(step * calls + i / 4, 4, 5).word[i % 4] < there;
      if (!local) ASSERT_EQ(chain.flips(i), flips) << i;
      count += chain.flips(i) ? 1 : 0;
      log_forth += cuda::log_from_parts(cuda::log_in_parts(cuda::log_chance(there, chain.flips(i))));
      log_back += cuda::log_from_parts(cuda::log_in_parts(cuda::log_chance(back_again, chain.flips(i))));
    }
    EXPECT_NEAR(back, log_back, 1e-9);
    EXPECT_TRUE(changes);
    if (local) {
      EXPECT_EQ(count, 1U);
      EXPECT_TRUE(chain.flips(cuda::one_of(n, cuda::philox(step * calls, 4, 5).word[0])));
    } else {
      EXPECT_NEAR(chain.forth, log_forth, 1e-9);
      const cuda::Philox last = cuda::philox(step * calls + calls - 1, 4, 5);
      EXPECT_EQ(chain.level(), static_cast<std::uint64_t>(last.word[0]) << 32 | last.word[1]);
    }
    EXPECT_TRUE(accepted[0] && accepted[1] && !accepted[2]);
    EXPECT_EQ(chain.accepted, 1.75);
    EXPECT_EQ(chain.local_accepted, 1.0);
    EXPECT_EQ(chain.unchanged, 1.0);
  }
  bool changes = true;
  chain.run([&](HostRbmChain::Walk& walk) {
    if (walk.thread == 0) std::fill(walk.all.flips, walk.all.flips + walk.all.words, 0);
    walk.reduction.wait();
    const bool some = walk.load_words_and_look();
    if (walk.thread == 0) changes = some;
  });
  EXPECT_FALSE(changes);
}

}  // namespace cuda_rbm_walk_test
}  // namespace poise
