/// Tells the address sanitizer, where the build has it, that a thread goes on on another stack: else it takes the
/// frames of an exception that is thrown there for a corrupted stack.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

namespace poise {

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

/// Last thing on a stack that will not be gone on with.
inline void leave_stack(const StackBounds& to) { __sanitizer_start_switch_fiber(nullptr, to.bottom, to.size); }

#else

struct StackSwitch {
  explicit StackSwitch(const StackBounds&) {}
};
inline StackBounds enter_stack() { return {}; }
inline void leave_stack(const StackBounds&) {}

#endif

}  // namespace poise
