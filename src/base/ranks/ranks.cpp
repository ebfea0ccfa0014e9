/// Finds the launcher and loads the library that speaks MPI.
#include "base/ranks/ranks.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>
#include "base/plugin.hpp"

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
  const std::string path = find_plugin(kMpiLibrary);
  if (path.empty()) refuse(*launch, "this poise was built without MPI");
  std::string why;
  // Open MPI finds its own parts through the global names.
  void* const library = load_plugin(path, PluginNames::shared, why);
  if (library == nullptr) refuse(*launch, fmt::format("MPI cannot be loaded ({})", why));
  auto* const start = reinterpret_cast<StartMpi*>(function_of_plugin(library, kStartMpi));
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
