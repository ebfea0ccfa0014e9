/// `poise devices`: the processor and the GPUs that chains can run on, and what runs on each.
#include <thread>

#include <fmt/format.h>

#include <poise/devices.hpp>
#include "engines/rows.hpp"

#include "commands.hpp"
#include "help.hpp"

namespace poise::app {

namespace {

int devices() {
  constexpr double gib = 1073741824.0;
  fmt::print("cpu   {} threads\n", std::max(1U, std::thread::hardware_concurrency()));
  std::string why;
  const std::vector<CudaDevice> found = cuda_devices(why);
  for (const CudaDevice& device : found) {
    fmt::print("cuda  {}, {} multiprocessors, compute capability {}.{}, {:.0f} of {:.0f} GiB free\n", device.name,
               device.multiprocessors, device.major, device.minor, device.free_bytes / gib, device.bytes / gib);
  }
  if (found.empty()) fmt::print("cuda  none: {}\n", why);
  fmt::print("\nWhat runs where:\n\n{}", describe(engine_table().rows));
  return kSuccess;
}

}  // namespace

Command add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "devices", "List what chains can run on, this machine's cores and GPUs, and which samplers run there");
  command->footer(
      "Give '--device cuda' to 'poise sample', 'compare', 'marginals' or 'train' to run on a GPU. Where there are "
      "several,\n"
      "the first that the variable CUDA_VISIBLE_DEVICES leaves is used.");
  return {command, devices};
}

}  // namespace poise::app
