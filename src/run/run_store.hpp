/// Where the draws of a run and its states are kept while it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/collective.hpp>
#include <poise/run.hpp>
#include "base/state_file.hpp"
#include "store/zarr/part.hpp"
#include "store/zarr/writer.hpp"

namespace poise {

struct Checkpoint {
  nlohmann::json command;  ///< what the run was begun with
  std::size_t draws = 0;   ///< of each chain, that go with the state
  bool finished = false;   ///< whether these are all that were asked for
  std::string state;       ///< Run::save_rest
};

/// A Zarr store that is its own journal.
///
/// Where there are ranks all of them make one and call the same, but for `read` and `finish`. Where they see the same
/// folder, each writes the states of its own chains. The root writes all else, and commits what the others have told to
/// be on the disk; where they do not, it writes all.
class RunStore final : public Sink {
 public:
  /// Takes hold of the store at a path. `observers` of the caller add a monitor each. Throws InputError where it cannot
  /// be written, or where another program holds it.
  RunStore(std::string path, const Model& model, const RunOptions& run, std::size_t observers, Collective* ranks);

  /// Before anything else: goes back to the draws that go with a state. Throws InputError where they are not there.
  void take_back(std::size_t draws);
  /// Then, before `begin`: ranks find out who writes.
  void meet();
  /// At the root: gives the first draws of each chain, which must be there, batch by batch.
  void read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit);
  /// Puts a state on the disk behind the draws so far, in the background. It may come before `begin`. Of ranks the root
  /// has it.
  void save(const Checkpoint& checkpoint);
  /// Waits for that.
  void settle();
  /// After the last draw: what is stored can be read from here on.
  void close_draws();
  /// No state is to be left; before `finish`.
  void forget_states() {
    if (writer_) writer_->forget_states();
  }

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override;
  [[nodiscard]] bool takes_own_states() const override { return part_.has_value(); }
  void set_own_chains(std::size_t first, std::size_t count) override { own_ = {first, count}; }
  void write(const DrawBatch& block) override;
  /// At the root.
  void finish(const std::string& results) override { writer_->finish(results); }

 private:
  template <class Body>
  void with_part(Body&& body);
  /// Lets the root commit, once all parts are on the disk.
  void release();
  /// Has the parts follow the commit that the root is to begin; gives what it waits for.
  [[nodiscard]] std::shared_future<void> start_parts();
  /// What ranks tell each other between two rounds.
  void agree();

  std::string path_;
  StoreOptions options_;
  Collective* ranks_;
  std::size_t resumed_ = 0;             // draws
  zarr::Root root_;                     // of the state that the run is resumed from
  std::optional<zarr::Writer> writer_;  // at the root
  std::optional<Lock> held_;            // at other ranks
  std::optional<zarr::Part> part_;      // where ranks see the same folder
  Range own_;
  bool begun_ = false;
  bool waits_ = false;                       // a commit, for the parts
  std::optional<std::promise<void>> parts_;  // at the root: are on the disk
  std::uint64_t durable_ = 0;                // draws of each chain, as the root last said
};

}  // namespace poise
