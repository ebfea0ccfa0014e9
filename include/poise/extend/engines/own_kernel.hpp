/// A sampler from a C++ kernel of your own: it runs on every model there is, and compares with every other sampler.
///
///     const Sampler mine = own_kernel("metropolis", Metropolis<AnyTarget>());
///     const RunResult result = run(make_model("ising:size=30"), mine);
///
/// A kernel is compiled for AnyTarget, which stands for any target at the price of a virtual call for each function.
/// examples/own_kernel.cpp is a whole kernel; check/exactness.hpp checks one.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/concepts.hpp>
#include <poise/extend/engines/engine_of.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// Any target behind virtual functions. It is a Target, not a sparse one: kernels that follow the moves that a move
/// affects are for the targets themselves.
class AnyTarget {
  struct HeldState {
    virtual ~HeldState() = default;
    [[nodiscard]] virtual std::unique_ptr<HeldState> copy() const = 0;
    virtual void assign(const HeldState& other) = 0;  // of the same target
    virtual void archive(Saver& out) = 0;
    virtual void archive(Loader& in) = 0;
  };

 public:
  /// A state of the target, with value semantics.
  class State {
   public:
    State(const State& other) : held_(other.held_->copy()) {}
    State& operator=(const State& other) {
      held_->assign(*other.held_);
      return *this;
    }
    State(State&&) = default;
    State& operator=(State&&) = default;
    ~State() = default;

    template <class A>
    void archive(A& archive) {
      held_->archive(archive);
    }

   private:
    friend class AnyTarget;
    explicit State(std::unique_ptr<HeldState> held) : held_(std::move(held)) {}
    std::unique_ptr<HeldState> held_;
  };

  template <Target T>
  explicit AnyTarget(std::shared_ptr<const T> target)
      : held_(std::make_shared<const HeldTarget<T>>(std::move(target))) {}

  [[nodiscard]] Index num_variables() const { return held_->variables; }
  [[nodiscard]] Index num_moves() const { return held_->moves; }
  [[nodiscard]] Index cardinality(Index i) const { return held_->cardinality(i); }
  [[nodiscard]] State make_state(std::span<const Value> x) const { return State(held_->make_state(x)); }
  [[nodiscard]] Value level(const State& state, Index i) const { return held_->level(*state.held_, i); }
  [[nodiscard]] double log_prob(const State& state) const { return held_->log_prob(*state.held_); }
  [[nodiscard]] Move move_at(const State& state, Index move) const { return held_->move_at(*state.held_, move); }
  [[nodiscard]] double log_ratio(const State& state, Move move) const { return held_->log_ratio(*state.held_, move); }
  void log_ratios(const State& state, std::span<double> out) const { held_->log_ratios(*state.held_, out); }
  void apply(State& state, Move move) const { held_->apply(*state.held_, move); }

  [[nodiscard]] std::vector<std::string> statistic_names() const { return held_->statistic_names(); }
  void statistics(const State& state, std::span<double> out) const { held_->statistics(*state.held_, out); }
  /// Whether user code computes log p for all chains in one call, so that a step takes as long as a call.
  [[nodiscard]] bool is_callback() const { return held_->callback; }

 private:
  struct Held {
    Held(Index num_variables, Index num_moves, bool is_callback)
        : variables(num_variables), moves(num_moves), callback(is_callback) {}
    virtual ~Held() = default;
    [[nodiscard]] virtual Index cardinality(Index i) const = 0;
    [[nodiscard]] virtual std::unique_ptr<HeldState> make_state(std::span<const Value> x) const = 0;
    [[nodiscard]] virtual Value level(const HeldState& state, Index i) const = 0;
    [[nodiscard]] virtual double log_prob(const HeldState& state) const = 0;
    [[nodiscard]] virtual Move move_at(const HeldState& state, Index move) const = 0;
    [[nodiscard]] virtual double log_ratio(const HeldState& state, Move move) const = 0;
    virtual void log_ratios(const HeldState& state, std::span<double> out) const = 0;
    virtual void apply(HeldState& state, Move move) const = 0;
    [[nodiscard]] virtual std::vector<std::string> statistic_names() const = 0;
    virtual void statistics(const HeldState& state, std::span<double> out) const = 0;

    Index variables;
    Index moves;
    bool callback;
  };

