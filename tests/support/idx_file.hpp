/// Writes image sets in the IDX format, for tests that need a directory of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "studies/images/idx.hpp"

namespace poise {

inline void write_idx(const std::filesystem::path& path, const IdxImages& images) {
  std::ofstream stream(path, std::ios::binary);
  const auto word = [&](std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) stream.put(static_cast<char>(value >> shift & 255U));
  };
  word(0x803);
  word(images.count);
  word(images.rows);
  word(images.columns);
  stream.write(reinterpret_cast<const char*>(images.pixels.data()), static_cast<std::streamsize>(images.pixels.size()));
}

}  // namespace poise
