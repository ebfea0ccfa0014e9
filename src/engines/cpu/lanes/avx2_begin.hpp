/// What follows is compiled for processors with AVX2; instructions_end.hpp ends it.
// NOLINT(llvm-header-guard): meant to be included more than once
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
// The vectors that the headers of g++ 12 leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif
