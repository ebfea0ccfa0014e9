/// Deflate streams through zlib, which counts in 32 bits: both sides are handed to it in chunks.
#include "base/image/inflate.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

namespace poise {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 30;

}  // namespace

Inflater::Inflater(std::string_view compressed, Wrapping wrapping, std::string name)
    : rest_(compressed), name_(std::move(name)), stream_(std::make_unique<z_stream_s>()) {
  const int window = wrapping == Wrapping::gzip ? 16 + MAX_WBITS : -MAX_WBITS;
  if (inflateInit2(stream_.get(), window) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(stream_.get()); }

std::size_t Inflater::read(std::span<std::uint8_t> out) {
  std::size_t filled = 0;
  while (filled < out.size() && !ended_) {
    const std::size_t given = std::min(rest_.size(), kChunk);
    const std::size_t room = std::min(out.size() - filled, kChunk);
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_->avail_in = static_cast<uInt>(given);
    stream_->next_out = out.data() + filled;
    stream_->avail_out = static_cast<uInt>(room);
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    rest_.remove_prefix(given - stream_->avail_in);
    filled += room - stream_->avail_out;
    if (result == Z_STREAM_END) {
      ended_ = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result == Z_BUF_ERROR || (result == Z_OK && rest_.empty() && stream_->avail_out > 0)) {
      throw InputError(fmt::format("{}: found the end in the middle of its compressed data, expected more", name_));
    } else if (result != Z_OK) {
      throw InputError(fmt::format("{}: found damaged compressed data ({}), expected what it held when written", name_,
                                   stream_->msg != nullptr ? stream_->msg : "a dictionary is needed"));
    }
  }
  return filled;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string unzip(std::string_view compressed, const std::string& name, std::uint64_t most) {
  std::string out;
  std::vector<std::uint8_t> chunk(std::size_t{1} << 20);
  while (is_gzip(compressed)) {
    Inflater member(compressed, Wrapping::gzip, name);
    for (std::size_t count = chunk.size(); count == chunk.size();) {
      count = member.read(chunk);
      out.append(reinterpret_cast<const char*>(chunk.data()), count);
      if (out.size() > most) {
        throw InputError(fmt::format("{}: too long once unpacked, expected at most {} GiB", name, most >> 30));
      }
    }
    compressed.remove_prefix(compressed.size() - member.left_over());
  }
  return out;
}

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()));
}

}  // namespace poise
