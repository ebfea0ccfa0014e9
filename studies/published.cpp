/// Numbers of E. Sansone, LSB: Local Self-Balancing MCMC in Discrete Spaces, ICML 2022.
#include "studies/published.hpp"

#include <array>
#include <utility>

namespace poise::reproduction {

namespace {

constexpr std::array<std::string_view, 6> kColumns = {"barker", "sqrt", "min", "max", "lsb1", "lsb2"};

struct Cell {
  double mean;
  double sd;
};
using Row = std::array<Cell, kColumns.size()>;

// Table 2, "Quantitative performance for mixing measured by effective sample size on the four cases of the Ising
// model".
constexpr std::size_t kIsingChains = 30;
constexpr std::array<Row, 4> kTable2 = {
    Row{{{2.55, 0.30}, {2.29, 0.23}, {2.43, 0.22}, {1.71, 0.13}, {2.32, 0.27}, {2.34, 0.23}}},
    Row{{{3.30, 0.36}, {2.89, 0.28}, {2.96, 0.30}, {1.68, 0.11}, {2.85, 0.28}, {2.30, 0.29}}},
    Row{{{2.39, 0.98}, {1.83, 0.56}, {2.31, 0.92}, {1.20, 0.10}, {2.01, 0.70}, {2.44, 0.96}}},
    Row{{{2.10, 0.91}, {7.08, 4.07}, {1.74, 0.26}, {1.74, 0.51}, {2.52, 1.11}, {20.11, 15.58}}}};

// Table 3, "... on two Markov networks from UAI competition".
constexpr std::size_t kUaiChains = 5;
constexpr std::array<Row, 2> kTable3 = {
    Row{{{2.90, 0.76}, {3.41, 0.77}, {2.54, 0.32}, {2.70, 0.63}, {3.19, 0.46}, {3.22, 0.38}}},
    Row{{{3.43, 0.75}, {3.92, 0.94}, {3.78, 0.50}, {3.63, 0.67}, {3.52, 0.42}, {3.44, 0.44}}}};

// Table 4, "Summary of the properties of different approaches": target likelihood evaluations per sampling step.
constexpr std::array<std::pair<std::string_view, double>, 7> kTable4 = {{{"gibbs-2", 4},
                                                                         {"gibbs-4", 16},
                                                                         {"gibbs-10", 1024},
                                                                         {"hb-10-1", 20},
                                                                         {"hb-10-2", 180},
                                                                         {"hb-10-3", 960},
                                                                         {"flsb2", 1}}};

std::optional<Estimate> find(std::span<const Row> rows, int number, std::string_view column, std::size_t chains) {
  for (std::size_t k = 0; k < kColumns.size(); ++k) {
    if (kColumns[k] != column) continue;
    const Cell& cell = rows[static_cast<std::size_t>(number - 1)][k];
    return Estimate{cell.mean, cell.sd, chains};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Estimate> published_ising(int number, std::string_view column) {
  return find(kTable2, number, column, kIsingChains);
}

std::optional<Estimate> published_uai(int number, std::string_view column) {
  return find(kTable3, number, column, kUaiChains);
}

std::optional<double> published_rbm_evaluations(std::string_view method) {
  for (const auto& [name, evaluations] : kTable4) {
    if (name == method) return evaluations;
  }
  return std::nullopt;
}

}  // namespace poise::reproduction
