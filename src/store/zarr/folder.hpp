/// The folder of a store: who holds it, and how its files get on the disk.
///
/// Files are written under names of their own. A commit waits until they are on the disk, gives them their names, and
/// then does the same with the root zarr.json, whose new name is what makes them count. No file that a root names is
/// ever written to: a chunk that gets more draws is replaced as a whole, by one that begins with the same draws.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

/// Written under the first name and wanted under the second; both are below the folder.
using NewFile = std::pair<std::string, std::string>;

// Failures to write are a std::runtime_error that names the path.

void make_group(const std::string& store, const std::string& name);
/// Writes a file under a name of its own.
[[nodiscard]] NewFile write_new(const std::string& store, const std::string& name, std::string_view content);
/// The same for a file that begins with the first bytes of another one, which is there under one of its two names, and
/// to which more is appended.
[[nodiscard]] NewFile begin_new(const std::string& store, const std::string& name, const NewFile& from,
                                std::uint64_t bytes);
void append(const std::string& store, const NewFile& file, std::string_view content);
/// Waits until files are on the disk and gives them their names. Gives the folders, which are not synced yet.
[[nodiscard]] std::set<std::string> put_in_place(const std::string& store, const std::vector<NewFile>& files);
void sync_folders(const std::set<std::string>& folders);

/// Ranks of a run that write into the same folder hold a file each, so that no other program takes the folder while one
/// of them is left.
[[nodiscard]] std::string rank_path(const std::string& store, int rank);
/// A file that tells the folder from all others.
[[nodiscard]] std::string probe_path(const std::string& store, const std::string& name);
void write_probe(const std::string& path);

/// What is to become durable together.
struct Commit {
  std::vector<NewFile> files;
  std::optional<std::pair<std::uint64_t, std::string>> state;  ///< number and content of a new state
  std::string previous_root;                                   ///< of the last state; empty: none
  std::string root;
  bool is_first = false;  ///< no folder below has been synced yet
  /// Files of others that the root counts on are on the disk when it is ready; not valid: there are none.
  std::shared_future<void> others;
};

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
  void make_group(const std::string& name) const { zarr::make_group(path_, name); }
  /// Writes a file that the next commit is to have; gives what goes into `Commit::files`.
  [[nodiscard]] NewFile write(const std::string& name, std::string_view content) const {
    return write_new(path_, name, content);
  }
  void make_durable(const Commit& commit) const;
  /// Removes all states and what belongs to them: no root names them any more.
  void forget_states() const;

 private:
  /// Removes what ranks that were killed have held. Throws an InputError where one is left.
  void remove_ranks() const;
  /// Removes states before the last two; with 0, all.
  void remove_states(std::uint64_t last) const;
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + '/' + name; }

  std::string path_;
  bool made_ = false;
  std::optional<HeldFile> held_;
};

}  // namespace poise::zarr
