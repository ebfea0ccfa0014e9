/// What kernels take from a target: any finite log ratio or log p, and -inf. NaN and +inf are errors of the target, and
/// no comparison or exponential may hide them: exp(min(0, NaN)) is 1.
#pragma once

#include <limits>
#include <stdexcept>

#include <poise/extend/base/concepts.hpp>

namespace poise {

inline constexpr const char* kBadLogRatio =
    "the target gave a log ratio of NaN or +inf, expected a finite number or -inf";
inline constexpr const char* kBadLogProb = "the target gave a log p of NaN or +inf, expected a finite number or -inf";

POISE_INLINE bool is_legal(double log) { return log < std::numeric_limits<double>::infinity(); }
/// -1 in the lanes that are legal.
POISE_INLINE Ints8 legal8(const Doubles8& log) {
  return less8(log, broadcast8(std::numeric_limits<double>::infinity()));
}

/// For `prepare`: ratios to a state of log p = +inf are -inf, which is legal, and a chain would stay there for ever.
template <Target T>
void check_log_prob(const T& target, const typename T::State& state) {
  if (!is_legal(target.log_prob(state))) throw std::runtime_error(kBadLogProb);
}

}  // namespace poise
