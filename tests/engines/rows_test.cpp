/// The table of engines: every row is complete, and says truly what the CPU runs.
#include <gtest/gtest.h>

#include "engines/rows.hpp"
#include "support/selection_cases.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/table_model.hpp"

namespace poise::rows_test {

TEST(EngineRows, AreComplete) {
  for (const EngineRow& row : engine_table().rows) {
    EXPECT_TRUE(row.takes_model != nullptr && row.takes_sampler != nullptr && row.seconds != nullptr &&
                row.make != nullptr)
        << row.samplers << ": " << row.models;
    EXPECT_NE(row.device, Device::automatic);
  }
}

TEST(EngineRows, SayWhatTheCpuRuns) {
  const auto runs = [](const Model& model, const char* sampler) {
    const bool said = why_not(Device::cpu, model, parse_sampler(sampler)).empty();
    bool made = true;
    try {
      EngineOptions options;
      options.starts = {std::vector<Value>(model.layout.variables, 0)};
      options.reference = options.starts.front();
      static_cast<void>(make_engine(model, parse_sampler(sampler), options));
    } catch (const InputError&) {
      made = false;
    }
    EXPECT_EQ(said, made) << sampler << " of " << model.name;
    return said;
  };
  const Model ising = make_model("ising:size=4"), potts = make_model("potts:size=4"),
              field = make_model("ising:size=4,mu=0.5,sigma=1"),
              rbm = rbm_model("rbm", std::make_shared<const Rbm>(testing::random_rbm(6, 4, 0.6, 4))),
              own = testing::table_model(testing::small_categorical()),
              selection = selection_model(testing::make_case({"default", {}}, 5));
  for (const Model* model : {&ising, &potts, &field, &rbm, &own, &selection}) {
    for (const char* sampler : {"gibbs", "lb", "lsb", "hb"}) EXPECT_TRUE(runs(*model, sampler));
    EXPECT_EQ(runs(*model, "temper"), model != &own);
    EXPECT_EQ(runs(*model, "exact"), model != &own);
    EXPECT_EQ(runs(*model, "rbm-gibbs"), model == &rbm);
    EXPECT_EQ(runs(*model, "wtgs"), model == &selection);
    EXPECT_EQ(runs(*model, "gwg"), model != &selection);
    EXPECT_EQ(runs(*model, "wolff"), model == &ising || model == &potts);
  }
}

TEST(EngineRows, AGpuIsFasterForManyChainsWhereThereIsOne) {
  std::string why;
  const bool has_gpu = !cuda_devices(why).empty();
  EXPECT_NE(has_gpu, !why.empty());
  EXPECT_EQ(faster_device(make_model("ising:size=50"), parse_sampler("gibbs"), 100000, 1),
            has_gpu ? Device::cuda : Device::cpu);
}

}  // namespace poise::rows_test
