/// Several chunks in a file: what is stored is the same, and a file that lies is refused.
#include <gtest/gtest.h>

#include <array>

#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "store/run_file.hpp"
#include "store/zarr/column.hpp"
#include "store/zarr/reader.hpp"
#include "store/zarr/shard_file.hpp"
#include "store/zarr/writer.hpp"
#include "support/output.hpp"

namespace poise::shards_test {

using namespace poise::testing;

constexpr std::size_t kChains = 2;

VariableLayout spins() {
  VariableLayout layout;
  layout.variables = 6;
  layout.rows = 2;
  layout.columns = 3;
  layout.labels = {-1, 1};
  return layout;
}

DrawBatch make_block(std::size_t first, std::size_t count) {
  DrawBatch block;
  block.count = count;
  block.x = States(spins());
  block.monitors.resize(1);
  for (std::size_t chain = 0; chain < kChains; ++chain) {
    for (std::size_t draw = first; draw < first + count; ++draw) {
      const std::uint64_t mixed = (chain * 7919 + draw) * 0x9e3779b97f4a7c15;
      std::array<std::int8_t, 6> labels{};
      for (std::size_t i = 0; i < 6; ++i) labels[i] = (mixed >> (40 + i) & 1) != 0 ? 1 : -1;
      block.x.append(labels);
      block.monitors[0].push_back(static_cast<double>(chain * 10'000 + draw));
      block.acceptance_rate.push_back(0.5);
      block.n_steps.push_back(static_cast<std::int64_t>(draw));
    }
  }
  return block;
}

void expect_draws(const StoredRun& run, std::size_t draws) {
  const DrawBatch all = make_block(0, draws);
  ASSERT_EQ(run.trace.draws, draws);
  EXPECT_EQ(run.trace.x, all.x);
  EXPECT_EQ(run.trace.monitors, all.monitors);
  EXPECT_EQ(run.trace.n_steps, all.n_steps);
}

class Shards : public OutputTest {
 protected:
  /// Of a run whose files of states are to be `most`.
  static StoreOptions options_of(std::size_t draws, std::size_t most) {
    StoreOptions options{.chains = kChains, .draws = draws, .variables = 6, .monitors = 1, .most_files = most};
    options.threads = 2;
    options.sync_interval = std::chrono::milliseconds(0);
    return options;
  }
  static void write(zarr::Writer& writer, std::size_t first, std::size_t end, std::size_t step) {
    for (std::size_t at = first; at < end; at += step) {
      writer.write(make_block(at, std::min(step, end - at)));
      writer.settle();
    }
  }
  void write_run(const std::string& name, std::size_t draws, std::size_t most, std::size_t step) const {
    zarr::Writer writer(path(name), options_of(draws, most));
    writer.begin(spins(), kChains, {"log_prob"}, "{}");
    write(writer, 0, draws, step);
    writer.finish("{}");
  }
  [[nodiscard]] std::string shard(const std::string& name, std::size_t chain, std::size_t number) const {
    return path(fmt::format("{}/posterior/x/c.{}.{}.0.0", name, chain, number));
  }
  [[nodiscard]] std::string words() const {
    return sentence([&] { static_cast<void>(read_run(path("run.zarr"))); });
  }
};

TEST_F(Shards, AreAsFewAsItTakes) {
  const auto sharded = [](std::size_t chains, std::size_t draws, std::size_t most) {
    StoreOptions known{.chains = chains, .draws = draws};
    known.most_files = most;
    return zarr::states_array(spins(), chains, known).sharded;
  };
  EXPECT_EQ(StoreOptions().most_files, 10'000U);
  EXPECT_EQ(sharded(4, 2500 * 256, 10'000), 0U);
  EXPECT_EQ(sharded(4, 2500 * 256 + 1, 10'000), 2U);
  EXPECT_EQ(sharded(4, 5000 * 256 + 1, 10'000), 3U);
  EXPECT_EQ(sharded(3, 7 * 256, 10), 3U);
  EXPECT_EQ(sharded(20'000, 256, 10'000), 0U);  // one file of each chain, as it has to be
  EXPECT_EQ(sharded(20'000, 700, 10'000), 3U);
  EXPECT_EQ(sharded(4, std::numeric_limits<std::size_t>::max(), 10'000), 4096U);
  EXPECT_EQ(sharded(4, 0, 10'000), 256U);  // the clock ends the run
  EXPECT_EQ(sharded(0, 0, 10'000), 0U);
}

/// Whatever the batches are, and after each commit.
TEST_F(Shards, HoldTheChunksThatFilesWouldHold) {
  for (const std::size_t draws : {700, 768, 1800}) {
    write_run("plain.zarr", draws, 1000, draws);
    for (const std::size_t step : {100, 256, 768, 1800}) {
      SCOPED_TRACE(fmt::format("{} draws by {}", draws, step));
      const std::size_t most = draws > 3 * 256 ? draws > 6 * 256 ? 6 : 4 : 2;
      zarr::Writer writer(path("run.zarr"), options_of(draws, most));
      writer.begin(spins(), kChains, {"log_prob"}, "{}");
      for (std::size_t at = 0; at < draws; at += step) {
        const std::size_t end = std::min(draws, at + step);
        write(writer, at, end, step);
        writer.commit({});
        writer.settle();
        expect_draws(read_run(path("run.zarr")), end);
      }
      writer.finish("{}");
      const std::size_t sharded = zarr::read_root(path("run.zarr")).find("posterior/x")->sharded;
      ASSERT_GE(sharded, 2U);
      for (std::size_t chain = 0; chain < kChains; ++chain) {
        for (std::size_t chunk = 0; chunk * 256 < draws; ++chunk) {
          const zarr::ShardFile file(shard("run.zarr", chain, chunk / sharded), sharded);
          ASSERT_EQ(file.find(chunk % sharded), zarr::ShardFile::Found::there);
          EXPECT_EQ(file.read(chunk % sharded), read_file(shard("plain.zarr", chain, chunk)));
        }
      }
      const auto files = std::distance(fs::directory_iterator(path("run.zarr/posterior/x")), fs::directory_iterator());
      EXPECT_LE(files, static_cast<std::ptrdiff_t>(most) + 1);  // and the metadata
      if (HasFailure()) return;
    }
  }
}

TEST_F(Shards, BeginWithTheBytesThatWereCommitted) {
  zarr::Writer writer(path("run.zarr"), options_of(1800, 6));
  writer.begin(spins(), kChains, {"log_prob"}, "{}");
  std::string before;
  for (std::size_t draws = 0; draws < 768; draws += 64) {
    write(writer, draws, draws + 64, 64);
    const std::string now = read_file(shard("run.zarr", 1, 0));
    const zarr::ShardFile file(shard("run.zarr", 1, 0), 3);
    std::uint64_t full = 0;
    for (std::size_t chunk = 0; chunk < draws / 256; ++chunk) full += file.place(chunk).size;
    ASSERT_LE(full, before.size());
    EXPECT_EQ(now.substr(0, full), before.substr(0, full));
    before = now;
  }
}

TEST_F(Shards, PartsAreReadAlone) {
  write_run("run.zarr", 1800, 6, 500);
  const DrawBatch all = make_block(0, 1800);
  const Trace part = read_run(path("run.zarr"), {.first_draw = 700,
                                                 .most_draws = 300,
                                                 .first_variable = 2,
                                                 .most_variables = 3,
                                                 .first_chain = 1,
                                                 .most_chains = 1})
                         .trace;
  ASSERT_EQ(part.x.size(), 900U);
  for (std::size_t draw = 0; draw < 300; ++draw) {
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(part.x[draw * 3 + i], all.x[(1800 + 700 + draw) * 6 + 2 + i]);
  }
}

TEST_F(Shards, AreCutBackToAState) {
  for (const std::size_t at_state : {40, 256, 700, 768, 800}) {
    for (const std::size_t end : {at_state, std::size_t{1200}}) {
      SCOPED_TRACE(fmt::format("{} of {}", at_state, end));
      fs::remove_all(path("run.zarr"));
      {
        zarr::Writer writer(path("run.zarr"), options_of(1800, 6));
        writer.begin(spins(), kChains, {"log_prob"}, "{}");
        write(writer, 0, at_state, 100);
        writer.save("state");
        writer.settle();
        write(writer, at_state, end, 100);
      }
      std::string note;
      zarr::StoredPoint point = zarr::read_last_state(path("run.zarr"), note);
      {
        zarr::Writer writer(path("run.zarr"), options_of(100'000, 1'000'000));  // which would not need shards
        writer.resume(point.root, at_state);
        writer.begin(spins(), kChains, {"log_prob"}, "{}");
        expect_draws(read_run(path("run.zarr")), at_state);
        write(writer, at_state, at_state + 9, 3);
        expect_draws(read_run(path("run.zarr")), at_state + 9);
        write(writer, at_state + 9, 2000, 100);
        writer.finish("{}");
      }
      expect_draws(read_run(path("run.zarr")), 2000);
      EXPECT_EQ(zarr::read_root(path("run.zarr")).find("posterior/x")->sharded, 3U);
      for (const auto& entry : fs::recursive_directory_iterator(path("run.zarr"))) {
        EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(Shards, WhatIsMissingOrDamagedIsNamed) {
  write_run("run.zarr", 1800, 6, 500);
  const std::string file = shard("run.zarr", 1, 1);
  const std::string whole = read_file(file);
  const zarr::ShardFile read(file, 3);
  const std::vector<zarr::Place> places = {read.place(0), read.place(1), read.place(2)};
  const auto with_index = [&](const std::vector<zarr::Place>& wrong) {
    write_file(file, whole.substr(0, whole.size() - 52) + zarr::index_of(wrong, 3));
  };
  with_index(places);
  expect_draws(read_run(path("run.zarr")), 1800);
  fs::remove(file);
  expect_sentence(words(), {"run.zarr", "draws 768 to 1023 of chain 1 are missing (posterior/x/c.1.1.0.0)"});
  for (const std::size_t cut : {std::size_t{0}, std::size_t{51}, whole.size() - 1}) {
    write_file(file, whole.substr(0, cut));
    expect_sentence(words(), {"draws 768 to 1023 of chain 1 are damaged"});
  }
  with_index({places[0], zarr::kNoPlace, places[2]});
  expect_sentence(words(), {"draws 1024 to 1279 of chain 1 are missing"});
  with_index({places[0], places[0], places[2]});  // which is another whole chunk
  EXPECT_NO_THROW(static_cast<void>(read_run(path("run.zarr"))));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::vector<zarr::Place> lies = {{0, most},
                                         {most, 10},
                                         {most - 5, most - 5},
                                         {whole.size(), 1},
                                         {whole.size() - 51, 0},
                                         {0, whole.size()},
                                         {1, places[1].size},
                                         {most, 0},
                                         {0, 0}};
  for (const zarr::Place& lie : lies) {
    with_index({places[0], places[1], lie});
    expect_sentence(words(), {"draws 1280 to 1535 of chain 1 are damaged"});
  }
}

/// Every byte of a shard, changed.
TEST_F(Shards, DamageAtEveryByteIsNoticed) {
  write_run("run.zarr", 700, 2, 100);
  const std::string file = shard("run.zarr", 0, 0);
  const std::string whole = read_file(file);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    write_file(file, damaged);
    EXPECT_NE(words().find("of chain 0 are damaged"), std::string::npos) << at;
  }
  write_file(file, whole);
  expect_draws(read_run(path("run.zarr")), 700);
}

/// Metadata that says anything of shards, with a checksum that is right.
TEST_F(Shards, RootsThatLieAreReadOrRefused) {
  write_run("run.zarr", 700, 2, 100);
  const std::string grid = R"("chunk_shape":[1,768,2,3])", inner = R"("chunk_shape":[1,256,2,3])";
  const std::string whole = read_file(path("run.zarr/zarr.json"));
  ASSERT_NE(whole.find(grid), std::string::npos);
  ASSERT_NE(whole.find(inner), std::string::npos);
  const std::string key = R"("store_checksum":")";
  int read = 0;
  for (const char* number : {"0", "1", "2", "-1", "255", "257", "512", "768", "1024", "1152921504606846976",
                             "18446744073709551360", "18446744073709551615", "null", "[]", "1e300"}) {
    for (const std::string& from : {grid, inner}) {
      std::string text = whole;
      text.replace(text.find(from), from.size(), fmt::format(R"("chunk_shape":[1,{},2,3])", number));
      const std::size_t at = text.find(key) + key.size();
      text.replace(at, 16, std::string(16, '0'));
      text.replace(at, 16, fmt::format("{:016x}", checksum(text)));
      write_file(path("run.zarr/zarr.json"), text);
      try {
        expect_draws(read_run(path("run.zarr")), 700);
        ++read;
      } catch (const InputError& error) {
        expect_sentence(error.what(), {"run.zarr"});
      }
    }
  }
  EXPECT_EQ(read, 1);  // with the number that is right
}

/// Only chunks that are there are taken over; what they hold was read before.
TEST_F(Shards, AreNotContinuedWhereChunksAreMissing) {
  {
    zarr::Writer writer(path("run.zarr"), options_of(1800, 6));
    writer.begin(spins(), kChains, {"log_prob"}, "{}");
    write(writer, 0, 600, 100);
    writer.save("state");
    writer.settle();
  }
  const std::string file = shard("run.zarr", 1, 0);
  const std::string whole = read_file(file);
  const auto resume = [&] {
    std::string note;
    zarr::StoredPoint point = zarr::read_last_state(path("run.zarr"), note);
    zarr::Writer writer(path("run.zarr"), options_of(1800, 6));
    writer.resume(point.root, 600);
    return sentence([&] { writer.begin(spins(), kChains, {"log_prob"}, "{}"); });
  };
  const zarr::ShardFile read(file, 3);
  fs::remove(file);
  expect_sentence(resume(), {"run.zarr", "draws 0 to 255 of chain 1 are missing"});
  write_file(file, whole.substr(0, whole.size() - 1));
  expect_sentence(resume(), {"run.zarr", "draws 0 to 255 of chain 1 are damaged"});
  const std::vector<zarr::Place> wrong = {read.place(0), read.place(0), read.place(2)};
  write_file(file, whole.substr(0, whole.size() - 52) + zarr::index_of(wrong, 3));
  expect_sentence(resume(), {"run.zarr", "draws 256 to 511 of chain 1 are damaged"});
}

}  // namespace poise::shards_test
