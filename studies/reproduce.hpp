/// The experiments of the LSB paper and of the DISCS benchmark, run anew, and one on variable selection: tables and
/// figures, beside the published numbers where there are some, in one report.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace poise {

enum class Experiment {
  ising,  ///< segmentation of a noisy image, four cases (Table 2, Figures 1, 2, 3, 6)
  rbm,    ///< a restricted Boltzmann machine trained on images (Figures 4, 8, 9, Table 4)
  uai,    ///< two networks of a hundred variables (Table 3, Figures 5, 7, 10, 11)
  discs,  ///< the models of the DISCS benchmark, by samplers that change one variable a step and many
  select  ///< variable selection: inclusion probabilities by every sampler of single changes
};

enum class Protocol {
  published,  ///< the settings behind the published numbers, quirks included; the report names them
  fair        ///< one target for all, a step is a step, burn-in removed, all evaluations counted
};

enum class Effort {
  full,
  quick  ///< a tenth of the chains and steps: shows that it works, not what holds
};

struct ReproduceOptions {
  Experiment experiment = Experiment::ising;
  Protocol protocol = Protocol::fair;
  Effort effort = Effort::full;
  std::uint64_t seed = 1;
  unsigned threads = 0;  ///< 0 is one per core; numbers other than times do not depend on it
  std::string data;  ///< directory with MNIST's files, BN_1.uai and BN_8.uai, or .npz files of regressions; empty: data
                     ///< of our own
  std::string out;   ///< directory for everything that is written
};

/// One of the independent parts of an experiment has ended, or the first is about to begin.
struct ReproduceProgress {
  std::string part;  ///< that has just ended; empty at the beginning
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t reused = 0;  ///< parts that an earlier run had finished
  double seconds = 0.0;    ///< since the beginning
};

struct ReproduceHooks {
  std::function<void(const ReproduceProgress&)> progress;  ///< called by one thread at a time
  const std::atomic<bool>* stop = nullptr;                 ///< set to true to end early; finished parts are kept
};

/// Whether something the paper says is so in the numbers of this run.
struct Verdict {
  enum class Holds { yes, no, open };  ///< open: so in some cases, or too close to tell
  std::string claim;
  Holds holds = Holds::open;
  std::string evidence;
};

struct ReproduceOutcome {
  bool interrupted = false;  ///< there is no report then, only parts
  std::size_t parts = 0;
  std::size_t reused = 0;
  double seconds = 0.0;
  std::string report;  ///< path of the HTML file
  std::vector<Verdict> verdicts;
};

/// Runs an experiment and writes below `out`: `report.html`, a file that needs no other; `results.json`, every number
/// but the times; `times.json`; `verdicts.json`; `tables/*.csv`; `figures/*.svg`; and `parts/*.json`, what a later run
/// need not compute again. A part is taken from there only if version, seed, protocol, effort and data are the same.
/// Throws InputError.
ReproduceOutcome reproduce(const ReproduceOptions& options, const ReproduceHooks& hooks = {});

}  // namespace poise
