/// Checkpoint files: reading, writing, fingerprints, and locks.
#include "base/state_file.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"

namespace poise {

namespace {

constexpr std::uint64_t kFormat = 5;
constexpr std::array<char, 16> kMagic = {'p', 'o', 'i', 's', 'e', ' ', 'c', 'h',
                                         'e', 'c', 'k', 'p', 'o', 'i', 'n', 't'};

struct Head {
  std::array<char, 16> magic = kMagic;
  std::uint64_t format = kFormat;
  std::uint64_t words = 0;  // bytes of the JSON text
  std::uint64_t state = 0;  // bytes of the state behind it
  std::uint64_t sum = 0;    // checksum of both
};

std::string old_path(const std::string& path) { return checkpoint_path(path) + ".old"; }

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

StoredState parse_state(std::string_view bytes, const std::string& path) {
  Head head;
  if (bytes.size() < sizeof head || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    throw InputError(fmt::format("{} is not a checkpoint of poise, or only a part of one", path));
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.format > kFormat) {
    throw InputError(fmt::format("{} was made by a newer version of poise, which is needed to resume from it", path));
  }
  if (head.format < kFormat && head.format > 0) {
    throw InputError(fmt::format("{} was made by an older version of poise, which is needed to resume from it", path));
  }
  const std::uint64_t left = bytes.size() - sizeof head;
  if (head.format == 0 || head.words > left || head.state != left - head.words ||
      checksum(bytes.substr(sizeof head)) != head.sum) {
    throw InputError(fmt::format("{} is damaged or only a part of a checkpoint", path));
  }
  StoredState found;
  try {
    auto words = nlohmann::json::parse(bytes.substr(sizeof head, head.words));
    const auto version = words.at("version").get<std::string>();
    if (version != POISE_VERSION) {
      throw InputError(
          fmt::format("{} was made by poise {}, and this is {}: a run is resumed by the version that began it", path,
                      quote(version), POISE_VERSION));
    }
    found.words = std::move(words.at("words"));
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", path));
  }
  found.bytes = bytes.substr(sizeof head + head.words);
  return found;
}

std::string state_bytes(const StoredState& state) {
  const nlohmann::json words{{"version", POISE_VERSION}, {"words", state.words}};
  const std::string text = words.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  Head head;
  head.words = text.size();
  head.state = state.bytes.size();
  head.sum = checksum(state.bytes, checksum(text));
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += text;
  bytes += state.bytes;
  return bytes;
}

std::string checkpoint_path(const std::string& path) { return path + ".checkpoint"; }

StoredState read_state(const std::string& path, std::string& note) {
  try {
    return parse_state(read_file(checkpoint_path(path)), checkpoint_path(path));
  } catch (const InputError& error) {
    const bool missing = ::access(checkpoint_path(path).c_str(), F_OK) != 0;
    if (::access(old_path(path).c_str(), F_OK) != 0) {
      if (!missing) throw;
      throw InputError(fmt::format("{} has no checkpoint to resume from: there is no {}", path, checkpoint_path(path)));
    }
    note =
        fmt::format("{}, so the one before it is used", missing ? checkpoint_path(path) + " is missing" : error.what());
    return parse_state(read_file(old_path(path)), old_path(path));
  }
}

void write_state(const std::string& path, const StoredState& state) {
  const std::string place = checkpoint_path(path);
  // A link rather than a rename, so that there is a checkpoint at its place at all times.
  const std::string before = old_path(path);
  if (::access(place.c_str(), F_OK) == 0) {
    const std::string beside = temporary_beside(before);
    ::unlink(beside.c_str());
    if (::link(place.c_str(), beside.c_str()) == 0) {
      if (std::rename(beside.c_str(), before.c_str()) != 0) ::unlink(beside.c_str());
    } else {
      std::rename(place.c_str(), before.c_str());  // file systems without links
    }
  }
  write_atomically(place, state_bytes(state));
  sync_directory(directory_of(path));
}

void remove_states(const std::string& path) {
  ::unlink(checkpoint_path(path).c_str());
  ::unlink(old_path(path).c_str());
  remove_leftovers(path);
}

void remove_leftovers(const std::string& path) {
  const std::string name = std::filesystem::path(checkpoint_path(path)).filename().string();
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory_of(path), ignored)) {
    const std::string other = entry.path().filename().string();
    if (other.starts_with(name + ".") && other.ends_with(".tmp")) found.push_back(entry.path());
  }
  for (const auto& one : found) std::filesystem::remove(one, ignored);
}

nlohmann::json file_fingerprint(const std::string& path) {
  const std::string bytes = read_file(path);
  return {{"path", path}, {"bytes", bytes.size()}, {"checksum", fmt::format("{:016x}", checksum(bytes))}};
}

void check_fingerprint(const nlohmann::json& fingerprint) {
  const auto path = fingerprint.at("path").get<std::string>();
  if (file_fingerprint(path) == fingerprint) return;
  throw InputError(fmt::format("{} has changed since the run began, so the run cannot be resumed with it", path));
}

HeldFile::HeldFile(std::string path) : path_(std::move(path)) {
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw InputError(fmt::format("Cannot write {}: {}.", path_, reason()));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const std::string why = errno == EWOULDBLOCK ? "another program is writing it just now" : reason();
      ::close(std::exchange(descriptor_, -1));
      throw InputError(fmt::format("Cannot write {}: {}.", path_, why));
    }
    // Between opening and locking, the program that held it may have removed it.
    struct stat held {
    }, there{};
    if (::fstat(descriptor_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 && held.st_ino == there.st_ino) return;
    ::close(std::exchange(descriptor_, -1));
  }
}

HeldFile::~HeldFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// Removed while it is still held, so that no other program can hold it.
Lock::~Lock() { ::unlink(file_.path().c_str()); }

}  // namespace poise
