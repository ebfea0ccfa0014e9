/// The text of a layout, the chunks and the size of a file before it is written, and whether it can be.
#include "store/netcdf_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise {

namespace netcdf {

namespace {

constexpr std::size_t kChunkDraws = 256;
constexpr std::uint64_t kDeflateAbove = 100 * kMegabyte;
constexpr std::uint64_t kFixedBytes = 100'000;  // headers, attributes and first chunks

/// Saturates well below the largest number, so that a few such products can be added.
std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::numeric_limits<std::uint64_t>::max() / 4;
  }
  return std::min(result, std::numeric_limits<std::uint64_t>::max() / 4);
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  throw InputError(fmt::format("Cannot write {}: {}.", path, reason));
}

}  // namespace

std::size_t chunk_draws(std::size_t variables, std::size_t draws) {
  const std::size_t bytes = std::max<std::size_t>(variables, 1);  // of one draw
  const std::size_t fitting = std::clamp<std::size_t>(kChunkBytes / bytes, 1, kChunkDraws);
  return draws == 0 ? fitting : std::min(fitting, draws);
}

std::size_t series_chunk_draws(std::size_t draws) {
  return draws == 0 ? 1024 : std::min<std::size_t>(draws, kSeriesChunk);
}

bool is_deflated(const NetcdfOptions& options) {
  return product({options.chains, options.draws, options.variables}) > kDeflateAbove;
}

bool is_held(const std::string& path, int mode) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = ::flock(descriptor, mode | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

/// Opens PATH for writing without changing it: the only test that asks the file system itself.
void check_writable(const std::string& path) {
  if (path.empty()) throw InputError("The path of the output file is empty.");
  // The NetCDF library takes it for a separator of directories.
  if (path.find('\\') != std::string::npos) cannot_write(path, "its path must not hold a backslash");
  const std::string obstacle = obstacle_at(path);
  if (!obstacle.empty()) cannot_write(path, obstacle);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) cannot_write(path, "it is not a regular file");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | (exists ? 0 : O_CREAT | O_EXCL), 0666);
  if (descriptor < 0) cannot_write(path, std::generic_category().message(errno));
  ::close(descriptor);
  if (!exists) ::unlink(path.c_str());
  // Another run that writes to the same file holds a lock on it; creating the file anew would pull it from under it.
  if (exists && is_held(path, LOCK_EX)) cannot_write(path, "another program is writing or reading it just now");
}

}  // namespace netcdf

std::uint64_t expected_netcdf_bytes(const NetcdfOptions& options) {
  if (options.draws == 0 || options.chains == 0) return 0;
  using namespace netcdf;
  const std::uint64_t chunk = chunk_draws(options.variables, options.draws);
  const std::uint64_t padded = product({(options.draws - 1) / chunk + 1, chunk});
  std::uint64_t draws = product({options.chains, padded, options.variables});
  if (is_deflated(options)) {
    // Deflate spends at most about one bit more than the plain code of a level, ceil(log2(levels)) bits.
    const std::uint64_t bits = std::bit_width(std::max<std::size_t>(options.levels, 2) - 1) + 1;
    if (bits < 8) draws = draws / 8 * bits;
  }
  const std::uint64_t series = product({options.chains, options.draws, options.monitors + 2, sizeof(double)});
  return draws + series + product({options.draws, 2, sizeof(std::int64_t)}) + kFixedBytes;
}

}  // namespace poise
