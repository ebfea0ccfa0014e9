/// Parts of a file that are compiled for processors with AVX2 or AVX-512: POISE_BEGIN_AVX2 ... POISE_END_INSTRUCTIONS,
/// after all other headers.
#pragma once

#if defined(__clang__)
#define POISE_BEGIN_AVX2 \
  _Pragma("clang attribute push(__attribute__((target(\"arch=x86-64-v3\"))), apply_to = function)")
#define POISE_BEGIN_AVX512 \
  _Pragma("clang attribute push(__attribute__((target(\"arch=x86-64-v4\"))), apply_to = function)")
#define POISE_END_INSTRUCTIONS _Pragma("clang attribute pop")
#else
// The vectors that the headers of g++ 12 leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define POISE_BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"arch=x86-64-v3\")")
#define POISE_BEGIN_AVX512 _Pragma("GCC push_options") _Pragma("GCC target(\"arch=x86-64-v4\")")
#define POISE_END_INSTRUCTIONS _Pragma("GCC pop_options")
#endif
