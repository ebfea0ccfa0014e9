/// Models and samplers, after K. Goshvadi et al., DISCS: A Benchmark for Discrete Sampling, NeurIPS 2023.
#include "studies/discs/discs.hpp"

#include <cmath>

#include <fmt/format.h>

namespace poise::reproduction {

namespace {

/// Steps a chain makes in a quick run.
constexpr std::uint64_t kQuickSteps = 300;
constexpr std::uint64_t kQuickSweeps = 20;
constexpr std::uint64_t kQuickRbmSweeps = 4;  // a change of one variable looks at all of them

/// Every third value, the largest included: the rough place of the best.
std::vector<double> thinned(const std::vector<double>& grid) {
  std::vector<double> out;
  for (std::size_t k = (grid.size() - 1) % 3; k < grid.size(); k += 3) out.push_back(grid[k]);
  return out;
}

}  // namespace

std::string DiscsSampler::with_length(double value) const {
  return fmt::format("{}{}{}={}", contestant.sampler, contestant.sampler.find(':') == std::string::npos ? ":" : ",",
                     length, value);
}

std::vector<DiscsCase> discs_cases(Effort effort, std::uint64_t seed) {
  const bool quick = effort == Effort::quick;
  // Quick runs have small models of the same kinds.
  const int side = quick ? 16 : 50;
  const auto ising = [&](double strength) {
    return fmt::format("ising:size={},lambda={},mu={},sigma={},image=disc,boundary=open,seed={}", side, strength,
                       strength, 3 * strength, seed);
  };
  const auto potts = [&](int levels) {
    return fmt::format("potts:size={},levels={},coupling=1,sigma=1.5,boundary=open,seed={}", quick ? 10 : 30, levels,
                       seed);
  };
  const auto fhmm = [&](int length, int chains) {
    return fmt::format("fhmm:length={},chains={},seed={}", length, chains, seed);
  };
  std::vector<DiscsCase> out = {
      {.key = "bernoulli",
       .label = "Bernoulli",
       .model = fmt::format("bernoulli:size={},sigma=0.5,seed={}", quick ? 1000 : 10000, seed),
       .steps = 2000,
       .sweeps = 200},
      {.key = "ising-half", .label = "Ising \u03bb = 0.5", .model = ising(0.5), .steps = 8000, .sweeps = 500},
      {.key = "ising-one", .label = "Ising \u03bb = 1", .model = ising(1), .steps = 8000, .sweeps = 500},
      {.key = "potts-4", .label = "Potts 4", .model = potts(4), .steps = 4000, .sweeps = 500},
      {.key = "potts-8", .label = "Potts 8", .model = potts(8), .steps = 4000, .sweeps = 500},
      {.key = "fhmm-wide",
       .label = quick ? "FHMM 20 x 10" : "FHMM 200 x 50",
       .model = quick ? fhmm(20, 10) : fhmm(200, 50),
       .steps = 6000,
       .sweeps = 60,
       .tried = 375},
      {.key = "fhmm-long",
       .label = quick ? "FHMM 100 x 4" : "FHMM 1000 x 10",
       .model = quick ? fhmm(100, 4) : fhmm(1000, 10),
       .steps = 6000,
       .sweeps = 80,
       .tried = 500},
      {.key = "rbm-25", .label = "RBM 25", .model = "", .hidden = 25, .steps = 24000, .sweeps = 100},
      {.key = "rbm-200", .label = "RBM 200", .model = "", .hidden = 200, .steps = 24000, .sweeps = 50}};
  if (quick) out.back() = {.key = "rbm-200", .label = "RBM 50", .model = "", .hidden = 50, .steps = 0, .sweeps = 0};
  // Quick: three couplings show the way from one side of the critical one to the other.
  const std::vector<double> couplings =
      quick ? std::vector{0.3207, 0.4407, 0.5607} : std::vector{0.2407, 0.3207, 0.4007, 0.4407, 0.4807, 0.5607, 0.6407};
  for (const double coupling : couplings) {
    out.push_back({.key = fmt::format("sweep-{}", std::lround(1e4 * coupling)),
                   .label = fmt::format("\u03bb = {}", coupling),
                   .model = fmt::format("ising:size={},lambda={},boundary=open", side, coupling),
                   .steps = 8000,
                   .sweeps = 500,
                   .coupling = coupling});
  }
  if (!quick) return out;
  for (DiscsCase& which : out) {
    which.steps = kQuickSteps;
    which.tried = 0;
    which.sweeps = which.hidden > 0 ? kQuickRbmSweeps : kQuickSweeps;
  }
  return out;
}

std::vector<DiscsSampler> discs_samplers(Effort effort) {
  const std::vector<double> taus = {0.025, 0.04, 0.065, 0.1, 0.15, 0.22, 0.35, 0.6, 1, 2.5, 8};
  const std::vector<double> alphas = {0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 1, 8};
  const std::vector<double> radii = {4, 8, 16, 32, 64, 128, 256, 512, 1024};
  const auto many = [&](Contestant contestant, const char* length, const std::vector<double>& grid) {
    DiscsSampler out{.contestant = std::move(contestant), .pace = Pace::many, .length = length, .grid = grid};
    if (effort == Effort::quick) out.grid = thinned(grid);
    return out;
  };
  std::vector<DiscsSampler> out = {
      {{.key = "gibbs", .label = "Gibbs", .sampler = "gibbs", .color = "#777777"}, Pace::sweep},
      {{.key = "rbm-gibbs", .label = "RBM's own Gibbs", .sampler = "rbm-gibbs", .color = "#777777", .dash = "4 2"},
       Pace::sweep},
      {{.key = "lb-sqrt", .label = "lb, \u221at", .sampler = "lb:g=sqrt", .color = "#000000", .dash = "4 2"}},
      {{.key = "lb-barker", .label = "lb, t/(1+t)", .sampler = "lb:g=barker", .color = "#0072b2", .dash = "4 2"}},
      {{.key = "lsb", .label = "lsb", .sampler = "lsb", .color = "#56b4e9"}},
      {{.key = "gwg-sqrt", .label = "GWG, \u221at", .sampler = "gwg:g=sqrt", .color = "#000000"}},
      {{.key = "gwg-barker", .label = "GWG, t/(1+t)", .sampler = "gwg:g=barker", .color = "#0072b2"}},
      {{.key = "flsb", .label = "flsb", .sampler = "flsb", .color = "#56b4e9", .dash = "4 2"}},
      many({.key = "pas-sqrt", .label = "PAS, \u221at", .sampler = "pas:g=sqrt", .color = "#009e73"}, "radius", radii),
      many({.key = "pas-barker", .label = "PAS, t/(1+t)", .sampler = "pas:g=barker", .color = "#009e73", .dash = "7 3"},
           "radius", radii),
      many({.key = "dmala-sqrt", .label = "DMALA, \u221at", .sampler = "dmala:g=sqrt", .color = "#cc79a7"}, "alpha",
           alphas),
      many({.key = "dmala-barker",
            .label = "DMALA, t/(1+t)",
            .sampler = "dmala:g=barker",
            .color = "#cc79a7",
            .dash = "7 3"},
           "alpha", alphas),
      many({.key = "dlmc-sqrt", .label = "DLMC, \u221at", .sampler = "dlmc:g=sqrt", .color = "#e69f00"}, "tau", taus),
      many({.key = "dlmc-barker",
            .label = "DLMC, t/(1+t)",
            .sampler = "dlmc:g=barker",
            .color = "#e69f00",
            .dash = "7 3"},
           "tau", taus),
      many({.key = "pas", .label = "pas, self-tuned", .sampler = "pas", .color = "#009e73", .dash = "2 3"}, "", {}),
      many({.key = "dmala", .label = "dmala, self-tuned", .sampler = "dmala", .color = "#cc79a7", .dash = "2 3"}, "",
           {}),
      many({.key = "dlmc", .label = "dlmc, self-tuned", .sampler = "dlmc", .color = "#e69f00", .dash = "2 3"}, "", {}),
      many({.key = "dlsb", .label = "dlsb", .sampler = "dlsb", .color = "#d55e00"}, "", {}),
      {{.key = "auto", .label = "auto", .sampler = "auto", .color = "#9467bd"}, Pace::chosen}};
  for (DiscsSampler& sampler : out) {
    const std::string& key = sampler.contestant.key;
    sampler.in_sweep = key.starts_with("gwg") || key.starts_with("pas-") || key.starts_with("dlmc-") || key == "dlsb";
    sampler.rbm_only = key == "rbm-gibbs";
  }
  return out;
}

}  // namespace poise::reproduction
