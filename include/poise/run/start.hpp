/// Where chains begin, and the state that the Hamming distance is measured from: both by seed and chain alone.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/run/model.hpp>
#include <poise/run/run.hpp>

namespace poise {

/// One state per chain. Throws InputError where no state of positive probability can be found.
[[nodiscard]] std::vector<std::vector<Value>> starting_states(const Model& model, const RunOptions& options);

[[nodiscard]] std::vector<Value> reference_state(const Model& model, std::uint64_t seed);

}  // namespace poise
