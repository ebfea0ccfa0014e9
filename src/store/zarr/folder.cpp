/// Calls of the system, each of which may fail with a sentence.
#include "store/zarr/folder.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"
#include "store/run_file.hpp"

namespace poise::zarr {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOwn = ".poise";  // what is no part of the Zarr group
constexpr const char* kStates = "state.";
constexpr const char* kTemporary = ".tmp";
constexpr const char* kRanks = "rank.";

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(fmt::format("Cannot write {}: {}.", path, std::generic_category().message(errno)));
}

int open_new(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path);
  return descriptor;
}

/// To a file that is open, and closes it where that fails.
void write_to(int descriptor, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      ::close(descriptor);
      errno = why;
      fail(path);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

void close_written(int descriptor, const std::string& path) {
  if (::close(descriptor) != 0 && errno != EINTR) fail(path);
}

void write_whole(const std::string& path, std::string_view content) {
  const int descriptor = open_new(path);
  write_to(descriptor, path, content);
  close_written(descriptor, path);
}

/// A commit in the background may give it its name at any time.
int open_either(const std::string& store, const NewFile& file) {
  for (const std::string& name : {file.first, file.second}) {
    const int descriptor = ::open((store + '/' + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != ENOENT) break;
  }
  throw std::runtime_error(
      fmt::format("Cannot read {}/{}: {}.", store, file.second, std::generic_category().message(errno)));
}

/// Of a file or a folder. Some file systems have nothing to wait for, and say so.
void sync(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path);
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP;
  const int why = errno;
  ::close(descriptor);
  errno = why;
  if (failed) fail(path);
}

void rename_to(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to);
}

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail(path);
}

void write_renamed(const std::string& path, std::string_view content) {
  const std::string temporary = path + kTemporary;
  write_whole(temporary, content);
  sync(temporary);
  rename_to(temporary, path);
}

}  // namespace

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string root_path(const std::string& store) { return store + "/zarr.json"; }
std::string previous_root_path(const std::string& store) { return fmt::format("{}/{}/previous.json", store, kOwn); }
std::string state_path(const std::string& store, std::uint64_t number) {
  return fmt::format("{}/{}/{}{}", store, kOwn, kStates, number);
}

Folder::Folder(const std::string& path) : path_(without_slash(path)) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("Cannot write {}: {}.", path_, why));
  };
  if (path_.empty()) throw InputError("The path of the output is empty.");
  check_store_name(path_);
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISDIR(status.st_mode)) refuse("it is a file, and a store is a folder");
  std::error_code error;
  if (exists && !fs::is_directory(at(kOwn), error) && !fs::is_empty(path_, error)) {
    refuse("the folder holds other things than a run of poise");
  }
  if (!exists) {
    const std::string obstacle = obstacle_at(path_);
    if (!obstacle.empty()) refuse(obstacle);
    if (::mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST) refuse(std::generic_category().message(errno));
    made_ = true;
  }
  const bool had_own = fs::is_directory(at(kOwn), error);
  if (::mkdir(at(kOwn).c_str(), 0777) != 0 && errno != EEXIST) refuse(std::generic_category().message(errno));
  if (!had_own) sync_directory(path_);  // which says whose the folder is, before there is anything else
  held_.emplace(at(kOwn) + "/lock");
  remove_ranks();
}

void Folder::remove_ranks() const {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(at(kOwn), ignored)) {
    if (entry.path().filename().string().starts_with(kRanks)) found.push_back(entry.path().string());
  }
  for (const std::string& one : found) const Lock gone(one);
}

Folder::~Folder() {
  if (!held_ || !fs::exists(at(kOwn) + "/lock")) return;
  std::error_code ignored;
  const auto entries = std::distance(fs::directory_iterator(path_, ignored), fs::directory_iterator());
  if (entries != 1) return;
  std::vector<std::string> held;  // by ranks that end as this one does
  for (const auto& entry : fs::directory_iterator(at(kOwn), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == "lock") continue;
    if (!name.starts_with(kRanks)) return;
    held.push_back(entry.path().string());
  }
  for (const std::string& one : held) ::unlink(one.c_str());
  ::unlink(held_->path().c_str());
  ::rmdir(at(kOwn).c_str());
  if (made_) ::rmdir(path_.c_str());
}

void Folder::clear() {
  // The root goes first: without it the rest is no store, and `.poise` says whose it is.
  for (const std::string& root : {root_path(path_), previous_root_path(path_)}) {
    if (::unlink(root.c_str()) != 0 && errno != ENOENT) fail(root);
  }
  sync(path_);
  std::error_code error;
  for (const char* group : {"posterior", "sample_stats"}) {
    fs::remove_all(at(group), error);
    if (error) throw std::runtime_error(fmt::format("Cannot write {}: {}.", at(group), error.message()));
  }
  remove_states(0);
  remove_leftovers();
}

