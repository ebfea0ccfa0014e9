/// What variables are worth changing, by gradients of log p: weights of single changes, and probabilities of changing
/// each by itself.
///
/// A proposal may be made of anything that is always the same for a state, so quick instructions do; what is drawn from
/// are the integers that come out of them.
#pragma once

#include "engines/cuda/gradient/gradient_view.hpp"

namespace poise::cuda {

inline constexpr float kLog2Inverse = 1.44269504F;

__device__ inline float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

/// log g(e^u) - u/2 of a table.
__device__ inline float phi(const GradientLaw& law, float size) {
  const float inside = fminf(size, law.phi_step * (kPhiPoints - 1));
  const float place = __fdividef(inside, law.phi_step);
  const unsigned cell = min(static_cast<unsigned>(place), kPhiPoints - 2);
  const float left = __ldg(law.phi + cell), right = __ldg(law.phi + cell + 1);
  return left + (right - left) * (place - static_cast<float>(cell)) + law.tail_gradient * (size - inside);
}

template <GradientFunction function>
__device__ float log_g(const GradientLaw& law, float u) {
  if constexpr (function == GradientFunction::sqrt) return 0.5F * u;
  if constexpr (function == GradientFunction::barker) return fminf(u, 0.0F) - __logf(1.0F + __expf(-fabsf(u)));
  if constexpr (function == GradientFunction::min) return fminf(u, 0.0F);
  if constexpr (function == GradientFunction::max) return fmaxf(u, 0.0F);
  return 0.5F * u + phi(law, fabsf(u));
}

/// The weight of a single change by how its log g compares with the largest: 24 bits, and never 0. Those of 128
/// variables have a sum that is a word.
__device__ inline unsigned weight(float log_g, float largest) {
  const unsigned parts = __float2uint_rz(power_of_two((log_g - largest) * kLog2Inverse + 24.0F));
  return parts < 1 ? 1 : parts;
}

/// The probability that a variable changes by itself, in units of 2^-32: neither none nor all.
template <GradientFunction function>
__device__ std::uint32_t chance(const GradientLaw& law, float u) {
  float p;
  if (law.form == GradientForm::langevin) {
    const float log_odds = log_g<function>(law, u) - log_g<function>(law, 0.0F) + law.log_length;
    p = __fdividef(1.0F, 1.0F + __expf(-fminf(fmaxf(log_odds, -80.0F), 80.0F)));
  } else {
    const float size = fminf(fabsf(u), 64.0F);
    const float root = power_of_two(-0.5F * kLog2Inverse * size);
    const float small = root * root;
    const float sum = 1.0F + small;
    float rate = law.length;
    if constexpr (function == GradientFunction::sqrt) rate *= __fdividef(sum, root);
    if constexpr (function == GradientFunction::min) rate *= sum;
    if constexpr (function == GradientFunction::max) rate *= __fdividef(sum, small);
    if constexpr (function == GradientFunction::table) rate *= __expf(phi(law, size)) * __fdividef(sum, root);
    // 1 - e^-rate, with its digits where it is small.
    const float gone =
        rate > 0.01F ? 1.0F - power_of_two(-kLog2Inverse * fminf(rate, 64.0F)) : rate - 0.5F * rate * rate;
    p = __fdividef(gone, sum) * (u > 0.0F ? 1.0F : small);
  }
  const std::uint32_t parts = __float2uint_rz(p * 0x1p32F);  // which stops at the largest
  return parts < 1 ? 1 : parts;
}

/// log of such a probability, or of that of staying.
__device__ inline float log_chance(std::uint32_t parts, bool changes) {
  const std::uint32_t rest = 0U - parts;
  const bool minor = parts < 0x80000000U;
  const float lesser = static_cast<float>(minor ? parts : rest) * 0x1p-32F;
  return changes == minor ? logf(lesser) : log1pf(-lesser);
}

}  // namespace poise::cuda
