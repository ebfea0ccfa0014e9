/// Finds the launcher and loads the library that speaks MPI.
#include "base/ranks/ranks.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>

namespace poise {

namespace {

int number_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  const auto number = parse_integer(text);
  return number && *number > 0 && *number < 1'000'000 ? static_cast<int>(*number) : 0;
}

Launch launch_by(const char* launcher, const char* size, const char* rank) {
  return {launcher, number_in(size), number_in(rank)};
}

/// Beside the program or the Python module, or where it is installed.
std::string library_path() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&start_ranks), &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code ignored;
  std::filesystem::path here = std::filesystem::canonical(info.dli_fname, ignored);
  if (ignored) here = std::filesystem::canonical("/proc/self/exe", ignored);
  for (const char* folder : {".", "..", POISE_PLUGIN_FOLDER}) {
    const std::filesystem::path path = here.parent_path() / folder / kMpiLibrary;
    if (std::filesystem::exists(path, ignored)) return path.lexically_normal().string();
  }
  return "";
}

[[noreturn]] void refuse(const Launch& launch, const std::string& why) {
  throw InputError(
      fmt::format("{} has started {} ranks, but {}: they would all make the same run (POISE_MPI=off lets them, each "
                  "with files of its own)",
                  launch.launcher, launch.size, why));
}

}  // namespace

std::optional<Launch> find_launch() {
  const char* wish = std::getenv("POISE_MPI");
  if (wish != nullptr && std::string_view(wish) == "off") return std::nullopt;
  // In a batch script of Slurm that runs the program without srun, SLURM_NTASKS alone says nothing.
  const bool in_step = std::getenv("PMIX_RANK") != nullptr || std::getenv("SLURM_STEP_NUM_TASKS") != nullptr;
  std::vector<Launch> found = {launch_by("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
                               launch_by("mpiexec", "PMI_SIZE", "PMI_RANK"),
                               launch_by("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID")};
  if (in_step) found.push_back(launch_by("srun", "SLURM_NTASKS", "SLURM_PROCID"));
  for (const Launch& launch : found) {
    if (launch.size > 0) return launch.size > 1 ? std::optional(launch) : std::nullopt;
  }
  return std::nullopt;
}

std::shared_ptr<Collective> start_ranks() {
  const std::optional<Launch> launch = find_launch();
  if (!launch) return nullptr;
  const std::string path = library_path();
  if (path.empty()) refuse(*launch, "this poise was built without MPI");
  // Open MPI finds its own parts through the global names.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    refuse(*launch, fmt::format("MPI cannot be loaded ({})", why != nullptr ? why : "no reason given"));
  }
  auto* const start = reinterpret_cast<StartMpi*>(::dlsym(library, kStartMpi));
  if (start == nullptr) refuse(*launch, fmt::format("{} is of another version", path));
  const char* problem = nullptr;
  std::shared_ptr<Collective> ranks(start(POISE_VERSION, &problem));
  if (!ranks) refuse(*launch, problem);
  if (ranks->size() != launch->size) {
    refuse(*launch, fmt::format("MPI knows of {}; under Slurm 'srun --mpi=pmix' tells it", ranks->size()));
  }
  return ranks;
}

}  // namespace poise
