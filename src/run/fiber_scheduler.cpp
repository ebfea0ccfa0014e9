/// Fibers by stackful coroutines.
#include <poise/run/fiber_scheduler.hpp>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "stack_switch.hpp"

namespace poise {

namespace {

namespace context = boost::context;

/// Ample for a kernel and for an exception on its way out; what is called in `serve` has the thread's own stack.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

/// Thrown inside of a fiber that has to end because another one failed.
struct FiberEnded {};

/// Stacks with a guard page, kept from one round to the next: mapping one takes longer than many a fiber runs.
class Stacks {
 public:
  Stacks() : source_(kStackBytes) {}
  ~Stacks() {
    for (context::stack_context& stack : free_) source_.deallocate(stack);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  context::stack_context take() {
    if (free_.empty()) return source_.allocate();
    const context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give(const context::stack_context& stack) { free_.push_back(stack); }

 private:
  context::protected_fixedsize_stack source_;
  std::vector<context::stack_context> free_;
};

/// Where a fiber leaves its stack when it is over.
struct StackReturn {
  Stacks* stacks;
  void deallocate(context::stack_context& stack) const { stacks->give(stack); }
};

StackBounds bounds_of(const context::stack_context& stack) {
  return {static_cast<const char*>(stack.sp) - stack.size, stack.size};
}

}  // namespace

struct FiberScheduler::Fibers {
  Stacks stacks;
  struct Waiting {
    context::fiber fiber;  // where it goes on; empty when it is over
    StackBounds stack;
  };
  std::vector<Waiting> waiting;
  context::fiber scheduler;  // where the present fiber returns to
  StackBounds scheduler_stack;
  bool inside = false;
  std::atomic<bool> running{false};
  std::exception_ptr failure;
};

FiberScheduler::FiberScheduler(std::function<void()> serve, std::function<void()> forget)
    : serve_(std::move(serve)), forget_(std::move(forget)), fibers_(std::make_unique<Fibers>()) {}
FiberScheduler::~FiberScheduler() = default;

void FiberScheduler::wait() {
  if (!fibers_->inside) {
    serve_();
    return;
  }
  {
    const StackSwitch leaving(fibers_->scheduler_stack);
    fibers_->scheduler = std::move(fibers_->scheduler).resume();
  }
  if (fibers_->failure) throw FiberEnded{};
}

void FiberScheduler::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (fibers_->running.exchange(true)) throw std::runtime_error("these chains are making steps already");
  fibers_->waiting.clear();
  fibers_->failure = nullptr;
  for (std::size_t index = 0; index < count; ++index) {
    const context::stack_context stack = fibers_->stacks.take();
    const auto body = [this, index, &work](context::fiber&& back) {
      fibers_->scheduler_stack = enter_stack();
      fibers_->scheduler = std::move(back);
      try {
        if (!fibers_->failure) work(index);
      } catch (const FiberEnded&) {
      } catch (...) {
        if (!fibers_->failure) fibers_->failure = std::current_exception();
      }
      leave_stack(fibers_->scheduler_stack);
      return std::move(fibers_->scheduler);
    };
    const context::preallocated room(stack.sp, stack.size, stack);
    fibers_->waiting.push_back(
        {context::fiber(std::allocator_arg, room, StackReturn{&fibers_->stacks}, body), bounds_of(stack)});
  }
  for (bool any = count > 0; any;) {
    any = false;
    fibers_->inside = true;
    for (auto& [fiber, stack] : fibers_->waiting) {
      if (!fiber) continue;
      const StackSwitch leaving(stack);
      fiber = std::move(fiber).resume();
      any = any || fiber;
    }
    fibers_->inside = false;
    if (!any || fibers_->failure) continue;  // after a failure the others are resumed once more, to end
    try {
      serve_();
    } catch (...) {
      fibers_->failure = std::current_exception();
    }
  }
  fibers_->waiting.clear();
  if (fibers_->failure) forget_();
  fibers_->running = false;
  if (fibers_->failure) std::rethrow_exception(std::exchange(fibers_->failure, nullptr));
}

}  // namespace poise
