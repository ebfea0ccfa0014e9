/// The ranks that a launcher, such as mpirun or srun, has started this process with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <poise/collective.hpp>

namespace poise {

/// Who has started this process, with how many others.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun"
  int size = 1;
  int rank = 0;
};

/// By what launchers leave in the environment; nothing where the process was started by itself, or where POISE_MPI=off
/// asks for processes that know nothing of each other.
[[nodiscard]] std::optional<Launch> find_launch();

/// Nothing where there is one process, which then costs nothing: MPI is a library of its own that is loaded where there
/// are several. Throws InputError where there are several and MPI is missing or knows of fewer: they would all do the
/// same, and overwrite each other's files. The ranks are gone when the last holder is.
[[nodiscard]] std::shared_ptr<Collective> start_ranks();

inline constexpr const char* kMpiLibrary = "libpoise_mpi.so";
inline constexpr const char* kStartMpi = "poise_start_mpi";

/// Gives the ranks, to be deleted by the caller; or nothing, and the reason as the end of a sentence.
using StartMpi = Collective*(const char* version, const char** problem);

}  // namespace poise
