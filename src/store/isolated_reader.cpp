/// The child process, its limits, and the frames that come out of it.
#include "store/isolated_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>

namespace poise {

namespace {

constexpr std::uint64_t kRefusal = std::uint64_t{1} << 63;  // in the head of a frame; the rest is its length
constexpr std::size_t kLongestSentence = 10'000;
constexpr std::size_t kTextChunk = 1 << 20;
constexpr int kPipeBytes = 1 << 20;
constexpr int kTickMilliseconds = 100;
constexpr const char* kNonsense = "what was read of it makes no sense";

/// Holds back all signals of this thread, so that no handler of the parent runs in the child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Bytes of private memory, in use or not; what RLIMIT_DATA counts.
std::uint64_t private_bytes() {
  const int descriptor = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 256> text{};
  const ssize_t length = descriptor < 0 ? 0 : ::read(descriptor, text.data(), text.size() - 1);
  if (descriptor >= 0) ::close(descriptor);
  unsigned long long pages = 0;
  if (length <= 0 || std::sscanf(text.data(), "%*s %*s %*s %*s %*s %llu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_memory(std::uint64_t bytes) {
  struct rlimit limit {};
  const std::uint64_t used = private_bytes();
  if (used == 0 || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, used + bytes);
  ::setrlimit(RLIMIT_DATA, &limit);
}

/// Takes from the child whatever could reach beyond it: files, handlers, messages, a core file, a life of its own.
void isolate(int descriptor, pid_t parent, const IsolationLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  limit_memory(limits.memory_bytes);
  ::prctl(PR_SET_DUMPABLE, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) {
    if (null >= 0 && standard != descriptor) ::dup2(null, standard);
  }
  const auto keep = static_cast<unsigned>(descriptor);
  if (keep > 3) ::syscall(SYS_close_range, 3U, keep - 1, 0U);
  ::syscall(SYS_close_range, std::max(keep + 1, 3U), ~0U, 0U);
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the parent, which takes the child with it
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void run_child(const std::function<void(FrameSender&)>& body, int descriptor) {
  FrameSender sender(descriptor);
  try {
    body(sender);
  } catch (const InputError& error) {
    sender.refusal(error.what());
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

void FrameSender::bytes(const void* data, std::size_t size) const { frame(size, data, size); }

void FrameSender::refusal(std::string_view sentence) const {
  sentence = sentence.substr(0, kLongestSentence);
  frame(sentence.size() | kRefusal, sentence.data(), sentence.size());
}

void FrameSender::frame(std::uint64_t head, const void* data, std::size_t size) const {
  write(&head, sizeof head);
  write(data, size);
}

void FrameSender::write(const void* data, std::size_t size) const {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, at, size);
    if (written < 0 && errno != EINTR) ::_exit(1);  // the parent is gone
    if (written <= 0) continue;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

IsolatedReader::IsolatedReader(const std::function<void(FrameSender&)>& body, const IsolationLimits& limits)
    : limits_(limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw IsolationUnavailable(fmt::format("no pipe could be made ({})", std::generic_category().message(errno)));
  }
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
  const pid_t parent = ::getpid();
  {
    const SignalsBlocked blocked;
    child_ = ::fork();
    if (child_ == 0) {
      isolate(ends[1], parent, limits_);
      run_child(body, ends[1]);
    }
  }
  const int cause = errno;
  ::close(ends[1]);
  descriptor_ = ends[0];
  if (child_ > 0) return;
  ::close(descriptor_);
  throw IsolationUnavailable(
      fmt::format("no process could be started to read it in ({})", std::generic_category().message(cause)));
}

IsolatedReader::~IsolatedReader() {
  ::close(descriptor_);
  if (status_) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// A program that reaps all children itself leaves none to wait for; then the child has ended as well.
bool IsolatedReader::has_ended() {
  if (status_) return true;
  int status = 0;
  const pid_t found = ::waitpid(child_, &status, WNOHANG);
  if (found == child_) status_ = status;
  if (found < 0 && errno == ECHILD) status_ = 0;
  return status_.has_value();
}

/// The state stands behind the name of the program in parentheses, which may hold anything; S is sleep.
bool IsolatedReader::is_waiting() const {
  std::ifstream stream(fmt::format("/proc/{}/stat", child_));
  std::string text;
  std::getline(stream, text);
  const std::size_t end = text.rfind(')');
  return end == std::string::npos || text.compare(end, 3, ") S") == 0;
}

std::chrono::nanoseconds IsolatedReader::processor_time() const {
  clockid_t clock{};
  std::timespec used{};
  if (::clock_getcpuclockid(child_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return processor_mark_;
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

void IsolatedReader::stop(const std::string& reason) {
  if (!status_) ::kill(child_, SIGKILL);
  throw IsolationFailure(reason);
}

void IsolatedReader::fail_ended() {
  // Its end of the pipe is closed, so it ends at once, or has lost its way.
  for (int tick = 0; !has_ended() && tick < 1000; ++tick) ::poll(nullptr, 0, 1);
  if (!status_) stop(kNonsense);
  if (!WIFSIGNALED(*status_)) throw IsolationFailure("reading it ended too early");
  const int signal = WTERMSIG(*status_);
  const std::array crashes{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  if (std::find(crashes.begin(), crashes.end(), signal) == crashes.end()) {
    throw IsolationUnavailable(
        fmt::format("the process that reads it was ended from outside ({})", ::strsignal(signal)));
  }
  throw IsolationFailure(fmt::format("it crashes the library that reads it: {}", ::strsignal(signal)));
}

void IsolatedReader::wait_for_bytes() {
  for (;;) {
    ::pollfd event{descriptor_, POLLIN, 0};
    if (::poll(&event, 1, kTickMilliseconds) > 0) return;
    // A process that another thread forked may hold the pipe open beyond the end of the child.
    if (has_ended() && ::poll(&event, 1, 0) == 0) fail_ended();
    const auto now = std::chrono::steady_clock::now();
    const auto used = processor_time();
    const bool moved = std::exchange(moved_, false);
    if (moved) processor_mark_ = used;
    if (moved || !is_waiting()) clock_mark_ = now;
    if (used - processor_mark_ > limits_.processor_time || now - clock_mark_ > limits_.waiting_time) {
      stop("reading it comes to no end");
    }
  }
}

void IsolatedReader::read(void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    wait_for_bytes();
    const ssize_t count = ::read(descriptor_, at, size);
    if (count == 0) fail_ended();
    if (count < 0 && errno != EINTR) stop(kNonsense);
    if (count < 0) continue;
    moved_ = true;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
}

/// The length of the next frame.
std::uint64_t IsolatedReader::next_frame() {
  std::uint64_t head = 0;
  read(&head, sizeof head);
  if ((head & kRefusal) == 0) return head;
  const std::uint64_t length = head & ~kRefusal;
  if (length > kLongestSentence) stop(kNonsense);
  std::string sentence(length, '\0');
  read(sentence.data(), sentence.size());
  throw InputError(sentence);
}

std::uint64_t IsolatedReader::number() {
  std::uint64_t value = 0;
  if (next_frame() != sizeof value) stop(kNonsense);
  read(&value, sizeof value);
  return value;
}

std::string IsolatedReader::text(std::uint64_t most) {
  std::uint64_t left = next_frame();
  if (left > most) stop(kNonsense);
  std::string text;
  while (left > 0) {
    const std::size_t chunk = std::min<std::uint64_t>(left, kTextChunk);
    text.resize(text.size() + chunk);
    read(text.data() + text.size() - chunk, chunk);
    left -= chunk;
  }
  return text;
}

void IsolatedReader::fill(void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const std::uint64_t length = next_frame();
    if (length == 0 || length > size) stop(kNonsense);
    read(at, length);
    at += length;
    size -= length;
  }
}

}  // namespace poise
