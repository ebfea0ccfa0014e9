/// The handler of SIGINT and SIGTERM.
#include "interrupt.hpp"

#include <csignal>

#include <unistd.h>

#include "exit_codes.hpp"

namespace poise::app {

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
