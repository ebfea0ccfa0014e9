/// What the program and the library that speaks MPI have agreed on. The library is loaded at run time, so that neither
/// the program nor the Python module needs MPI where it is not used.
#pragma once

#include <poise/collective.hpp>

namespace poise {

inline constexpr const char* kMpiLibrary = "libpoise_mpi.so";
inline constexpr const char* kStartMpi = "poise_start_mpi";

/// Gives the ranks, to be deleted by the caller; or nothing, and the reason as the end of a sentence.
using StartMpi = Collective*(const char* version, const char** problem);

}  // namespace poise
