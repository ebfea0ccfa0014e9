/// The ranks on the same machine, and whether they are still there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poise {

/// A process, and the machine (or the container) in which its number means something.
struct ProcessName {
  std::uint64_t machine = 0;
  std::int64_t process = 0;
};
[[nodiscard]] ProcessName own_name();

class Neighbours {
 public:
  /// Of all ranks.
  Neighbours(std::span<const ProcessName> all, int own_rank);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// Ends this process where a neighbour has ended; the first one that is left says so, and adds the words. There is
  /// nothing to clean up: what is on the disk must do for those that are killed too.
  void end_where_one_is_gone(const std::string& words) const;

 private:
  int own_rank_;
  int errors_;  // standard error as it was at first: ranks other than the root fall silent
  std::vector<std::pair<int, pid_t>> ranks_;
};

}  // namespace poise
