/// Calls of libzstd, and the choice between its matches and one bit for each label.
#include "store/zarr/codec.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <zstd.h>

#include "store/label_bits.hpp"
#include "store/zarr/crc32c.hpp"

namespace poise::zarr {

namespace {

constexpr int kLevel = 1;
constexpr std::size_t kTried = std::size_t{1} << 17;  // labels that are compressed both ways
constexpr std::size_t kSumBytes = 4;

/// One for each thread: to make them takes longer than a chunk.
ZSTD_CCtx* compressor() {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  static thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

std::string zstd_frame(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compressCCtx(compressor(), out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // the only way to fail with room enough
  out.resize(size);
  return out;
}

std::string with_sum(std::string frame) {
  const std::uint32_t sum = crc32c(frame);
  for (std::size_t k = 0; k < kSumBytes; ++k) frame += static_cast<char>(sum >> 8 * k);
  return frame;
}

std::string unpacked(const LabelBits& labels, std::size_t rows, std::size_t padding, std::int8_t fill) {
  std::string bytes(rows * labels.variables + padding, static_cast<char>(fill));
  for (std::size_t row = 0; row < rows; ++row) {
    unpack_labels(labels.bits.data() + row * labels.row_bytes(), labels.low, labels.high,
                  {reinterpret_cast<std::int8_t*>(bytes.data()) + row * labels.variables, labels.variables});
  }
  return bytes;
}

}  // namespace

std::string encode(std::string_view bytes) { return with_sum(zstd_frame(bytes)); }

std::string encode(const LabelBits& labels, std::size_t padding, std::int8_t fill) {
  const std::size_t tried = std::clamp<std::size_t>(kTried / std::max<std::size_t>(labels.variables, 1), 1,
                                                    std::max<std::size_t>(labels.rows, 1));
  const bool has_frame = has_label_frame(labels.low, labels.high);
  if (has_frame && labels.rows > 0) {
    const std::size_t bits = tried * labels.variables / 8;
    if (zstd_frame(unpacked(labels, tried, 0, fill)).size() >= bits - bits / 8) {
      return with_sum(label_frame(labels, padding, fill));
    }
  }
  return encode(unpacked(labels, labels.rows, padding, fill));
}

bool decode(std::string_view stored, char* to, std::size_t size) {
  if (stored.size() < kSumBytes) return false;
  const std::string_view frame = stored.substr(0, stored.size() - kSumBytes);
  std::uint32_t sum = 0;
  for (std::size_t k = 0; k < kSumBytes; ++k) {
    sum |= std::uint32_t{static_cast<unsigned char>(stored[frame.size() + k])} << 8 * k;
  }
  return crc32c(frame) == sum && ZSTD_decompress(to, size, frame.data(), frame.size()) == size;
}

std::optional<std::string> decode(std::string_view stored, std::size_t most) {
  if (stored.size() < kSumBytes) return std::nullopt;
  const unsigned long long size = ZSTD_getFrameContentSize(stored.data(), stored.size() - kSumBytes);
  if (size > most) return std::nullopt;  // unknown sizes and errors are the largest numbers
  std::string bytes(size, '\0');
  if (!decode(stored, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

}  // namespace poise::zarr
