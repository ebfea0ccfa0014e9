/// Reading and writing of whole files.
#include "base/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace poise {

namespace {

std::string reason_of(int cause) { return std::generic_category().message(cause); }

/// A new file under a name of its own, which is gone unless the file took its place.
class Temporary {
 public:
  Temporary(const std::string& path, std::string name)
      : path_(path),
        name_(std::move(name)),
        descriptor_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw InputError(fmt::format("Cannot write {}: {}.", path_, reason_of(errno)));
  }
  ~Temporary() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (name_ != path_) ::unlink(name_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view content) const {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno != EINTR) fail();
      if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  /// Pipes and some file systems have nothing to wait for, and say so.
  void sync() const {
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) fail();
  }

  void close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0 && errno != EINTR) fail();
  }

  void take_place() const {
    if (std::rename(name_.c_str(), path_.c_str()) == 0) return;
    throw InputError(fmt::format("Cannot write {}: {}.", path_, reason_of(errno)));
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(fmt::format("Cannot write {}: {}.", path_, reason_of(errno)));
  }

  const std::string& path_;
  std::string name_;
  int descriptor_;
};

}  // namespace

std::string read_file(const std::string& path, std::uint64_t most) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw FileError(fmt::format("{}: found a directory, expected a file", path), "it is a directory");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw FileError(fmt::format("{}: cannot be opened, expected a file that can be read", path), reason_of(errno));
  }
  std::string content;
  std::vector<char> chunk(1 << 16);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    content.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (content.size() > most) {
      throw FileError(fmt::format("{}: too long, expected at most {} GiB", path, most >> 30), "it is too long");
    }
  }
  if (file.bad()) {
    throw FileError(fmt::format("{}: reading failed, expected a file that can be read", path),
                    "the disk reports an error");
  }
  return content;
}

void write_atomically(const std::string& path, std::string_view content) {
  const bool special = is_special(path);
  Temporary file(path, special ? path : temporary_beside(path));
  file.write(content);
  file.sync();
  file.close();
  if (!special) file.take_place();
}

void sync_directory(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::string temporary_beside(const std::string& path) { return fmt::format("{}.{}.tmp", path, ::getpid()); }

bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string obstacle_at(const std::string& path) {
  struct stat status {};
  const std::string directory = directory_of(path);
  if (::stat(directory.c_str(), &status) != 0) {
    return fmt::format("the directory {} {}", directory, errno == ENOENT ? "does not exist" : "cannot be reached");
  }
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a directory", directory);
  const bool is_directory = path.ends_with('/') || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  return is_directory ? "it is a directory" : "";
}

void fail_at(std::string_view name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}, line {}: {}", name, line, what));
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(mark) ? mark.size() : 0);
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace poise
