/// A file that is written at any place before it takes its own.
#include "store/export/array_file.hpp"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise::exported {

std::uint64_t Array::entries() const {
  std::uint64_t product = 1;
  for (const std::uint64_t side : shape) product *= side;
  return product;
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      temporary_(temporary_beside(path_)),
      descriptor_(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ >= 0) return;
  throw InputError(fmt::format("Cannot write {}: {}.", path_, std::generic_category().message(errno)));
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::fail() const {
  throw std::runtime_error(fmt::format("Cannot write {}: {}.", path_, std::generic_category().message(errno)));
}

void OutputFile::write_at(std::uint64_t at, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno != EINTR) fail();
    if (written <= 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
}

std::string OutputFile::read_at(std::uint64_t at, std::size_t count) const {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const ssize_t some = ::pread(descriptor_, bytes.data() + got, count - got, static_cast<off_t>(at + got));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) fail();
    got += static_cast<std::size_t>(some);
  }
  return bytes;
}

void OutputFile::finish() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  ::close(std::exchange(descriptor_, -1));
  sync_directory(directory_of(path_));
}

}  // namespace poise::exported
