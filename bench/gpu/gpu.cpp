/// Speed on a GPU, beside published numbers of others: chains of several sizes of model, as JSON and as a table.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <poise/devices.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/model.hpp>
#include <poise/plot.hpp>
#include "engines/rows.hpp"
#include "models/ising/ising_model.hpp"
#include "models/rbm/rbm.hpp"
#include "networks.hpp"

namespace {

using namespace poise;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

IsingModel lattice(Index side, bool fields) {
  return make_ising(parse_spec(fmt::format("ising:size={0}x{0},lambda=0.4{1}", side, fields ? ",mu=0.5,sigma=1" : "")));
}

/// Every variable has `degree` neighbours: those 1, 2, ... places away on a ring whose order is random.
IsingModel graph(Index variables, Index degree) {
  Rng rng(1, 7);
  std::vector<Index> order(variables);
  for (Index i = 0; i < variables; ++i) order[i] = i;
  for (Index i = variables; i > 1; --i) std::swap(order[i - 1], order[static_cast<Index>(rng.uniform() * i)]);
  IsingModel model;
  model.variables = variables;
  model.name = fmt::format("graph of degree {}", degree);
  for (Index k = 0; k < variables; ++k) {
    model.field.push_back(rng.uniform() - 0.5);
    for (Index away = 1; away <= degree / 2; ++away) {
      model.edges.push_back({order[k], order[(k + away) % variables], 0.5 * (rng.uniform() - 0.5)});
    }
  }
  return model;
}

/// A grid on a torus in so many dimensions, as a graph, with couplings of +1 and -1 and random fields of a size.
IsingModel frustrated_grid(Index side, unsigned dimensions, double field) {
  Rng rng(1, 8);
  IsingModel model;
  model.variables = 1;
  for (unsigned k = 0; k < dimensions; ++k) model.variables *= side;
  model.name = "frustrated grid";
  for (Index i = 0; i < model.variables; ++i) {
    model.field.push_back(field * (2.0 * rng.uniform() - 1.0));
    Index stride = 1;
    for (unsigned k = 0; k < dimensions; ++k, stride *= side) {
      const Index along = i / stride % side;
      const Index next = along + 1 < side ? i + stride : i - along * stride;
      model.edges.push_back({i, next, rng.uniform() < 0.5 ? 1.0 : -1.0});
    }
  }
  return model;
}

/// Weights as large as training makes them.
Model rbm(Index visible, Index hidden) {
  RbmWeights weights;
  weights.visible = visible;
  weights.hidden = hidden;
  Rng rng(5, 3);
  const auto numbers = [&](std::size_t count, double mean, double scale) {
    std::vector<float> out;
    for (std::size_t k = 0; k < count; ++k) out.push_back(static_cast<float>(mean + scale * rng.normal()));
    return out;
  };
  weights.weights = numbers(std::size_t{visible} * hidden, 0.0, 0.1);
  weights.visible_bias = numbers(visible, -1.0, 1.0);
  weights.hidden_bias = numbers(hidden, -0.5, 0.5);
  return rbm_model(fmt::format("RBM {}x{}", visible, hidden), std::make_shared<const Rbm>(std::move(weights)));
}

/// A function such as one that was learned and frozen.
BalancingFunction frozen_function() {
  std::vector<double> phi;
  for (int k = 0; k < BalanceTable::kPoints; ++k) phi.push_back(-0.3 * std::log1p(BalanceTable::grid(k)));
  return BalancingFunction(std::make_shared<const BalanceTable>(phi));
}

/// Chains on a device, all at one random state: the beginning does not matter for speed.
std::unique_ptr<Engine> chains_of(const Model& model, const std::string& sampler, std::size_t chains, Device device) {
  EngineOptions options;
  options.device = device;
  Rng rng(3, 1);
  std::vector<Value> start(model.layout.variables);
  for (Value& level : start) level = rng.uniform() < 0.5 ? 0 : 1;
  if (model.into_support) start = model.into_support(std::move(start), Rng(3, 2));
  options.starts.assign(chains, start);
  options.reference = start;
  const Sampler parsed = parse_sampler(sampler);
  TunableEngine made = make_engine(model, parsed, options);
  if (parsed.learns()) made.tuner->set_function(frozen_function().with_level(parsed.settings.level), 1U << 30);
  return std::move(made.engine);
}

struct Measured {
  double per_second = 0.0;  ///< steps of all chains
  double with_monitors = 0.0;
};

/// Long enough that starting does not count.
Measured measure(Engine& engine, bool counting) {
  constexpr double kSeconds = 0.5;
  const ChainGroup all{0, engine.traits().chains};
  const std::vector<ChainGroup> groups = engine.share_out(1);
  const auto advance = [&](std::uint64_t steps) {
    for (const ChainGroup& group : groups) engine.advance(group, steps);
  };
  if (counting) {
    for (const ChainGroup& group : groups) engine.start_marginals(group, false);
  }
  std::uint64_t steps = 1;
  double took = 0.0;
  advance(2);
  for (;; steps *= 2) {
    const auto begun = Clock::now();
    advance(steps);
    took = seconds_since(begun);
    if (took > kSeconds / 2) break;
  }
  Measured out;
  out.per_second = static_cast<double>(steps) * static_cast<double>(all.count) / took;
  // What a run records of each draw, as many draws at once as it takes.
  const std::size_t at_once = engine.traits().draws_at_once;
  std::vector<double> numbers(at_once * all.count * (2 + engine.traits().statistics));
  std::vector<std::int64_t> distances(at_once * all.count);
  std::vector<Observables> draws(at_once);
  auto room = std::span(numbers);
  const auto take = [&](std::size_t count) {
    const auto taken = room.first(count);
    room = room.subspan(count);
    return taken;
  };
  for (std::size_t k = 0; k < at_once; ++k) {
    draws[k].log_prob = take(all.count);
    draws[k].accepted = take(all.count);
    draws[k].statistics = take(all.count * engine.traits().statistics);
    draws[k].distance = std::span(distances).subspan(k * all.count, all.count);
  }
  const auto record = [&] {
    for (const ChainGroup& group : groups) engine.advance_and_observe(group, 1, draws);
  };
  record();  // graphs of launches are made
  const auto begun = Clock::now();
  std::uint64_t made = 0;
  for (; seconds_since(begun) < kSeconds / 2; made += at_once) record();
  out.with_monitors = static_cast<double>(made) * static_cast<double>(all.count) / seconds_since(begun);
  return out;
}

struct Case {
  std::string name;
  Model model;
  std::string sampler;
  std::size_t chains;
  std::string peer;
};

/// Against the number of chains: updates or steps of all chains a nanosecond.
Series against_chains(const std::string& label, const Model& model, const std::string& sampler, Device device,
                      const std::vector<std::size_t>& chains) {
  Series series{.label = label, .marker_radius = 2.5};
  const double updates = sampler == "gibbs" ? model.layout.variables / 1e9 : 1e-9;
  for (const std::size_t count : chains) {
    const std::unique_ptr<Engine> engine = chains_of(model, sampler, count, device);
    series.x.push_back(static_cast<double>(count));
    series.y.push_back(measure(*engine, false).per_second * updates);
    fmt::print("{:<44} {:>7} {:>12.4g}\n", label, count, series.y.back());
    std::fflush(stdout);
  }
  return series;
}

/// Published numbers of others.
Series others(const std::string& label, const std::vector<double>& chains, const std::vector<double>& rate) {
  return {.label = label, .x = chains, .y = rate, .line_width = 0, .marker_radius = 4};
}

std::string picture(const std::string& device, nlohmann::json& rows) {
  const Model model = ising_model(lattice(50, true));
  Plot gibbs{.title = "Gibbs, lattice 50x50 with fields",
             .x_label = "chains",
             .y_label = "updates a nanosecond",
             .x_log = true,
             .y_log = true};
  gibbs.series = {
      against_chains(device, model, "gibbs", Device::cuda, {1, 8, 32, 128, 512, 1024, 4096, 16384, 33792, 131072}),
      against_chains("one core", model, "gibbs", Device::cpu, {1, 8, 32, 128, 512, 1024, 4096}),
      others("thrml (B200)", {16896}, {23}), others("cuIsing (H100, huge, no fields)", {1}, {900})};
  Plot flips{.title = "Single flips, lattice 50x50 with fields",
             .x_label = "chains",
             .y_label = "steps a nanosecond",
             .x_log = true,
             .y_log = true};
  flips.series = {against_chains(device, model, "lb:g=sqrt", Device::cuda, {1, 10, 100, 1000, 10000, 50000}),
                  against_chains("one core", model, "lb:g=sqrt", Device::cpu, {1, 10, 100}),
                  others("JAX (DISCS), the same GPU", {100, 10000}, {0.00245, 0.0119})};
  const Model digits = rbm(784, 500);
  Plot slopes{.title = "Gibbs With Gradients, RBM 784x500",
              .x_label = "chains",
              .y_label = "steps a nanosecond",
              .x_log = true,
              .y_log = true};
  slopes.series = {against_chains(device, digits, "gwg", Device::cuda, {1, 16, 100, 1000, 10000}),
                   against_chains("one core", digits, "gwg", Device::cpu, {1, 16, 100}),
                   others("PyTorch, the same GPU", {16, 100, 1000, 10000}, {5.0e-6, 3.27e-5, 2.63e-4, 2.5e-3})};
  const std::vector<Plot> plots = {gibbs, flips, slopes};
  for (const Plot& plot : plots) {
    for (const Series& series : plot.series) {
      rows.push_back({{"plot", plot.title}, {"series", series.label}, {"chains", series.x}, {"rate", series.y}});
    }
  }
  return render_row(plots);
}

}  // namespace

