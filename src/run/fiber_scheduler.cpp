/// Fibers by stackful coroutines.
#include <poise/run/fiber_scheduler.hpp>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poise {

namespace {

namespace context = boost::context;

/// Ample for a kernel and for an exception on its way out; what is called in `serve` has the thread's own stack.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

/// Thrown inside of a turn that has to end because another one failed.
struct TurnEnded {};

/// Stacks with a guard page, kept from one round to the next: mapping one takes longer than many a turn.
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

/// What a fiber takes its stack from.
struct StackSource {
  Stacks* stacks;
  [[nodiscard]] context::stack_context allocate() const { return stacks->take(); }
  void deallocate(context::stack_context& stack) const { stacks->give(stack); }
};

}  // namespace

struct FiberScheduler::Fibers {
  Stacks stacks;
  std::vector<context::fiber> waiting;  // where each turn goes on; empty when it is over
  context::fiber scheduler;             // where the present turn returns to
  bool inside = false;
  std::atomic<bool> running{false};
  std::exception_ptr failure;
};

FiberScheduler::FiberScheduler(std::function<void()> serve, std::function<void()> forget)
    : serve_(std::move(serve)), forget_(std::move(forget)), turns_(std::make_unique<Fibers>()) {}
FiberScheduler::~FiberScheduler() = default;

void FiberScheduler::wait() {
  if (!turns_->inside) {
    serve_();
    return;
  }
  turns_->scheduler = std::move(turns_->scheduler).resume();
  if (turns_->failure) throw TurnEnded{};
}

void FiberScheduler::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (turns_->running.exchange(true)) throw std::runtime_error("these chains are making steps already");
  turns_->waiting.clear();
  turns_->failure = nullptr;
  for (std::size_t index = 0; index < count; ++index) {
    turns_->waiting.emplace_back(std::allocator_arg, StackSource{&turns_->stacks},
                                 [this, index, &work](context::fiber&& back) {
                                   turns_->scheduler = std::move(back);
                                   try {
                                     if (!turns_->failure) work(index);
                                   } catch (const TurnEnded&) {
                                   } catch (...) {
                                     if (!turns_->failure) turns_->failure = std::current_exception();
                                   }
                                   return std::move(turns_->scheduler);
                                 });
  }
  for (bool any = count > 0; any;) {
    any = false;
    turns_->inside = true;
    for (context::fiber& turn : turns_->waiting) {
      if (!turn) continue;
      turn = std::move(turn).resume();
      any = any || turn;
    }
    turns_->inside = false;
    if (!any || turns_->failure) continue;  // after a failure the others are resumed once more, to end
    try {
      serve_();
    } catch (...) {
      turns_->failure = std::current_exception();
    }
  }
  turns_->waiting.clear();
  if (turns_->failure) forget_();
  turns_->running = false;
  if (turns_->failure) std::rethrow_exception(std::exchange(turns_->failure, nullptr));
}

}  // namespace poise
