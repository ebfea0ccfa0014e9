/// Pinned draws: the hash of a short run of every sampler on every kind of model, the same for all compilers and
/// instruction sets.
///
/// A change that is meant to change draws (a new start, another order of random numbers) changes rows of the table
/// below. A test that fails prints its row as it should be pasted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "models/ising/ising_model.hpp"
#include "support/selection_cases.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"

namespace poise::pinned_draws_test {

using namespace poise::testing;

struct Pinned {
  const char* model;
  const char* sampler;
  std::uint64_t hash;
};

// clang-format off
const Pinned kPinned[] = {
    {"lattice", "lsb", 0x3b01fb8318f2e1a7},
    {"lattice", "lb", 0xf214780323ddb6ce},
    {"lattice", "lb:g=barker", 0x8d0d59fb7543b11d},
    {"lattice", "lb:g=min", 0xbc2045b59f5ccaef},
    {"lattice", "lb:g=max", 0xea2ef99eb844870c},
    {"lattice", "lsb1", 0x780ad00df3a76377},
    {"lattice", "lsb2", 0xc20c4fd255de6f70},
    {"lattice", "lsb2:net=monotone,blocks=4,units=4", 0x34bfba7fadd068e8},
    {"lattice", "lsb:objective=mi-bound,schedule=paper", 0x5faf40c7c2d7deb1},
    {"lattice", "gwg", 0xf214780323ddb6ce},
    {"lattice", "flsb", 0x3b01fb8318f2e1a7},
    {"lattice", "gibbs", 0x2966ba2e9b35d9c9},
    {"lattice", "gibbs:block=2", 0x3d789a5589b1c00f},
    {"lattice", "hb", 0xb2bf019ae5e2f5f9},
    {"graph", "lsb", 0xea614ae0f0f93a1a},
    {"graph", "lb", 0xc9ea7c13c7e0c547},
    {"graph", "lb:g=barker", 0x7d8bec90c9a04040},
    {"graph", "lb:g=min", 0x9ff8f1b48eda33d1},
    {"graph", "lb:g=max", 0xb516bcb0ebc3451f},
    {"graph", "lsb1", 0xcf19791364c0a82b},
    {"graph", "lsb2", 0xa657b2374ee10e45},
    {"graph", "lsb2:net=monotone,blocks=4,units=4", 0x391f38614c6dfbdd},
    {"graph", "lsb:objective=mi-bound,schedule=paper", 0xaede399b0f5b3914},
    {"graph", "gwg", 0xc9ea7c13c7e0c547},
    {"graph", "flsb", 0xea614ae0f0f93a1a},
    {"graph", "gibbs", 0x16c1afbc82dff090},
    {"graph", "gibbs:block=2", 0x11c240fa1545e3a2},
    {"graph", "hb", 0x4d76ff13d2309da2},
    {"graph", "temper", 0x19c6e2b93f252505},
    {"lattice", "temper", 0x1c66f4e40d803909},
    {"potts", "lsb", 0x4c37232f38aadcb8},
    {"potts", "lb", 0xa9981608df52097e},
    {"potts", "lb:g=barker", 0xe9d39003119a8429},
    {"potts", "lb:g=min", 0x0122fe28927dc3fb},
    {"potts", "lb:g=max", 0x6aee41fda71242cb},
    {"potts", "lsb1", 0x01557a049551b110},
    {"potts", "lsb2", 0x4437a774ab8917f0},
    {"potts", "lsb2:net=monotone,blocks=4,units=4", 0x30f689771a90a9e2},
    {"potts", "lsb:objective=mi-bound,schedule=paper", 0x01cf1031e862cb98},
    {"potts", "gwg", 0xa9981608df52097e},
    {"potts", "flsb", 0x4c37232f38aadcb8},
    {"potts", "gibbs", 0xe1d8e9c488e680f4},
    {"potts", "gibbs:block=2", 0xd152ee3812e035be},
    {"potts", "hb", 0xbbd74a38a921fbb6},
    {"potts", "sw", 0x5f6eab44d4a9e926},
    {"potts", "wolff", 0x66f1103cbf5b03c4},
    {"potts", "wolff:clusters=2", 0x068b23bee30de449},
    {"potts", "temper", 0xc23e8114033810d0},
    {"potts", "temper:collapse=0", 0xf19321f4cc8c898e},
    {"potts", "exact", 0xe160926783ea0aa5},
    {"zeros", "lsb", 0x90db6432078805a9},
    {"zeros", "lb", 0x164c5a5b5f7e2ae4},
    {"zeros", "temper", 0x66f83130ce5b8d92},
    {"zeros", "temper:collapse=0", 0x83e25e712ca66719},
    {"zeros", "lb:g=barker", 0xebe16e1af9fe2ef4},
    {"zeros", "lb:g=min", 0x285124a7c3614a0c},
    {"zeros", "lb:g=max", 0x921dea13c49dbe69},
    {"zeros", "lsb1", 0x9d1706302bff3f7e},
    {"zeros", "lsb2", 0x0dfa20e77310a710},
    {"zeros", "lsb2:net=monotone,blocks=4,units=4", 0x7edb908f4e5a06e2},
    {"zeros", "lsb:objective=mi-bound,schedule=paper", 0x1b19d80056c8ea0e},
    {"zeros", "gwg", 0x164c5a5b5f7e2ae4},
    {"zeros", "flsb", 0x90db6432078805a9},
    {"zeros", "gibbs", 0x79433f79f351b1d5},
    {"zeros", "gibbs:block=2", 0x8a56ad19566317a4},
    {"zeros", "hb", 0xc5ce71f534103213},
    {"zeros", "exact", 0x2c544387355f5990},
    {"rbm", "lsb", 0x40bea721df9e636f},
    {"rbm", "lb", 0x338a4c6ed3b5bd15},
    {"rbm", "lb:g=barker", 0x39b67f2f5e4f2179},
    {"rbm", "lb:g=min", 0xea996c3c6d9c2fd4},
    {"rbm", "lb:g=max", 0xa400bb21d5f3e254},
    {"rbm", "lsb1", 0x2c80a0c425f2df20},
    {"rbm", "lsb2", 0x7016222ae8648877},
    {"rbm", "lsb2:net=monotone,blocks=4,units=4", 0x7a45e36c219bbf68},
    {"rbm", "lsb:objective=mi-bound,schedule=paper", 0xd93ac03906d47e83},
    {"rbm", "gwg", 0xb533af4f4d3a30eb},
    {"rbm", "flsb", 0x6cd618bd872d2626},
    {"rbm", "flsb1", 0x262fbd21e55c1a87},
    {"rbm", "flsb2", 0x44d26b7514f51398},
    {"rbm", "gibbs", 0x05b82884f80f25b0},
    {"rbm", "gibbs:block=2", 0xb56631fe96aec744},
    {"rbm", "hb", 0x16592b737aa781ee},
    {"rbm", "rbm-gibbs", 0x8d4683c86620b7ac},
    {"lattice", "lb:block=3", 0x16f325b12517049f},
    {"lattice", "lsb:block=3", 0x32f85486ab9c6ff7},
    {"zeros", "lb:block=3", 0x9ff0b6840f9a81eb},
    {"zeros", "lsb:block=3", 0x75210ede105889e1},
    {"rbm", "lb:block=3", 0x8d02c723144b0673},
    {"rbm", "lsb:block=3", 0x9d5aca152bcca933},
    {"lattice", "temper:of=gibbs,block=2", 0x6ed8cd68b03c813e},
    {"lattice", "temper:of=lsb", 0xdbb52b55615c617b},
    {"zeros", "temper:of=lb", 0x26ca063b1e16c0b1},
    {"rbm", "temper", 0x73a70177047bc945},
    {"rbm", "temper:of=gwg", 0x7114795870e00f35},
    {"lattice", "dlmc", 0x9cd9b763c878bb5a},
    {"lattice", "dlmc:g=barker,tau=0.5", 0x20264ee3228b4ba7},
    {"lattice", "dlsb", 0xe935e60433045ceb},
    {"lattice", "dmala", 0xacb96d4fc3be7f1d},
    {"lattice", "pas", 0xbf467676d9215333},
    {"graph", "dlmc", 0xb7159f7442466f93},
    {"graph", "dlmc:g=barker,tau=0.5", 0x3edfa6416969cc80},
    {"graph", "dlsb", 0x9da8a2630df8bc72},
    {"graph", "dmala", 0x116efe8ce380ab6e},
    {"graph", "pas", 0x2142d3ec8c593e3c},
    {"potts", "dlmc", 0x88a056c35790939e},
    {"potts", "dlmc:g=barker,tau=0.5", 0x7d57ce0934211673},
    {"potts", "dlsb", 0x28622c28fc780fff},
    {"potts", "dmala", 0xbc0bf85c1c65c159},
    {"potts", "pas", 0x01204246558b8d68},
    {"zeros", "dlmc", 0x1e71ddf2ea41d19a},
    {"zeros", "dlmc:g=barker,tau=0.5", 0x6c49f02425ea7f6a},
    {"zeros", "dlsb", 0x1e71ddf2ea41d19a},
    {"zeros", "dmala", 0xcc155bee131c7565},
    {"zeros", "pas", 0x4722e17720240caf},
    {"rbm", "dlmc", 0xc90f3feb82904c6f},
    {"rbm", "dlmc:g=barker,tau=0.5", 0x9490342aeb3830a9},
    {"rbm", "dlsb", 0xda1c8fb9980b7119},
    {"rbm", "dmala", 0xcfe91f280d73c6b1},
    {"rbm", "pas", 0x8e2a50ee495fff13},
    {"selection", "wtgs", 0x1c5a3eceb62e3c99},
    {"selection", "lb", 0x9eadb63c24136f59},
    {"selection", "gibbs", 0xae05e8c7ca54d523},
    {"selection", "temper", 0xb0f637e6093d3573},
};
// clang-format on

/// FNV-1a of bytes.
class Hash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t k = 0; k < size; ++k) value_ = (value_ ^ bytes[k]) * 0x100000001b3;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

