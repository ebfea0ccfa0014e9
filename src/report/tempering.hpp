/// The report of parallel tempering: text, JSON, warnings and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/diagnose.hpp>
#include <poise/extend/engines/engine.hpp>

namespace poise {

[[nodiscard]] nlohmann::json tempering_json(const TemperingReport& report);
/// From a file, which may hold anything: nothing where it is not what `tempering_json` gives.
[[nodiscard]] std::optional<TemperingReport> read_tempering(const nlohmann::json& json);

/// Rungs, barrier, swaps and round trips; of a ladder that has pairs of rungs.
[[nodiscard]] std::string ladder_text(const TemperingReport& report);
/// log Z with its error, where that is known.
[[nodiscard]] std::string log_partition_text(const TemperingReport& report);
/// Both, as lines.
[[nodiscard]] std::string tempering_text(const TemperingReport& report, std::size_t width);

/// A warning where neighbours do not swap, or where no replica travels from end to end.
[[nodiscard]] std::vector<Warning> tempering_warnings(const TemperingReport& report, const RunFacts& facts);

/// Acceptance of swaps between neighbours along the ladder, beside the paths of a few replicas through it.
[[nodiscard]] std::string tempering_plot(const TemperingReport& report);

}  // namespace poise
