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
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"

namespace poise {
namespace {

using namespace poise::testing;

struct Pinned {
  const char* model;
  const char* sampler;
  std::uint64_t hash;
};

// clang-format off
const Pinned kPinned[] = {
    {"lattice", "lsb", 0x85878510790d5d04},
    {"lattice", "lb", 0xd18f1106d093d0d5},
    {"lattice", "lb:g=barker", 0x81da9f442a944a52},
    {"lattice", "lb:g=min", 0x2b9f6217db13d979},
    {"lattice", "lb:g=max", 0xdfc9a36d75610ce2},
    {"lattice", "lsb1", 0x1d41a8c68fa9c0fe},
    {"lattice", "lsb2", 0x5ce841446c4add63},
    {"lattice", "lsb2:net=monotone,blocks=4,units=4", 0xa6a3d30a10ee1d13},
    {"lattice", "lsb:objective=mi-bound,schedule=paper", 0x8e899a49e5d6c1ae},
    {"lattice", "gwg", 0xd18f1106d093d0d5},
    {"lattice", "flsb", 0x85878510790d5d04},
    {"lattice", "gibbs", 0x2966ba2e9b35d9c9},
    {"lattice", "gibbs:block=2", 0x3d789a5589b1c00f},
    {"lattice", "hb", 0xb2bf019ae5e2f5f9},
    {"graph", "lsb", 0x1231e5ecdc03e001},
    {"graph", "lb", 0xe515434dca2d84a2},
    {"graph", "lb:g=barker", 0x5722b2fe09960838},
    {"graph", "lb:g=min", 0xcdd5fe400ce09717},
    {"graph", "lb:g=max", 0x5bf11996f68257cc},
    {"graph", "lsb1", 0xb49c6050d494b10d},
    {"graph", "lsb2", 0xf562abe000e227a8},
    {"graph", "lsb2:net=monotone,blocks=4,units=4", 0x1a86bf2d08ce6915},
    {"graph", "lsb:objective=mi-bound,schedule=paper", 0xd3c3c7ae8805a10e},
    {"graph", "gwg", 0xe515434dca2d84a2},
    {"graph", "flsb", 0x1231e5ecdc03e001},
    {"graph", "gibbs", 0x16c1afbc82dff090},
    {"graph", "gibbs:block=2", 0x11c240fa1545e3a2},
    {"graph", "hb", 0x4d76ff13d2309da2},
    {"graph", "temper", 0xadfa9216419e9d8a},
    {"lattice", "temper", 0x1734b319ce2f36ca},
    {"potts", "lsb", 0xa761bb1b29aed9b3},
    {"potts", "lb", 0xf243c2d2bf60932f},
    {"potts", "lb:g=barker", 0x82ee42d12de0c345},
    {"potts", "lb:g=min", 0x1b078f4b65ba8782},
    {"potts", "lb:g=max", 0x7c1ae28f4cf4f021},
    {"potts", "lsb1", 0x0a6a5e83a9be21c5},
    {"potts", "lsb2", 0x4a0b42b18b82f518},
    {"potts", "lsb2:net=monotone,blocks=4,units=4", 0x1bf3161256287329},
    {"potts", "lsb:objective=mi-bound,schedule=paper", 0x0b112fa200efd2b0},
    {"potts", "gwg", 0xf243c2d2bf60932f},
    {"potts", "flsb", 0xa761bb1b29aed9b3},
    {"potts", "gibbs", 0xe1d8e9c488e680f4},
    {"potts", "gibbs:block=2", 0xd152ee3812e035be},
    {"potts", "hb", 0xbbd74a38a921fbb6},
    {"potts", "sw", 0x5f6eab44d4a9e926},
    {"potts", "wolff", 0x563fa5a5e2b94bbe},
    {"potts", "wolff:clusters=2", 0xcf4c8490e5ca946f},
    {"potts", "temper", 0xfcbdbe58a2463d48},
    {"potts", "temper:collapse=0", 0x21b196afdeb8b027},
    {"potts", "exact", 0xe160926783ea0aa5},
    {"zeros", "lsb", 0x2fd1a02d04429c69},
    {"zeros", "lb", 0x54f8a8fc42cd29a7},
    {"zeros", "temper", 0x66f83130ce5b8d92},
    {"zeros", "temper:collapse=0", 0xcb2c9d347f9a3b77},
    {"zeros", "lb:g=barker", 0x7dac8b5ce3079535},
    {"zeros", "lb:g=min", 0xbc625ee86c203935},
    {"zeros", "lb:g=max", 0x4435f20c6c11ba99},
    {"zeros", "lsb1", 0x594d5f0465b7c070},
    {"zeros", "lsb2", 0xcb5ef734ac96fcc9},
    {"zeros", "lsb2:net=monotone,blocks=4,units=4", 0x829bf22633f6f6d6},
    {"zeros", "lsb:objective=mi-bound,schedule=paper", 0x1afe43744a8433a9},
    {"zeros", "gwg", 0x54f8a8fc42cd29a7},
    {"zeros", "flsb", 0x2fd1a02d04429c69},
    {"zeros", "gibbs", 0x79433f79f351b1d5},
    {"zeros", "gibbs:block=2", 0x8a56ad19566317a4},
    {"zeros", "hb", 0xc5ce71f534103213},
    {"zeros", "exact", 0x2c544387355f5990},
    {"rbm", "lsb", 0xcea743c5ff1cd696},
    {"rbm", "lb", 0x0d1d2b196f69cc41},
    {"rbm", "lb:g=barker", 0x55b2fff2b1da17a4},
    {"rbm", "lb:g=min", 0x936304637ef73b8e},
    {"rbm", "lb:g=max", 0x63d8c3ef9b8240a5},
    {"rbm", "lsb1", 0x7ba20425369cb4e1},
    {"rbm", "lsb2", 0x0c317559ea975634},
    {"rbm", "lsb2:net=monotone,blocks=4,units=4", 0xcc9e4d28a1672abc},
    {"rbm", "lsb:objective=mi-bound,schedule=paper", 0x3ffb343364156ed0},
    {"rbm", "gwg", 0x83dcbc46481d0591},
    {"rbm", "flsb", 0xa9bc5679319fc4f1},
    {"rbm", "flsb1", 0x00e290450305bc5c},
    {"rbm", "flsb2", 0x632e18e88eb2193c},
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
    {"lattice", "temper:of=gibbs,block=2", 0x04857489d09e0cfc},
    {"lattice", "temper:of=lsb", 0xbf498ace6d5e229c},
    {"zeros", "temper:of=lb", 0xe250ae0b7de90d3b},
    {"rbm", "temper", 0x73a70177047bc945},
    {"rbm", "temper:of=gwg", 0x824fb53761c16788},
    {"lattice", "dlmc", 0x0ca30e96fe37e2e6},
    {"lattice", "dlmc:g=barker,tau=0.5", 0x8cdaff90d2994a32},
    {"lattice", "dlsb", 0x30b9b6b52e6ca346},
    {"lattice", "dmala", 0xb64582fc88002a62},
    {"lattice", "pas", 0x7ff4b9fb4f4af687},
    {"graph", "dlmc", 0x0be23daab2471228},
    {"graph", "dlmc:g=barker,tau=0.5", 0xd34e02bd651512a1},
    {"graph", "dlsb", 0xbeab1c4245ca92c2},
    {"graph", "dmala", 0x495c810e54949c00},
    {"graph", "pas", 0x4e739086decaf87a},
    {"potts", "dlmc", 0xb7f79b56acbe4b05},
    {"potts", "dlmc:g=barker,tau=0.5", 0xe7c7e743cbaaeec6},
    {"potts", "dlsb", 0x6b7785fd0f5ab952},
    {"potts", "dmala", 0xa5ee7461a17515ab},
    {"potts", "pas", 0xc25817f2503fa8cc},
    {"zeros", "dlmc", 0x06469bd45eb504ae},
    {"zeros", "dlmc:g=barker,tau=0.5", 0xaf746b514b1d73b3},
    {"zeros", "dlsb", 0xee055171b8470e71},
    {"zeros", "dmala", 0x057cd407bda3c088},
    {"zeros", "pas", 0xfa82f2809e345c80},
    {"rbm", "dlmc", 0x57ee864696c08830},
    {"rbm", "dlmc:g=barker,tau=0.5", 0x388501df1052446d},
    {"rbm", "dlsb", 0x94f39164601c99f3},
    {"rbm", "dmala", 0x7104f347909277ff},
    {"rbm", "pas", 0xa8940df6ff356b78},
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
  return rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(36, 20, 0.7, 5)));
}

std::uint64_t hash_of(const Pinned& row) {
  RunOptions options;
  options.chains = 3;
  options.warmup = 30;
  options.draws = 20;
  options.seed = 2024;
  const RunResult result = run(model_of(row.model), parse_sampler(row.sampler), options);
  Hash hash;
  hash.add(result.trace.x.data(), result.trace.x.size());
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

}  // namespace
}  // namespace poise
