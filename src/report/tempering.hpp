/// What is told of ladders: lines of a table, JSON, and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/extend/engines/engine.hpp>

namespace poise {

[[nodiscard]] nlohmann::json tempering_json(const TemperingReport& report);
/// From a file, which may hold anything: nothing where it is not what `tempering_json` gives.
[[nodiscard]] std::optional<TemperingReport> read_tempering(const nlohmann::json& json);

/// Rungs, barrier, swaps and round trips, and log Z.
[[nodiscard]] std::string tempering_text(const TemperingReport& report, std::size_t width);

/// What a ladder itself says against its draws: neighbours that do not swap, and no way from end to end.
[[nodiscard]] std::vector<std::string> tempering_warnings(const TemperingReport& report);

/// Acceptance of the swaps of neighbours along the ladder, and the way of a few replicas through it, side by side.
[[nodiscard]] std::string tempering_plot(const TemperingReport& report);

}  // namespace poise
