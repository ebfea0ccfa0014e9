/// `poise export`: a stored run as one file for other programs.
#include <memory>
#include <string>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "store/export/export.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace poise::app {

namespace {

struct ExportFlags {
  std::string run;
  std::string file;
};

int export_to(const ExportFlags& flags) {
  if (flags.run.empty()) throw InputError("the run is missing; 'poise sample --out run.zarr' makes one");
  if (flags.file.empty()) throw InputError("the file is missing: a name that ends in .nc, .npz or .csv");
  check_export_name(flags.file);
  check_outputs({{"FILE", flags.file}});
  const WaitingLine line(progress_style(false), "exporting");
  export_run(flags.run, flags.file);
  return kSuccess;
}

}  // namespace

Command add_export(CLI::App& program) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* command =
      program.add_subcommand("export", "Write the draws of a stored run to one file: .nc, .npz or .csv");
  command->add_option("run", flags->run, "What 'poise sample --out' wrote")->type_name("RUN");
  command->add_option("file", flags->file, "NetCDF, npz or csv, by the ending")->type_name("FILE");
  command->footer(export_footer());
  return {command, [flags] { return export_to(*flags); }, Ranks::root};
}

}  // namespace poise::app
