/// What follows is compiled for every processor again.
// NOLINT(llvm-header-guard): meant to be included more than once
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
