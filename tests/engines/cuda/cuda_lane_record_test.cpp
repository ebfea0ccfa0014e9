/// Draws of chains across the lanes of a GPU, recorded while chains move: where they go, and on a device, where there
/// is one, what is told of them.
#include <gtest/gtest.h>

#include <vector>

#include "engines/cuda/lanes/lane_kernels.hpp"
#include "support/cuda/cuda_lane_models.hpp"
#include "support/cuda/on_gpu.hpp"

namespace poise::cuda_lane_record_test {

using namespace poise::testing;

/// Draws of a launch that begins within one.
TEST(CudaLaneRecordPlace, ADrawEndsAfterSoManySweeps) {
  std::vector<std::uint16_t> states(40);
  for (const std::uint64_t every : {1U, 3U, 7U}) {
    cuda::LaneRecord record{states.data(), 10, every, 0};
    std::size_t draw = 0;
    for (const std::uint32_t sweeps : {1U, 2U, 5U, 1U, 4U}) {
      for (std::uint32_t sweep = 0; sweep < sweeps; ++sweep) {
        const std::uint64_t made = record.made + sweep + 1;
        ASSERT_EQ(record.is_due(sweep), made == (draw + 1) * every);
        if (!record.is_due(sweep)) continue;
        EXPECT_EQ(record.slot(sweep), states.data() + draw * 10);
        ++draw;
      }
      record.made += sweeps;
    }
    EXPECT_EQ(draw, 13 / every);
  }
  EXPECT_FALSE(cuda::LaneRecord{}.is_due(0));
}

TEST(CudaLaneRecordPlace, NumbersOfDrawsDoNotOverlap) {
  constexpr std::uint32_t lanes = 6;
  std::vector<double> memory(3 * cuda::DrawSums::size(lanes) / sizeof(double));
  const cuda::DrawSums sums{reinterpret_cast<unsigned char*>(memory.data()), lanes};
  for (std::size_t draw = 0; draw < 3; ++draw) {
    const auto number = static_cast<std::uint32_t>(10 * draw);
    std::fill_n(sums.units(draw), lanes, number);
    std::fill_n(sums.different(draw), lanes, number + 1);
    std::fill_n(sums.at_level(draw), lanes, number + 2);
  }
  for (std::size_t draw = 0; draw < 3; ++draw) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      EXPECT_EQ(sums.units(draw)[lane], 10.0 * static_cast<double>(draw));
      EXPECT_EQ(sums.different(draw)[lane], 10 * draw + 1);
      EXPECT_EQ(sums.at_level(draw)[lane], 10 * draw + 2);
    }
  }
}

class CudaLaneRecord : public OnGpu {};

struct RecordedSums {
  std::vector<double> units;
  std::vector<std::uint32_t> different;
  std::vector<std::uint32_t> at_level;
  bool operator==(const RecordedSums&) const = default;
};
RecordedSums copy_of(const CudaLaneSums& sums) {
  return {{sums.units.begin(), sums.units.end()},
          {sums.different.begin(), sums.different.end()},
          {sums.at_level.begin(), sums.at_level.end()}};
}

/// Draws that are recorded while chains move, against those of chains that stop for each of them.
template <class T>
void expect_recorded(const std::shared_ptr<const T>& target, ChainGroup group, std::uint64_t sweeps) {
  constexpr std::size_t draws = 150;  // more than a batch, and not a multiple of it
  const auto model = on_device(target);
  Rng rng(4, 4);
  std::vector<std::vector<Value>> starts;
  for (std::size_t c = 0; c < group.count; ++c) starts.push_back(possible_state(*target, rng));
  for (const auto placement : {CudaLaneTile::Placement::resident, CudaLaneTile::Placement::spread}) {
    SCOPED_TRACE(static_cast<int>(placement));
    CudaLaneTile recorded(model, group, 11, 3, placement), stopped(model, group, 11, 3, placement);
    for (CudaLaneTile* block : {&recorded, &stopped}) {
      for (std::size_t c = 0; c < group.count; ++c) block->set_levels(group.first + c, starts[c]);
      block->reset_counts();
    }
    std::vector<RecordedSums> found(draws);
    recorded.sweep_and_sum(sweeps, draws,
                           [&](std::size_t draw, const CudaLaneSums& sums) { found[draw] = copy_of(sums); });
    for (std::size_t draw = 0; draw < draws; ++draw) {
      stopped.sweep(sweeps);
      ASSERT_EQ(found[draw], copy_of(stopped.sums())) << "draw " << draw;
    }
    std::vector<Value> here(group.count * target->num_variables()), there(here.size());
    recorded.get_all_levels(here);
    stopped.get_all_levels(there);
    EXPECT_EQ(here, there);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      EXPECT_EQ(recorded.get_totals(c).counts, stopped.get_totals(c).counts);
    }
  }
}

TEST_F(CudaLaneRecord, DrawsAreRecordedWhileChainsMove) {
  for (const std::size_t chains : {1U, 6U, 67U}) {
    SCOPED_TRACE(chains);
    for (const std::uint64_t sweeps : {1U, 4U}) {
      expect_recorded(target_of(chain_network(20, 2, 0.0, 1)), {0, chains}, sweeps);
      expect_recorded(target_of(chain_network(20, 3, 0.1, 2)), {1, chains}, sweeps);
      expect_recorded(target_of(mixed_network_with_evidence(0.2, 4)), {0, chains}, sweeps);
      expect_recorded(full_graph(12, 0.5, 6), {0, chains}, sweeps);
    }
  }
}

/// Batches of 64 draws and of fewer.
TEST_F(CudaLaneRecord, RecordedNumbersAreThoseOfTheCpu) {
  for (const Model& model : models()) {
    for (const std::size_t chains : {3U, 20000U}) {
      SCOPED_TRACE(model.name + ", " + std::to_string(chains));
      RunOptions cpu = short_run_on(Device::cpu, chains), cuda = short_run_on(Device::cuda, chains);
      cpu.keep = cuda.keep = Keep::monitors;
      cpu.draws = cuda.draws = chains > 1000 ? 45 : 301;
      expect_same(run(model, parse_sampler("gibbs"), cpu), run(model, parse_sampler("gibbs"), cuda));
    }
  }
}

}  // namespace poise::cuda_lane_record_test
