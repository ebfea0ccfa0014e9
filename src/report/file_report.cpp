/// Reports of runs whose draws are in a file and need not fit into memory: they are read part by part, or some
/// variables at a time.
#include <poise/report.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bits8.hpp"
#include "report/draws_report.hpp"
#include "store/label_bits.hpp"
#include "store/run_file.hpp"
#include "store/zarr/reader.hpp"

namespace poise {

namespace {

/// What is gone through.
struct FileShape {
  std::size_t chains = 0;
  std::size_t draws = 0;           ///< per chain
  std::size_t bytes_per_draw = 1;  ///< of all chains, as they are asked for
};

/// Calls visit(trace, first draw) for all draws of a file, part by part. Throws InputError where the file has not got
/// the draws any more that it had.
template <class Visit>
void read_in_parts(const std::string& path, const FileShape& shape, ReadOptions options, Visit&& visit) {
  constexpr std::size_t kPartBytes = std::size_t{24} << 20;  // below what is taken from the system page by page
  constexpr std::size_t kChunk = 256;  // of draws in the file at most: to cut through one is to unpack it twice
  std::size_t most = std::max<std::size_t>(1, kPartBytes / std::max<std::size_t>(shape.bytes_per_draw, 1));
  if (most > kChunk) most -= most % kChunk;
  for (std::size_t first = 0; first < shape.draws; first += most) {
    options.first_draw = first;
    options.most_draws = std::min(most, shape.draws - first);
    const StoredRun part = read_run(path, options);
    if (part.trace.draws != options.most_draws || part.trace.chains != shape.chains) {
      throw InputError(fmt::format("{} was changed by another program while it was read.", path));
    }
    visit(part.trace, first);
  }
}

/// Reads the file from its beginning to its end for every load: files hold draws, each with all its variables. Where
/// variables have two values they are held as bits, so that few loads are enough.
class FileColumns final : public ColumnSource {
 public:
  /// `head` is what is known of the file; one draw in `stride` is looked at. Takes about `memory` bytes.
  FileColumns(std::string path, const StoredRun& head, std::size_t stride, double memory)
      : path_(std::move(path)),
        chains_(head.trace.chains),
        all_draws_(head.trace.all_draws()),
        stride_(stride),
        held_((all_draws_ + stride - 1) / stride),
        variables_(head.layout.variables),
        memory_(memory),
        none_(head.layout) {}

  [[nodiscard]] std::size_t chains() const override { return chains_; }
  [[nodiscard]] std::size_t draws() const override { return held_; }
  [[nodiscard]] std::size_t variables() const override { return variables_; }

  [[nodiscard]] std::size_t load(std::size_t first) override {
    first_ = first;
    none_.has_bits() ? load_bits() : load_bytes();
    return count_;
  }

  void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const override {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t column = (first - first_ + i) * chains_;
      if (!none_.has_bits()) {
        std::copy_n(bytes_.data() + column * held_, chains_ * held_, to + i * stride);
        continue;
      }
      for (std::size_t chain = 0; chain < chains_; ++chain) {
        unpack_labels(bits_.data() + (column + chain) * column_bytes_, none_.low(), none_.high(),
                      {to + i * stride + chain * held_, held_});
      }
    }
  }

 private:
  [[nodiscard]] std::size_t fitting(double bits_per_value) const {
    const double values = static_cast<double>(chains_) * static_cast<double>(held_);
    const double most = std::max(1.0, 8.0 * memory_ / (bits_per_value * values));
    const std::size_t left = variables_ - first_;
    return most >= static_cast<double>(left) ? left : static_cast<std::size_t>(most);
  }

  /// Calls visit(trace, first draw) for one part of the draws after the other.
  template <class Visit>
  void read(Visit&& visit) const {
    ReadOptions options;
    options.series = false;
    options.first_variable = first_;
    options.most_variables = count_;
    const std::size_t bytes = none_.has_bits() ? (count_ + 7) / 8 : count_;
    read_in_parts(path_, {chains_, all_draws_, chains_ * bytes}, options, visit);
  }

