/// Networks from files and from chance.
#include "studies/uai/uai.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>
#include "base/file.hpp"

namespace poise::reproduction {

namespace {

UaiProblem make_problem(std::string name, Network network, const Evidence& evidence, nlohmann::json fingerprint) {
  network.name = name;
  UaiProblem out;
  out.name = std::move(name);
  out.without_evidence = std::make_shared<const Network>(network);
  out.network = std::make_shared<const Network>(condition(std::move(network), evidence));
  out.fingerprint = std::move(fingerprint);
  return out;
}

/// How many variables have 0, 1, 2, ... parents, and how many are observed.
struct Shape {
  const char* name;
  std::array<int, 8> with_parents;
  std::size_t observed;
};
constexpr std::array<Shape, 2> kShapes = {
    {{"generated 1", {14, 27, 27, 18, 8, 3, 3, 0}, 18}, {"generated 2", {10, 30, 32, 14, 6, 4, 2, 2}, 9}}};
/// Parents come from among so many variables before a child, which keeps exact inference cheap.
constexpr std::size_t kReach = 12;

template <class T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(rng.uniform() * static_cast<double>(i))]);
  }
}

double draw_probability(Rng& rng) {
  if (rng.uniform() < 0.2) return 0.1 + 0.8 * rng.uniform();
  const double small = std::pow(10.0, -3.0 + 2.0 * rng.uniform());
  return rng.uniform() < 0.5 ? small : 1.0 - small;
}

UaiProblem generate(const Shape& shape, std::uint64_t seed, std::uint64_t stream) {
  Rng rng = make_rng(seed, Stream::experiment_network, stream);
  std::vector<std::size_t> parents;
  for (std::size_t k = 0; k < shape.with_parents.size(); ++k) {
    parents.insert(parents.end(), static_cast<std::size_t>(shape.with_parents[k]), k);
  }
  shuffle(parents, rng);
  std::stable_sort(parents.begin(), parents.begin() + kReach);  // the first have few variables before them
  Network network;
  network.cardinalities.assign(parents.size(), 2);
  std::vector<Index> drawn(parents.size());
  for (Index child = 0; child < parents.size(); ++child) {
    std::vector<Index> before;
    for (Index i = child > kReach ? static_cast<Index>(child - kReach) : 0; i < child; ++i) before.push_back(i);
    shuffle(before, rng);
    before.resize(std::min<std::size_t>(parents[child], before.size()));
    std::vector<double> table;
    std::size_t row = 0;
    for (const Index parent : before) row = 2 * row + drawn[parent];
    for (std::size_t k = 0; k < std::size_t{1} << before.size(); ++k) {
      const double probability = draw_probability(rng);
      table.insert(table.end(), {1.0 - probability, probability});
    }
    drawn[child] = rng.uniform() < table[2 * row + 1] ? 1 : 0;
    before.push_back(child);
    network.add_factor(before, table);
  }
  std::vector<Index> order(parents.size());
  for (Index i = 0; i < order.size(); ++i) order[i] = i;
  shuffle(order, rng);
  Evidence evidence;
  for (std::size_t k = 0; k < shape.observed; ++k) evidence.push_back({order[k], drawn[order[k]]});
  return make_problem(shape.name, std::move(network), evidence, fmt::format("{}, seed {}", shape.name, seed));
}

UaiProblem read_problem(const std::string& directory, const char* name) {
  const std::string path = (std::filesystem::path(directory) / fmt::format("{}.uai", name)).string();
  const std::string evidence_path = path + ".evid";
  for (const std::string& file : {path, evidence_path}) {
    if (!std::filesystem::is_regular_file(file)) {
      throw InputError(
          fmt::format("--data: there is no file {}, expected a directory with BN_1.uai, BN_1.uai.evid, "
                      "BN_8.uai and BN_8.uai.evid",
                      file));
    }
  }
  Network network = read_network(path);
  const Evidence evidence = read_evidence(evidence_path, network);
  return make_problem(
      name, std::move(network), evidence,
      {{"name", name}, {"network", checksum(read_file(path))}, {"evidence", checksum(read_file(evidence_path))}});
}

}  // namespace

std::array<UaiProblem, 2> read_uai_problems(const std::string& directory) {
  return {read_problem(directory, "BN_1"), read_problem(directory, "BN_8")};
}

std::array<UaiProblem, 2> generate_uai_problems(std::uint64_t seed) {
  return {generate(kShapes[0], seed, 0), generate(kShapes[1], seed, 1)};
}

}  // namespace poise::reproduction
