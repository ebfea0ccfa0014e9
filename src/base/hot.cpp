/// The choice of an instruction set for hot loops.
#include <poise/extend/base/hot.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace poise {

namespace {

InstructionSet best_of_processor() {
#if defined(__x86_64__) && !defined(POISE_SANITIZED)
  __builtin_cpu_init();
  // What x86-64-v3 and v4 stand for; processors that have these have the rest of it.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512cd");
  return avx512 ? InstructionSet::avx512 : avx2 ? InstructionSet::avx2 : InstructionSet::baseline;
#else
  return InstructionSet::baseline;
#endif
}

InstructionSet chosen() {
  const InstructionSet best = best_of_processor();
  const char* wanted = std::getenv("POISE_INSTRUCTIONS");
  if (wanted == nullptr) return best;
  const std::string_view name = wanted;
  if (name == "baseline") return InstructionSet::baseline;
  if (name == "avx2") return std::min(best, InstructionSet::avx2);
  return best;
}

}  // namespace

const InstructionSet kInstructionSet = chosen();

}  // namespace poise