/// A ring with chords: too many neighbours for a lattice, couplings of both signs.
Model chorded_ring() {
  IsingModel ising;
  ising.name = "graph";
  ising.variables = 40;
  Rng rng(21, 0);
  for (Index i = 0; i < ising.variables; ++i) {
    ising.field.push_back(rng.normal());
    ising.edges.push_back({i, (i + 1) % ising.variables, 0.5 * rng.normal()});
    if (i % 3 == 0) ising.edges.push_back({i, (i + 11) % ising.variables, 0.5 * rng.normal()});
  }
  return ising_model(std::move(ising));
}

/// A chain of variables with two to four levels, a tenth of whose entries are zero.
Model network_with_zeros() {
  RandomNetwork recipe;
  for (Index i = 0; i < 24; ++i) recipe.cardinalities.push_back(2 + i % 3);
  for (Index i = 0; i + 2 < 24; ++i) recipe.scopes.push_back({i, i + 1, i + 2});
  recipe.zeros = 0.1;
  return network_model(std::make_shared<const Network>(recipe.make()));
}

Model model_of(const std::string& name) {
  if (name == "lattice") return make_model("ising:size=8,lambda=0.5,mu=1,sigma=2,seed=3");
  if (name == "graph") return chorded_ring();
  if (name == "potts") return make_model("potts:size=6,levels=3,coupling=0.7");
  if (name == "zeros") return network_with_zeros();
  if (name == "selection") return selection_model(make_case({"default", {}}, 30));
  return rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(36, 20, 0.7, 5)));
}

