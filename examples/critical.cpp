/// At the critical coupling: how fast Gibbs and two cluster samplers forget the magnetization of an Ising lattice.
///
///     example_critical [SIZE DRAWS PLOT.svg]
#include <poise/plot.hpp>
#include <poise/poise.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

/// Autocorrelations of one chain's values around a mean that all chains share, added to those of the others.
void add_autocorrelations(const double* values, std::size_t draws, double mean, std::vector<double>& sums) {
  for (std::size_t lag = 0; lag < sums.size(); ++lag) {
    double sum = 0.0;
    for (std::size_t k = 0; k + lag < draws; ++k) sum += (values[k] - mean) * (values[k + lag] - mean);
    sums[lag] += sum / static_cast<double>(draws - lag);
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string size = count > 1 ? words[1] : "32";
  poise::RunOptions options;
  options.chains = 8;
  options.draws = count > 2 ? static_cast<std::size_t>(std::atoi(words[2])) : 2000;
  options.keep = poise::Keep::monitors;
  const double coupling = std::log1p(std::sqrt(2.0)) / 2.0;
  const poise::Model model = poise::make_model("ising:size=" + size + ",lambda=" + std::to_string(coupling));

  poise::Plot plot;
  plot.title = "Ising model at its critical coupling, " + size + " x " + size;
  plot.x_label = "sweeps";
  plot.y_label = "autocorrelation of |m|";
  plot.y_min = -0.05;
  plot.y_max = 1.0;
  std::printf("sampler  effective samples of |m| per draw\n");
  for (const char* name : {"gibbs", "sw", "wolff"}) {
    const poise::RunResult fit = poise::run(model, poise::parse_sampler(name), options);
    const auto& names = fit.trace.monitor_names;
    const auto which = std::find(names.begin(), names.end(), "magnetization") - names.begin();
    std::vector<double> values = fit.trace.monitors[static_cast<std::size_t>(which)];
    double mean = 0.0;
    for (double& value : values) mean += (value = std::abs(value)) / static_cast<double>(values.size());
    const double ess = poise::ess_mean({values.data(), fit.trace.chains, fit.trace.draws});
    std::printf("%-8s %.4f\n", name, ess / static_cast<double>(values.size()));

    poise::Series series{.label = name};
    series.y.assign(std::min<std::size_t>(61, fit.trace.draws), 0.0);
    for (std::size_t c = 0; c < fit.trace.chains; ++c) {
      add_autocorrelations(values.data() + c * fit.trace.draws, fit.trace.draws, mean, series.y);
    }
    const double variance = series.y[0];
    for (std::size_t lag = 0; lag < series.y.size(); ++lag) {
      series.x.push_back(static_cast<double>(lag));
      series.y[lag] /= variance;
    }
    plot.series.push_back(std::move(series));
  }
  if (count > 3) std::ofstream(words[3]) << poise::render_svg(plot);
}
