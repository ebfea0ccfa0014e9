/// Looks at process numbers.
#include "base/ranks/neighbours.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

namespace poise {

namespace {

bool is_gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

ProcessName own_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  struct stat numbers {};
  const bool known = ::stat("/proc/self/ns/pid", &numbers) == 0;
  const std::string machine = std::string(host.data()) + ' ' + std::to_string(known ? numbers.st_ino : 0);
  return {std::hash<std::string>()(machine), ::getpid()};
}

Neighbours::Neighbours(std::span<const ProcessName> all, int own_rank)
    : own_rank_(own_rank), errors_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
  const std::uint64_t here = all[static_cast<std::size_t>(own_rank)].machine;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].machine != here || static_cast<int>(rank) == own_rank) continue;
    ranks_.emplace_back(static_cast<int>(rank), static_cast<pid_t>(all[rank].process));
  }
}

Neighbours::~Neighbours() {
  if (errors_ >= 0) ::close(errors_);
}

void Neighbours::end_where_one_is_gone(const std::string& words) const {
  int gone = -1;
  bool speaks = true;
  for (const auto& [rank, process] : ranks_) {
    if (is_gone(process)) {
      gone = rank;
    } else if (rank < own_rank_) {
      speaks = false;
    }
  }
  if (gone < 0) return;
  if (speaks) {
    const std::string sentence = "poise: rank " + std::to_string(gone) +
                                 " of this run was killed, and the run ends with it" +
                                 (words.empty() ? "" : "; " + words) + ".\n";
    static_cast<void>(!::write(errors_, sentence.data(), sentence.size()));
  }
  // Its own exit would wait for ranks that do not come.
  ::_exit(1);
}

}  // namespace poise
