/// A team that does on the host what threads of a GPU share.
#pragma once

#include <cstdint>

namespace poise::testing {

/// A team of one thread.
struct OneThread {
  [[nodiscard]] static std::uint32_t rank() { return 0; }
  [[nodiscard]] static std::uint32_t size() { return 1; }
  static void wait() {}
  [[nodiscard]] static bool any(bool mine) { return mine; }
  [[nodiscard]] static std::uint32_t before(bool mine, std::uint32_t& all) {
    all = mine ? 1 : 0;
    return 0;
  }
};

}  // namespace poise::testing
