/// The report of the experiment on a restricted Boltzmann machine: tables and figures.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <poise/mmd.hpp>
#include "report/text.hpp"

#include "studies/figures.hpp"
#include "studies/published.hpp"
#include "studies/rbm/rbm.hpp"

namespace poise::reproduction {

namespace {

/// In the order of the paper's figures.
const std::vector<std::string> kOrder = {"gwg",     "flsb1",    "flsb2",   "flsb2-entropy", "flsb",   "gibbs-2",
                                         "gibbs-4", "gibbs-10", "hb-10-1", "hb-10-2",       "hb-10-3"};

Image picture_of(const std::string& bits, std::size_t rows, std::size_t columns) {
  Grid grid{rows, columns, {}};
  for (const char bit : bits) grid.values.push_back(bit == '1' ? 1.0 : 0.0);
  return paint(grid, 0.0, 1.0);
}

/// Whether chains that began at images and chains that began almost empty have ended alike.
double forgetting(const GroundTruth& truth) {
  const std::size_t variables = truth.draws.size() / truth.count;
  std::vector<std::int8_t> halves[2];
  for (std::size_t d = 0; d < truth.count; ++d) {
    const auto* first = truth.draws.data() + d * variables;
    halves[d % 2].insert(halves[d % 2].end(), first, first + variables);
  }
  return mmd(halves[0], halves[1], variables, {.permutations = 1000}).p_value;
}

}  // namespace

double RbmExperiment::least_discrepancy(const Results& results) const {
  const GroundTruth truth = gather_truth(results);
  const std::size_t variables = truth.draws.size() / truth.count;
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t first = 0; first + chains_ <= truth.count; first += chains_) {
    const std::vector<std::int8_t> some(
        truth.draws.begin() + static_cast<std::ptrdiff_t>(first * variables),
        truth.draws.begin() + static_cast<std::ptrdiff_t>((first + chains_) * variables));
    std::vector<std::int8_t> rest(truth.draws.begin(),
                                  truth.draws.begin() + static_cast<std::ptrdiff_t>(first * variables));
    rest.insert(rest.end(), truth.draws.begin() + static_cast<std::ptrdiff_t>((first + chains_) * variables),
                truth.draws.end());
    sum += mmd(some, rest, variables, {.permutations = 0}).v_statistic;
    count += 1.0;
  }
  return sum / count;
}

void RbmExperiment::add_settings(Document& document, const Results& results) const {
  const nlohmann::json& training = results.at("training");
  document.heading("What was run");
  document.paragraph(
      fmt::format("A restricted Boltzmann machine of {} visible and {} hidden units, trained on {} images ({}, black "
                  "above 0.5) by one epoch of CD-10 "
                  "with Adam at 0.001 and batches of 28: reconstruction error {:.4f} a pixel. {} chains begin with one "
                  "unit in a hundred on; "
                  "{} steps of burn-in, {} after it. MMD\u00b2 is the V-statistic with the kernel exp(\u2212mean "
                  "Hamming distance) of the present states of the "
                  "chains against the ground truth. Effective sample sizes (TensorFlow Probability's estimator) are "
                  "those of Hamming distances to draws of the "
                  "ground truth.",
                  images_.rows * images_.columns, hidden_, images_.count, data_name_,
                  number(training["reconstruction_error"]), chains_, burn_in_, sampling_));
  document.paragraph(
      fmt::format("Ground truth: {} draws by the RBM's own block Gibbs, each after {} steps of a chain of its own "
                  "(the paper made 120000). Every other chain "
                  "began at an image, the rest almost empty; that the two halves have one law has p = {:.3f} "
                  "(permutation test on MMD).",
                  truth_, truth_steps_, forgetting(gather_truth(results))));
  if (published()) {
    document.list({
        "FLSB 1 and FLSB 2 learn from the first step on, at every step of burn-in, with the bound of Theorem 1(b) "
        "(mi-bound), Adam at rate 0.01.",
        "Effective sample sizes are those of the first chain alone, with respect to all draws of the ground truth: one "
        "chain, and so no error "
        "bars.",
        "What the paper calls target evaluations are steps; the second plot of each figure has evaluations as counted.",
    });
  } else {
    document.paragraph(
        "Each chain is compared with a share of the ground truth of its own, so that there are as many independent "
        "effective sample sizes as chains. "
        "\u201cRepaired\u201d learns by the entropy rate near stationarity; flsb, the default of this program, for "
        "small variance.");
  }
}

