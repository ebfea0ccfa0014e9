/// The folder of a store: who holds it, and how its files get on the disk.
///
/// Files are written under names of their own. A commit waits until they are on the disk, gives them their names, and
/// then does the same with the root zarr.json, whose new name is what makes them count. No file that a root names is
/// ever written to: a chunk that gets more draws is replaced as a whole, by one that begins with the same draws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/state_file.hpp"

namespace poise::zarr {

/// run.zarr/ and run.zarr are the same.
[[nodiscard]] std::string without_slash(std::string path);

[[nodiscard]] std::string root_path(const std::string& store);
/// The root that went with the state before the last one.
[[nodiscard]] std::string previous_root_path(const std::string& store);
[[nodiscard]] std::string state_path(const std::string& store, std::uint64_t number);

/// What is to become durable together; all paths are below the folder.
struct Commit {
  std::vector<std::pair<std::string, std::string>> files;  ///< written under the first name, wanted under the second
  std::optional<std::pair<std::uint64_t, std::string>> state;  ///< number and content of a new state
  std::string previous_root;                                   ///< of the last state; empty: none
  std::string root;
  bool is_first = false;  ///< no folder below has been synced yet
};

/// Failures to write are a std::runtime_error that names the path.
class Folder {
 public:
  /// Makes the folder where there is none and takes hold of it. Throws an InputError where another program has, where
  /// it cannot be written, or where there is something that is no store of this program.
  explicit Folder(const std::string& path);
  /// A folder in which nothing was stored goes.
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Removes the store that is there.
  void clear();
  /// Removes files that killed programs have not given their names.
  void remove_leftovers() const;
  void make_group(const std::string& name) const;
  /// Writes a file that the next commit is to have; gives what goes into `Commit::files`.
  [[nodiscard]] std::pair<std::string, std::string> write(const std::string& name, std::string_view content);
  void make_durable(const Commit& commit) const;
  /// Removes all states and what belongs to them: no root names them any more.
  void forget_states() const;

 private:
  /// Removes states before the last two; with 0, all.
  void remove_states(std::uint64_t last) const;
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + '/' + name; }

  std::string path_;
  bool made_ = false;
  std::optional<HeldFile> held_;
};

}  // namespace poise::zarr
