/// Drawing of the progress.
#include "progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "report/text.hpp"

#include "terminal.hpp"

namespace poise::app {

namespace {

constexpr std::chrono::seconds kBetweenLines{2};
constexpr std::chrono::milliseconds kBetweenDrawings{100};

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::initial: return "initial";
    case Phase::adaptation: return "adaptation";
    case Phase::settled: return "settled";
    case Phase::sample: return "sample";
  }
  return "";
}

/// What is said of a phase; on a narrow terminal the columns of low worth go first.
struct Column {
  const char* title;
  std::size_t width;
  int worth;
};
constexpr std::array<Column, 6> kColumns{
    {{"", 5, 5}, {"steps/s", 8, 3}, {"acceptance", 10, 1}, {"log_prob", 11, 2}, {"ess", 7, 4}, {"time left", 12, 6}}};
constexpr std::size_t kPhaseWidth = 11;
constexpr std::size_t kWidestBar = 24;
constexpr std::size_t kNarrowestBar = 6;

/// Which columns fit, and what is left for the bar.
struct Fit {
  explicit Fit(std::size_t width) {
    std::size_t used = kPhaseWidth + kNarrowestBar;
    for (const Column& column : kColumns) used += 1 + column.width;
    int dropped = 0;
    for (; used > width && dropped < 5; ++dropped) {
      for (const Column& column : kColumns) {
        if (column.worth == dropped + 1) used -= 1 + column.width;
      }
    }
    for (std::size_t k = 0; k < kColumns.size(); ++k) shown[k] = kColumns[k].worth > dropped;
    bar = std::min(kWidestBar, kNarrowestBar + (width > used ? width - used : 0));
  }
  std::array<bool, kColumns.size()> shown{};
  std::size_t bar = 0;

  [[nodiscard]] std::string line(const std::array<std::string, kColumns.size()>& cells) const {
    std::string out;
    for (std::size_t k = 0; k < kColumns.size(); ++k) {
      if (shown[k]) out += fmt::format(" {:>{}}", cells[k], kColumns[k].width);
    }
    return out;
  }
};

/// Blocks that fill up, or ASCII where the locale has no more.
std::string bar(double share, std::size_t width) {
  const auto eighths =
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(width)));
  std::string out;
  if (!shows_utf8()) {
    out.assign(eighths / 8, '#');
    out.append(width - eighths / 8, '.');
    return out;
  }
  constexpr const char* parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  for (std::size_t k = 0; k < eighths / 8; ++k) out += "█";
  out += parts[eighths % 8];
  const std::size_t used = eighths / 8 + (eighths % 8 > 0 ? 1 : 0);
  for (std::size_t k = used; k < width; ++k) out += "░";
  return out;
}

}  // namespace

ProgressStyle progress_style(bool quiet) {
  if (quiet) return ProgressStyle::none;
  return is_terminal(stderr) ? ProgressStyle::live : ProgressStyle::lines;
}

bool ProgressLine::is_due() const {
  if (style_ == ProgressStyle::none) return false;
  const std::chrono::milliseconds pause = style_ == ProgressStyle::live ? kBetweenDrawings : kBetweenLines;
  return !shown_ || std::chrono::steady_clock::now() - *shown_ >= pause;
}

void ProgressLine::show(std::string line) {
  if (style_ == ProgressStyle::none) return;
  if (style_ == ProgressStyle::live) {
    line.resize(std::min(line.size(), std::max<std::size_t>(20, terminal_width(stderr, 80)) - 1));
    fmt::print(stderr, "\r{}\033[K", line);
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
  shown_ = std::chrono::steady_clock::now();
}

void ProgressLine::end() const {
  if (style_ == ProgressStyle::live) fmt::print(stderr, "\n");
}

WaitingLine::WaitingLine(ProgressStyle style, std::string work) {
  if (style == ProgressStyle::none) return;
  thread_ = std::thread([this, style, said = std::move(work)] {
    const auto begun = std::chrono::steady_clock::now();
    const std::chrono::milliseconds pause =
        style == ProgressStyle::live ? std::chrono::milliseconds(500) : kBetweenLines;
    ProgressLine line(style);
    bool shown = false;
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, pause, [this] { return is_over_; })) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
      line.show(fmt::format("{}: {:.0f} s", said, taken.count()));
      shown = true;
    }
    if (shown) line.end();
  });
}

WaitingLine::~WaitingLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

ProgressDisplay::ProgressDisplay(ProgressStyle style, std::string title) : style_(style), title_(std::move(title)) {
  if (style_ == ProgressStyle::live) title_.resize(std::min(title_.size(), terminal_width(stderr, 80) - 1));
  if (style_ != ProgressStyle::none && !title_.empty()) fmt::print(stderr, "{}\n", title_);
  begun_ = last_line_ = std::chrono::steady_clock::now();
}

