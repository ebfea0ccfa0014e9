/// Pictures of a run: traces, rank histograms and autocorrelations of its monitors, and what was learned.
#pragma once

#include <string>
#include <vector>

#include <poise/report.hpp>
#include <poise/trace.hpp>
#include "report/html_page.hpp"

namespace poise {

/// A figure for each monitor, with three panels, and one for a learned balancing function or a ladder of temperatures.
/// The first chains and monitors are drawn where there are many, and the caption says so. `trace` has the monitors of
/// the run; its states are not needed.
[[nodiscard]] std::vector<HtmlFigure> run_figures(const Report& report, const Trace& trace);

/// The mean of every site of a lattice of two-valued variables; no panels where the model is none.
[[nodiscard]] HtmlFigure mean_figure(const Report& report);

}  // namespace poise
