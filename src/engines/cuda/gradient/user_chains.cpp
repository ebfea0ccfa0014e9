/// Launches and calls of user code in turns, on the stream that the code names.
#include "engines/cuda/gradient/user_chains.hpp"

#include <utility>

#include <fmt/format.h>

#include "engines/cuda/gradient/gradient_memory.hpp"
#include "engines/cuda/gradient/user_kernels.hpp"

namespace poise {

using cuda::Array;

namespace {

CudaGradientOptions with_variables(CudaGradientOptions options, const BatchShape& shape) {
  options.variables = static_cast<Index>(shape.cardinalities.size());
  return options;
}

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

}  // namespace

struct CudaUserChains::OnDevice {
  OnDevice(std::shared_ptr<DeviceFunction> the_function, const BatchShape& batch, Appearance appearance,
           cuda::GradientMemory& walk_memory)
      : function(std::move(the_function)),
        memory(walk_memory),
        shape{static_cast<std::uint32_t>(batch.cardinalities.size()), appearance == Appearance::one_hot, batch.label(0),
              batch.label(1)},
        stride((batch.cardinalities.size() + 3) / 4 * 4),
        gradients(memory.level.size() * stride),
        log_prob(memory.level.size()),
        failure(1) {
    gradients.clear();
    log_prob.clear();
  }

  [[nodiscard]] cuda::UserChainsView view() const {
    return {memory.view(),    shape,           static_cast<std::uint32_t>(stride),
            gradients.data(), log_prob.data(), failure.data()};
  }

  /// log p and gradient of the states in the room.
  [[nodiscard]] DeviceAnswers ask(const CallStream& stream) const {
    if (!function->shares_stream()) stream.wait("states were written");
    return function->evaluate();
  }

  /// A step is decided when the next one is proposed; the last one by itself. `made` counts those that are decided.
  void move_on(const CallStream& stream, std::uint64_t steps, std::uint64_t& made) const {
    DeviceAnswers answers;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const DeviceRoom room = function->room(memory.level.size());
      cuda::launch_user_step(view(), memory.law, {{step > 0, true}, answers, room}, stream.get());
      if (step > 0) ++made;
      answers = ask(stream);
    }
    cuda::launch_user_step(view(), memory.law, {{true, false}, answers, {}}, stream.get());
    ++made;
  }

  void make_room_for(std::size_t draws) {
    const std::size_t chains = memory.level.size();
    if (recorded_reals.size() >= 2 * draws * chains) return;
    recorded_differences = Array<std::int64_t>(draws * chains);
    recorded_words = Array<std::uint32_t>(draws * chains * memory.reference.size());
    recorded_reals = Array<double>(2 * draws * chains);  // the last one, by which it is known that there is room
  }
  void record(std::size_t draw, cudaStream_t stream) const {
    const std::size_t chains = memory.level.size();
    double* const reals = recorded_reals.data() + 2 * draw * chains;
    cuda::launch_user_record(
        view(),
        {memory.reference.data(), reals, reals + chains, recorded_differences.data() + draw * chains,
         recorded_words.data() + draw * chains * memory.reference.size()},
        stream);
  }
  [[nodiscard]] Records records(std::size_t draws) const {
    const std::size_t chains = memory.level.size(), row = memory.reference.size();
    std::vector<double> reals(2 * draws * chains);
    recorded_reals.download(reals);
    Records out{
        {}, {}, std::vector<std::int64_t>(draws * chains), std::vector<std::uint32_t>(draws * chains * row), row};
    recorded_differences.download(out.different);
    recorded_words.download(out.words);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      const auto first = reals.begin() + static_cast<std::ptrdiff_t>(2 * draw * chains);
      const auto middle = first + static_cast<std::ptrdiff_t>(chains);
      out.log_prob.insert(out.log_prob.end(), first, middle);
      out.accepted.insert(out.accepted.end(), middle, middle + static_cast<std::ptrdiff_t>(chains));
    }
    return out;
  }

  void expect_no_failure() { failure.upload(std::vector<std::uint64_t>{cuda::kNoFailure}); }
  /// Throws what the CPU would.
  void refuse_failure() const {
    std::vector<std::uint64_t> found(1);
    failure.download(found);
    if (found[0] == cuda::kNoFailure) return;
    const auto what = static_cast<cuda::UserFailure>(found[0] >> 32);
    if (what == cuda::UserFailure::gradient) {
      throw InputError(fmt::format("the gradient of row {} of the batch is not finite, where log p is finite",
                                   static_cast<std::uint32_t>(found[0])));
    }
    throw InputError(
        fmt::format("log_prob gave {} for a state that the chains looked at, expected a finite number or -inf",
                    what == cuda::UserFailure::nan ? "nan" : "inf"));
  }

  std::shared_ptr<DeviceFunction> function;
  cuda::GradientMemory& memory;
  cuda::UserShape shape;
  std::size_t stride;
  bool is_prepared = false;
  Array<float> gradients;
  Array<double> log_prob;
  Array<std::uint64_t> failure;
  Array<double> recorded_reals;  // [draw]: log p of all chains, then acceptances
  Array<std::int64_t> recorded_differences;
  Array<std::uint32_t> recorded_words;
};