void RbmExperiment::add_tables(Document& document, const Results& results) const {
  Table table;
  table.name = "table4-evaluations";
  table.caption =
      "Evaluations of the target per step, as counted while sampling (a ratio and a gradient count one each), beside "
      "the paper's Table 4. "
      "The paper leaves out the gradient at the proposed state, and counts more states in a Hamming ball than there "
      "are: with "
      "blocks of 10 it has \u03a3 C(10, j), j up to the radius.";
  table.columns = {"Sampler", "Evaluations per step", "Paper", "Microseconds per step of a chain", "Acceptance"};
  table.csv_columns = {"sampler", "evaluations_per_step", "published", "differs"};
  for (const std::string& key : kOrder) {
    if (!results.contains(key)) continue;
    const nlohmann::json& found = results.at(key);
    const double counted = number(found["evals_per_step"]);
    const auto paper = published_rbm_evaluations(key);
    const bool differs = paper && std::abs(counted - *paper) > 0.005 * *paper;
    table.rows.push_back(
        {escaped(contestant(key).label),
         fmt::format("<td{}><span class=\"ours\">{}</span></td>", differs ? " class=\"differs\"" : "",
                     plain(std::round(100.0 * counted) / 100.0)),
         paper ? plain(*paper) : "",
         text::number(1e6 * number(found["seconds"]["per_step_of_all_chains"]) / static_cast<double>(chains_), 3),
         text::number(number(found["acceptance_rate"]), 3)});
    table.csv_rows.push_back({key, csv_number(counted), paper ? csv_number(*paper) : "",
                              !paper    ? ""
                              : differs ? "yes"
                                        : "no"});
  }
  document.heading("Cost");
  document.table(table);

  std::vector<Contestant> rows;
  std::vector<std::vector<Compared>> cells(3);
  for (const std::string& key : kOrder) {
    if (!results.contains(key)) continue;
    const nlohmann::json& found = results.at(key);
    rows.push_back(contestant(key));
    Estimate early = early_discrepancy(found);
    early.mean *= 1000.0;
    early.sd *= 1000.0;
    cells[0].push_back({early, std::nullopt});
    Estimate ess = median_ess(found);
    cells[1].push_back({ess, std::nullopt});
    const double per_thousand = 1000.0 / (number(found["evals_per_step"]) * static_cast<double>(sampling_));
    ess.mean *= per_thousand;
    ess.sd *= per_thousand;
    cells[2].push_back({ess, std::nullopt});
  }
  document.heading("Convergence and mixing in numbers");
  document.table(comparison_table(
      {.name = "burn-in-discrepancy",
       .caption = fmt::format(
           "1000 MMD\u00b2 of the chains to the ground truth, mean over the {} steps of burn-in; as many exact draws "
           "have {} on average. "
           "The error is that of the jackknife over chains. Bold: the smallest and what cannot be told from it.",
           burn_in_, text::number(1000.0 * least_discrepancy(results), 3)),
       .cases = {"1000 MMD\u00b2 in burn-in"},
       .larger_is_better = false},
      rows, {cells[0]}));
  document.table(comparison_table(
      {.name = "effective-sample-size",
       .caption = fmt::format(
           "Effective sample size of one chain in {} steps, the median over distances to draws of the ground truth{}. "
           "Bold: the largest and what cannot be told from it.",
           sampling_, published() ? " (one chain, no error)" : "; mean \u00b1 standard error over chains"),
       .cases = {"Per run", "Per thousand evaluations"}},
      rows, {cells[1], cells[2]}));
}

