/// Reading a store back, whether its run ended, was killed or is still under way, and whatever became of its bytes.
#pragma once

#include <string>

#include "store/run_file.hpp"
#include "store/zarr/metadata.hpp"

namespace poise::zarr {

/// Throws an InputError with a sentence where there is none, or where it is damaged.
[[nodiscard]] Root read_root(const std::string& path);

/// The last state and the root that it goes with, or the one before where something of it is missing or damaged, which
/// `note` then says. Throws an InputError where there is none.
struct StoredPoint {
  Root root;
  std::string state;
};
[[nodiscard]] StoredPoint read_last_state(const std::string& path, std::string& note);

/// What `root` says of a store, whatever its own root says by now.
[[nodiscard]] StoredRun read_store(const std::string& path, const Root& root, const ReadOptions& options);

/// A chunk that is missing or damaged is an InputError that names chain and draws.
[[nodiscard]] StoredRun read_store(const std::string& path, const ReadOptions& options = {});

}  // namespace poise::zarr
