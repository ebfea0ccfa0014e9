/// Sums over all chains of an engine.
#include <poise/run/engine.hpp>

namespace poise {

double total_accepted(const Engine& engine) {
  std::vector<double> accepted(engine.traits().chains);
  engine.observe({0, accepted.size()}, {.accepted = accepted});
  double sum = 0.0;
  for (const double one : accepted) sum += one;
  return sum;
}

double mean_log_prob(const Engine& engine) {
  std::vector<double> log_prob(engine.traits().chains);
  engine.observe({0, log_prob.size()}, {.log_prob = log_prob});
  double sum = 0.0;
  for (const double one : log_prob) sum += one;
  return sum / static_cast<double>(log_prob.size());
}

Evals total_evals(const Engine& engine) {
  std::vector<Evals> evals(engine.traits().chains);
  engine.observe({0, evals.size()}, {.evals = evals});
  Evals sum;
  for (const Evals& one : evals) sum += one;
  return sum;
}

}  // namespace poise
