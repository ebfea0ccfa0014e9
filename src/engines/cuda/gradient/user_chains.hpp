/// Chains of a user target on a GPU: states, gradients, proposals and acceptance stay on the device, where user code
/// computes log p for all chains in one call a step. Launches and calls of user code take turns, on the stream that the
/// code names.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/models/batch_function.hpp>
#include "engines/cuda/gradient/gradient_chains.hpp"
#include "engines/cuda/gradient/user_kernels.hpp"

namespace poise {

class CudaUserChains final : public CudaGradientChains {
 public:
  /// How the function sees a variable: as the label of its level, or as a pair of numbers with a one at the level.
  enum class Appearance { labels, one_hot };

  /// Variables are those of the shape, of two levels each; the options need not say how many. Throws an InputError
  /// where the GPU has too little memory.
  CudaUserChains(std::shared_ptr<DeviceFunction> function, const BatchShape& shape, Appearance appearance,
                 const CudaGradientOptions& options)
      : CudaGradientChains({options.form, options.chains, static_cast<Index>(shape.cardinalities.size()), options.seed,
                            options.first_chain}),
        function_(std::move(function)),
        shape_{variables_, appearance == Appearance::one_hot, shape.label(0), shape.label(1)},
        stride_((variables_ + 3) / 4 * 4),
        gradients_(cuda::zeros<float>(chains_ * stride_)),
        log_prob_(cuda::zeros<double>(chains_)),
        failure_(1) {}

  /// Has log p and gradients of states that were set computed, if any were, and says so. Throws an InputError where the
  /// function gave a number that is none.
  bool prepare() const {
    if (state_.to_device(false)) is_prepared_ = false;
    if (is_prepared_) return false;
    call("chains were prepared", [&](const CallStream& stream) {
      cuda::launch_user_states(view(), function_->room(chains_), stream.get());
      cuda::launch_user_keep(view(), ask(stream), stream.get());
    });
    is_prepared_ = true;
    return true;
  }
  /// Returns when the steps are made. What the function throws leaves the chains where they are.
  void advance(std::uint64_t steps) {
    if (steps == 0) return;
    make_steps([&](const CallStream& stream) { move_on(stream, steps); });
  }

  /// What is recorded of some draws, [draw][chain].
  struct Records {
    std::vector<double> log_prob;
    std::vector<double> accepted;         ///< acceptance probabilities, summed
    std::vector<std::int64_t> different;  ///< variables that are not as in the reference
    std::vector<std::uint32_t> words;     ///< of states, for cuda::unpack_bits
    std::size_t row = 0;                  ///< words of a state
  };
  /// So many steps for each of some draws, which wait on the device until all are made.
  [[nodiscard]] Records advance_and_record(std::uint64_t steps, std::size_t draws) {
    make_room_for(draws);
    make_steps([&](const CallStream& stream) {
      for (std::size_t draw = 0; draw < draws; ++draw) {
        move_on(stream, steps);
        record(draw, stream.get());
      }
    });
    return records(draws);
  }
  /// Records the present states.
  [[nodiscard]] Records record() const {
    prepare();
    make_room_for(1);
    record(0, nullptr);
    cuda::check_launch("states were recorded");
    return records(1);
  }
  [[nodiscard]] std::vector<double> log_prob() const {
    prepare();
    return log_prob_.download();
  }

  /// What a step from the present states is made of, for tests: of [chain][variable], weights, or probabilities in
  /// units of 2^-32.
  [[nodiscard]] std::vector<std::uint64_t> law() const {
    prepare();
    const cuda::Array<std::uint64_t> found(chains_ * variables_);
    cuda::launch_user_law(view(), law_, found.data(), nullptr);
    cuda::check_launch("probabilities were asked for");
    return found.download();
  }

 private:
  /// The stream of a call, which is idle when the call ends, by an exception too: the host reads what the device wrote.
  class CallStream {
   public:
    explicit CallStream(DeviceFunction& function) : stream_(static_cast<cudaStream_t>(function.stream())) {
      // What was copied to the device went by the default stream, which others need not wait for.
      cuda::check(cudaStreamSynchronize(nullptr), "data were copied to it");
    }
    ~CallStream() { static_cast<void>(cudaStreamSynchronize(stream_)); }
    CallStream(const CallStream&) = delete;
    CallStream& operator=(const CallStream&) = delete;