int main(int argc, char** argv) {
  std::string why;
  const std::vector<CudaDevice> devices = cuda_devices(why);
  if (devices.empty()) {
    fmt::print(stderr, "error: {}\n", why);
    return 2;
  }
  const std::string path = argc > 1 ? argv[1] : "gpu.json";
  const std::string picture_path = argc > 2 ? argv[2] : "gpu.svg";
  const std::string only =
      argc > 3 ? argv[3]
               : "";  // rows whose names and chains contain it, or with - in front do not; or the picture alone
  const std::string file = argc > 4 ? argv[4] : "";  // a network to be timed as well
  const char* const thrml = "thrml 23 (B200)";
  const char* const cuising = "cuIsing 900 (H100, no fields)";
  nlohmann::json rows = nlohmann::json::array();
  fmt::print("{}\n{:<44} {:>7} {:>12} {:>10}  {}\n", devices.front().name, "", "chains", "updates/ns", "monitors",
             "others");
  const auto is_wanted = [&](const std::string& name, std::size_t chains) {
    const bool excludes = only.starts_with('-');
    return (fmt::format("{} {} ", name, chains).find(only.substr(excludes ? 1 : 0)) != std::string::npos) != excludes;
  };
  const auto run = [&](const Case& one) {
    if (!is_wanted(one.name, one.chains)) return;
    const auto begun = Clock::now();
    const std::unique_ptr<Engine> engine = chains_of(one.model, one.sampler, one.chains, Device::cuda);
    const double made_in = seconds_since(begun);
    const std::optional<TemperingReport> ladders = engine->tempering();
    const double replicas = ladders ? static_cast<double>(ladders->betas.size()) : 1.0;
    const bool sweeps = one.sampler == "gibbs" || ladders;
    // Of ladders of RBMs, sweeps of all replicas, of which a step has four.
    const bool is_rbm = std::holds_alternative<std::shared_ptr<const Rbm>>(one.model.description);
    const double of_replica = is_rbm ? (ladders ? 4.0 : 1.0) : (sweeps ? one.model.layout.variables : 1.0);
    const double updates = replicas * of_replica / 1e9;
    const Measured plain = measure(*engine, false);
    const Measured counted = measure(*engine, true);
    fmt::print("{:<44} {:>7} {:>12.4g} {:>9.2f}x  {}  (counting {:.4g}, monitors {:.2f}x; made in {:.2f} s)\n",
               one.name, one.chains, plain.per_second * updates, plain.per_second / plain.with_monitors, one.peer,
               counted.per_second * updates, counted.per_second / counted.with_monitors, made_in);
    std::fflush(stdout);
    rows.push_back({{"model", one.name},
                    {"sampler", one.sampler},
                    {"chains", one.chains},
                    {"updates_per_ns", plain.per_second * updates},
                    {"updates_per_ns_counting", counted.per_second * updates},
                    {"time_with_monitors_every_sweep", plain.per_second / plain.with_monitors},
                    {"time_with_monitors_every_sweep_counting", counted.per_second / counted.with_monitors},
                    {"others", one.peer}});
  };
  const char* const torch = "PyTorch 0.00143 (10000 chains)";
  const char* const jax = "JAX (DISCS) 0.0119 (10000 chains)";
  for (const char* sampler : {"lb:g=sqrt", "lb:g=barker", "lsb"}) {
    const Model small = ising_model(lattice(30, true));
    run({fmt::format("lattice 30x30, {}", sampler), small, sampler, 1000, ""});
    run({fmt::format("lattice 30x30, {}", sampler), small, sampler, 10000, torch});
    const Model large = ising_model(lattice(50, true));
    run({fmt::format("lattice 50x50, {}", sampler), large, sampler, 100, ""});
    run({fmt::format("lattice 50x50, {}", sampler), large, sampler, 1000, ""});
    run({fmt::format("lattice 50x50, {}", sampler), large, sampler, 10000, jax});
  }
  for (const char* sampler : {"lb:g=sqrt", "lsb"}) {
    const Model sparse = ising_model(graph(1000, 6));
    for (const std::size_t chains : {100, 1000, 10000}) {
      run({fmt::format("graph, degree 6, 10^3 variables, {}", sampler), sparse, sampler, chains, ""});
    }
    const Model larger = ising_model(graph(100000, 6));
    run({fmt::format("graph, degree 6, 10^5 variables, {}", sampler), larger, sampler, 1000, ""});
    run({fmt::format("lattice 128x128, {}", sampler), ising_model(lattice(128, true)), sampler, 1000, ""});
  }
  const Model digits = rbm(784, 500);
  for (const char* sampler : {"gwg", "flsb", "dlmc:tau=0.05"}) {
    run({fmt::format("RBM 784x500, {}", sampler), digits, sampler, 16, "PyTorch 0.000005"});
    run({fmt::format("RBM 784x500, {}", sampler), digits, sampler, 1000, "PyTorch 0.000263"});
    run({fmt::format("RBM 784x500, {}", sampler), digits, sampler, 10000, "PyTorch 0.0025"});
  }
  for (const std::size_t chains : {16, 1000, 10000}) {
    run({"RBM 784x500, rbm-gibbs", digits, "rbm-gibbs", chains, ""});
  }
  for (const std::size_t ladders : {1, 64, 1024}) run({"RBM 784x500, ladders", digits, "temper", ladders, ""});
  const Model fields50 = ising_model(lattice(50, true));
  run({"lattice 50x50, fields", fields50, "gibbs", 33792, thrml});
  run({"lattice 50x50, fields", fields50, "gibbs", 1024, ""});
  run({"lattice 50x50, fields", fields50, "gibbs", 128, ""});
  run({"lattice 50x50, fields", fields50, "gibbs", 4, ""});
  run({"lattice 200x200, fields", ising_model(lattice(200, true)), "gibbs", 4224, cuising});
  for (const Index degree : {4, 6}) {
    const Model small = ising_model(graph(10000, degree));
    run({fmt::format("graph, degree {}, 10^4 variables", degree), small, "gibbs", 16896, thrml});
    run({fmt::format("graph, degree {}, 10^4 variables", degree), small, "gibbs", 1024, ""});
  }
  const char* const large_graph = "graph, degree 6, 10^6 variables";
  if (is_wanted(large_graph, 4224)) run({large_graph, ising_model(graph(1000000, 6)), "gibbs", 4224, ""});
  const auto bn1 = network_model(std::make_shared<const Network>(like_bn1(1)));
  for (const std::size_t chains : {16896, 67584, 1024, 128}) {
    run({"network like BN_1", bn1, "gibbs", chains, ""});
  }
  run({"network like BN_1, three levels", network_model(std::make_shared<const Network>(like_bn1(1, 3))), "gibbs",
       16896, ""});
  run({"networks like BN_1, 100 of them", network_model(std::make_shared<const Network>(like_bn1(100))), "gibbs", 16896,
       ""});
  run({"graph, degree 8, 10^4 variables", ising_model(graph(10000, 8)), "gibbs", 16896, ""});
  for (const std::size_t ladders : {1024, 256}) {
    run({"network like BN_1, ladders", bn1, "temper:collapse=0", ladders, ""});
    run({"cube 8x8x8, couplings +-1, ladders", ising_model(frustrated_grid(8, 3, 0.0)), "temper", ladders, ""});
    run({"grid 30x30, couplings +-1, fields, ladders", ising_model(frustrated_grid(30, 2, 1.0)), "temper", ladders,
         ""});
    run({"lattice 30x30, fields, ladders", ising_model(lattice(30, true)), "temper", ladders, ""});
  }
  if (!file.empty()) {
    for (const std::size_t chains : {16896, 1024}) run({"network " + file, make_model(file), "gibbs", chains, ""});
  }
  for (const std::size_t chains : {1, 2})
    run({"lattice 1000x1000, fields", ising_model(lattice(1000, true)), "gibbs", chains, ""});
  for (const bool fields : {true, false}) {
    const std::string name = fields ? "lattice 8192x8192, fields" : "lattice 8192x8192";
    if (!is_wanted(name, 1)) continue;
    run({name, ising_model(lattice(8192, fields)), "gibbs", 1, fields ? "" : cuising});
  }
  if (only.empty() || only == "picture") std::ofstream(picture_path) << picture(devices.front().name, rows);
  std::ofstream(path) << nlohmann::json{{"device", devices.front().name}, {"rows", rows}}.dump(1) << "\n";
  return 0;
}
