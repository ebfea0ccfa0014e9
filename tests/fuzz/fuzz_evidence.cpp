/// Fuzzes evidence: what is accepted names each variable once, at a level that it has.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <poise/network.hpp>
#include "fuzz/require.hpp"

namespace {

poise::Network make_network() {
  poise::Network network;
  network.cardinalities = {2, 3, 2, 4};
  return network;
}

poise::Network make_network_with_names() {
  poise::Network network = make_network();
  network.names = {"rain", "sky is", "c", "x=y"};
  network.level_names = {{"no", "yes"}, {"blue", "grey", "no#7"}, {"1", "0"}, {"<1", "<=2", ">2", "?"}};
  return network;
}

void check(std::string_view content, const poise::Network& network) {
  try {
    std::set<poise::Index> seen;
    for (const auto [variable, level] : poise::parse_evidence(content, "evidence", network)) {
      require(variable < network.num_variables() && level < network.cardinalities[variable]);
      require(seen.insert(variable).second);
    }
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("evidence, line "));
  }
}

/// Typed evidence and queries. Words that could name a file are left out.
void check_typed(const std::string& words, const poise::Network& network) {
  if (words.find('/') != std::string::npos || words.find('\0') != std::string::npos) return;
  try {
    std::set<poise::Index> seen;
    for (const poise::Index variable : poise::parse_variables(words, "query", network)) {
      require(variable < network.num_variables() && seen.insert(variable).second);
    }
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("query"));
  }
  if (words.find('=') == std::string::npos) return;
  try {
    std::set<poise::Index> seen;
    for (const auto [variable, level] : poise::find_evidence(words, network)) {
      require(variable < network.num_variables() && level < network.cardinalities[variable]);
      require(seen.insert(variable).second);
    }
  } catch (const poise::InputError& error) {
    require(!std::string_view(error.what()).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const poise::Network plain = make_network();
  static const poise::Network named = make_network_with_names();
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  check(content, plain);
  check(content, named);
  check_typed(std::string(content), plain);
  check_typed(std::string(content), named);
  return 0;
}
