/// What proposals that are made from gradients of log p are drawn from: weights of single changes, and probabilities
/// with which variables change by themselves (kernels/factorised_law.hpp).
///
/// A proposal may be made of anything that is always the same for a state, so a device's quick instructions do; what
/// is drawn from are the integers that come out of them. On the host, for tests, the library's functions stand in for
/// these instructions.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/common/host_device.hpp"
#include "engines/common/step_guards.hpp"

namespace poise::cuda {

/// What proposals are: one variable changes, with a probability proportional to g; or every variable by itself, by
/// relaxation or as DMALA has it.
enum class GradientForm : std::uint32_t { single, relaxation, langevin };
/// In the order of BalancingFunction::Kind.
enum class GradientFunction : std::uint32_t { sqrt, barker, min, max, table };

struct GradientLaw {
  GradientForm form;
  GradientFunction function;
  float log_length;  ///< the level of the function
  float length;      ///< its exponential
  const float* phi;  ///< log g(e^u) - u/2 at |u| = k * step, kPhiPoints of them; of a table only
  float phi_step;
  float tail_gradient;
};
inline constexpr unsigned kPhiPoints = 257;

inline constexpr float kLog2Inverse = 1.44269504F;

// NOLINTBEGIN(misc-definitions-in-headers): they are inline on the host
#ifdef __CUDA_ARCH__
POISE_BOTH float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
POISE_BOTH float quick_exp(float x) { return __expf(x); }
POISE_BOTH float quick_log(float x) { return __logf(x); }
POISE_BOTH float quick_quotient(float a, float b) { return __fdividef(a, b); }
/// Down to an integer, the largest there is at most.
POISE_BOTH std::uint32_t whole_part(float x) { return __float2uint_rz(x); }
POISE_BOTH float read_once(const float* from) { return __ldg(from); }
#else
POISE_BOTH float power_of_two(float x) { return exp2f(x); }
POISE_BOTH float quick_exp(float x) { return expf(x); }
POISE_BOTH float quick_log(float x) { return logf(x); }
POISE_BOTH float quick_quotient(float a, float b) { return a / b; }
POISE_BOTH std::uint32_t whole_part(float x) {
  if (!(x > 0.0F)) return 0;
  return x < 0x1p32F ? static_cast<std::uint32_t>(x) : 0xffffffffU;
}
POISE_BOTH float read_once(const float* from) { return *from; }
#endif
// NOLINTEND(misc-definitions-in-headers)

/// log g(e^u) - u/2 of a table.
POISE_BOTH float phi(const GradientLaw& law, float size) {
  const float inside = fminf(size, law.phi_step * (kPhiPoints - 1));
  const float position = quick_quotient(inside, law.phi_step);
  const auto found = static_cast<unsigned>(position);
  const unsigned cell = found < kPhiPoints - 2 ? found : kPhiPoints - 2;
  const float left = read_once(law.phi + cell), right = read_once(law.phi + cell + 1);
  return left + (right - left) * (position - static_cast<float>(cell)) + law.tail_gradient * (size - inside);
}

template <GradientFunction function>
POISE_BOTH float log_g(const GradientLaw& law, float u) {
  if constexpr (function == GradientFunction::sqrt) return 0.5F * u;
  if constexpr (function == GradientFunction::barker) return fminf(u, 0.0F) - quick_log(1.0F + quick_exp(-fabsf(u)));
  if constexpr (function == GradientFunction::min) return fminf(u, 0.0F);
  if constexpr (function == GradientFunction::max) return fmaxf(u, 0.0F);
  return 0.5F * u + phi(law, fabsf(u));
}

/// The weight of a single change by how its log g compares with the largest: 24 bits, and never 0. Those of 128
/// variables have a sum that is a word.
POISE_BOTH std::uint32_t weight(float log_g, float largest) {
  const std::uint32_t parts = whole_part(power_of_two((log_g - largest) * kLog2Inverse + 24.0F));
  return parts < 1 ? 1 : parts;
}

/// The probability that a variable changes by itself, in units of 2^-32: some, and never more than 1 - e^-kMostRate.
template <GradientFunction function>
POISE_BOTH std::uint32_t chance(const GradientLaw& law, float u) {
  float p;
  if (law.form == GradientForm::langevin) {
    const float log_odds = log_g<function>(law, u) - log_g<function>(law, 0.0F) + law.log_length;
    constexpr auto most = static_cast<float>(kLogMostOdds);
    p = quick_quotient(1.0F, 1.0F + quick_exp(-fminf(fmaxf(log_odds, -80.0F), most)));
  } else {
    const float size = fminf(fabsf(u), 64.0F);
    const float root = power_of_two(-0.5F * kLog2Inverse * size);
    const float small = root * root;
    const float sum = 1.0F + small;
    float rate = law.length;
    if constexpr (function == GradientFunction::sqrt) rate *= quick_quotient(sum, root);
    if constexpr (function == GradientFunction::min) rate *= sum;
    if constexpr (function == GradientFunction::max) rate *= quick_quotient(sum, small);
    if constexpr (function == GradientFunction::table) rate *= quick_exp(phi(law, size)) * quick_quotient(sum, root);
    // 1 - e^-rate, with its digits where it is small.
    constexpr auto most = static_cast<float>(kMostRate);
    const float gone =
        rate > 0.01F ? 1.0F - power_of_two(-kLog2Inverse * fminf(rate, most)) : rate - 0.5F * rate * rate;
    p = quick_quotient(gone, sum) * (u > 0.0F ? 1.0F : small);
  }
  const std::uint32_t parts = whole_part(p * 0x1p32F);
  return parts < 1 ? 1 : parts;
}

/// log of such a probability, or of that of staying.
POISE_BOTH float log_chance(std::uint32_t parts, bool changes) {
  const std::uint32_t rest = 0U - parts;
  const bool minor = parts < 0x80000000U;
  const float lesser = static_cast<float>(minor ? parts : rest) * 0x1p-32F;
  return changes == minor ? logf(lesser) : log1pf(-lesser);
}

/// Logarithms as integers, whose sums have no order.
POISE_BOTH long long log_in_parts(float log) {
#ifdef __CUDA_ARCH__
  return __float2ll_rn(log * 0x1p32F);
#else
  return llrintf(log * 0x1p32F);
#endif
}
POISE_BOTH double log_from_parts(long long parts) { return static_cast<double>(parts) * 0x1p-32; }

}  // namespace poise::cuda
