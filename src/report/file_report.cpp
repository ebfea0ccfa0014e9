/// Reports of runs whose draws are in a file and need not fit into memory.
#include <poise/report.hpp>

#include <cmath>

#include <fmt/format.h>

#include "report/draws_report.hpp"
#include "report/file_columns.hpp"
#include "store/netcdf.hpp"

namespace poise {

namespace {

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

/// The diagnostics of a report, from the file.
void add_draws(Report& report, const std::string& path, const StoredRun& head, const FileReportOptions& options) {
  const std::size_t stride = stride_for(head.trace, options.memory);
  DrawSums sums;
  {
    const Trace trace = read_monitors(path, head, stride, sums);
    add_monitors(report, trace);
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

}  // namespace

Report make_report(const std::string& path, const FileReportOptions& options) {
  const StoredRun head = read_netcdf(path, {.draws = false, .series = false, .most_draws = 0});
  Report report = report_of_head(head);
  add_draws(report, path, head, options);
  add_warnings(report, head.results.is_object());
  return report;
}

Report make_report(const RunResult& result, const std::string& path, const FileReportOptions& options) {
  const bool has_states = result.options.keep != Keep::draws || !result.trace.x.empty();
  if (result.trace.all_draws() == 0 || (result.trace.dropped == 0 && has_states)) return make_report(result);
  const StoredRun head = read_netcdf(path, {.draws = false, .series = false, .most_draws = 0});
  Report report = report_of_head(result);
  add_draws(report, path, head, options);
  report.steps = result.steps;
  report.acceptance_rate = result.acceptance_rate;
  add_warnings(report, true);
  return report;
}

}  // namespace poise
