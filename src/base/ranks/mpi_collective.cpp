/// Ranks that are processes of MPI: a library of its own, and the only file that knows of MPI.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/ranks/ranks.hpp"

namespace poise {

namespace {

/// A process, and the machine (or the container) in which its number means something.
struct ProcessName {
  std::uint64_t machine = 0;
  std::int64_t process = 0;
};

ProcessName own_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  struct stat numbers {};
  const bool known = ::stat("/proc/self/ns/pid", &numbers) == 0;
  const std::string machine = std::string(host.data()) + ' ' + std::to_string(known ? numbers.st_ino : 0);
  return {std::hash<std::string>()(machine), ::getpid()};
}

bool is_gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

/// The ranks on the same machine, and whether they are still there.
class Neighbours {
 public:
  /// `all` names the processes of all ranks.
  Neighbours(std::span<const ProcessName> all, int own_rank)
      : own_rank_(own_rank), errors_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
    const std::uint64_t here = all[static_cast<std::size_t>(own_rank)].machine;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].machine != here || static_cast<int>(rank) == own_rank) continue;
      ranks_.emplace_back(static_cast<int>(rank), static_cast<pid_t>(all[rank].process));
    }
  }
  ~Neighbours() {
    if (errors_ >= 0) ::close(errors_);
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// Ends this process where a neighbour has ended; the first one that is left says so, and adds the words. There is
  /// nothing to clean up: what is on the disk must do for those that are killed too.
  void end_where_one_is_gone(const std::string& words) const {
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

 private:
  int own_rank_;
  int errors_;  // standard error as it was at first: ranks other than the root fall silent
  std::vector<std::pair<int, pid_t>> ranks_;
};

/// Counts of MPI are ints.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

class MpiCollective final : public Collective {
 public:
  explicit MpiCollective(bool finalizes) : finalizes_(finalizes) {
    MPI_Comm_dup(MPI_COMM_WORLD, &world_);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    std::vector<ProcessName> all(static_cast<std::size_t>(size_));
    all[static_cast<std::size_t>(rank_)] = own_name();
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), sizeof(ProcessName), MPI_BYTE, world_);
    neighbours_.emplace(all, rank_);
  }
  ~MpiCollective() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    MPI_Comm_free(&world_);
    if (finalizes_) MPI_Finalize();
  }
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

 protected:
  void exchange_heads(std::span<Head> heads) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, heads.data(), sizeof(Head), MPI_BYTE, world_, &request);
    wait(request);
  }

  void exchange(std::span<std::byte> bytes, std::span<const std::size_t> ends, To to) override {
    for (std::size_t first = 0; first < bytes.size(); first += kMostBytes) {
      const std::size_t last = std::min(bytes.size(), first + kMostBytes);
      std::vector<int> counts, offsets;
      int speakers = 0, speaker = 0;
      std::size_t begin = 0;
      for (std::size_t r = 0; r < ends.size(); ++r) {
        const std::size_t from = std::clamp(begin, first, last);
        const std::size_t until = std::clamp(ends[r], first, last);
        offsets.push_back(static_cast<int>(from - first));
        counts.push_back(static_cast<int>(until - from));
        if (until > from) {
          ++speakers;
          speaker = static_cast<int>(r);
        }
        begin = ends[r];
      }
      std::byte* const data = bytes.data() + first;
      MPI_Request request = MPI_REQUEST_NULL;
      const auto own = static_cast<std::size_t>(rank_);
      if (to == To::root) {
        MPI_Igatherv(rank_ == 0 ? MPI_IN_PLACE : data + offsets[own], counts[own], MPI_BYTE, data, counts.data(),
                     offsets.data(), MPI_BYTE, 0, world_, &request);
      } else if (speakers == 1) {
        MPI_Ibcast(data + offsets[static_cast<std::size_t>(speaker)], counts[static_cast<std::size_t>(speaker)],
                   MPI_BYTE, speaker, world_, &request);
      } else {
        MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts.data(), offsets.data(), MPI_BYTE, world_,
                        &request);
      }
      wait(request);
    }
  }

 private:
  /// Ranks may wait for each other for long, and others may want the core: MPI would keep it busy. MPI does not notice
  /// either that a rank on the same machine was killed, and would wait for it for ever.
  void wait(MPI_Request& request) {
    using Clock = std::chrono::steady_clock;
    using std::chrono::microseconds;
    constexpr microseconds kBetweenLooks = std::chrono::milliseconds(50);
    const Clock::time_point began = Clock::now();
    microseconds next_look = kBetweenLooks;
    for (;;) {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return;
      const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - began);
      if (waited < microseconds(100)) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::min(waited / 8, microseconds(2000)));
      }
      if (waited < next_look) continue;
      neighbours_->end_where_one_is_gone(words_on_loss());
      next_look = waited + kBetweenLooks;
    }
  }

  bool finalizes_;
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::optional<Neighbours> neighbours_;
};

}  // namespace

}  // namespace poise

extern "C" __attribute__((visibility("default"))) poise::Collective* poise_start_mpi(const char* version,
                                                                                     const char** problem) {
  if (std::strcmp(version, POISE_VERSION) != 0) {
    *problem = "the library that speaks MPI is of another version of poise";
    return nullptr;
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  // The run may be on another thread than the one that listens for signals.
  int threads = MPI_THREAD_SINGLE;
  if (initialized == 0) {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
  } else {
    MPI_Query_thread(&threads);
  }
  if (threads < MPI_THREAD_SERIALIZED) {
    *problem = "this MPI may be called from one thread only";
    return nullptr;
  }
  return new poise::MpiCollective(initialized == 0);
}
