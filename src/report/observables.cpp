/// Observables of spin models: energy and order parameter per site, their powers, and the fluctuations made of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/report.hpp>
#include "base/thread_pool.hpp"
#include "report/draws_report.hpp"
#include "report/observables.hpp"

namespace poise {

namespace {

/// Means that all observables are functions of.
struct Moments {
  double e, e2;      // energy per site
  double m, m2, m4;  // absolute value, square and fourth power of the order parameter per site
};

/// An observable as a function of the moments, with its derivatives.
struct Function {
  const char* name;
  const char* help;
  double (*value)(const Moments& at, const SpinScale& spins);
  Moments (*derivatives)(const Moments& at, const SpinScale& spins);
};

/// N (beta J)^2 for the specific heat: log p = -coupling E.
double heat_factor(const SpinScale& spins) { return spins.sites * spins.coupling * spins.coupling; }

constexpr std::array<Function, 7> kFunctions{{
    {"energy", "<E>/N, in units of the coupling where there is one for all edges and no field, else <-log p>/N",
     [](const Moments& at, const SpinScale&) { return at.e; },
     [](const Moments&, const SpinScale&) {
       return Moments{1, 0, 0, 0, 0};
     }},
    {"abs_m",
     "<|m|>, m being the magnetisation per site (Potts: (q n/N - 1)/(q - 1), n sites at the most frequent level)",
     [](const Moments& at, const SpinScale&) { return at.m; },
     [](const Moments&, const SpinScale&) {
       return Moments{0, 0, 1, 0, 0};
     }},
    {"m2", "<m^2>", [](const Moments& at, const SpinScale&) { return at.m2; },
     [](const Moments&, const SpinScale&) {
       return Moments{0, 0, 0, 1, 0};
     }},
    {"m4", "<m^4>", [](const Moments& at, const SpinScale&) { return at.m4; },
     [](const Moments&, const SpinScale&) {
       return Moments{0, 0, 0, 0, 1};
     }},
    {"specific_heat", "var(log p)/N = beta^2 (<E^2> - <E>^2)/N",
     [](const Moments& at, const SpinScale& spins) { return heat_factor(spins) * (at.e2 - at.e * at.e); },
     [](const Moments& at, const SpinScale& spins) {
       return Moments{-2 * at.e * heat_factor(spins), heat_factor(spins), 0, 0, 0};
     }},
    {"susceptibility", "N (<m^2> - <|m|>^2)",
     [](const Moments& at, const SpinScale& spins) { return spins.sites * (at.m2 - at.m * at.m); },
     [](const Moments& at, const SpinScale& spins) {
       return Moments{0, 0, -2 * at.m * spins.sites, spins.sites, 0};
     }},
    {"binder", "1 - <m^4>/(3 <m^2>^2)",
     [](const Moments& at, const SpinScale&) { return 1 - at.m4 / (3 * at.m2 * at.m2); },
     [](const Moments& at, const SpinScale&) {
       return Moments{0, 0, 0, 2 * at.m4 / (3 * at.m2 * at.m2 * at.m2), -1 / (3 * at.m2 * at.m2)};
     }},
}};

const std::vector<double>* monitor(const Trace& trace, const std::string& name) {
  for (std::size_t k = 0; k < trace.monitors.size(); ++k) {
    if (trace.monitor_names[k] == name) return &trace.monitors[k];
  }
  return nullptr;
}

}  // namespace

std::vector<ObservableSeries> observable_series(const SpinScale& spins, const Trace& trace, unsigned threads) {
  const std::vector<double>* log_prob = monitor(trace, "log_prob");
  const std::vector<double>* order = monitor(trace, spins.order);
  const std::size_t draws = trace.chains * trace.draws;
  if (draws == 0 || log_prob == nullptr || order == nullptr) return {};
  if (log_prob->size() != draws || order->size() != draws) return {};
  const auto moments = [&](std::size_t k) {
    const double e = -(*log_prob)[k] / (spins.coupling * spins.sites);
    const double m = (*order)[k] / spins.order_size;
    return Moments{e, e * e, std::abs(m), m * m, m * m * m * m};
  };
  Moments mean{};
  for (std::size_t k = 0; k < draws; ++k) {
    const Moments here = moments(k);
    mean.e += here.e;
    mean.e2 += here.e2;
    mean.m += here.m;
    mean.m2 += here.m2;
    mean.m4 += here.m4;
  }
  for (double* sum : {&mean.e, &mean.e2, &mean.m, &mean.m2, &mean.m4}) *sum /= static_cast<double>(draws);
  std::vector<ObservableSeries> series(kFunctions.size());
  ThreadPool pool(std::min(threads, static_cast<unsigned>(kFunctions.size())));
  pool.for_each(kFunctions.size(), [&](std::size_t f) {
    const Moments d = kFunctions[f].derivatives(mean, spins);
    std::vector<double> adds(draws);
    for (std::size_t k = 0; k < draws; ++k) {
      const Moments here = moments(k);
      adds[k] = d.e * (here.e - mean.e) + d.e2 * (here.e2 - mean.e2) + d.m * (here.m - mean.m) +
                d.m2 * (here.m2 - mean.m2) + d.m4 * (here.m4 - mean.m4);
    }
    series[f] = {kFunctions[f].name, kFunctions[f].value(mean, spins), std::move(adds)};
  });
  return series;
}

void add_observables(Report& report, const Trace& trace, unsigned threads) {
  if (!report.spins || trace.draws == 0) return;
  const std::vector<ObservableSeries> all = observable_series(*report.spins, trace, threads);
  report.observables.resize(all.size());
  ThreadPool pool(std::clamp(static_cast<unsigned>(all.size()), 1U, threads));
  pool.for_each(all.size(), [&](std::size_t k) {
    const ChainsView series{all[k].adds.data(), trace.chains, trace.draws};
    const double tau = static_cast<double>(series.size()) / ess_mean(series) *
                       static_cast<double>(std::max<std::size_t>(trace.stride, 1));
    report.observables[k] = {all[k].name, all[k].value, mcse_mean(series), tau};
  });
}

const std::vector<NameHelp>& observable_help() {
  static const std::vector<NameHelp> help = [] {
    std::vector<NameHelp> rows;
    for (const Function& function : kFunctions) rows.push_back({function.name, function.help});
    return rows;
  }();
  return help;
}

void keep_observables(Report& report, const std::string& list) {
  if (list == "all") return;
  std::vector<std::string> names;
  for (const NameHelp& row : observable_help()) names.push_back(row.name);
  std::vector<Observable> kept;
  for (std::size_t first = 0; list != "none" && first <= list.size();) {
    const std::size_t end = std::min(list.find(',', first), list.size());
    const std::string name = list.substr(first, end - first);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw InputError(fmt::format("--observe: '{}' is no observable{}; there are {}, or all or none", name,
                                   did_you_mean(name, names), fmt::join(names, ", ")));
    }
    for (const Observable& one : report.observables) {
      if (one.name == name) kept.push_back(one);
    }
    first = end + 1;
  }
  report.observables = std::move(kept);
}

}  // namespace poise
