/// What the terminal and the environment are like.
#include "terminal.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.hpp"

namespace poise::app {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1 && environment("TERM") != "dumb"; }

std::size_t terminal_width(std::FILE* stream, std::size_t otherwise) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

std::size_t table_width(std::FILE* stream) { return std::clamp<std::size_t>(terminal_width(stream, 110), 40, 120); }

std::size_t help_width() {
  constexpr std::size_t narrowest = 60;
  constexpr std::size_t otherwise = 110;
  const std::string_view columns = environment("COLUMNS");
  std::size_t width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return std::clamp(terminal_width(stdout, width > 0 ? width : otherwise), narrowest, std::size_t{120});
}

bool shows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    std::string lower(value);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

bool wants_color() { return environment("NO_COLOR").empty(); }

namespace {

std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

/// A second Ctrl-C ends the program at once. A second SIGTERM does not: programs send it twice, as `timeout` does to a
/// process and to its group, or a batch system to ranks and, through mpirun, to the same ranks again.
extern "C" void on_interrupt(int signal) {
  if (was_interrupted.exchange(true) && signal == SIGINT) ::_exit(kInterrupted);
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // files that are being written must not see half-done calls
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup and the like stay in force
  }
  return was_interrupted;
}

}  // namespace poise::app
