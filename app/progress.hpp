/// Progress on standard error: a table or a line drawn anew on a terminal, a line now and then otherwise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <poise/run.hpp>

namespace poise::app {

enum class ProgressStyle { none, lines, live };

/// What suits standard error.
[[nodiscard]] ProgressStyle progress_style(bool quiet);

/// One line about where the work is: drawn anew on a terminal, a new one now and then otherwise. What matters least
/// comes last, where a narrow terminal cuts it off.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressStyle style) : style_(style) {}

  /// Whether it is time for another line.
  [[nodiscard]] bool is_due() const;
  void show(std::string line);
  void end() const;

 private:
  ProgressStyle style_;
  std::optional<std::chrono::steady_clock::time_point> shown_;  // last
};

/// Says what is being done and since when, where that takes longer than a moment: for work that tells no progress.
class WaitingLine {
 public:
  WaitingLine(ProgressStyle style, std::string work);
  ~WaitingLine();
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Shows one run. `update` is for RunHooks::progress, `end` when the run is over.
class ProgressDisplay {
 public:
  /// A title is for one of several runs: it is shown above, and of a finished live table it is all that stays.
  explicit ProgressDisplay(ProgressStyle style, std::string title = {});

  void update(const Progress& progress);
  void end(bool interrupted);

 private:
  /// The last that was said of a phase.
  struct Row {
    Progress progress;
    std::uint64_t start = 0;  // what the phase before had done
    bool over = false;
  };
  [[nodiscard]] double share_done(const Row& row) const;
  [[nodiscard]] std::string live_row(const Row& row, std::size_t width) const;
  [[nodiscard]] std::string plain_row(const Row& row) const;
  void draw();
  void fold();
  void print_line(const Row& row);

  ProgressStyle style_;
  std::string title_;
  std::vector<Row> rows_;
  std::size_t drawn_lines_ = 0;
  bool interrupted_ = false;
  std::chrono::steady_clock::time_point begun_{};
  std::chrono::steady_clock::time_point last_line_{};
};

}  // namespace poise::app
