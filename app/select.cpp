/// `poise select` and `poise finemap`: which variables belong in a regression, from a table or from summary statistics.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/selection.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"

namespace poise::app {

namespace {

constexpr std::size_t kShown = 20;  // variables in the table

struct SelectionFlags {
  OptionFlags prior;
  OptionFlags options;
  std::string out;
  std::string json;
  std::string plot;
  std::string inclusions;
  bool strict = false;
  bool quiet = false;
};

struct SelectFlags {
  SelectionFlags common;
  std::string data;
  std::string response;
  std::string scaling = "standard";
  std::string rows;
  std::string predictions;
};

struct FinemapFlags {
  SelectionFlags common;
  std::string z;
  std::string ld;
  std::string n;
  std::string master;
  std::string xtx;
  std::string xty;
  std::string yty;
};

void declare(CLI::App& command, SelectionFlags& flags) {
  flags.prior.declare(command, SelectionPrior());
  flags.options.declare(command, SelectOptions());
  command
      .add_option("--inclusions", flags.inclusions,
                  "Prior probabilities of inclusion, one for each variable: a table of names with a column prob")
      ->type_name("FILE");
  command.add_option("--json", flags.json, "Write everything as JSON; - is standard output")->type_name("FILE");
  command
      .add_option("--plot", flags.plot, "Draw inclusion probabilities and correlations as SVG; - is standard output")
      ->type_name("FILE.svg");
  command.add_flag("--strict", flags.strict, "Exit with 3 when there are warnings");
  command.add_flag("--quiet", flags.quiet, "Show no progress");
}

struct Settings {
  SelectionPrior prior;
  SelectOptions options;
};

Settings read_settings(const SelectionFlags& flags, Problems& problems) {
  Settings out;
  flags.prior.read(out.prior, problems);
  flags.options.read(out.options, problems);
  return out;
}

/// The prior for these variables.
SelectionPrior prior_of(const Settings& settings, const SelectionFlags& flags, const std::vector<std::string>& names) {
  SelectionPrior prior = settings.prior;
  if (!flags.inclusions.empty()) prior.inclusions = read_inclusions(flags.inclusions, names);
  return prior;
}

SelectionAnswer run_selection(const std::shared_ptr<const SelectionProblem>& problem, const Settings& settings,
                              const SelectionFlags& flags, const std::string& title) {
  ProgressDisplay display(progress_style(flags.quiet), title);
  SelectHooks hooks;
  if (is_root()) hooks.progress = [&](const Progress& progress) { display.update(progress); };
  hooks.stop = &stop_on_interrupt();
  hooks.collective = ranks();
  SelectionAnswer answer = select(problem, settings.options, hooks);
  if (is_root()) display.end(answer.interrupted);
  return answer;
}

/// Whether the run was interrupted before its first draw; says so.
bool is_nothing(const SelectionAnswer& answer) {
  const bool nothing = answer.interrupted && answer.report.draws == 0;
  if (nothing) fmt::print(stderr, "poise: interrupted before the first draw, so there is no answer.\n");
  return nothing;
}

/// Shows an answer; gives the exit code.
int show(const SelectionAnswer& answer, const SelectionFlags& flags, bool screen_taken) {
  if (!flags.json.empty()) write_output(flags.json, json_text(selection_json(answer)));
  if (!flags.plot.empty()) write_output(flags.plot, selection_plot(answer));
  screen_taken = screen_taken || flags.plot == "-";
  std::FILE* const screen = screen_taken || flags.json == "-" ? stderr : stdout;
  if (screen == stdout || !flags.quiet) fmt::print(screen, "{}", selection_text(answer, table_width(screen), kShown));
  if (answer.interrupted) return kInterrupted;
  return flags.strict && !answer.warnings.empty() ? kWarnings : kSuccess;
}

int select_variables(const SelectFlags& flags) {
  Problems problems;
  const Settings settings = read_settings(flags.common, problems);
  if (flags.data.empty()) problems.add("the data are missing, for example data.csv");
  if (flags.response.empty()) problems.add("--response is missing: the name of the column to explain");
  const std::vector<std::string> scalings = {"standard", "centre", "none"};
  const auto scaling = std::find(scalings.begin(), scalings.end(), flags.scaling);
  if (scaling == scalings.end()) {
    problems.add(fmt::format("--scaling: found {}, expected standard, centre or none", quote(flags.scaling)));
  }
  if (flags.rows.empty() != flags.predictions.empty()) {
    problems.add("--predict and --predictions: found one of them, expected both");
  }
  problems.throw_if_any();
  if (is_root()) {
    check_outputs({{"--out", flags.common.out},
                   {"--json", flags.common.json},
                   {"--plot", flags.common.plot},
                   {"--predictions", flags.predictions}});
  }
  RegressionTable table = read_regression(flags.data, flags.response);
  const SelectionPrior prior = prior_of(settings, flags.common, table.names);
  const auto problem = regression_problem(std::move(table), static_cast<Scaling>(scaling - scalings.begin()), prior);
  const SelectionAnswer answer = run_selection(problem, settings, flags.common, "");
  if (!is_root()) return kSuccess;
  if (is_nothing(answer)) return kInterrupted;
  if (!flags.common.out.empty()) write_output(flags.common.out, selection_table(answer));
  if (!flags.rows.empty()) {
    std::string text = flags.response + "\n";
    for (const double value : predict(answer, read_rows_to_predict(flags.rows, answer))) {
      text += fmt::format("{:.10g}\n", value);
    }
    write_output(flags.predictions, text);
  }
  return show(answer, flags.common, flags.common.out == "-" || flags.predictions == "-");
}

using Problem = std::shared_ptr<const SelectionProblem>;

Problem summary_of(const FinemapInput& input, const Settings& settings, const SelectionFlags& flags) {
  SummaryTable table = read_summary(input.z);
  if (input.n) table.n = input.n;
  const SelectionPrior prior = prior_of(settings, flags, table.names);
  return summary_problem(std::move(table), read_correlations(input.ld), prior);
}

Problem products_of(const FinemapFlags& flags, double yty, double n, const Settings& settings) {
  SummaryTable xty = read_summary(flags.xty);
  CrossProductTable table;
  table.xtx = read_correlations(flags.xtx);
  table.names = xty.is_numbered && !table.xtx.names.empty() ? table.xtx.names : xty.names;
  table.xty = std::move(xty.z);
  table.yty = yty;
  table.n = n;
  const SelectionPrior prior = prior_of(settings, flags.common, table.names);
  return cross_product_problem(std::move(table), prior);
}

/// One data set, and where what FINEMAP would write goes; empty names are not written.
int finemap_one(const Problem& problem, const FinemapInput& input, const Settings& settings,
                const SelectionFlags& flags) {
  const SelectionAnswer answer = run_selection(problem, settings, flags, input.z);
  if (!is_root()) return answer.interrupted ? kInterrupted : kSuccess;
  if (is_nothing(answer)) return kInterrupted;
  if (!input.snp.empty()) write_output(input.snp, finemap_snp(answer));
  if (!input.config.empty()) write_output(input.config, finemap_config(answer));
  if (!input.cred.empty()) write_output(input.cred, finemap_cred(answer));
  if (!flags.out.empty()) write_output(flags.out, selection_table(answer));
  return show(answer, flags, flags.out == "-");
}

int finemap(const FinemapFlags& flags) {
  Problems problems;
  const Settings settings = read_settings(flags.common, problems);
  FinemapInput input;
  input.z = flags.z;
  input.ld = flags.ld;
  if (!flags.n.empty()) {
    double n = 0.0;
    read_positive(flags.n, "--n", n, problems);
    input.n = n;
  }
  double yty = 0.0;
  if (!flags.yty.empty()) read_positive(flags.yty, "--yty", yty, problems);
  const bool of_products = !flags.xtx.empty() || !flags.xty.empty() || !flags.yty.empty();
  if (of_products) {
    const bool all = !flags.xtx.empty() && !flags.xty.empty() && !flags.yty.empty() && !flags.n.empty();
    if (!all || !flags.z.empty() || !flags.ld.empty() || !flags.master.empty()) {
      problems.add("--xtx, --xty, --yty and --n: expected all of them, and no --z, --ld or --master");
    }
  } else if (flags.master.empty() == flags.z.empty() || flags.z.empty() != flags.ld.empty()) {
    problems.add("the data are missing: --z FILE and --ld FILE, or --master FILE, or --xtx, --xty, --yty and --n");
  }
  problems.throw_if_any();
  if (is_root()) {
    check_outputs({{"--out", flags.common.out}, {"--json", flags.common.json}, {"--plot", flags.common.plot}});
  }
  if (flags.master.empty()) {
    const Problem problem =
        of_products ? products_of(flags, yty, *input.n, settings) : summary_of(input, settings, flags.common);
    const int code = finemap_one(problem, input, settings, flags.common);
    return is_root() ? code : kSuccess;
  }
  const std::vector<FinemapInput> inputs = read_master(flags.master);
  if (inputs.size() > 1 && !(flags.common.json.empty() && flags.common.out.empty() && flags.common.plot.empty())) {
    throw InputError("--out, --json and --plot: a master file of several data sets names files of its own");
  }
  int code = kSuccess;
  for (const FinemapInput& one : inputs) {
    code = std::max(code, finemap_one(summary_of(one, settings, flags.common), one, settings, flags.common));
    if (code == kInterrupted) break;
  }
  return is_root() ? code : kSuccess;
}

}  // namespace

Command add_select(CLI::App& program) {
  const auto flags = std::make_shared<SelectFlags>();
  CLI::App* command = program.add_subcommand("select", "Which variables belong in a linear regression");
  command->add_option("data", flags->data, "Table with a head: CSV, or with tabs, semicolons or blanks")
      ->type_name("FILE");
  command->add_option("--response", flags->response, "Name of the column to explain")->type_name("NAME");
  command
      ->add_option("--scaling", flags->scaling,
                   "standard: columns are centred and divided by their standard deviations; centre; none, without "
                   "an intercept [standard]")
      ->type_name("HOW");
  declare(*command, flags->common);
  command->add_option("--out", flags->common.out, "Write a row for each variable; - is standard output")
      ->type_name("FILE");
  command->add_option("--predict", flags->rows, "Table of rows to predict the response of")->type_name("FILE");
  command
      ->add_option("--predictions", flags->predictions, "Write predictions, averaged over models; - is standard output")
      ->type_name("FILE");
  command->footer(select_footer());
  return {command, [flags] { return select_variables(*flags); }, Ranks::all};
}

Command add_finemap(CLI::App& program) {
  const auto flags = std::make_shared<FinemapFlags>();
  CLI::App* command = program.add_subcommand("finemap", "Variable selection from z scores and correlations");
  command
      ->add_option("--z", flags->z,
                   "z scores: FINEMAP's .z, a table with a column z or beta and se, one on each line, or .npy")
      ->type_name("FILE");
  command
      ->add_option("--ld", flags->ld,
                   "Correlations: numbers in rows as in FINEMAP's .ld, .npy, or .npz with a sparse matrix")
      ->type_name("FILE");
  command->add_option("--n", flags->n, "Sample size [the column n of the z file; none: z scores alone]")
      ->type_name("N");
  command->add_option("--master", flags->master, "FINEMAP's master file, in place of these: several data sets")
      ->type_name("FILE");
  command->add_option("--xtx", flags->xtx, "In place of z and R: X'X of centred columns, as --ld")->type_name("FILE");
  command->add_option("--xty", flags->xty, "With --xtx: X'y, a number on each line or .npy")->type_name("FILE");
  command->add_option("--yty", flags->yty, "With --xtx: y'y")->type_name("V");
  declare(*command, flags->common);
  command->add_option("--out", flags->common.out, "Write a row for each variant; - is standard output")
      ->type_name("FILE");
  command->footer(finemap_footer());
  return {command, [flags] { return finemap(*flags); }, Ranks::all};
}

}  // namespace poise::app
