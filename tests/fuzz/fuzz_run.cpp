/// Fuzzes run files: whatever they hold, they are read or refused, and what is accepted has arrays that fit together.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <unistd.h>

#include <poise/report.hpp>
#include "base/file.hpp"
#include "fuzz/require.hpp"
#include "store/netcdf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = std::filesystem::temp_directory_path() / ("fuzz_run." + std::to_string(::getpid()) + ".nc");
  poise::write_atomically(path, {reinterpret_cast<const char*>(data), size});
  try {
    const poise::StoredRun run = poise::read_netcdf(path);
    const std::size_t entries = run.trace.chains * run.trace.draws;
    require(run.trace.n_steps.size() == entries && run.trace.acceptance_rate.size() == entries);
    require(run.trace.monitors.size() == run.trace.monitor_names.size());
    for (const auto& monitor : run.trace.monitors) require(monitor.size() == entries);
    require(run.trace.x.empty() || run.trace.x.size() == entries * run.layout.variables);
    require(!poise::report_text(poise::make_report(run), 80).empty());
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).find(path) != std::string_view::npos);
  }
  ::unlink(path.c_str());
  return 0;
}