  /// Eight draws at a time where all draws are looked at; one by one at the end.
  void load_bits() {
    count_ = fitting(1.0);
    column_bytes_ = (held_ + 7) / 8;
    bits_.assign(count_ * chains_ * column_bytes_, 0);
    const std::size_t width = (count_ + 7) / 8;
    read([&](const Trace& part, std::size_t first_draw) {
      const std::size_t whole_draws = stride_ == 1 && first_draw % 8 == 0 ? part.draws / 8 * 8 : 0;
      const std::size_t begin = std::max(whole_draws, (stride_ - first_draw % stride_) % stride_);
      for (std::size_t chain = 0; chain < chains_; ++chain) {
        const std::size_t row = chain * part.draws;
        const auto column = [&](std::size_t i) { return bits_.data() + (i * chains_ + chain) * column_bytes_; };
        for (std::size_t draw = 0; draw < whole_draws; draw += 8) {
          const std::uint8_t* const packed = part.x.row(row + draw).data();
          for (std::size_t i = 0; i < count_; i += 8) {
            std::uint64_t rows = 0;
            for (std::size_t k = 0; k < 8; ++k) rows |= std::uint64_t{packed[k * width + i / 8]} << 8 * k;
            rows = transpose8(rows);
            for (std::size_t k = 0; k < std::min<std::size_t>(8, count_ - i); ++k) {
              column(i + k)[(first_draw + draw) / 8] = static_cast<std::uint8_t>(rows >> 8 * k);
            }
          }
        }
        for (std::size_t draw = begin; draw < part.draws; draw += stride_) {
          const std::size_t held = (first_draw + draw) / stride_;
          for (std::size_t i = 0; i < count_; ++i) {
            const unsigned bit = part.x.label(row + draw, i) == none_.high() ? 1U << held % 8 : 0U;
            column(i)[held / 8] = static_cast<std::uint8_t>(column(i)[held / 8] | bit);
          }
        }
      }
    });
  }

  void load_bytes() {
    count_ = fitting(8.0);
    bytes_.resize(count_ * chains_ * held_);
    read([&](const Trace& part, std::size_t first_draw) {
      const std::size_t begin = (stride_ - first_draw % stride_) % stride_;
      for (std::size_t chain = 0; chain < chains_; ++chain) {
        for (std::size_t draw = begin; draw < part.draws; draw += stride_) {
          const std::size_t held = (first_draw + draw) / stride_;
          for (std::size_t i = 0; i < count_; ++i) {
            bytes_[(i * chains_ + chain) * held_ + held] = part.x.label(chain * part.draws + draw, i);
          }
        }
      }
    });
  }

  std::string path_;
  std::size_t chains_;
  std::size_t all_draws_;  // per chain in the file
  std::size_t stride_;
  std::size_t held_;  // per chain that are looked at
  std::size_t variables_;
  double memory_;
  States none_;  // how states are held

