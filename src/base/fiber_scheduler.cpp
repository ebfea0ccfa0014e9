/// FiberScheduler by stackful coroutines of Boost.Context.
#include "base/fiber_scheduler.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

namespace poise {

// The address sanitizer, where the build has it, is told when a thread continues on another stack: it would take the
// frames of an exception that is thrown there for a corrupted stack.

/// Where a stack lies.
struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size = 0;
};

#if defined(__SANITIZE_ADDRESS__)

/// Lives while this stack waits for the one it switches to.
class StackSwitch {
 public:
  explicit StackSwitch(const StackBounds& to) { __sanitizer_start_switch_fiber(&frames_, to.bottom, to.size); }
  ~StackSwitch() { __sanitizer_finish_switch_fiber(frames_, nullptr, nullptr); }
  StackSwitch(const StackSwitch&) = delete;
  StackSwitch& operator=(const StackSwitch&) = delete;

 private:
  void* frames_ = nullptr;
};

/// First thing on a new stack; gives the bounds of the one that it was entered from.
inline StackBounds enter_stack() {
  StackBounds from;
  __sanitizer_finish_switch_fiber(nullptr, &from.bottom, &from.size);
  return from;
}

/// Last thing on a stack that is not continued.
inline void leave_stack(const StackBounds& to) { __sanitizer_start_switch_fiber(nullptr, to.bottom, to.size); }

#else

struct StackSwitch {
  explicit StackSwitch(const StackBounds&) {}
};
inline StackBounds enter_stack() { return {}; }
inline void leave_stack(const StackBounds&) {}

#endif

namespace {

namespace context = boost::context;

/// Ample for a kernel and for an exception on its way out; what is called in `serve` has the thread's own stack.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

/// Fibers that begin at once, and that there may be before more begin. Those that fibers add come on top: a stack with
/// its guard page takes two of the 65530 mappings that Linux allows a process.
constexpr std::size_t kFirstFibers = 64;
constexpr std::size_t kMostFibers = 16384;

/// Thrown inside of a fiber that has to end because another one failed.
struct FiberEnded {};

/// What Boost would look up once: its own code for that makes a library that is loaded late ask for thread-local memory
/// that there may be no more of.
struct StackSizes {
  static bool is_unbounded() { return true; }
  static std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  static std::size_t default_size() { return kStackBytes; }
  static std::size_t minimum_size() { return kStackBytes; }
  static std::size_t maximum_size() { return kStackBytes; }
};

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
    if (free_.empty()) return map();
    const context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give(const context::stack_context& stack) { free_.push_back(stack); }

 private:
  context::stack_context map() {
    try {
      return source_.allocate();
    } catch (const std::bad_alloc&) {
      throw std::runtime_error(
          "the system has no room for the stacks of so many chains and replicas at a time (memory, or mappings: "
          "vm.max_map_count): run fewer chains");
    }
  }

  context::basic_protected_fixedsize_stack<StackSizes> source_;
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
    context::fiber fiber;  // where it continues; empty when it is over
    StackBounds stack;
  };
  std::deque<Waiting> waiting;  // fibers join while others run: what is there stays where it is
  context::fiber scheduler;     // where the present fiber returns to
  StackBounds scheduler_stack;
  bool inside = false;
  std::atomic<bool> running{false};
  std::atomic<std::thread::id> thread;  // that runs them
  std::exception_ptr failure;

  using Work = std::function<void(std::size_t)>;
  void add(std::size_t first, std::size_t last, const Work& work, const std::shared_ptr<std::size_t>& left);
};

/// `left` counts those that are not over; it may outlive the caller, which a failure ends before the fibers it added.
void FiberScheduler::Fibers::add(std::size_t first, std::size_t last, const Work& work,
                                 const std::shared_ptr<std::size_t>& left) {
  for (std::size_t index = first; index < last; ++index) {
    const context::stack_context stack = stacks.take();
    const auto body = [this, index, left, &work](context::fiber&& back) {
      scheduler_stack = enter_stack();
      scheduler = std::move(back);
      try {
        if (!failure) work(index);
      } catch (const FiberEnded&) {
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
      --*left;
      leave_stack(scheduler_stack);
      return std::move(scheduler);
    };
    const context::preallocated room(stack.sp, stack.size, stack);
    ++*left;
    waiting.push_back({context::fiber(std::allocator_arg, room, StackReturn{&stacks}, body), bounds_of(stack)});
  }
}

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
  const auto left = std::make_shared<std::size_t>(0);
  if (fibers_->running.exchange(true)) {
    if (fibers_->thread != std::this_thread::get_id() || !fibers_->inside) {
      throw std::runtime_error("these chains are making steps already");
    }
    fibers_->add(0, count, work, left);
    while (*left > 0) wait();
    return;
  }
  fibers_->thread = std::this_thread::get_id();
  fibers_->waiting.clear();
  fibers_->failure = nullptr;
  std::size_t begun = 0;
  const auto begin_more = [&] {
    if (begun == count || fibers_->failure) return;
    if (begun > 0 && fibers_->waiting.size() >= kMostFibers) return;
    const std::size_t first = std::exchange(begun, std::min(count, begun + kFirstFibers));
    try {
      fibers_->add(first, begun, work, left);
    } catch (...) {
      fibers_->failure = std::current_exception();
    }
  };
  for (begin_more(); !fibers_->waiting.empty(); begin_more()) {
    fibers_->inside = true;
    for (std::size_t k = 0; k < fibers_->waiting.size(); ++k) {
      auto& [fiber, stack] = fibers_->waiting[k];
      {
        const StackSwitch leaving(stack);
        fiber = std::move(fiber).resume();
      }
      if (k + 1 == fibers_->waiting.size()) begin_more();
    }
    fibers_->inside = false;
    std::erase_if(fibers_->waiting, [](const Fibers::Waiting& one) { return !one.fiber; });
    // After a failure the others are resumed once more, to end.
    if (fibers_->waiting.empty() || fibers_->failure) continue;
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