void Folder::remove_leftovers() const {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(path_, ignored)) {
    if (entry.path().extension() == kTemporary) found.push_back(entry.path());
  }
  for (const fs::path& one : found) fs::remove(one, ignored);
}

void make_group(const std::string& store, const std::string& name) {
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    make_directory(store + '/' + name.substr(0, end));
  }
  make_directory(store + '/' + name);
}

namespace {

/// Several commits may wait for versions of the same file.
NewFile new_file(const std::string& name) {
  static std::atomic<std::uint64_t> number = 0;
  return {fmt::format("{}.{}{}", name, ++number, kTemporary), name};
}

}  // namespace

NewFile write_new(const std::string& store, const std::string& name, std::string_view content) {
  NewFile made = new_file(name);
  write_whole(store + '/' + made.first, content);
  return made;
}

NewFile begin_new(const std::string& store, const std::string& name, const NewFile& from, std::uint64_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  NewFile made = new_file(name);
  const std::string path = store + '/' + made.first;
  if (bytes == 0) {
    write_whole(path, "");
    return made;
  }
  struct Source {
    int descriptor;
    ~Source() { ::close(descriptor); }
  };
  const Source source{open_either(store, from)};
  const int target = open_new(path);
  std::string piece(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, bytes)), '\0');
  while (bytes > 0) {
    const ssize_t got = ::read(source.descriptor, piece.data(), std::min<std::uint64_t>(piece.size(), bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string why = got == 0 ? "it has become shorter" : std::generic_category().message(errno);
      ::close(target);
      throw std::runtime_error(fmt::format("Cannot read {}/{}: {}.", store, from.second, why));
    }
    write_to(target, path, {piece.data(), static_cast<std::size_t>(got)});
    bytes -= static_cast<std::uint64_t>(got);
  }
  close_written(target, path);
  return made;
}

void append(const std::string& store, const NewFile& file, std::string_view content) {
  const std::string path = store + '/' + file.first;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) fail(path);
  write_to(descriptor, path, content);
  close_written(descriptor, path);
}

std::set<std::string> put_in_place(const std::string& store, const std::vector<NewFile>& files) {
  std::set<std::string> folders;
  for (const auto& [from, to] : files) sync(store + '/' + from);
  for (const auto& [from, to] : files) {
    rename_to(store + '/' + from, store + '/' + to);
    folders.insert(directory_of(store + '/' + to));
  }
  return folders;
}

void sync_folders(const std::set<std::string>& folders) {
  for (const std::string& folder : folders) sync(folder);
}

std::string rank_path(const std::string& store, int rank) {
  return fmt::format("{}/{}/{}{}", store, kOwn, kRanks, rank);
}
std::string probe_path(const std::string& store, const std::string& name) {
  return fmt::format("{}/{}/{}{}", store, kOwn, name, kTemporary);
}
void write_probe(const std::string& path) { write_whole(path, ""); }

void Folder::make_durable(const Commit& commit) const {
  std::set<std::string> folders = put_in_place(path_, commit.files);
  if (commit.is_first) {
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_directory()) folders.insert(entry.path().string());
    }
    folders.insert(path_);
    sync_directory(directory_of(path_));
  }
  if (commit.others.valid()) commit.others.get();
  if (commit.state) {
    const std::string state = state_path(path_, commit.state->first);
    write_whole(state, commit.state->second);
    sync(state);
    if (!commit.previous_root.empty()) write_renamed(previous_root_path(path_), commit.previous_root);
    folders.insert(at(kOwn));
  }
  sync_folders(folders);
  write_renamed(root_path(path_), commit.root);
  sync(path_);
  if (commit.state) remove_states(commit.state->first);
}

void Folder::forget_states() const {
  ::unlink(previous_root_path(path_).c_str());
  remove_states(0);
}

void Folder::remove_states(std::uint64_t last) const {
  std::error_code ignored;
  std::vector<std::string> old;
  for (const auto& entry : fs::directory_iterator(at(kOwn), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStates)) continue;
    std::uint64_t number = 0;
    const std::string_view digits = std::string_view(name).substr(std::string_view(kStates).size());
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (last == 0 || number + 1 < last) old.push_back(entry.path().string());
  }
  for (const std::string& one : old) ::unlink(one.c_str());
}

}  // namespace poise::zarr
