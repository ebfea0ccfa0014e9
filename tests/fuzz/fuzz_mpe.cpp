/// Fuzzes most probable states: what is accepted survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <poise/network.hpp>
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<poise::Value> state = poise::parse_mpe(content, "state");
    require(!state.empty() && state.size() <= size);
    require(poise::parse_mpe(poise::mpe_text(state), "again") == state);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("state, line "));
  }
  return 0;
}
