/// Fuzzes npz files, as they are and with their checksums put right: what is accepted is an RBM whose sizes fit.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/image/inflate.hpp"
#include "fuzz/require.hpp"
#include "models/rbm/rbm_weights.hpp"

namespace {

std::size_t number(const std::string& content, std::size_t at, std::size_t bytes) {
  std::size_t value = 0;
  for (std::size_t k = bytes; k-- > 0;) value = value << 8 | static_cast<unsigned char>(content[at + k]);
  return value;
}

/// A checksum stops nearly every change at the door: those of entries without compression are made to fit.
std::string with_checksums(std::string content) {
  for (std::size_t at = 0; (at = content.find("PK\x01\x02", at)) != std::string::npos; ++at) {
    if (content.size() - at < 46 || number(content, at + 10, 2) != 0) continue;
    const std::size_t packed = number(content, at + 20, 4);
    const std::size_t local = number(content, at + 42, 4);
    if (local + 30 > content.size()) continue;
    const std::size_t begin = local + 30 + number(content, local + 26, 2) + number(content, local + 28, 2);
    if (begin > content.size() || content.size() - begin < packed) continue;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(content.data()) + begin;
    const std::uint32_t crc = poise::crc32_of({bytes, packed});
    for (std::size_t k = 0; k < 4; ++k) content[at + 16 + k] = static_cast<char>(crc >> (8 * k) & 0xff);
  }
  return content;
}

void check(std::string_view content) {
  try {
    const poise::RbmWeights rbm = poise::parse_npz(content, "file");
    require(rbm.visible > 0 && rbm.hidden > 0 && rbm.weights.size() == std::size_t{rbm.visible} * rbm.hidden);
    require(rbm.visible_bias.size() == rbm.visible && rbm.hidden_bias.size() == rbm.hidden);
    require(rbm.weights.size() <= content.size() * poise::kMostDeflation / 4);
    require(rbm.rows == 0 ? rbm.columns == 0 : std::size_t{rbm.rows} * rbm.columns == rbm.visible);
    require(std::all_of(rbm.weights.begin(), rbm.weights.end(), [](float value) { return std::isfinite(value); }));
    require(poise::parse_npz(poise::npz_bytes(rbm, "again"), "again") == rbm);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("file"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(reinterpret_cast<const char*>(data), size);
  check(content);
  check(with_checksums(content));
  return 0;
}
