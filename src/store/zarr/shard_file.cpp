/// The index of a shard has a checksum of its own, as every chunk has.
#include "store/zarr/shard_file.hpp"

#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "store/zarr/crc32c.hpp"

namespace poise::zarr {

namespace {

constexpr std::size_t kPlaceBytes = 16;
constexpr std::size_t kSumBytes = 4;
constexpr std::uint64_t kMostStored = std::uint64_t{1} << 29;  // bytes of a chunk

template <class Number>
void put(std::string& text, Number number) {
  for (std::size_t k = 0; k < sizeof number; ++k) text += static_cast<char>(number >> 8 * k);
}

template <class Number>
Number number_at(std::string_view text, std::size_t at) {
  Number number = 0;
  for (std::size_t k = 0; k < sizeof number; ++k) {
    number |= Number{static_cast<unsigned char>(text[at + k])} << 8 * k;
  }
  return number;
}

std::string read_at(int descriptor, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t read = ::pread(descriptor, bytes.data() + got, bytes.size() - got, static_cast<off_t>(offset + got));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) break;
    got += static_cast<std::size_t>(read);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

std::string index_of(std::span<const Place> places, std::size_t chunks) {
  std::string text;
  text.reserve(chunks * kPlaceBytes + kSumBytes);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const Place place = chunk < places.size() ? places[chunk] : kNoPlace;
    put(text, place.offset);
    put(text, place.size);
  }
  put(text, crc32c(text));
  return text;
}

ShardFile::ShardFile(const std::string& path, std::size_t chunks)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    throw std::runtime_error(fmt::format("Cannot read {}: {}.", path, std::generic_category().message(errno)));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kSumBytes || (size - kSumBytes) / kPlaceBytes < chunks) return;
  const std::uint64_t index_bytes = chunks * kPlaceBytes + kSumBytes;
  end_ = size - index_bytes;
  const std::string text = read_at(descriptor_, end_, index_bytes);
  if (text.size() != index_bytes) return;
  const std::size_t sum_at = text.size() - kSumBytes;
  if (crc32c(std::string_view(text).substr(0, sum_at)) != number_at<std::uint32_t>(text, sum_at)) return;
  for (std::size_t at = 0; at < sum_at; at += kPlaceBytes) {
    places_.push_back({number_at<std::uint64_t>(text, at), number_at<std::uint64_t>(text, at + kPlaceBytes / 2)});
  }
}

ShardFile::~ShardFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ShardFile::Found ShardFile::find(std::size_t chunk) const {
  if (descriptor_ < 0) return Found::missing;
  if (chunk >= places_.size()) return Found::damaged;
  const Place& place = places_[chunk];
  if (place == kNoPlace) return Found::missing;
  const bool fits = place.offset <= end_ && place.size <= end_ - place.offset && place.size <= kMostStored;
  return fits ? Found::there : Found::damaged;
}

std::string ShardFile::read(std::size_t chunk) const {
  return read_at(descriptor_, places_[chunk].offset, places_[chunk].size);
}

}  // namespace poise::zarr
