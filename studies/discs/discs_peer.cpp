/// Numbers of github.com/google-research/discs, measured with that code.
#include "studies/discs/discs_peer.hpp"

#include <array>

namespace poise::reproduction {

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
