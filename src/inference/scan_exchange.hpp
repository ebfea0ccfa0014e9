/// A scan as one replica exchange: where the parameter multiplies log p, neighbouring points swap states.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inference/points_engine.hpp"
#include "inference/scan.hpp"

namespace poise {

/// What a replica exchange of these models would be made of.
struct ExchangePlan {
  Sampler sampler;
  Proportional proportional;
};

/// Throws NoExchange where the points had better be made one by one.
[[nodiscard]] ExchangePlan plan_exchange(const ScanOptions& options, const std::vector<Model>& models);

/// All points, with the draws until the run ended; those of a run that was stopped have the warning `interrupted`.
[[nodiscard]] std::vector<ScanPoint> scan_by_exchange(const ScanOptions& options, const std::vector<Model>& models,
                                                      const ExchangePlan& plan, const ScanHooks& hooks);

/// The point that the report of a run is, and the rows of a report.
[[nodiscard]] ScanPoint point_of(double value, const Report& report);

}  // namespace poise
