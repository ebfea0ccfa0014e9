/// The options of marginals, of partition functions and of optimisation, described.
#include "base/options.hpp"

#include <poise/log_partition.hpp>
#include <poise/marginals.hpp>
#include <poise/optimize.hpp>

namespace poise {

namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

void describe_memory(OptionVisitor& visit, double& bytes,
                     const char* help = "GiB that the tables of exact inference may take") {
  double gibibytes = bytes / kGibibyte;
  visit({"memory", "GIB", help}, gibibytes);
  bytes = gibibytes * kGibibyte;
}

void describe_seed_and_threads(OptionVisitor& visit, std::uint64_t& seed, unsigned& threads) {
  visit({"seed", "S", "Seed of all random numbers"}, seed);
  visit({.name = "threads", .value = "T", .help = "Threads", .unset = "0: all cores", .most = 1 << 16}, threads);
}

}  // namespace

void MarginalsOptions::describe(OptionVisitor& visit) {
  visit({.name = "method",
         .value = "HOW",
         .help = "exact, sample, or auto: exact where it fits the memory and the time",
         .choices = {"auto", "exact", "sample"}},
        method);
  visit({.name = "seconds",
         .value = "S",
         .help = "Time for everything, from planning to sampling",
         .unset = "10 where the answer is sampled; exact inference up to 600, or 3600 where it is asked for"},
        seconds);
  visit({"sampler", "NAME", "Sampler; auto is the best per second, by the clock, of a pilot run"}, sampler);
  visit({.name = "chains",
         .value = "N",
         .help = "Chains",
         .unset = "32 with gibbs, which moves them together, up to 1024 on a GPU, 4 with other samplers",
         .least = 1,
         .most = std::uint64_t{1} << 31},
        chains);
  visit({.name = "device",
         .value = "DEVICE",
         .help = "Where chains of gibbs, or of temper where it is asked for, run: cpu, cuda (a GPU; 'poise devices' "
                 "lists them), or auto: a GPU where it is faster",
         .choices = {"cpu", "cuda", "auto"}},
        device);
  visit({"query", "NAMES", "Joint probabilities of a few variables, such as lung,smoke, instead of marginals"}, query);
  describe_memory(visit, memory_limit);
  describe_seed_and_threads(visit, seed, threads);
}

void NetworkLogPartitionOptions::describe(OptionVisitor& visit) {
  visit({.name = "method",
         .value = "HOW",
         .help = "exact, sample, or auto: exact where it fits; of an RBM ais, exact, both, or auto: both where a side "
                 "has at most 25 units, else ais",
         .choices = {"auto", "exact", "sample"}},
        method);
  describe_memory(visit, memory_limit);
  visit({"seconds", "S", "Time for tempering, where exact inference does not fit"}, seconds);
  visit({.name = "chains",
         .value = "N",
         .help = "Ladders; of an RBM annealed chains, 256 by default",
         .least = 1,
         .most = 1'000'000},
        chains);
  describe_seed_and_threads(visit, seed, threads);
}

void LogPartitionOptions::describe(OptionVisitor& visit) {
  static_assert(kMostEnumerated == 25);  // as the help of `method` says
  visit({.name = "method", .value = "HOW", .help = "", .choices = {"auto", "ais", "exact", "both"}}, method);
  visit({.name = "chains", .value = "N", .help = "Annealed chains", .least = 2, .most = 1'000'000}, chains);
  visit({.name = "temperatures",
         .value = "N",
         .help = "Temperatures that each annealed chain of an RBM goes through",
         .least = 1,
         .most = 1'000'000'000},
        temperatures);
  describe_seed_and_threads(visit, seed, threads);
}

void OptimizeOptions::describe(OptionVisitor& visit) {
  visit({.name = "seconds", .value = "S", .help = "Time for the search", .unset = "10 where there is no other limit"},
        seconds);
  visit({.name = "sweeps",
         .value = "N",
         .help = "Sweeps of one chain, in place of a time: the answer then depends on the seed alone",
         .unset = "no limit",
         .least = 1},
        sweeps);
  visit({.name = "solutions",
         .value = "N",
         .help = "Distinct best states to report; those that a symmetry of the model turns into each other are one",
         .least = 1,
         .most = 100'000},
        solutions);
  describe_memory(visit, memory_limit, "GiB that the tables of exact maximisation may take");
  visit({.name = "device",
         .value = "DEVICE",
         .help = "Where the search runs: cpu, or auto, which is the same",
         .choices = {"cpu", "cuda", "auto"}},
        device);
  describe_seed_and_threads(visit, seed, threads);
}

}  // namespace poise