void ProgressDisplay::update(const Progress& progress) {
  if (style_ == ProgressStyle::none) return;
  if (rows_.empty() || rows_.back().progress.phase != progress.phase) {
    std::uint64_t start = 0;
    if (!rows_.empty()) {
      rows_.back().over = true;
      if (progress.phase != Phase::sample && progress.phase != Phase::initial) start = rows_.back().progress.done;
      if (style_ == ProgressStyle::lines) print_line(rows_.back());
    }
    rows_.push_back({progress, start, false});
  }
  rows_.back().progress = progress;
  if (style_ == ProgressStyle::live) {
    draw();
  } else if (std::chrono::steady_clock::now() - last_line_ >= kBetweenLines) {
    print_line(rows_.back());
  }
}

void ProgressDisplay::end(bool interrupted) {
  if (style_ == ProgressStyle::none || rows_.empty()) return;
  interrupted_ = interrupted;
  rows_.back().over = true;
  if (style_ == ProgressStyle::lines) {
    print_line(rows_.back());
  } else if (title_.empty()) {
    draw();
    fmt::print(stderr, "\n");
  } else {
    fold();
  }
  std::fflush(stderr);
}

/// One of several runs leaves one line behind, not a table.
void ProgressDisplay::fold() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  fmt::print(stderr, "\033[{}F\033[J{:<40} {} {}\n", drawn_lines_ + 1, title_,
             interrupted_ ? "stopped after" : "done in", text::duration(seconds));
}

double ProgressDisplay::share_done(const Row& row) const {
  const bool cut_short = interrupted_ && &row == &rows_.back();
  if (row.over && !cut_short) return 1.0;
  const Progress& progress = row.progress;
  if (progress.total == 0) {
    const double all = progress.seconds + progress.seconds_left;
    return all > 0 ? std::min(1.0, progress.seconds / all) : 0.0;
  }
  // The length of the initial phase is not known beforehand; it may use half of the warm-up, then learning begins.
  return static_cast<double>(progress.done - std::min(row.start, progress.done)) /
         static_cast<double>(std::max<std::uint64_t>(1, progress.total - std::min(row.start, progress.total)));
}

std::string ProgressDisplay::live_row(const Row& row, std::size_t width) const {
  const Progress& progress = row.progress;
  const bool cut_short = interrupted_ && &row == &rows_.back();
  const std::string left = cut_short ? "stopped" : row.over ? "done" : text::duration(progress.seconds_left);
  const double share = share_done(row);
  const Fit fit(width);
  const std::string cells =
      fit.line({fmt::format("{:.0f} %", std::floor(100 * share)), text::rate(progress.steps_per_second),
                fmt::format("{:.3f}", progress.acceptance_rate), text::number(progress.log_prob, 5),
                progress.phase == Phase::sample ? text::count(progress.ess_log_prob) : "", left});
  const std::string color = !wants_color() ? "" : cut_short ? "\033[33m" : row.over ? "\033[32m" : "\033[36m";
  return fmt::format("{:<{}}{}{}{}{}", phase_name(progress.phase), kPhaseWidth, color, bar(share, fit.bar),
                     color.empty() ? "" : "\033[0m", cells);
}

void ProgressDisplay::draw() {
  // One column less than there is: a full line makes some terminals wrap.
  const std::size_t width = std::max<std::size_t>(36, terminal_width(stderr, 80)) - 1;
  const Fit fit(width);
  std::array<std::string, kColumns.size()> titles;
  for (std::size_t k = 0; k < kColumns.size(); ++k) titles[k] = kColumns[k].title;
  const std::string head = fmt::format("{:<{}}{}", "phase", kPhaseWidth + fit.bar, fit.line(titles));
  std::string out;
  if (drawn_lines_ > 0) out += fmt::format("\033[{}F", drawn_lines_);
  out += wants_color() ? "\033[1m" + head + "\033[0m" : head;
  out += "\033[K\n";
  for (const Row& row : rows_) out += live_row(row, width) + "\033[K\n";
  drawn_lines_ = rows_.size() + 1;
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
}

std::string ProgressDisplay::plain_row(const Row& row) const {
  const Progress& progress = row.progress;
  const bool cut_short = interrupted_ && &row == &rows_.back();
  std::string out = fmt::format("{:<10} {:>3.0f} %  {} steps/s  acceptance {}  log_prob {}", phase_name(progress.phase),
                                std::floor(100 * share_done(row)), text::rate(progress.steps_per_second),
                                fmt::format("{:.3f}", progress.acceptance_rate), text::number(progress.log_prob, 5));
  if (progress.phase == Phase::sample && !std::isnan(progress.ess_log_prob)) {
    out += fmt::format("  ess {}", text::count(progress.ess_log_prob));
  }
  if (cut_short) return out + "  interrupted";
  if (row.over) return out + "  done";
  return out + fmt::format("  {} left", text::duration(progress.seconds_left));
}

void ProgressDisplay::print_line(const Row& row) {
  fmt::print(stderr, "{}\n", plain_row(row));
  std::fflush(stderr);
  last_line_ = std::chrono::steady_clock::now();
}

}  // namespace poise::app
