/// Reading in a child process: a reader that crashes or never ends on damaged input takes only the child with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace poise {

/// What a child may use, both times counted from the last bytes that came. It waits while it neither runs nor wants to
/// run: for a lock that is never given back, say. On a busy machine or a slow disk it may take as long as it takes.
struct IsolationLimits {
  std::uint64_t memory_bytes = 0;  ///< on top of what the process has when it forks
  std::chrono::milliseconds processor_time{1000};
  std::chrono::milliseconds waiting_time{60'000};
};

/// The child crashed, came to no end or sent nonsense; what() is the reason, without the name of the input.
struct IsolationFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Not the input's doing: no child could be started, or something else killed it.
struct IsolationUnavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The child's end of the pipe. Everything goes through in frames, so that a refusal can come instead of any of them.
class FrameSender {
 public:
  explicit FrameSender(int descriptor) : descriptor_(descriptor) {}
  void bytes(const void* data, std::size_t size) const;
  void text(std::string_view text) const { bytes(text.data(), text.size()); }
  void number(std::uint64_t value) const { bytes(&value, sizeof value); }
  void refusal(std::string_view sentence) const;

 private:
  void frame(std::uint64_t head, const void* data, std::size_t size) const;
  void write(const void* data, std::size_t size) const;

  int descriptor_;
};

/// Starts a child that runs a body, and receives what the body sends, in the same order.
///
/// The child is forked, not executed: the Python module has no program beside it. It runs no exit handlers and closes
/// all inherited files, for the library that it reads with may hold a run that the parent is still writing. Threads of
/// the parent do not exist in it; the allocator is usable all the same (glibc sees to that), and any other lock that
/// one of them held ends the child by its limits, not the parent.
///
/// Nothing that the child sends is trusted: memory is taken for bytes that came, or for sizes that the caller chose.
class IsolatedReader {
 public:
  IsolatedReader(const std::function<void(FrameSender&)>& body, const IsolationLimits& limits);
  ~IsolatedReader();
  IsolatedReader(const IsolatedReader&) = delete;
  IsolatedReader& operator=(const IsolatedReader&) = delete;

  /// Each throws one of the above, or an InputError with the sentence of a refusal.
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string text(std::uint64_t most);
  void fill(void* to, std::size_t size);  ///< from as many frames as it takes

 private:
  [[nodiscard]] std::uint64_t next_frame();
  void read(void* to, std::size_t size);
  void wait_for_bytes();
  [[nodiscard]] bool has_ended();
  [[nodiscard]] bool is_waiting() const;
  [[nodiscard]] std::chrono::nanoseconds processor_time() const;
  [[noreturn]] void fail_ended();
  [[noreturn]] void stop(const std::string& reason);

  IsolationLimits limits_;
  pid_t child_ = -1;
  int descriptor_ = -1;
  std::optional<int> status_;
  bool moved_ = true;  // bytes came since the marks were set
  std::chrono::nanoseconds processor_mark_{};
  std::chrono::steady_clock::time_point clock_mark_{};
};

}  // namespace poise
