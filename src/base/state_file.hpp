/// Checkpoint files: the state that a killed run or training resumes from, beside the file that it makes.
///
/// What is made at PATH has its state at PATH.checkpoint: JSON words, which say what was asked for, and bytes. It is
/// written beside its place, synced and renamed, with a checksum and the version of the program; the state before it is
/// kept as PATH.checkpoint.old, and used where the last one is damaged.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace poise {

struct StoredState {
  nlohmann::json words;
  std::string bytes;
};

/// A state as one string, with a checksum and the version of the program; and back. Throws InputError with a sentence
/// that begins with `path` where it is damaged, or another version's.
[[nodiscard]] std::string state_bytes(const StoredState& state);
[[nodiscard]] StoredState parse_state(std::string_view bytes, const std::string& path);

[[nodiscard]] std::string checkpoint_path(const std::string& path);

/// The last state, or the one before where that is damaged, which `note` then says. Throws InputError where there is
/// none to resume from.
[[nodiscard]] StoredState read_state(const std::string& path, std::string& note);
void write_state(const std::string& path, const StoredState& state);
/// Both of them: the work is done, or another one begins.
void remove_states(const std::string& path);
/// Removes what killed programs have left beside their states. For the program that holds the files.
void remove_leftovers(const std::string& path);

/// A file, as it was when work began.
[[nodiscard]] nlohmann::json file_fingerprint(const std::string& path);
/// Throws InputError where the file is another one now.
void check_fingerprint(const nlohmann::json& fingerprint);

/// A file that no other program can hold at the same time; it is made where there is none.
class HeldFile {
 public:
  /// Throws InputError where another program holds it, or where it cannot be written.
  explicit HeldFile(std::string path);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// The same, where the file has no other use: it is gone afterwards.
class Lock {
 public:
  explicit Lock(std::string path) : file_(std::move(path)) {}
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  HeldFile file_;
};

}  // namespace poise
