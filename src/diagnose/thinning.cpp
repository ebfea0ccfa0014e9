/// Thinning for independent draws: the slowest monitor, or distance from one of some draws, decides.
#include <poise/mmd.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace poise {
namespace {

constexpr std::size_t kReferences = 16;
constexpr double kLogCorrelation = 4;  // of draws that count as independent

bool is_constant(ChainsView series) {
  return std::all_of(series.data, series.data + series.size(), [&](double value) { return value == series.data[0]; });
}

void bits_that_differ(const std::int8_t* reference, const DrawsView& draws, std::vector<double>& out) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const std::size_t bytes = draws.row_bytes();
  std::vector<std::uint8_t> packed(bytes, 0);
  for (std::size_t i = 0; i < draws.variables; ++i) {
    const unsigned bit = reference[i] == draws.high ? 1U << i % 8 : 0U;
    packed[i / 8] = static_cast<std::uint8_t>(packed[i / 8] | bit);
  }
  const std::uint8_t* row = draws.bits;
  for (double& value : out) {
    int differ = 0;
    for (std::size_t k = 0; k < bytes; k += kWord) {
      std::uint64_t a = 0, b = 0;
      std::memcpy(&a, row + k, std::min(kWord, bytes - k));
      std::memcpy(&b, packed.data() + k, std::min(kWord, bytes - k));
      differ += std::popcount(a ^ b);
    }
    value = differ;
    row += bytes;
  }
}

/// Distances of all draws from one state.
void distances_from(const std::int8_t* reference, const DrawsView& draws, std::vector<double>& out) {
  if (draws.bits != nullptr) return bits_that_differ(reference, draws, out);
  const std::int8_t* x = draws.data;
  for (double& value : out) {
    std::uint32_t differ = 0;
    for (std::size_t i = 0; i < draws.variables; ++i) differ += x[i] != reference[i] ? 1U : 0U;
    value = differ;
    x += draws.variables;
  }
}

}  // namespace

Thinning find_thinning(DrawsView draws, std::span<const ChainsView> monitors) {
  const std::size_t total = draws.chains * draws.draws;
  if (total == 0) return {};
  const auto all = static_cast<double>(total);
  const auto chains = static_cast<double>(draws.chains);
  double least = all;
  bool moves = false;
  const auto look_at = [&](ChainsView series) {
    if (series.size() == 0 || is_constant(series)) return;
    moves = true;
    const double ess = ess_bulk(series);
    least = std::min(least, std::isnan(ess) ? chains : ess);
  };
  for (const ChainsView& series : monitors) look_at(series);
  const std::vector<std::int8_t> references = evenly_spaced(draws, kReferences);
  std::vector<double> distances(total);
  for (std::size_t first = 0; first < references.size(); first += draws.variables) {
    distances_from(references.data() + first, draws, distances);
    look_at({distances.data(), draws.chains, draws.draws});
  }
  if (!moves) least = chains;
  const double tau = all / least;
  const double apart = tau > 1 ? std::max(kLogCorrelation / std::log((tau + 1) / (tau - 1)), 1.0) : 1.0;
  return {least, std::max<std::size_t>(static_cast<std::size_t>(all / apart), 1)};
}

std::vector<std::int8_t> evenly_spaced(DrawsView draws, std::size_t count) {
  const std::size_t total = draws.chains * draws.draws;
  const std::size_t kept = std::min(count, total);
  std::vector<std::int8_t> out;
  out.reserve(kept * draws.variables);
  for (std::size_t k = 0; k < kept; ++k) {
    const std::size_t draw = (2 * k + 1) * total / (2 * kept);  // in the middle of its share
    for (std::size_t i = 0; i < draws.variables; ++i) out.push_back(draws.label(draw, i));
  }
  return out;
}

}  // namespace poise
