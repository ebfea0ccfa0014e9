/// Where the draws of a run and its states are kept while it grows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/run.hpp>
#include "store/zarr/writer.hpp"

namespace poise {

struct Checkpoint {
  nlohmann::json command;  ///< what the run was begun with
  std::size_t draws = 0;   ///< of each chain, that go with the state
  bool finished = false;   ///< whether these are all that were asked for
  std::string state;       ///< Run::save_rest
};

/// A Zarr store that is its own journal.
class RunStore final : public Sink {
 public:
  /// Takes hold of the store at a path. `observers` of the caller add a monitor each. Throws InputError where it cannot
  /// be written, or where another program holds it.
  RunStore(std::string path, const Model& model, const RunOptions& run, std::size_t observers);

  /// Before anything else: goes back to the draws that go with a state. Throws InputError where they are not there.
  void take_back(std::size_t draws);
  /// Gives the first draws of each chain, which must be there, batch by batch.
  void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit);
  /// Puts a state on the disk behind the draws so far, in the background. It may come before `begin`.
  void save(const Checkpoint& checkpoint);
  /// Waits for that.
  void settle() { writer_.settle(); }
  /// After the last draw: what is stored can be read from here on.
  void close_draws() { writer_.close_draws(); }
  /// No state is to be left; before `finish`.
  void forget_states() { writer_.forget_states(); }

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override {
    writer_.begin(layout, chains, monitor_names, settings);
  }
  void write(const DrawBatch& block) override { writer_.write(block); }
  void finish(const std::string& results) override { writer_.finish(results); }

 private:
  std::string path_;
  StoreOptions options_;
  zarr::Root root_;  // of the state that the run is resumed from
  zarr::Writer writer_;
};

}  // namespace poise
