/// Where the draws of a run and its states are kept while it grows.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/run.hpp>

namespace poise {

struct Checkpoint {
  nlohmann::json command;  ///< what the run was begun with
  std::size_t draws = 0;   ///< of each chain, that go with the state
  bool finished = false;   ///< whether these are all that were asked for
  std::string state;       ///< Run::save_rest
};

class RunStore : public Sink {
 public:
  /// Before anything else: goes back to the draws that go with a state. Throws InputError where they are not there.
  virtual void take_back(std::size_t draws) = 0;
  /// Gives the first draws of each chain, which must be there, batch by batch.
  virtual void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit) = 0;
  /// Puts a state on the disk behind the draws so far, in the background. It may come before `begin`.
  virtual void save(Checkpoint checkpoint) = 0;
  /// Waits for that. Gives what went wrong, empty for nothing, where the run can continue all the same.
  [[nodiscard]] virtual std::string settle() = 0;
  /// After the last draw: what is stored can be read from here on.
  virtual void close_draws() = 0;
  /// No state is to be left; before `finish`.
  virtual void forget_states() = 0;
};

/// Takes hold of the files at a path: those of a Zarr store, or a NetCDF file with its journal and its checkpoints.
/// `observers` of the caller add a monitor each. Throws InputError where they cannot be written, or where another
/// program holds them.
[[nodiscard]] std::unique_ptr<RunStore> make_run_store(const std::string& path, const Model& model,
                                                       const RunOptions& run, bool has_states, std::size_t observers);

}  // namespace poise
