/// Fuzzes specs: any text is either refused with a sentence or survives being written and read again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <poise/extend/base/spec.hpp>
#include <poise/sampler.hpp>
#include "fuzz/require.hpp"
#include "inference/scan.hpp"
#include "models/ising/ising_model.hpp"

namespace {

/// Models of at most 99 x 99 sites, or 99 chains of 99 times, without files, so that a run costs little and touches
/// nothing.
bool is_small_model(const poise::Spec& spec) {
  bool sized = false;
  for (const auto& [key, value] : spec.settings) {
    if (key == "graph") return false;
    const bool has_small_sides =
        value.size() <= 7 && value.find("x") == 1 && value.find_last_of('x') + 2 == value.size();
    const bool is_short = value.size() <= 2 || (value.size() <= 5 && value[value.size() / 2] == 'x') || has_small_sides;
    if ((key == "size" || key == "length" || key == "chains") && !is_short) return false;
    sized = sized || key == "size" || key == "length";
  }
  return spec.name == "ising" || (sized && (spec.name == "bernoulli" || spec.name == "fhmm"));
}

poise::IsingModel make(const poise::Spec& spec) {
  if (spec.name == "fhmm") return poise::make_fhmm(spec);
  return spec.name == "ising" ? poise::make_ising(spec) : poise::make_bernoulli(spec);
}

void check_model(const poise::Spec& spec) {
  const poise::IsingModel model = make(spec);
  const poise::IsingModel again = make(poise::parse_spec(model.name));
  require(model.field.size() == model.variables && model.observed.size() == model.variables);
  require(again.name == model.name && again.field == model.field && again.truth == model.truth);
  require(std::all_of(model.field.begin(), model.field.end(), [](double value) { return std::isfinite(value); }));
  require(std::all_of(model.edges.begin(), model.edges.end(),
                      [](const auto& edge) { return std::isfinite(edge.coupling); }));
}

void check_sampler(const std::string& text) {
  const poise::Sampler sampler = poise::parse_sampler(text);
  const poise::Sampler again = poise::parse_sampler(sampler.name);
  require(again.name == sampler.name && again.row == sampler.row && again.settings.level == sampler.settings.level);
  require(std::isfinite(sampler.settings.level));
}

void check_range(const std::string& text) {
  const poise::ScanRange range = poise::read_scan_range(text);
  require(!range.key.empty() && !range.values.empty());
  require(std::is_sorted(range.values.begin(), range.values.end()));
  require(std::all_of(range.values.begin(), range.values.end(), [](double value) { return std::isfinite(value); }));
}

/// Whether it was refused, with a sentence.
template <class Reader>
bool refused(const Reader& reader) {
  try {
    reader();
  } catch (const poise::InputError& error) {
    require(!std::string_view(error.what()).empty());
    return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(refused([&] { check_range(text); }));
  std::optional<poise::Spec> spec;
  if (refused([&] { spec = poise::parse_spec(text); })) return 0;
  require(poise::parse_spec(spec->text()) == *spec);
  if (is_small_model(*spec)) static_cast<void>(refused([&] { check_model(*spec); }));
  static_cast<void>(refused([&] { check_sampler(text); }));
  return 0;
}