std::uint64_t hash_of(const Pinned& row) {
  RunOptions options;
  options.chains = 3;
  options.warmup = 30;
  options.draws = 20;
  options.seed = 2024;
  const Sampler sampler = parse_sampler(row.sampler);
  const Model model = model_of(row.model);
  // These pins are of a sweep a draw, also where a draw has more steps by default.
  if (sampler.settings.many) options.thin = Run(model, sampler, options).engine().traits().steps_per_sweep;
  const RunResult result = run(model, sampler, options);
  Hash hash;
  const std::vector<std::int8_t> labels = result.trace.x.unpack();
  hash.add(labels.data(), labels.size());
  for (const double log_prob : result.trace.monitors[0]) hash.add(&log_prob, sizeof log_prob);
  return hash.value();
}

std::string name_of(const ::testing::TestParamInfo<Pinned>& info) {
  std::string name = fmt::format("{}_{}", info.param.model, info.param.sampler);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class PinnedDraws : public ::testing::TestWithParam<Pinned> {};

TEST_P(PinnedDraws, AreTheSame) {
  const Pinned& row = GetParam();
  const std::uint64_t found = hash_of(row);
  EXPECT_EQ(found, row.hash) << fmt::format("    {{\"{}\", \"{}\", 0x{:016x}}},", row.model, row.sampler, found);
}

TEST(EverySampler, HasPinnedDraws) {
  for (const NameHelp& row : sampler_help()) {
    const bool is_pinned = std::any_of(std::begin(kPinned), std::end(kPinned), [&](const Pinned& pinned) {
      const std::string name = pinned.sampler;
      return name.substr(0, name.find(':')) == row.name;
    });
    EXPECT_TRUE(is_pinned || row.name == "auto") << row.name << ": add a row with any hash, and paste what it prints";
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, PinnedDraws, ::testing::ValuesIn(kPinned), name_of);

}  // namespace poise::pinned_draws_test
