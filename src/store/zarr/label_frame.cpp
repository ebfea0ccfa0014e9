/// A Huffman code for two labels has one bit for each, so the literals of a zstd block are the labels' bits (RFC 8878).
///
/// Blocks have literals and no sequences. Their four streams are read backwards from a marker bit, so each holds its
/// bits in reverse order. What pads a chunk is one byte, repeated.
#include "store/zarr/label_frame.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "store/label_bits.hpp"

namespace poise::zarr {

namespace {

constexpr std::size_t kMostInBlock = std::size_t{1} << 17;
constexpr std::size_t kFewest = 256;  // fewer labels are stored as they are
constexpr std::size_t kSlack = 8;     // bytes before and behind bits that are loaded eight bytes at a time

enum class Block : std::uint32_t { raw = 0, repeated = 1, compressed = 2 };

/// Weights of the two symbols: for 0 and 1 as nibbles; for 1 and 255 the 254 zeros between them take an FSE code.
constexpr std::string_view kTreeOfLevels("\x80\x10", 2);
constexpr std::string_view kTreeOfSpins("\x06\xe0\x0f\x00\x50\xd2\x09", 7);

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int k = 0; k < bytes; ++k) to += static_cast<char>(value >> 8 * k);
}

void put_block_header(std::string& to, Block type, std::size_t size, bool last) {
  put(to, (last ? 1U : 0U) | static_cast<std::uint32_t>(type) << 1U | static_cast<std::uint32_t>(size) << 3U, 3);
}

/// All rows behind each other, without gaps, between `kSlack` bytes of zeros.
std::vector<std::uint8_t> joined(const LabelBits& labels) {
  std::vector<std::uint8_t> all(2 * kSlack + (labels.rows * labels.variables + 7) / 8);
  const std::size_t width = labels.row_bytes();
  if (labels.variables % 8 == 0) {
    std::copy_n(labels.bits.data(), labels.rows * width, all.data() + kSlack);
    return all;
  }
  for (std::size_t row = 0; row < labels.rows; ++row) {
    std::size_t at = row * labels.variables;
    for (std::size_t k = 0; k < width; k += 4, at += 32) {
      std::uint32_t some = 0;
      std::memcpy(&some, labels.bits.data() + row * width + k, std::min<std::size_t>(4, width - k));
      std::uint64_t there = 0;
      std::uint8_t* const to = all.data() + kSlack + at / 8;
      const std::size_t bytes =
          std::min<std::size_t>(sizeof there, static_cast<std::size_t>(all.data() + all.size() - to));
      std::memcpy(&there, to, bytes);
      there |= std::uint64_t{some} << at % 8;
      std::memcpy(to, &there, bytes);
    }
  }
  return all;
}

std::uint64_t reversed(std::uint64_t x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  return __builtin_bswap64(x);
}

/// One stream: `count` bits from `first` on in reverse order, and the marker.
class StreamWriter {
 public:
  StreamWriter(const std::vector<std::uint8_t>& bits, bool flips)
      : bits_(bits), flips_(flips ? ~std::uint64_t{0} : 0) {}

  void write(std::size_t first, std::size_t count, std::string& to) const {
    const std::size_t bytes = count / 8 + 1;
    const std::size_t begin = to.size();
    to.resize(begin + bytes + kSlack);
    char* const out = to.data() + begin;
    for (std::size_t done = 0; done < bytes; done += 7) {
      // The 56 bits before those that are done; what comes before the stream is cut off below.
      const std::uint64_t backwards = reversed(window(first + count, 8 * done));
      std::memcpy(out + done, &backwards, sizeof backwards);
    }
    to.resize(begin + bytes);
    const std::uint32_t marker = 1U << count % 8;
    to.back() = static_cast<char>((static_cast<std::uint8_t>(to.back()) & (marker - 1U)) | marker);
  }

 private:
  /// Bits up to `end` less `done`, the last one in the highest place; the lowest eight places are of no use.
  [[nodiscard]] std::uint64_t window(std::size_t end, std::size_t done) const {
    // In bits of the buffer, whose slack stands before the first label.
    const std::size_t last = 8 * kSlack + end;
    if (last < done + 64) return 0 ^ flips_;
    const std::size_t from = last - done - 56;
    std::uint64_t some = 0;
    std::memcpy(&some, bits_.data() + from / 8, sizeof some);
    return (some >> from % 8 << 8) ^ flips_;
  }

  const std::vector<std::uint8_t>& bits_;
  std::uint64_t flips_;
};

}  // namespace

bool has_label_frame(std::int8_t low, std::int8_t high) { return high == 1 && (low == 0 || low == -1); }

std::string label_frame(const LabelBits& labels, std::size_t padding, std::int8_t fill) {
  const std::size_t count = labels.rows * labels.variables;
  const std::vector<std::uint8_t> bits = joined(labels);
  // Codes go by the order of bytes, in which 255, the byte of -1, comes after 1.
  const bool of_spins = labels.low == -1;
  const StreamWriter streams(bits, of_spins);
  const std::string_view tree = of_spins ? kTreeOfSpins : kTreeOfLevels;

  std::string out("\x28\xb5\x2f\xfd\xe0", 5);  // magic number; a single segment whose size has eight bytes
  put(out, count + padding, 8);
  std::string body;
  for (std::size_t first = 0; first < count; first += kMostInBlock) {
    const std::size_t here = std::min(kMostInBlock, count - first);
    const bool last = first + here == count && padding == 0;
    if (here < kFewest) {
      put_block_header(out, Block::raw, here, last);
      for (std::size_t k = first; k < first + here; ++k) {
        const bool is_high = (bits[kSlack + k / 8] >> k % 8 & 1U) != 0;
        out += static_cast<char>(is_high ? labels.high : labels.low);
      }
      continue;
    }
    const std::size_t of_stream = (here + 3) / 4;
    const std::size_t stream_bytes = of_stream / 8 + 1;
    const std::size_t of_last = here - 3 * of_stream;
    const std::size_t literals = tree.size() + 6 + 3 * stream_bytes + of_last / 8 + 1;
    body.clear();
    put(body, 2U | 3U << 2U | std::uint64_t{here} << 4U | std::uint64_t{literals} << 22U,
        5);  // compressed, four streams
    body += tree;
    for (int k = 0; k < 3; ++k) put(body, stream_bytes, 2);
    for (std::size_t k = 0; k < 4; ++k) streams.write(first + k * of_stream, k < 3 ? of_stream : of_last, body);
    body += '\0';  // no sequences
    put_block_header(out, Block::compressed, body.size(), last);
    out += body;
  }
  for (std::size_t done = 0; done < padding; done += kMostInBlock) {
    const std::size_t here = std::min(kMostInBlock, padding - done);
    put_block_header(out, Block::repeated, here, done + here == padding);
    out += static_cast<char>(fill);
  }
  if (count + padding == 0) put_block_header(out, Block::raw, 0, true);
  return out;
}

}  // namespace poise::zarr
