/// Fuzzes specs: any text is either refused with a sentence or survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <poise/spec.hpp>
#include <poise/target/ising_model.hpp>
#include "require.hpp"

namespace {

/// Models of at most 99 x 99 sites without files, so that a run costs little and touches nothing.
bool is_small_model(const poise::Spec& spec) {
  for (const auto& [key, value] : spec.settings) {
    if (key == "graph") return false;
    const bool is_short = value.size() <= 2 || (value.size() <= 5 && value[value.size() / 2] == 'x');
    if (key == "size" && !is_short) return false;
  }
  return spec.name == "ising";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const poise::Spec spec = poise::parse_spec({reinterpret_cast<const char*>(data), size});
    require(poise::parse_spec(spec.text()) == spec);
    if (is_small_model(spec)) {
      const poise::IsingModel model = poise::make_ising(spec);
      const poise::IsingModel again = poise::make_ising(poise::parse_spec(model.name));
      require(model.field.size() == model.variables && model.observed.size() == model.variables);
      require(again.name == model.name && again.field == model.field && again.truth == model.truth);
    }
    poise::SpecReader reader(spec, "sampler");
    reader.integer("block", 2, 1, 10);
    reader.real("rate", 0.01, 0);
    reader.choice("g", "sqrt", {"sqrt", "barker", "min", "max"});
    reader.finish({"block", "rate", "g"});
  } catch (const poise::InputError& error) {
    require(!std::string_view(error.what()).empty());
  }
  return 0;
}
