/// `poise info`: what a model is made of, and what an answer would cost.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <poise/marginals.hpp>
#include "exact/exact_inference.hpp"
#include "models/network/support.hpp"
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

/// What is counted of a network.
struct Counts {
  explicit Counts(const Network& network) {
    for (Index i = 0; i < network.num_variables(); ++i) {
      observed += network.is_observed(i) ? 1 : 0;
      single += !network.is_observed(i) && network.cardinalities[i] == 1 ? 1 : 0;
      fewest = std::min(fewest, network.cardinalities[i]);
      most = std::max(most, network.cardinalities[i]);
    }
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      scope = std::max(scope, network.scope(f).size());
      entries += static_cast<double>(network.table_size(f));
      for (const double value : network.table(f)) zeros += value == 0.0 ? 1.0 : 0.0;
    }
    if (zeros > 0.0) {
      const Domains domains = propagate_zeros(network);
      for (Index i = 0; i < network.num_variables(); ++i) {
        determined += !network.is_observed(i) && network.cardinalities[i] > 1 && domains.count[i] == 1 ? 1 : 0;
      }
    }
  }
  std::size_t observed = 0;
  std::size_t single = 0;      // variables of one level
  std::size_t determined = 0;  // by zeros in the tables
  Index fewest = std::numeric_limits<Index>::max();
  Index most = 0;
  std::size_t scope = 0;  // of the largest factor
  double entries = 0.0;
  double zeros = 0.0;
};

int info_of_network(const InfoFlags& flags, const Network& network, double memory_limit) {
  const Counts counts(network);
  const ExactPlan found = plan_exact(network, {.memory_limit = memory_limit});
  const EliminationPlan& plan = found.tree;
  const bool exact = fits(found, memory_limit);
  std::vector<std::string> samplers;
  if (!exact) samplers = pilot_samplers(network_model(std::make_shared<const Network>(network)));
  const std::size_t width = table_width(stdout);
  if (!flags.json.empty()) {
    nlohmann::json json = {{"version", POISE_VERSION},
                           {"model", network.name},
                           {"variables", network.num_variables()},
                           {"observed", counts.observed},
                           {"determined", counts.determined},
                           {"cardinality", {{"min", counts.fewest}, {"max", counts.most}}},
                           {"factors", network.num_factors()},
                           {"largest_scope", counts.scope},
                           {"entries", counts.entries},
                           {"zeros", counts.zeros},
                           {"width", plan.width},
                           {"slices", found.slices},
                           {"method", exact ? "exact" : "sample"}};
    json["exact_bytes"] = std::isfinite(plan.bytes) ? nlohmann::json(plan.bytes) : nlohmann::json(nullptr);
    json["largest_clique"] =
        std::isfinite(plan.largest_clique) ? nlohmann::json(plan.largest_clique) : nlohmann::json(nullptr);
    if (!exact) json["samplers"] = samplers;
    write_output(flags.json, json_text(json));
    if (flags.json == "-") return kSuccess;
  }
  std::string variables = fmt::format("{}", network.num_variables());
  const auto add = [&](std::size_t number, const char* what) {
    if (number > 0) variables += fmt::format(", {} {}", number, what);
  };
  add(counts.observed, "observed");
  add(counts.single, "of one level");
  add(counts.determined, "determined by zeros");
  const auto row = [&](const char* title, const std::string& words) {
    fmt::print("{}", text::wrap(words, title, width));
  };
  row("model       ", network.name);
  row("variables   ", variables);
  row("levels      ", counts.fewest == counts.most ? fmt::format("{} each", counts.most)
                                                   : fmt::format("{} to {}", counts.fewest, counts.most));
  row("factors     ", fmt::format("{}, of up to {}, {} in all", network.num_factors(),
                                  text::plural(counts.scope, "variable"), text::count(counts.entries) + " entries"));
  row("zeros       ", counts.zeros > 0.0 ? fmt::format("{} of the entries ({:.1f} %)", text::count(counts.zeros),
                                                       100.0 * counts.zeros / counts.entries)
                                         : std::string("none"));
  row("exact       ",
      plan.complete
          ? fmt::format("induced width {}, largest table {} entries, {} of memory", plan.width,
                        text::number(plan.largest_clique, 3), text::bytes(plan.bytes))
          : fmt::format("every order meets a table of over {} entries", text::number(plan.largest_clique, 3)));
  if (!found.conditioned.empty()) row("slices      ", exact_cost(found));
  row("answer by   ", exact ? fmt::format("exact inference: it fits {}", text::bytes(memory_limit))
                            : fmt::format("sampling: exact inference {}; a pilot run chooses among {}",
                                          found.fits(memory_limit) ? "would take too long"
                                                                   : "does not fit " + text::bytes(memory_limit),
                                          fmt::join(samplers, ", ")));
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
