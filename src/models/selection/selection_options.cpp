/// The options of selection priors, and of models by name.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/extend/models/selection_data.hpp>
#include "base/options.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::size_t first = 0;
  while (first < text.size()) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    if (end > first) out.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return out;
}

std::vector<double> split_numbers(const std::string& text) {
  std::vector<double> out;
  for (const std::string& word : split(text)) {
    const std::optional<double> value = number_of(word);
    if (!value)
      throw InputError(
          fmt::format("slab_variance: found {}, expected a number, or several with commas between", quote(word)));
    out.push_back(*value);
  }
  return out;
}

}  // namespace

void SelectionPrior::describe(OptionVisitor& visit) {
  visit({.name = "inclusion",
         .value = "P",
         .help = "Prior probability that a variable is included",
         .unset = "1 / number of variables"},
        inclusion);
  visit({.name = "beta_a",
         .value = "A",
         .help = "With --beta-b: the prior probability has a beta distribution",
         .unset = "none"},
        beta_a);
  visit({.name = "beta_b", .value = "B", .help = "With --beta-a", .unset = "none"}, beta_b);
  visit({.name = "slab",
         .value = "FORM",
         .help = "Prior of coefficients: independent, or g",
         .choices = {"independent", "g"}},
        slab);
  std::string variances = fmt::format("{}", fmt::join(slab_variances, ","));
  visit({.name = "slab_variance",
         .value = "V",
         .help = "Variance of a coefficient over that of residuals (0.2; 50 without n), or g (n); several values with "
                 "commas are averaged over",
         .unset = "0.2; n for g; 50 without n"},
        variances);
  slab_variances = split_numbers(variances);
  visit({.name = "residual_variance",
         .value = "V",
         .help = "Variance of residuals, where it is known",
         .unset = "integrated out"},
        residual_variance);
  std::string names = fmt::format("{}", fmt::join(always, ","));
  visit({.name = "always",
         .value = "NAMES",
         .help = "Variables that are always included, with commas between",
         .unset = "none"},
        names);
  always = split(names);
}

Model read_selection_model(const Spec& spec) {
  SpecReader reader(spec, "model");
  SelectionPrior prior;
  if (reader.has("inclusion")) prior.inclusion = reader.real("inclusion", 0.0, 0.0, 1.0);
  if (reader.has("slab-variance")) prior.slab_variances = {reader.real("slab-variance", 0.2, 1e-300, 1e300)};
  if (reader.has("beta-a")) prior.beta_a = reader.real("beta-a", 1.0, 0.0, 1e300);
  if (reader.has("beta-b")) prior.beta_b = reader.real("beta-b", 1.0, 0.0, 1e300);
  if (reader.has("residual-variance")) prior.residual_variance = reader.real("residual-variance", 1.0, 1e-300, 1e300);
  const std::string how = reader.choice("scaling", "standard", {"standard", "centre", "none"});
  const Scaling scaling = how == "centre" ? Scaling::centre : how == "none" ? Scaling::none : Scaling::standard;
  prior.slab = reader.choice("slab", "independent", {"independent", "g"}) == "g" ? Slab::g : Slab::independent;
  const std::string data = reader.text("data", "");
  const std::string response = reader.text("response", "y");
  const std::string z = reader.text("z", "");
  const std::string ld = reader.text("ld", "");
  const double n = reader.real("n", 0.0, 0.0, 1e15);
  if (data.empty() == z.empty() || z.empty() != ld.empty()) {
    reader.problem("model 'selection': expected selection:data=FILE,response=NAME or selection:z=FILE,ld=FILE,n=N");
  }
  reader.finish({"inclusion", "slab-variance", "slab", "beta-a", "beta-b", "residual-variance", "scaling", "data",
                 "response", "z", "ld", "n"});
  Model model;
  if (!data.empty()) {
    model = selection_model(regression_problem(read_regression(data, response), scaling, prior));
  } else {
    SummaryTable table = read_summary(z);
    if (n > 0.0) table.n = n;
    model = selection_model(summary_problem(std::move(table), read_correlations(ld), prior));
  }
  model.name = spec.text();
  return model;
}

}  // namespace poise