  std::size_t first_ = 0;  // variables that are loaded
  std::size_t count_ = 0;
  std::size_t column_bytes_ = 0;    // of one chain of one variable, as bits
  std::vector<std::uint8_t> bits_;  // [(variable * chains + chain) * column_bytes + draw / 8]
  std::vector<std::int8_t> bytes_;  // [(variable * chains + chain) * held + draw]
};

/// Bytes that diagnosing a series takes for each of its values: the values sorted with their places (16), the same
/// folded (16), normal scores of both (16) and their table (8), values about their means (8), and a transform of twice
/// the length in three arrays of complex numbers, for two chains together (48).
constexpr double kBytesPerValue = 112.0;

/// One draw in so many is looked at, so that a series fits into the memory.
std::size_t stride_for(const Trace& head, double memory) {
  const double series = static_cast<double>(head.monitor_names.size());
  const double values = static_cast<double>(head.chains) * static_cast<double>(head.all_draws());
  return std::max<std::size_t>(1,
                               static_cast<std::size_t>(std::ceil(values * (8.0 * series + kBytesPerValue) / memory)));
}

/// All monitors, one draw in `stride`; all draws are added to the sums.
Trace read_monitors(const std::string& path, const StoredRun& head, std::size_t stride, DrawSums& sums) {
  Trace out;
  out.chains = head.trace.chains;
  out.draws = (head.trace.all_draws() + stride - 1) / stride;
  out.stride = stride;
  out.dropped = head.trace.all_draws() - out.draws;
  out.monitor_names = head.trace.monitor_names;
  out.monitors.assign(out.monitor_names.size(), std::vector<double>(out.chains * out.draws));
  ReadOptions options;
  options.draws = false;
  const std::size_t bytes = out.chains * (out.monitors.size() + 2) * sizeof(double);
  read_in_parts(path, {out.chains, out.all_draws(), bytes}, options, [&](const Trace& part, std::size_t first) {
    if (part.monitors.size() != out.monitors.size()) {
      throw InputError(fmt::format("{} was changed by another program while it was read.", path));
    }
    sums.add(part);
    for (std::size_t k = 0; k < out.monitors.size(); ++k) {
      for (std::size_t chain = 0; chain < out.chains; ++chain) {
        const double* from = part.monitors[k].data() + chain * part.draws;
        double* to = out.monitors[k].data() + chain * out.draws;
        for (std::size_t draw = (stride - first % stride) % stride; draw < part.draws; draw += stride) {
          to[(first + draw) / stride] = from[draw];
        }
      }
    }
  });
  return out;
}

/// The diagnostics of a report, from the file; `kept` gets the monitors, unless it is null.
void add_draws(Report& report, const std::string& path, const StoredRun& head, const FileReportOptions& options,
               Trace* kept) {
  const std::size_t stride = stride_for(head.trace, options.memory);
  DrawSums sums;
  {
    Trace trace = read_monitors(path, head, stride, sums);
    add_monitors(report, trace, options.threads);
    if (kept != nullptr) *kept = std::move(trace);
  }
  report.steps = sums.steps();
  report.acceptance_rate = sums.mean_acceptance();
  if (head.has_states && head.trace.all_draws() > 0) {
    FileColumns columns(path, head, stride, options.memory / 2);
    add_variables(report, columns, head.layout, options.threads);
  }
  if (stride > 1) {
    report.notes.push_back(
        fmt::format("the draws do not fit the memory for diagnosing them: one draw in {} is looked at, so effective "
                    "sample sizes are lower bounds",
                    stride));
  }
}

/// What continues a run that has not ended, where it left a checkpoint.
void advise_resuming(Report& report, const std::string& path) {
  const auto warning = std::find_if(report.warnings.begin(), report.warnings.end(), [&](const Warning& one) {
    return one.code == "interrupted" || (one.code == "no_draws" && report.interrupted);
  });
  if (warning == report.warnings.end()) return;
  try {
    std::string note;
    static_cast<void>(zarr::read_last_state(path, note));
    warning->next = fmt::format("poise resume {}", path);
  } catch (const InputError&) {  // there is none
  }
}

Report report_of_file(const std::string& path, const FileReportOptions& options, Trace* kept) {
  const StoredRun head = read_run(path, {.draws = false, .series = false, .most_draws = 0});
  Report report = report_of_head(head);
  add_draws(report, path, head, options, kept);
  add_warnings(report, head.results.is_object());
  advise_resuming(report, path);
  return report;
}

}  // namespace

Report make_report(const std::string& path, const FileReportOptions& options) {
  return report_of_file(path, options, nullptr);
}

Report make_report(const std::string& path, const FileReportOptions& options, Trace& trace) {
  return report_of_file(path, options, &trace);
}

Report make_report(const RunResult& result, const std::string& path, const FileReportOptions& options) {
  const bool has_states = result.options.keep != Keep::draws || !result.trace.x.empty();
  if (result.trace.all_draws() == 0 || (result.trace.dropped == 0 && has_states)) {
    Report report = make_report(result);
    advise_resuming(report, path);
    return report;
  }
  const StoredRun head = read_run(path, {.draws = false, .series = false, .most_draws = 0});
  Report report = report_of_head(result);
  add_draws(report, path, head, options, nullptr);
  report.steps = result.steps;
  report.acceptance_rate = result.acceptance_rate;
  add_warnings(report, true);
  advise_resuming(report, path);
  return report;
}

}  // namespace poise
