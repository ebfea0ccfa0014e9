/// Which reader a file goes to.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include <poise/network.hpp>

namespace poise {

Network read_network(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  if (ending == ".uai") return read_uai(path);
  if (ending == ".bif") return read_bif(path);
  throw InputError(fmt::format("{}: found a name that ends in neither, expected .uai or .bif", path));
}

}  // namespace poise
