/// `poise info`: what a model is made of, and what an answer would cost.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <poise/marginals.hpp>
#include "report/text.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

struct InfoFlags {
  ModelFlags model;
  std::string memory;
  std::string json;
};

int info_of_network(const InfoFlags& flags, const Network& network, double memory_limit) {
  const nlohmann::json info = network_info(network, memory_limit);
  if (!flags.json.empty()) {
    write_output(flags.json, json_text(info));
    if (flags.json == "-") return kSuccess;
  }
  const std::size_t width = table_width(stdout);
  const auto number = [&](const char* key) { return info.at(key).is_null() ? INFINITY : info.at(key).get<double>(); };
  std::string variables = fmt::format("{}", network.num_variables());
  const auto add = [&](const char* key, const char* what) {
    if (number(key) > 0.0) variables += fmt::format(", {:.0f} {}", number(key), what);
  };
  add("observed", "observed");
  add("one_level", "of one level");
  add("determined", "determined by zeros");
  const auto row = [&](const char* title, const std::string& words) {
    fmt::print("{}", text::wrap(words, title, width));
  };
  const Index fewest = info.at("cardinality").at("min");
  const Index most = info.at("cardinality").at("max");
  row("model       ", network.name);
  row("variables   ", variables);
  row("levels      ", fewest == most ? fmt::format("{} each", most) : fmt::format("{} to {}", fewest, most));
  row("factors     ", fmt::format("{}, of up to {}, {} in all", network.num_factors(),
                                  text::plural(info.at("largest_scope").get<std::uint64_t>(), "variable"),
                                  text::count(number("entries")) + " entries"));
  row("zeros       ", number("zeros") > 0.0 ? fmt::format("{} of the entries ({:.1f} %)", text::count(number("zeros")),
                                                          100.0 * number("zeros") / number("entries"))
                                            : std::string("none"));
  row("exact       ",
      info.at("complete").get<bool>()
          ? fmt::format("induced width {}, largest table {} entries, {} of memory", info.at("width").get<Index>(),
                        text::number(number("largest_clique"), 3), text::bytes(number("exact_bytes")))
          : fmt::format("every order meets a table of over {} entries", text::number(number("largest_clique"), 3)));
  if (number("conditioned") > 0.0) row("slices      ", info.at("cost"));
  row("answer by   ",
      info.at("method") == "exact"
          ? fmt::format("exact inference: it fits {}", text::bytes(memory_limit))
          : fmt::format("sampling: exact inference {}; a pilot run chooses among {}",
                        info.at("fits_memory").get<bool>() ? "would take too long"
                                                           : "does not fit " + text::bytes(memory_limit),
                        fmt::join(info.at("samplers").get<std::vector<std::string>>(), ", ")));
  return kSuccess;
}

int info(const InfoFlags& flags) {
  Problems problems;
  double gibibytes = MarginalsOptions().memory_limit / kGibibyte;
  read_positive(flags.memory, "--memory", gibibytes, problems);
  if (flags.model.model.empty()) problems.add("the model is missing, for example net.uai");
  problems.throw_if_any();
  check_outputs({{"--json", flags.json}});
  const ModelFiles files{flags.model.field, flags.model.evidence};
  const std::optional<Network> network = find_network(flags.model.model, files);
  if (network) return info_of_network(flags, *network, gibibytes * kGibibyte);
  const Model model = make_model(flags.model.model, files);
  if (!flags.json.empty()) {
    write_output(flags.json, json_text({{"version", POISE_VERSION},
                                        {"model", model.name},
                                        {"variables", model.layout.variables},
                                        {"method", "sample"}}));
    if (flags.json == "-") return kSuccess;
  }
  const std::size_t width = table_width(stdout);
  fmt::print("{}{}{}", text::wrap(model.name, "model       ", width),
             text::wrap(fmt::format("{}", model.layout.variables), "variables   ", width),
             text::wrap("sampling", "answer by   ", width));
  return kSuccess;
}

}  // namespace

Command add_info(CLI::App& program) {
  const auto flags = std::make_shared<InfoFlags>();
  CLI::App* command = program.add_subcommand("info", "What a model is made of and what exact inference would cost");
  declare(*command, flags->model);
  command->add_option("--memory", flags->memory, "GiB that the tables of exact inference may take [4]")
      ->type_name("GIB");
  command->add_option("--json", flags->json, "Write it as JSON; - is standard output")->type_name("FILE");
  command->footer(info_footer());
  return {command, [flags] { return info(*flags); }, Ranks::root};
}

}  // namespace poise::app