  template <Target T>
  struct HeldStateOf final : HeldState {
    HeldStateOf(const T& its_target, typename T::State its_state) : target(&its_target), state(std::move(its_state)) {}
    [[nodiscard]] std::unique_ptr<HeldState> copy() const override { return std::make_unique<HeldStateOf>(*this); }
    void assign(const HeldState& other) override { *this = static_cast<const HeldStateOf&>(other); }
    void archive(Saver& out) override {
      if constexpr (Archivable<typename T::State, Saver>) {
        out(state);
      } else {
        out(levels_of(*target, state));
      }
    }
    void archive(Loader& in) override {
      if constexpr (Archivable<typename T::State, Loader>) {
        in(state);
      } else {
        std::vector<Value> x;
        in(x);
        x.resize(target->num_variables());
        state = target->make_state(x);
      }
    }

    const T* target;
    typename T::State state;
  };

  template <Target T>
  struct HeldTarget final : Held {
    using StateOf = HeldStateOf<T>;
    explicit HeldTarget(std::shared_ptr<const T> its_target)
        : Held(its_target->num_variables(), its_target->num_moves(), MemoisingTarget<T>),
          target(std::move(its_target)) {}
    [[nodiscard]] static const typename T::State& of(const HeldState& state) {
      return static_cast<const StateOf&>(state).state;
    }
    [[nodiscard]] Index cardinality(Index i) const override { return target->cardinality(i); }
    [[nodiscard]] std::unique_ptr<HeldState> make_state(std::span<const Value> x) const override {
      return std::make_unique<StateOf>(*target, target->make_state(x));
    }
    [[nodiscard]] Value level(const HeldState& state, Index i) const override { return target->level(of(state), i); }
    [[nodiscard]] double log_prob(const HeldState& state) const override { return target->log_prob(of(state)); }
    [[nodiscard]] Move move_at(const HeldState& state, Index move) const override {
      return target->move_at(of(state), move);
    }
    [[nodiscard]] double log_ratio(const HeldState& state, Move move) const override {
      return target->log_ratio(of(state), move);
    }
    void log_ratios(const HeldState& state, std::span<double> out) const override {
      target->log_ratios(of(state), out);
    }
    void apply(HeldState& state, Move move) const override { target->apply(static_cast<StateOf&>(state).state, move); }
    [[nodiscard]] std::vector<std::string> statistic_names() const override {
      if constexpr (requires { target->statistic_names(); }) return target->statistic_names();
      return {};
    }
    void statistics(const HeldState& state, std::span<double> out) const override {
      if constexpr (requires { target->statistics(of(state), out); }) target->statistics(of(state), out);
    }

    std::shared_ptr<const T> target;
  };

  std::shared_ptr<const Held> held_;
};

static_assert(Target<AnyTarget>);

/// The row of a kernel that is not in the registry.
inline constexpr std::size_t kOwnRow = std::numeric_limits<std::size_t>::max();

/// Your own kernel, as a run sees it.
class OwnKernel {
 public:
  virtual ~OwnKernel() = default;
  [[nodiscard]] virtual TunableEngine make_engine(std::shared_ptr<const AnyTarget> target,
                                                  const EngineOptions& options) const = 0;
};

template <Kernel<AnyTarget> K>
class OwnKernelOf final : public OwnKernel {
 public:
  explicit OwnKernelOf(K kernel) : kernel_(std::move(kernel)) {}
  [[nodiscard]] TunableEngine make_engine(std::shared_ptr<const AnyTarget> target,
                                          const EngineOptions& options) const override {
    TunableEngine made = make_engine_of<AnyTarget>(std::move(target), kernel_, options);
    made.tuner.reset();  // the kernel moves as it was given
    return made;
  }

 private:
  K kernel_;
};

/// The target of any model, to check a kernel on: `enumerate_states(*target_of(model))`.
[[nodiscard]] std::shared_ptr<const AnyTarget> target_of(const Model& model);

/// Throws InputError where a name is that of a built-in sampler, or empty.
void check_own_name(const std::string& name);

/// A sampler whose chains move by copies of the kernel, under a name of its own. It runs on the CPU, is not tempered
/// and learns nothing. A saved run resumes in a program that gives it the same kernel under the same name.
template <Kernel<AnyTarget> K>
Sampler own_kernel(std::string name, K kernel) {
  check_own_name(name);
  Sampler sampler;
  sampler.name = std::move(name);
  sampler.row = kOwnRow;
  sampler.own = std::make_shared<const OwnKernelOf<K>>(std::move(kernel));
  return sampler;
}

}  // namespace poise
