/// The rows of the CUDA back end: which takes what, what is refused and how, and that the docs have the table.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engines/rows.hpp"
#include "support/small_rbms.hpp"

namespace poise::cuda_rows_test {

/// The samplers of the row that makes a sampler's chains on a GPU, and its models; empty where none does.
std::string row_of(const Model& model, const std::string& sampler) {
  for (const EngineRow& row : engine_table().rows) {
    if (row.device != Device::cuda || !row.runs(model, parse_sampler(sampler))) continue;
    return std::string(row.samplers) + ": " + row.models;
  }
  return {};
}

TEST(CudaRows, EachSamplerHasItsRow) {
  const Model small = make_model("ising:size=30"), large = make_model("ising:size=30x65"),
              potts = make_model("potts:size=6,levels=3"),
              rbm = rbm_model("rbm", std::make_shared<const Rbm>(testing::random_rbm(12, 5, 0.6, 4)));
  EXPECT_NE(row_of(small, "gibbs").find("lattices of any size"), std::string::npos);
  EXPECT_NE(row_of(potts, "gibbs").find("networks"), std::string::npos);
  EXPECT_NE(row_of(small, "lsb").find("at most 64 rows"), std::string::npos);
  EXPECT_NE(row_of(large, "lb").find("larger lattices"), std::string::npos);
  EXPECT_NE(row_of(potts, "temper").find("as for `gibbs`"), std::string::npos);
  EXPECT_NE(row_of(small, "temper:of=lb").find("`temper` of `lb` and kin"), std::string::npos);
  EXPECT_NE(row_of(rbm, "rbm-gibbs").find("either layer"), std::string::npos);
  EXPECT_NE(row_of(rbm, "temper").find("the same RBMs"), std::string::npos);
  EXPECT_NE(row_of(rbm, "dmala").find("visible units"), std::string::npos);
  for (const char* sampler : {"sw", "gwg", "gibbs:block=2", "lb:block=4", "hb", "temper:of=wolff"}) {
    EXPECT_EQ(row_of(small, sampler), "") << sampler;
  }
  EXPECT_EQ(row_of(potts, "lb"), "");
  EXPECT_EQ(row_of(rbm, "gibbs"), "");
  EXPECT_EQ(row_of(rbm, "temper:of=gwg"), "");
}

TEST(CudaRows, ARefusalNamesWhatRunsThere) {
  const std::string why = why_not(Device::cuda, make_model("potts:size=6"), parse_sampler("exact"));
  EXPECT_NE(why.find("'gibbs' of single variables"), std::string::npos) << why;
  EXPECT_EQ(why.find("rbm"), std::string::npos) << why;
}

/// Launches take a GPU the same time however few chains there are, so the CPU wins below so many.
TEST(CudaRows, SpeedsCross) {
  const Model model = make_model("ising:size=10");
  const auto seconds = [&](Device device, const std::string& sampler, double chains) {
    for (const EngineRow& row : engine_table().rows) {
      const Sampler parsed = parse_sampler(sampler);
      if (row.device == device && row.runs(model, parsed)) return row.seconds(model, parsed, {chains, 2.0});
    }
    return -1.0;
  };
  EXPECT_LT(seconds(Device::cpu, "gibbs", 310), seconds(Device::cuda, "gibbs", 310));
  EXPECT_GT(seconds(Device::cpu, "gibbs", 330), seconds(Device::cuda, "gibbs", 330));
  EXPECT_LT(seconds(Device::cpu, "lb", 13), seconds(Device::cuda, "lb", 13));
  EXPECT_GT(seconds(Device::cpu, "lb", 15), seconds(Device::cuda, "lb", 15));
  EXPECT_LT(seconds(Device::cpu, "temper", 14), seconds(Device::cuda, "temper", 14));
  EXPECT_GT(seconds(Device::cpu, "temper", 16), seconds(Device::cuda, "temper", 16));
  EXPECT_LT(seconds(Device::cpu, "temper:of=lb", 1e9), seconds(Device::cuda, "temper:of=lb", 1e9));
}

TEST(CudaRows, TheDocsHaveTheTable) {
  std::ifstream file(std::filesystem::path(POISE_TEST_DATA) / ".." / ".." / "docs" / "gpu.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string table = describe(engine_table().rows);
  EXPECT_NE(text.str().find(table), std::string::npos) << "docs/gpu.md should have\n" << table;
}

}  // namespace poise::cuda_rows_test
