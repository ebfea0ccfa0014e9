/// Coefficients averaged over models: a mixture of Student's t of the models with a variable, and zero for the others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/select/selection_parts.hpp"
#include "models/selection/coefficients.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

struct Component {
  double weight;
  double mean;
  double scale;
};

/// The point below which a mixture has a part of its mass; `rest` of it is at zero.
double quantile(const std::vector<Component>& mixture, double rest, double degrees, double level) {
  const auto below = [&](double x) {
    double sum = x >= 0.0 ? rest : 0.0;
    for (const Component& one : mixture) sum += one.weight * student_cdf((x - one.mean) / one.scale, degrees);
    return sum;
  };
  double low = 0.0;
  double high = 0.0;
  constexpr double kFar = 40.0;  // scales, beyond which even few degrees of freedom have next to nothing
  for (const Component& one : mixture) {
    low = std::min(low, one.mean - kFar * one.scale);
    high = std::max(high, one.mean + kFar * one.scale);
  }
  constexpr int kHalvings = 50;
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = 0.5 * (low + high);
    (below(middle) < level ? low : high) = middle;
  }
  // Much of the mass may be at zero itself, which halving comes near to only.
  return below(0.0) >= level && below(-std::numeric_limits<double>::min()) < level ? 0.0 : high;
}

}  // namespace

void add_coefficients(const SelectionProblem& problem, const std::vector<DrawnModel>& models,
                      const SelectOptions& options, SelectionAnswer& answer) {
  const SelectionLaw& law = *problem.law;
  double total = 0.0;
  for (const DrawnModel& model : models) total += model.draws;
  const double degrees = law.residual_variance() ? std::numeric_limits<double>::infinity() : law.observations();
  // The variance of Student's t.
  const double widening = std::isfinite(degrees) && degrees > 2.0 ? degrees / (degrees - 2.0) : 1.0;
  std::vector<std::vector<Component>> mixtures(answer.variables.size());
  for (const DrawnModel& model : models) {
    const std::vector<CoefficientPart> parts = coefficients_of(law, model.variables);
    double most = kMinusInfinity;
    for (const CoefficientPart& part : parts) most = std::max(most, part.log_likelihood);
    double sum = 0.0;
    for (const CoefficientPart& part : parts) sum += std::exp(part.log_likelihood - most);
    for (const CoefficientPart& part : parts) {
      const double weight = model.draws / total * std::exp(part.log_likelihood - most) / sum;
      for (std::size_t i = 0; i < model.variables.size(); ++i) {
        const Index j = model.variables[i];
        const double scale = problem.scale[j];
        const Component one{weight, part.mean[i] / scale, part.scale[i] / scale};
        SelectedVariable& variable = answer.variables[j];
        variable.mean += weight * one.mean;
        variable.sd += weight * (one.mean * one.mean + widening * one.scale * one.scale);
        mixtures[j].push_back(one);
      }
    }
  }
  const double tail = 0.5 * (1.0 - options.interval);
  answer.intercept = problem.response_centre;
  for (std::size_t j = 0; j < mixtures.size(); ++j) {
    SelectedVariable& variable = answer.variables[j];
    double weight = 0.0;
    for (const Component& one : mixtures[j]) weight += one.weight;
    // `sd` holds the mean square so far.
    variable.mean_included = weight > 0.0 ? variable.mean / weight : std::nan("");
    const double spread = variable.sd / weight - variable.mean_included * variable.mean_included;
    variable.sd_included = weight > 0.0 ? std::sqrt(std::max(0.0, spread)) : std::nan("");
    variable.sd = std::sqrt(std::max(0.0, variable.sd - variable.mean * variable.mean));
    answer.intercept -= variable.mean * problem.centre[j];
    if (weight < tail) continue;  // both ends are zero
    variable.low = quantile(mixtures[j], 1.0 - weight, degrees, tail);
    variable.high = quantile(mixtures[j], 1.0 - weight, degrees, 1.0 - tail);
  }
}

RegressionTable read_rows_to_predict(const std::string& path, const SelectionAnswer& answer) {
  std::vector<std::string> names;
  for (const SelectedVariable& variable : answer.variables) names.push_back(variable.name);
  return read_columns(path, names);
}

std::vector<double> predict(const SelectionAnswer& answer, const RegressionTable& rows) {
  std::vector<double> out(rows.names.empty() ? 0 : rows.x.size() / rows.names.size(), answer.intercept);
  for (const SelectedVariable& variable : answer.variables) {
    const auto found = std::find(rows.names.begin(), rows.names.end(), variable.name);
    if (found == rows.names.end()) {
      throw InputError(rows.source + ": found no column '" + variable.name +
                       "', expected all that the model was fitted to");
    }
    const double* const column = rows.x.data() + static_cast<std::size_t>(found - rows.names.begin()) * out.size();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += variable.mean * column[i];
  }
  return out;
}

}  // namespace poise
