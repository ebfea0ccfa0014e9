/// Deflate streams of bytes that take two values, written directly, and those of zlib beside them.
#include "store/chunk_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <zlib.h>

#include "store/journal.hpp"

namespace poise::netcdf {

namespace {

/// One part in so many of a chunk is coded both ways.
constexpr std::size_t kTriedPart = 64;
constexpr std::size_t kTriedBytes = 4096;
/// How much shorter what zlib finds must be to be worth its time.
constexpr double kWorthIt = 0.6;

std::string by_zlib(std::span<const std::int8_t> bytes, int strategy) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15, 9, strategy) != Z_OK) throw std::bad_alloc();
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::int8_t*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::logic_error("zlib did not end a stream");
  return out;
}

/// Bits behind each other, the first in the lowest position.
class BitWriter {
 public:
  explicit BitWriter(std::size_t most_bytes) : bytes_(most_bytes + sizeof(std::uint64_t), '\0') {}

  /// At most 32 bits.
  void put(std::uint64_t bits, unsigned count) {
    held_ |= bits << used_;
    used_ += count;
    if (used_ < 32) return;
    std::memcpy(bytes_.data() + at_, &held_, sizeof(std::uint32_t));
    at_ += sizeof(std::uint32_t);
    held_ >>= 32;
    used_ -= 32;
  }
  /// Fills up the last byte; gives all of them.
  [[nodiscard]] std::string take() {
    std::memcpy(bytes_.data() + at_, &held_, sizeof held_);
    bytes_.resize(at_ + (used_ + 7) / 8);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::uint64_t held_ = 0;
  unsigned used_ = 0;
  std::size_t at_ = 0;
};

/// Codes of the two labels and of two more symbols: 0, 10, 110 and 111, which stand here with their first bit lowest.
constexpr unsigned kEnd = 0b011, kEndLength = 3;
/// As many bytes as the longest match has, like the byte before: 111, and 0 for the only distance.
constexpr unsigned kRun = 0b0111, kRunLength = 4;
constexpr std::size_t kRunBytes = 258;
/// Groups of eight labels that a run and a few single codes make.
constexpr std::size_t kRunGroups = kRunBytes / 8 + 1;

struct GroupCode {
  std::uint16_t bits;
  std::uint8_t count;
};

/// Codes of eight labels, by which of them are the rarer one.
constexpr std::array<GroupCode, 256> kGroups = [] {
  std::array<GroupCode, 256> groups{};
  for (unsigned mask = 0; mask < groups.size(); ++mask) {
    unsigned bits = 0, count = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const bool rare = (mask >> i & 1U) != 0;
      bits |= (rare ? 0b01U : 0b0U) << count;
      count += rare ? 2 : 1;
    }
    groups[mask] = {static_cast<std::uint16_t>(bits), static_cast<std::uint8_t>(count)};
  }
  return groups;
}();

/// Places of high labels, by which of eight they are.
constexpr std::array<std::uint8_t, 256> kPlaces = [] {
  std::array<std::uint8_t, 256> places{};
  for (unsigned mask = 0; mask < places.size(); ++mask) {
    for (unsigned i = 0; i < 8; ++i) places[mask] = static_cast<std::uint8_t>(places[mask] + (mask >> i & 1U) * i);
  }
  return places;
}();

/// How many labels are high, and the sum of their places.
struct HighSums {
  std::uint64_t count = 0;
  std::uint64_t places = 0;

  void add(std::uint8_t mask, std::uint64_t first) {
    const auto highs = static_cast<std::uint64_t>(kGroups[mask].count - 8);
    count += highs;
    places += highs * first + kPlaces[mask];
  }
};

/// The checksum of zlib, of n bytes x_i that take two values: a is 1 + sum x_i and b is n + sum (n - i) x_i, modulo the
/// largest prime below 2^16.
std::uint32_t adler32_of(std::uint64_t n, std::uint8_t low, std::uint8_t high, const HighSums& sums) {
  constexpr std::uint64_t kPrime = 65521;
  const std::uint64_t weights = n * (n + 1) / 2 % kPrime;  // chunks are a few megabytes
  const std::uint64_t high_weights = (n * sums.count - sums.places) % kPrime;
  const std::uint64_t low_weights = (weights + kPrime - high_weights) % kPrime;
  const std::uint64_t a = (1 + (n - sums.count) % kPrime * low + sums.count % kPrime * high) % kPrime;
  const std::uint64_t b = (n + low_weights * low + high_weights * high) % kPrime;
  return static_cast<std::uint32_t>(b << 16 | a);
}

