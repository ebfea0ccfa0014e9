/// CRC-64 of bytes: by tables, and where the processor multiplies polynomials sixteen bytes at a time.
#include "base/file.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <poise/extend/base/hot.hpp>

namespace poise {

namespace {

/// Bit 63 is the constant term, as everywhere below.
constexpr std::uint64_t kPolynomial = 0xc96c5795d7870f42;

constexpr std::uint64_t times_x(std::uint64_t rest) { return (rest & 1U) != 0 ? rest >> 1U ^ kPolynomial : rest >> 1U; }

/// Row k holds what a byte leaves behind when k more have followed it, so that eight bytes are looked up at once.
using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables made{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = times_x(rest);
    made[0][byte] = rest;
  }
  for (std::size_t k = 1; k < made.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      made[k][byte] = made[0][made[k - 1][byte] & 0xffU] ^ made[k - 1][byte] >> 8U;
    }
  }
  return made;
}
constexpr Tables kTables = make_tables();

std::uint64_t by_tables(std::string_view bytes, std::uint64_t sum) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, bytes.data(), sizeof eight);
      eight ^= sum;
      sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum ^= kTables[7 - k][eight >> 8 * k & 0xffU];
    }
  }
  for (const char byte : bytes) sum = kTables[0][(sum ^ static_cast<unsigned char>(byte)) & 0xffU] ^ sum >> 8U;
  return sum;
}

#if defined(__x86_64__)

constexpr std::uint64_t power_of_x(int exponent) {
  std::uint64_t power = std::uint64_t{1} << 63U;
  for (int k = 0; k < exponent; ++k) power = times_x(power);
  return power;
}

constexpr std::size_t kLanes = 4;  // products that are under way at the same time
constexpr std::size_t kStride = kLanes * sizeof(__m128i);

/// Sixteen bytes, moved `bits` bits to the front of the message: its earlier half times x^(bits + 64) and the later one
/// times x^bits, modulo the polynomial. A product of reflected numbers comes with one factor x more.
template <int bits>
__attribute__((target("pclmul"))) __m128i moved(__m128i sixteen) {
  constexpr std::uint64_t kEarlier = power_of_x(bits + 63);
  constexpr std::uint64_t kLater = power_of_x(bits - 1);
  const __m128i powers = _mm_set_epi64x(static_cast<long long>(kLater), static_cast<long long>(kEarlier));
  return _mm_xor_si128(_mm_clmulepi64_si128(sixteen, powers, 0x00), _mm_clmulepi64_si128(sixteen, powers, 0x11));
}

/// Replaces all whole strides, of which there is one at least, by sixteen bytes with the same remainder; these go
/// through the tables.
__attribute__((target("pclmul"))) std::uint64_t by_products(std::string_view bytes, std::uint64_t sum) {
  const auto load = [&](std::size_t lane) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data()) + lane);
  };
  __m128i lanes[kLanes];  // NOLINT(modernize-avoid-c-arrays): std::array would drop the alignment
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = load(lane);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi64_si128(static_cast<long long>(sum)));
  for (bytes.remove_prefix(kStride); bytes.size() >= kStride; bytes.remove_prefix(kStride)) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = _mm_xor_si128(moved<8 * kStride>(lanes[lane]), load(lane));
    }
  }
  __m128i all = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) all = _mm_xor_si128(moved<128>(all), lanes[lane]);
  std::array<char, sizeof all> left{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left.data()), all);
  return by_tables(bytes, by_tables({left.data(), left.size()}, 0));
}

bool has_products() {
  static const bool has = kInstructionSet != InstructionSet::baseline && __builtin_cpu_supports("pclmul") != 0;
  return has;
}

#endif

}  // namespace

std::uint64_t checksum(std::string_view bytes, std::uint64_t before) {
#if defined(__x86_64__)
  if (bytes.size() >= 2 * kStride && has_products()) return ~by_products(bytes, ~before);
#endif
  return ~by_tables(bytes, ~before);
}

}  // namespace poise
