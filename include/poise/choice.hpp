/// What the sampler `auto` chose, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace poise {

struct Choice {
  std::string sampler;     ///< that the run is made with
  std::string reason;      ///< in one sentence
  std::uint64_t thin = 0;  ///< steps per draw that were chosen with it; 0 where the usual ones are

  template <class A>
  void archive(A& archive) {
    archive(sampler, reason, thin);
  }
};

/// Keys: sampler, reason, and thin where it was chosen.
[[nodiscard]] nlohmann::json choice_json(const Choice& choice);
/// The other way; empty where the value is not such an object.
[[nodiscard]] std::optional<Choice> read_choice(const nlohmann::json& json);

}  // namespace poise
