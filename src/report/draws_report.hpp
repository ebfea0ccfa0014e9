/// Sections of a report that are computed from draws, in memory or in a file.
#pragma once

#include <vector>

#include <poise/diagnose.hpp>
#include <poise/report.hpp>
#include "store/run_file.hpp"

namespace poise {

/// What `report_json` wrote of the best draw; nothing where it is not there, or damaged.
[[nodiscard]] std::optional<BestDraw> read_best(const nlohmann::json& results, Index variables);

/// Names and numbers of variables.
void add_layout(Report& report, const VariableLayout& layout);

/// A row for each monitor of the trace, which may have no draws; and observables. 0 threads: as many as there are
/// cores.
void add_monitors(Report& report, const Trace& trace, unsigned threads);

/// Energy, order parameter and what follows from them, of spin models; from the monitors of the trace.
void add_observables(Report& report, const Trace& trace, unsigned threads);

void add_variables(Report& report, ColumnSource& draws, const VariableLayout& layout, unsigned threads);
/// The same of states in memory, where there are any.
void add_variables(Report& report, const Trace& trace, const VariableLayout& layout, unsigned threads);

/// What the user should know, when all else is there. `ended`: the run was not killed.
void add_warnings(Report& report, bool ended);

/// Sums over the draws of all chains, taken chain by chain: a resumed run adds in the same order.
class DrawSums {
 public:
  void add(const Trace& part);
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] double mean_acceptance() const;

 private:
  std::vector<double> accepted_;
  std::uint64_t steps_ = 0;  // without a sign: a damaged file may hold any numbers, and their sum is still defined
  std::size_t draws_ = 0;
};

/// What a run or its file says of it besides its draws.
[[nodiscard]] Report report_of_head(const RunResult& result);
[[nodiscard]] Report report_of_head(const StoredRun& stored);

}  // namespace poise