    [[nodiscard]] cudaStream_t get() const { return stream_; }
    void wait(const char* what) const {
      cuda::check_launch(what);
      cuda::check(cudaStreamSynchronize(stream_), what);
    }

   private:
    cudaStream_t stream_;
  };

  [[nodiscard]] cuda::UserChainsView view() const {
    return {CudaGradientChains::view(), shape_,           static_cast<std::uint32_t>(stride_),
            gradients_.data(),          log_prob_.data(), failure_.data()};
  }

  /// Calls work(stream), and returns when what it has put on the stream is done. Throws what the CPU would where the
  /// code has given a number that is none.
  template <class Work>
  void call(const char* what, Work&& work) const {
    failure_.upload(std::vector<std::uint64_t>{cuda::kNoFailure});
    {
      const CallStream stream(*function_);
      work(stream);
      stream.wait(what);
    }
    const std::uint64_t found = failure_.download().front();
    if (found == cuda::kNoFailure) return;
    const auto failure = static_cast<cuda::UserFailure>(found >> 32);
    if (failure == cuda::UserFailure::gradient) {
      throw InputError(fmt::format("the gradient of row {} of the batch is not finite, where log p is finite",
                                   static_cast<std::uint32_t>(found)));
    }
    throw InputError(
        fmt::format("log_prob gave {} for a state that the chains looked at, expected a finite number or -inf",
                    failure == cuda::UserFailure::nan ? "nan" : "inf"));
  }
  template <class Work>
  void make_steps(Work&& work) {
    prepare();
    state_.to_device(true);
    call("steps were made", work);
  }

  /// log p and gradient of the states in the room.
  [[nodiscard]] DeviceAnswers ask(const CallStream& stream) const {
    if (!function_->shares_stream()) stream.wait("states were written");
    return function_->evaluate();
  }
  /// A step is decided when the next one is proposed; the last one by itself. Those that are decided are counted.
  void move_on(const CallStream& stream, std::uint64_t steps) {
    DeviceAnswers answers;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const DeviceRoom room = function_->room(chains_);
      cuda::launch_user_step(view(), law_, {{step > 0, true}, answers, room}, stream.get());
      if (step > 0) ++steps_;
      answers = ask(stream);
    }
    cuda::launch_user_step(view(), law_, {{true, false}, answers, {}}, stream.get());
    ++steps_;
  }

  void make_room_for(std::size_t draws) const {
    if (recorded_reals_.size() >= 2 * draws * chains_) return;
    recorded_differences_ = cuda::Array<std::int64_t>(draws * chains_);
    recorded_words_ = cuda::Array<std::uint32_t>(draws * chains_ * state_.words());
    recorded_reals_ =
        cuda::Array<double>(2 * draws * chains_);  // the last one, by which it is known that there is room
  }
  void record(std::size_t draw, cudaStream_t stream) const {
    double* const reals = recorded_reals_.data() + 2 * draw * chains_;
    cuda::launch_user_record(view(),
                             {reference_.data(), reals, reals + chains_, recorded_differences_.data() + draw * chains_,
                              recorded_words_.data() + draw * chains_ * state_.words()},
                             stream);
  }
  [[nodiscard]] Records records(std::size_t draws) const {
    const std::vector<double> reals = recorded_reals_.download(0, 2 * draws * chains_);
    Records out{{},
                {},
                recorded_differences_.download(0, draws * chains_),
                recorded_words_.download(0, draws * chains_ * state_.words()),
                state_.words()};
    for (std::size_t draw = 0; draw < draws; ++draw) {
      const double* const first = reals.data() + 2 * draw * chains_;
      out.log_prob.insert(out.log_prob.end(), first, first + chains_);
      out.accepted.insert(out.accepted.end(), first + chains_, first + 2 * chains_);
    }
    return out;
  }

  std::shared_ptr<DeviceFunction> function_;
  cuda::UserShape shape_;
  std::size_t stride_;
  mutable bool is_prepared_ = false;
  cuda::Array<float> gradients_;
  cuda::Array<double> log_prob_;
  mutable cuda::Array<std::uint64_t> failure_;
  mutable cuda::Array<double> recorded_reals_;  // [draw]: log p of all chains, then acceptances
  mutable cuda::Array<std::int64_t> recorded_differences_;
  mutable cuda::Array<std::uint32_t> recorded_words_;
};

}  // namespace poise