void RbmExperiment::add_comparison(Document& document, const Results& results, const std::vector<std::string>& keys,
                                   const std::string& figure) const {
  Plot steps;
  steps.title = "Discrepancy from the ground truth";
  steps.x_label = "steps";
  steps.y_label = "MMD\u00b2";
  steps.y_log = true;
  Plot evals = steps;
  evals.x_label = "evaluations of the target, per chain";
  evals.x_log = true;
  steps.title = "Burn-in";
  steps.x_max = static_cast<double>(burn_in_);
  Plot sizes;
  sizes.title = "Effective sample size";
  sizes.y_label = "effective sample size";
  sizes.y_log = true;
  Plot speeds = sizes;
  speeds.title = "Effective sample size per second";
  speeds.y_label = "effective sample size per second";
  const double lowest = least_discrepancy(results);
  steps.y_min = 0.3 * lowest;
  for (const std::string& key : keys) {
    if (!results.contains(key)) continue;
    const nlohmann::json& found = results.at(key);
    const Contestant& who = contestant(key);
    steps.series.push_back(band_of(
        who, {numbers(found["mmd"]["step"]), numbers(found["mmd"]["mmd2"]), numbers(found["mmd"]["mmd2_error"])}, 240));
    evals.series.push_back(band_of(who, {numbers(found["mmd"]["evals"]), numbers(found["mmd"]["mmd2"]), {}}, 240));
    Boxed box{who.label, {}, who.color};
    for (const nlohmann::json& chain : found["ess"]) {
      for (const double value : numbers(chain)) box.values.push_back(value);
    }
    sizes.boxes.push_back(box);
    const double seconds = number(found["seconds"]["per_step_of_all_chains"]) * static_cast<double>(sampling_);
    for (double& value : box.values) value /= seconds;
    speeds.boxes.push_back(std::move(box));
  }
  Series floor;
  floor.label = "exact draws";
  floor.color = "#9a9a9a";
  floor.line_width = 1.2;
  floor.x = {0.0, static_cast<double>(burn_in_)};
  floor.y = {lowest, lowest};
  steps.series.push_back(floor);
  floor.x = {1.0, 1e10};
  evals.series.push_back(floor);
  double most = 0.0;
  double least = 1e300;
  for (const Series& series : evals.series) {
    if (series.label == "exact draws") continue;
    most = std::max(most, series.x.back());
    least = std::min(least, series.x[1]);
  }
  evals.x_min = least;
  evals.x_max = most;
  document.figure(
      {figure,
       fmt::format("{} Above: MMD\u00b2 of the {} chains to the ground truth against steps of burn-in (bands of "
                   "two jackknife errors), and in the whole run against "
                   "evaluations of the target as "
                   "counted. Grey: what as many exact draws have on average. Below: effective sample sizes "
                   "as boxes of quartiles, and "
                   "the same per second of processor time for all chains together.",
                   figure == "figure4"   ? "The paper's Figure 4."
                   : figure == "figure8" ? "The paper's Figure 8: block Gibbs."
                                         : "The paper's Figure 9: Hamming balls.",
                   chains_),
       {{"mmd-steps", render_svg(steps)},
        {"mmd-evaluations", render_svg(evals)},
        {"ess", render_svg(sizes)},
        {"ess-per-second", render_svg(speeds)}},
       2});
}

Document RbmExperiment::describe(const Results& results, const std::vector<Verdict>& verdicts) const {
  Document document("LSB on a restricted Boltzmann machine, reproduced", subtitle(options_));
  document.heading("What holds");
  document.verdicts(verdicts);
  add_settings(document, results);
  PicturePanel panel;
  panel.per_row = 8;
  panel.side = 90;
  const auto add = [&](const std::string& bits, const std::string& caption) {
    panel.pictures.push_back({picture_of(bits, images_.rows, images_.columns), caption});
  };
  for (std::size_t k = 0; k < 8; ++k) add(results.at("truth1")["states"][k], "ground truth");
  for (const char* key : {"gwg", "flsb"}) {
    const nlohmann::json& last = results.at(key)["last"];
    for (std::size_t k = 0; k < last.size(); ++k) add(last[k], contestant(key).label);
  }
  document.figure({"draws",
                   "Draws of the ground truth, and the states in which chains of GWG and flsb ended.",
                   {{"", render_panel(panel)}},
                   1});
  document.heading("Gradient samplers");
  add_comparison(document, results, {"gwg", "flsb1", "flsb2", "flsb2-entropy", "flsb", "gibbs-2", "hb-10-1"},
                 "figure4");
  document.heading("Block Gibbs");
  add_comparison(document, results, {"flsb2", "flsb", "gibbs-2", "gibbs-4", "gibbs-10"}, "figure8");
  document.heading("Hamming balls");
  add_comparison(document, results, {"flsb2", "flsb", "hb-10-1", "hb-10-2", "hb-10-3"}, "figure9");
  add_tables(document, results);
  document.heading("What was learned");
  std::vector<LearnedFunction> functions;
  for (const std::string& key : kOrder) {
    if (!results.contains(key) || !parse_sampler(contestant(key).sampler).learns()) continue;
    functions.push_back({&contestant(key), numbers(results.at(key)["phi"])});
  }
  document.figure({"balancing-functions",
                   "Balancing functions that were learned, over the four fixed ones (grey).",
                   {{"", balance_figure("Learned balancing functions", functions)}},
                   2});
  return document;
}

}  // namespace poise::reproduction