CudaUserChains::CudaUserChains(std::shared_ptr<DeviceFunction> function, const BatchShape& shape, Appearance appearance,
                               CudaGradientOptions options)
    : CudaGradientChains(with_variables(options, shape)),
      device_(std::make_unique<OnDevice>(std::move(function), shape, appearance, memory())) {}

CudaUserChains::~CudaUserChains() = default;

void CudaUserChains::upload_states() const {
  if (memory().state.to_device(false)) device_->is_prepared = false;
}

bool CudaUserChains::prepare() const {
  upload_states();
  if (device_->is_prepared) return false;
  device_->expect_no_failure();
  {
    const CallStream stream(*device_->function);
    cuda::launch_user_states(device_->view(), device_->function->room(chains_), stream.get());
    cuda::launch_user_keep(device_->view(), device_->ask(stream), stream.get());
    stream.wait("chains were prepared");
  }
  device_->refuse_failure();
  device_->is_prepared = true;
  return true;
}

/// Calls work(stream), which puts steps on the stream, and returns when they are made.
template <class Work>
void CudaUserChains::make_steps(Work&& work) {
  static_cast<void>(prepare());
  static_cast<void>(memory().state.to_device(true));
  device_->expect_no_failure();
  {
    const CallStream stream(*device_->function);
    work(stream);
    stream.wait("steps were made");
  }
  device_->refuse_failure();
}

void CudaUserChains::advance(std::uint64_t steps) {
  if (steps == 0) return;
  make_steps([&](const CallStream& stream) { device_->move_on(stream, steps, steps_); });
}

CudaUserChains::Records CudaUserChains::advance_and_record(std::uint64_t steps, std::size_t draws) {
  device_->make_room_for(draws);
  make_steps([&](const CallStream& stream) {
    for (std::size_t draw = 0; draw < draws; ++draw) {
      device_->move_on(stream, steps, steps_);
      device_->record(draw, stream.get());
    }
  });
  return device_->records(draws);
}

CudaUserChains::Records CudaUserChains::record() const {
  static_cast<void>(prepare());
  device_->make_room_for(1);
  device_->record(0, nullptr);
  cuda::check_launch("states were recorded");
  return device_->records(1);
}

std::vector<double> CudaUserChains::log_prob() const {
  static_cast<void>(prepare());
  std::vector<double> out(chains_);
  device_->log_prob.download(out);
  return out;
}

std::vector<std::uint64_t> CudaUserChains::law() const {
  static_cast<void>(prepare());
  const Array<std::uint64_t> found(chains_ * variables_);
  cuda::launch_user_law(device_->view(), memory().law, found.data(), nullptr);
  cuda::check_launch("probabilities were asked for");
  std::vector<std::uint64_t> out(found.size());
  found.download(out);
  return out;
}

}  // namespace poise