/// The head of the one block: that it is the last and has codes of its own, and the lengths of these. Lengths have
/// codes too: 00 for a length of 1, 01 for 2, 10 for 3, 11 for a number of zeros.
void put_head(BitWriter& out, std::uint8_t frequent, std::uint8_t rare) {
  std::array<std::uint8_t, 287> lengths{};  // 286 symbols, then the distances, of which there is one
  lengths[frequent] = 1;
  lengths[rare] = 2;
  lengths[256] = lengths[285] = 3;
  lengths[286] = 1;
  out.put(0b101, 3);
  out.put(286 - 257, 5);
  out.put(0, 5);
  // Lengths of the codes of lengths, in the order that the format has: 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3,
  // 13, 2, 14, 1.
  constexpr std::array<unsigned, 18> kCodeLengths = {0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2, 0, 2};
  out.put(kCodeLengths.size() - 4, 4);
  for (const unsigned length : kCodeLengths) out.put(length, 3);
  // By length, then by symbol: 1 is 00, 2 is 01, 18 (many zeros) is 10, 0 is 110, 3 is 111; first bits lowest.
  const auto put_length = [&](unsigned length) {
    constexpr std::array<unsigned, 4> kCodes = {0b011, 0b00, 0b10, 0b111};
    out.put(kCodes[length], length == 0 || length == 3 ? 3 : 2);
  };
  for (std::size_t symbol = 0; symbol < lengths.size();) {
    std::size_t zeros = 0;
    while (symbol + zeros < lengths.size() && lengths[symbol + zeros] == 0 && zeros < 138) ++zeros;
    if (zeros >= 11) {
      out.put(0b01, 2);
      out.put(zeros - 11, 7);
      symbol += zeros;
    } else {
      put_length(lengths[symbol++]);
    }
  }
}

}  // namespace

std::string ChunkCoder::by_labels(std::span<const std::int8_t> chunk) const {
  if (low_ == high_) return {};
  const auto bottom = static_cast<std::uint8_t>(low_);
  const auto top = static_cast<std::uint8_t>(high_);
  // Which labels are the high one, eight to a byte.
  std::vector<std::uint8_t> masks((chunk.size() + 7) / 8);
  if (!pack_labels(chunk, low_, high_, masks.data())) return {};
  HighSums sums;
  for (std::size_t group = 0; group < masks.size(); ++group) sums.add(masks[group], 8 * group);
  masks.resize(chunk.size() / 8);
  const std::span<const std::int8_t> rest = chunk.subspan(8 * masks.size());
  const bool high_is_rare = 2 * sums.count <= chunk.size();
  BitWriter out(chunk.size() / 4 + 256);
  out.put(0x0178, 16);  // a stream of zlib, of its fastest level
  put_head(out, high_is_rare ? bottom : top, high_is_rare ? top : bottom);
  const std::uint8_t flip = high_is_rare ? 0x00 : 0xff;
  const auto is_plain = [](std::uint8_t mask) { return mask != 0x00 && mask != 0xff; };
  for (std::size_t group = 0; group < masks.size();) {
    const std::uint8_t mask = masks[group];
    if (group + 1 < masks.size() && is_plain(mask) && is_plain(masks[group + 1])) {
      const GroupCode code = kGroups[static_cast<std::uint8_t>(mask ^ flip)];
      const GroupCode next = kGroups[static_cast<std::uint8_t>(masks[group + 1] ^ flip)];
      out.put(code.bits | std::uint64_t{next.bits} << code.count, code.count + next.count);
      group += 2;
      continue;
    }
    if (group > 0 && !is_plain(mask) && masks[group - 1] == mask) {
      const std::size_t most = std::min(masks.size() - group, kRunGroups);
      std::size_t alike = 1;
      while (alike < most && masks[group + alike] == mask) ++alike;
      if (alike == kRunGroups) {
        constexpr unsigned kLeft = 8 * kRunGroups - kRunBytes;
        const GroupCode code = kGroups[static_cast<std::uint8_t>(mask ^ flip)];
        out.put(kRun, kRunLength);
        const unsigned bits = code.count / 8 * kLeft;
        out.put(code.bits & ((1U << bits) - 1), bits);
        group += kRunGroups;
        continue;
      }
    }
    const GroupCode code = kGroups[static_cast<std::uint8_t>(mask ^ flip)];
    out.put(code.bits, code.count);
    ++group;
  }
  for (const std::int8_t label : rest) {
    const bool rare = (label == high_) == high_is_rare;
    out.put(rare ? 0b01 : 0b0, rare ? 2 : 1);
  }
  out.put(kEnd, kEndLength);
  std::string stream = out.take();
  const std::uint32_t sum = adler32_of(chunk.size(), bottom, top, sums);
  for (int shift = 24; shift >= 0; shift -= 8) stream += static_cast<char>(sum >> shift & 0xffU);
  return stream;
}

std::string ChunkCoder::operator()(std::span<const std::int8_t> chunk) const {
  const auto tried = chunk.first(std::min(chunk.size(), std::max(chunk.size() / kTriedPart, kTriedBytes)));
  const auto plain = [&](std::span<const std::int8_t> bytes) {
    std::string stream = by_labels(bytes);
    return stream.empty() ? by_zlib(bytes, Z_HUFFMAN_ONLY) : stream;
  };
  const auto found = static_cast<double>(by_zlib(tried, Z_DEFAULT_STRATEGY).size());
  if (found < kWorthIt * static_cast<double>(plain(tried).size())) return by_zlib(chunk, Z_DEFAULT_STRATEGY);
  return plain(chunk);
}

}  // namespace poise::netcdf
