/// Tables of published numbers.
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

namespace {

// Measured on 16 November 2026 on one core of an Intel Xeon, as peer_method says.
constexpr std::array<PeerRun, 18> kRuns = {{
    PeerRun{"bernoulli", "dlmc-sqrt", 2414.0, 0.3, 1.0},
    PeerRun{"ising-half", "dlmc-sqrt", 6893.0, 0.0299, 0.574},
    PeerRun{"ising-half", "pas-sqrt", 497.4, 0.0253, 0.573},
    PeerRun{"ising-one", "dlmc-sqrt", 6959.0, 0.0441, 0.574},
    PeerRun{"ising-one", "pas-sqrt", 491.2, 0.0367, 0.573},
    PeerRun{"ising-one", "gwg-sqrt", 2678.0, 0.0111, 0.574},
    PeerRun{"potts-4", "dlmc-sqrt", 2851.0, 0.0208, 0.574},
    PeerRun{"potts-4", "pas-sqrt", 1097.0, 0.017, 0.575},
    PeerRun{"potts-8", "dlmc-sqrt", 2029.0, 0.0405, 0.572},
    PeerRun{"potts-8", "pas-sqrt", 990.5, 0.0269, 0.573},
    PeerRun{"fhmm-wide", "dlmc-sqrt", 1662.0, 0.0215, 0.574},
    PeerRun{"fhmm-long", "dlmc-sqrt", 398.3, 0.0265, 0.575},
    PeerRun{"rbm-25", "dlmc-sqrt", 28730.0, 0.00147, 0.781},
    PeerRun{"rbm-25", "pas-sqrt", 1803.0, 0.00764, 0.573},
    PeerRun{"rbm-25", "gwg-sqrt", 3164.0, 0.0131, 0.574},
    PeerRun{"rbm-200", "dlmc-sqrt", 18530.0, 0.00408, 0.58},
    PeerRun{"rbm-200", "pas-sqrt", 1780.0, 0.0131, 0.573},
    PeerRun{"rbm-200", "gwg-sqrt", 3277.0, 0.0176, 0.575},
}};

}  // namespace

std::span<const PeerRun> peer_runs() { return kRuns; }

std::string peer_method() {
  return "Measured with the code at github.com/google-research/discs (of 9 December 2023), with JAX 0.10 on one core "
         "of "
         "an Intel Xeon, on 16 November 2026: 16 chains, parameters of models drawn by that code from the same "
         "laws, RBMs with weights that this program had trained on MNIST. Its steps were compiled twenty at a time, "
         "which spares it the calls from Python of its own loop, and DLMC began to adapt from its own first guess of "
         "the step length instead of 1, which "
         "spares it thousands of steps; half of "
         "10 to 60 seconds of processor time were burn-in and are not counted. Effective sample sizes are those of log "
         "p "
         "of single chains; ours are of all chains together, which is stricter. Runs in which a chain had fewer than "
         "ten effective samples by then are left "
         "out: GWG on Bernoulli, Potts, hidden Markov models and Ising at 0.5, PAS on Bernoulli and hidden Markov "
         "models. Chains that "
         "mix slowly, as on the RBMs, look better the shorter they are watched, so there the published code has the "
         "advantage.";
}

}  // namespace poise::reproduction
