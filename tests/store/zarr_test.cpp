/// The Zarr store: frames, round trips, commits, damage.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <zstd.h>

#include <poise/report.hpp>
#include "store/label_bits.hpp"
#include "store/run_file.hpp"
#include "store/zarr/codec.hpp"
#include "store/zarr/crc32c.hpp"
#include "store/zarr/reader.hpp"
#include "store/zarr/writer.hpp"
#include "support/output.hpp"

namespace poise::zarr_test {

using namespace poise::testing;

class ZarrStore : public OutputTest {};

constexpr std::size_t kChains = 3;
const std::vector<std::string> kMonitors{"log_prob", "magnetization", "a/b"};

VariableLayout spins() {
  VariableLayout layout;
  layout.variables = 12;
  layout.rows = 3;
  layout.columns = 4;
  layout.labels = {-1, 1};
  return layout;
}

VariableLayout network() {
  VariableLayout layout;
  layout.variables = 4;
  layout.names = {"smokes", "a b", "Ünï/é", "x[3]"};
  layout.cardinalities = {2, 3, 2, 120};
  return layout;
}

VariableLayout bits(Index variables) {
  VariableLayout layout;
  layout.variables = variables;
  return layout;
}

/// Values that tell where they belong: draw numbers `first` and up of every chain.
DrawBatch make_block(const VariableLayout& layout, std::size_t first, std::size_t count) {
  DrawBatch block;
  block.count = count;
  block.monitors.resize(kMonitors.size());
  block.x = States(layout);
  std::vector<std::int8_t> labels(layout.variables);
  for (std::size_t chain = 0; chain < kChains; ++chain) {
    for (std::size_t draw = first; draw < first + count; ++draw) {
      for (Index i = 0; i < layout.variables; ++i) {
        const std::uint64_t mixed = (chain * 7919 + draw) * 0x9e3779b97f4a7c15 + i * 0xbf58476d1ce4e5b9;
        labels[i] = layout.label(static_cast<Value>((mixed ^ mixed >> 31U) % layout.cardinality(i)));
      }
      block.x.append(labels);
      for (std::size_t k = 0; k < kMonitors.size(); ++k) {
        block.monitors[k].push_back(std::sin(static_cast<double>(chain * 1000 + draw * (k + 1))));
      }
      block.acceptance_rate.push_back(1.0 / static_cast<double>(1 + draw));
      block.n_steps.push_back(static_cast<std::int64_t>(chain * 100 + draw));
    }
  }
  return block;
}

void expect_run(const StoredRun& run, const VariableLayout& layout, std::size_t draws) {
  const DrawBatch all = make_block(layout, 0, draws);
  EXPECT_EQ(run.trace.chains, kChains);
  ASSERT_EQ(run.trace.draws, draws);
  EXPECT_EQ(run.trace.monitor_names, kMonitors);
  EXPECT_EQ(run.trace.monitors, all.monitors);
  EXPECT_EQ(run.trace.acceptance_rate, all.acceptance_rate);
  EXPECT_EQ(run.trace.n_steps, all.n_steps);
  EXPECT_EQ(run.trace.x, all.x);
  EXPECT_EQ(run.layout.rows, layout.rows);
  EXPECT_EQ(run.layout.labels, layout.labels);
  EXPECT_EQ(run.layout.names, layout.names);
  EXPECT_EQ(run.layout.cardinalities, layout.cardinalities);
}

StoreOptions at_once() {
  StoreOptions options;
  options.threads = 2;
  options.sync_interval = std::chrono::milliseconds(0);
  return options;
}

void write_draws(zarr::Writer& writer, const VariableLayout& layout, std::size_t first, std::size_t end,
                 std::size_t step) {
  for (std::size_t at = first; at < end; at += step) {
    writer.write(make_block(layout, at, std::min(step, end - at)));
    writer.settle();
  }
}

void write_run(const std::string& path, const VariableLayout& layout, std::size_t draws, std::size_t step) {
  zarr::Writer writer(path, {.threads = 2});
  writer.begin(layout, kChains, kMonitors, R"({"model":"ising:size=3","text":"Ω"})");
  for (std::size_t at = 0; at < draws; at += step) writer.write(make_block(layout, at, std::min(step, draws - at)));
  writer.finish(R"({"updates":10})");
}

std::string unpacked(const std::string& frame) {
  std::string bytes(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
  const std::size_t size = ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size());
  EXPECT_EQ(size, bytes.size()) << (ZSTD_isError(size) != 0 ? ZSTD_getErrorName(size) : "");
  return bytes;
}

TEST(LabelBits, AreThoseOfTheLabels) {
  Rng rng(4, 4);
  std::vector<std::int8_t> labels(300);
  for (std::int8_t& label : labels) label = rng.uniform() < 0.5 ? -1 : 1;
  for (std::size_t size = 0; size < labels.size(); ++size) {
    std::vector<std::uint8_t> bits((size + 7) / 8, 0xff);
    ASSERT_TRUE(pack_labels(std::span(labels).first(size), -1, 1, bits.data()));
    for (std::size_t k = 0; k < 8 * bits.size(); ++k) {
      ASSERT_EQ(bits[k / 8] >> k % 8 & 1, k < size && labels[k] == 1 ? 1 : 0) << k << " of " << size;
    }
    std::vector<std::int8_t> back(size);
    unpack_labels(bits.data(), -1, 1, back);
    ASSERT_TRUE(std::equal(back.begin(), back.end(), labels.begin())) << size;
    if (size == 0) continue;
    std::vector<std::int8_t> strange(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(size));
    strange[size / 2] = 3;
    ASSERT_FALSE(pack_labels(strange, -1, 1, bits.data())) << size;
  }
}

TEST(ZarrCodec, SumsAreThoseOfTheStandard) {
  EXPECT_EQ(zarr::crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(zarr::crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(zarr::crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(zarr::crc32c(""), 0U);
}

TEST(ZarrCodec, FramesOfLabelsAreUnpackedByZstd) {
  std::mt19937_64 random(1);
  for (const std::size_t variables : {1, 3, 7, 8, 9, 31, 64, 100, 333, 4096, 10'001}) {
    for (const std::size_t rows : {0, 1, 2, 7, 37, 256}) {
      for (const std::int8_t low : {std::int8_t{0}, std::int8_t{-1}}) {
        for (const std::size_t padding : {std::size_t{0}, std::size_t{5}, 300'000 / variables * variables}) {
          const std::size_t width = (variables + 7) / 8;
          std::string expected(rows * variables, '\0');
          for (char& label : expected) label = static_cast<char>(random() % 2 == 0 ? low : 1);
          std::vector<std::uint8_t> packed(rows * width);
          for (std::size_t row = 0; row < rows; ++row) {
            const auto* labels = reinterpret_cast<const std::int8_t*>(expected.data()) + row * variables;
            pack_labels({labels, variables}, low, 1, packed.data() + row * width);
          }
          const zarr::LabelBits labels{packed, rows, variables, low, 1};
          const std::string frame = zarr::label_frame(labels, padding, 77);
          expected.append(padding, 77);
          ASSERT_TRUE(unpacked(frame) == expected) << variables << " x " << rows << " and " << padding;
          if (rows * variables > 100'000) EXPECT_LT(frame.size(), rows * variables / 8 * 1.005 + padding / 10'000 + 64);
          std::string again(expected.size(), '\0');
          const std::string stored = zarr::encode(labels, padding, 77);
          ASSERT_TRUE(zarr::decode(stored, again.data(), again.size()));
          ASSERT_TRUE(again == expected);
        }
      }
    }
  }
}

TEST(ZarrCodec, DrawsThatAreAlikeTakeLessThanABit) {
  std::vector<std::uint8_t> packed(256 * 512, 0x0f);
  const zarr::LabelBits labels{packed, 256, 4096, -1, 1};
  EXPECT_LT(zarr::encode(labels, 0, 0).size(), packed.size() / 10);
}

TEST_F(ZarrStore, RunsComeBackAsTheyWereWritten) {
  const std::vector<VariableLayout> layouts = {spins(), network(), bits(13)};
  for (const std::size_t draws : {1, 255, 256, 257, 700}) {
    for (const std::size_t step : {64, 1000}) {
      SCOPED_TRACE(fmt::format("{} draws by {}", draws, step));
      for (const VariableLayout& layout : layouts) {
        write_run(path("run.zarr"), layout, draws, step);
        const StoredRun run = read_run(path("run.zarr"));
        expect_run(run, layout, draws);
        EXPECT_EQ(run.settings.at("text"), "Ω");
        EXPECT_EQ(run.results.at("updates"), 10);
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(ZarrStore, PartsAreReadAlone) {
  write_run(path("run.zarr"), spins(), 9000, 450);
  const DrawBatch all = make_block(spins(), 0, 9000);
  const StoredRun head = read_run(path("run.zarr"), {.draws = false, .series = false, .most_draws = 0});
  EXPECT_EQ(head.trace.all_draws(), 9000U);
  EXPECT_TRUE(head.has_states);
  const StoredRun part =
      read_run(path("run.zarr/"), {.first_draw = 8000, .most_draws = 700, .first_variable = 5, .most_variables = 3});
  ASSERT_EQ(part.trace.draws, 700U);
  for (std::size_t chain = 0; chain < kChains; ++chain) {
    for (std::size_t draw = 0; draw < 700; ++draw) {
      ASSERT_EQ(part.trace.monitors[1][chain * 700 + draw], all.monitors[1][chain * 9000 + 8000 + draw]);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(part.trace.x[(chain * 700 + draw) * 3 + i], all.x[(chain * 9000 + 8000 + draw) * 12 + 5 + i]);
      }
    }
  }
  EXPECT_EQ(read_run(path("run.zarr"), {.first_draw = 9999}).trace.draws, 0U);
}

TEST_F(ZarrStore, MonitorsAloneAndAnyNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  zarr::Writer writer(path("run.zarr"));
  writer.begin(spins(), 2, {"log_prob", "x", "a/b", "a_b", "__c", ".."}, "");
  DrawBatch block;
  block.count = 2;
  block.monitors = {{-inf, inf, NAN, -0.0}, {NAN, NAN, NAN, NAN}, {1, 2, 3, 4},
                    {5, 6, 7, 8},           {1, 1, 1, 1},         {2, 2, 2, 2}};
  block.acceptance_rate = {0, NAN, 1, 1};
  block.n_steps = {1, 2, 3, 4};
  writer.write(block);
  writer.finish("");
  const StoredRun run = read_run(path("run.zarr"));
  EXPECT_FALSE(run.has_states);
  EXPECT_EQ(run.layout.rows, 3U);
  EXPECT_EQ(run.trace.monitor_names, (std::vector<std::string>{"log_prob", "x", "a/b", "a_b", "__c", ".."}));
  EXPECT_EQ(run.trace.monitors[0][0], -inf);
  EXPECT_EQ(run.trace.monitors[0][1], inf);
  EXPECT_TRUE(std::isnan(run.trace.monitors[0][2]));
  EXPECT_TRUE(std::signbit(run.trace.monitors[0][3]));
  EXPECT_EQ(run.trace.monitors[3], block.monitors[3]);
  EXPECT_TRUE(std::isnan(run.trace.acceptance_rate[1]));
  EXPECT_TRUE(run.settings.is_null());
}

TEST_F(ZarrStore, GrowingStoresAreRead) {
  zarr::Writer writer(path("run.zarr"), at_once());
  writer.begin(spins(), kChains, kMonitors, R"({"seed":1})");
  expect_sentence(sentence([&] { static_cast<void>(read_run(path("run.zarr"))); }), {"run.zarr", "holds no draws yet"});
  for (std::size_t draws = 0; draws < 600; draws += 50) {
    write_draws(writer, spins(), draws, draws + 50, 50);
    expect_run(read_run(path("run.zarr")), spins(), draws + 50);
  }
  EXPECT_EQ(writer.committed_draws(), 600U);
  EXPECT_TRUE(read_run(path("run.zarr")).results.is_null());
  expect_sentence(sentence([&] { zarr::Writer other(path("run.zarr")); }), {"run.zarr", "another program"});
}

TEST_F(ZarrStore, AbandonedRunsKeepTheirDraws) {
  {
    zarr::Writer writer(path("run.zarr"));
    writer.begin(spins(), kChains, kMonitors, "{}");
    writer.write(make_block(spins(), 0, 60));
  }
  expect_run(read_run(path("run.zarr")), spins(), 60);
}

TEST_F(ZarrStore, AResumedStoreIsCutBackToItsState) {
  for (const std::size_t at_state : {0, 40, 256, 300, 512}) {
    SCOPED_TRACE(at_state);
    fs::remove_all(path("run.zarr"));
    {
      zarr::Writer writer(path("run.zarr"), at_once());
      if (at_state == 0) writer.save("state of 0");
      writer.begin(network(), kChains, kMonitors, "{}");
      write_draws(writer, network(), 0, at_state, 40);
      if (at_state > 0) writer.save("state of " + std::to_string(at_state));
      write_draws(writer, network(), at_state, 700, 40);
    }
    expect_run(read_run(path("run.zarr")), network(), 700);
    std::string note;
    zarr::StoredPoint point = zarr::read_last_state(path("run.zarr"), note);
    EXPECT_EQ(point.state, "state of " + std::to_string(at_state));
    EXPECT_EQ(note, "");
    zarr::Writer writer(path("run.zarr"), at_once());
    writer.resume(point.root, at_state);
    writer.begin(network(), kChains, kMonitors, "{}");
    write_draws(writer, network(), at_state, at_state + 9, 3);
    expect_run(read_run(path("run.zarr")), network(), at_state + 9);
    writer.save("another");
    writer.settle();
    EXPECT_EQ(zarr::read_last_state(path("run.zarr"), note).state, "another");
    write_draws(writer, network(), at_state + 9, 1000, 100);
    writer.finish("{}");
    expect_run(read_run(path("run.zarr")), network(), 1000);
    // The state before the last one serves where that is damaged, or its root.
    for (const char* file : {".poise/state.2", "zarr.json"}) {
      const std::string whole = read_file(path("run.zarr/") + file);
      write_file(path("run.zarr/") + file, whole.substr(0, whole.size() / 2));
      EXPECT_EQ(zarr::read_last_state(path("run.zarr"), note).state, "state of " + std::to_string(at_state));
      EXPECT_NE(note.find("the checkpoint before it is used"), std::string::npos) << note;
      write_file(path("run.zarr/") + file, whole);
    }
  }
}

TEST_F(ZarrStore, WhatIsMissingOrDamagedIsNamed) {
  write_run(path("run.zarr"), spins(), 600, 100);
  const auto read = [&] { return sentence([&] { static_cast<void>(read_run(path("run.zarr"))); }); };
  const std::string chunk = path("run.zarr/posterior/x/c.1.2.0.0");
  const std::string whole = read_file(chunk);
  fs::remove(chunk);
  expect_sentence(read(), {"run.zarr", "draws 512 to 599 of chain 1 are missing"});
  write_file(chunk, whole.substr(0, whole.size() - 1));
  expect_sentence(read(), {"draws 512 to 599 of chain 1 are damaged"});
  // A chunk that was full, as if it had not come to the disk.
  write_file(path("run.zarr/posterior/x/c.1.0.0.0"), whole);
  write_file(chunk, whole);
  expect_sentence(read(), {"draws 0 to 255 of chain 1 are missing in their chunk"});
  write_run(path("run.zarr"), spins(), 600, 100);
  fs::remove(path("run.zarr/sample_stats/lp/c.0.0"));
  expect_sentence(read(), {"draws 0 to 599 of chains 0 to 2 are missing (sample_stats/lp/c.0.0)"});
}

/// Every byte of a small store, changed: the draws that were written, or a sentence.
TEST_F(ZarrStore, DamageAtEveryByteIsNoticed) {
  VariableLayout layout = network();
  layout.cardinalities = {2, 2, 2, 2};
  for (const VariableLayout& variables : {network(), layout}) {
    write_run(path("run.zarr"), variables, 20, 20);
    std::size_t changed = 0;
    std::size_t refused = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path("run.zarr"))) {
      if (!entry.is_regular_file() || entry.path().string().find("/.poise/") != std::string::npos) continue;
      const std::string file = entry.path().string();
      const std::string whole = read_file(file);
      const bool matters = file == path("run.zarr/zarr.json") ||
                           (entry.path().filename() != "zarr.json" && file.find("/draw/") == std::string::npos &&
                            file.find("/chain/") == std::string::npos);
      // What only other programs read is changed at some places, and so is what the other layout has too.
      const std::size_t step = !matters ? 97 : variables.cardinalities == layout.cardinalities ? 1 : 11;
      for (std::size_t at = 0; at < whole.size(); at += step) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
        write_file(file, damaged);
        ++changed;
        try {
          expect_run(read_run(path("run.zarr")), variables, 20);
          EXPECT_FALSE(matters) << file << " at " << at;
        } catch (const InputError& error) {
          EXPECT_NE(std::string(error.what()).find("run.zarr"), std::string::npos);
          ++refused;
        }
        if (HasFailure()) return;
      }
      for (const std::string& cut : {std::string(), whole.substr(0, whole.size() / 2), whole + "x"}) {
        write_file(file, cut);
        if (matters) EXPECT_THROW(static_cast<void>(read_run(path("run.zarr"))), InputError) << file;
      }
      write_file(file, whole);
    }
    expect_run(read_run(path("run.zarr")), variables, 20);
    EXPECT_GT(refused, 300U);
    EXPECT_GT(changed, refused);
  }
}

/// Roots that say anything, with a checksum that is right: draws, or a sentence, and never more memory than chunks
/// take.
TEST_F(ZarrStore, RootsThatLieAreReadOrRefused) {
  write_run(path("run.zarr"), network(), 20, 20);
  const std::string whole = read_file(path("run.zarr/zarr.json"));
  const std::string key = R"("store_checksum":")";
  const auto sealed = [&](std::string text) {
    const std::size_t at = text.find(key);
    if (at == std::string::npos || text.size() < at + key.size() + 16) return text;
    text.replace(at + key.size(), 16, std::string(16, '0'));
    const std::string sum = fmt::format("{:016x}", checksum(text));
    return text.replace(at + key.size(), 16, sum);
  };
  ASSERT_EQ(sealed(whole), whole);
  std::mt19937_64 random(2);
  const std::vector<std::string> things = {"0",        "-1",   "1",  "7",  "4294967296", "18446744073709551615",
                                           "1e30",     "null", "[]", "{}", "\"\"",       "true",
                                           "\"int8\"", "[1,2]"};
  int refused = 0;
  for (int copy = 0; copy < 4000; ++copy) {
    nlohmann::json root = nlohmann::json::parse(whole);
    for (std::size_t times = 0; times < 1 + random() % 2; ++times) {
      nlohmann::json* at = &root;
      while (at->is_structured() && !at->empty() && random() % 8 != 0) {
        auto child = at->begin();
        std::advance(child, static_cast<std::ptrdiff_t>(random() % at->size()));
        at = &*child;
      }
      *at = nlohmann::json::parse(things[random() % things.size()]);
    }
    write_file(path("run.zarr/zarr.json"), sealed(root.dump()));
    try {
      const StoredRun run = read_run(path("run.zarr"));
      const std::size_t entries = run.trace.chains * run.trace.draws;
      EXPECT_EQ(run.trace.n_steps.size(), entries);
      for (const auto& monitor : run.trace.monitors) EXPECT_EQ(monitor.size(), entries);
      EXPECT_TRUE(run.trace.x.empty() || run.trace.x.size() == entries * run.layout.variables);
    } catch (const InputError& error) {
      expect_sentence(error.what(), {"run.zarr"});
      ++refused;
    }
    if (HasFailure()) FAIL() << root.dump();
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(ZarrStore, NothingIsDeletedThatItDidNotWrite) {
  fs::create_directory(path("mine.zarr"));
  write_file(path("mine.zarr/thesis.tex"), "precious");
  expect_sentence(sentence([&] { zarr::Writer writer(path("mine.zarr")); }),
                  {"mine.zarr", "other things than a run of poise"});
  EXPECT_EQ(read_file(path("mine.zarr/thesis.tex")), "precious");
  write_file(path("file.zarr"), "precious");
  expect_sentence(sentence([&] { zarr::Writer writer(path("file.zarr")); }), {"file.zarr", "it is a file"});
  expect_sentence(sentence([&] { zarr::Writer writer(path("no/such/run.zarr")); }), {"does not exist"});
  expect_sentence(sentence([&] { zarr::Writer writer(""); }), {"empty"});
  const StoreOptions huge{.chains = 1000, .draws = 1'000'000'000, .variables = 1'000'000};
  expect_sentence(sentence([&] { zarr::Writer writer(path("huge.zarr"), huge); }),
                  {"1000000000 draws of 1000 chains", "free", "--keep monitors"});
  EXPECT_FALSE(fs::exists(path("huge.zarr")));
  { const zarr::Writer writer(path("new.zarr")); }
  EXPECT_FALSE(fs::exists(path("new.zarr")));
  write_run(path("run.zarr"), spins(), 300, 100);
  write_file(path("run.zarr/notes.txt"), "mine");
  { const zarr::Writer writer(path("run.zarr")); }
  expect_run(read_run(path("run.zarr")), spins(), 300);  // until a run begins
  write_run(path("run.zarr"), network(), 10, 10);
  expect_run(read_run(path("run.zarr")), network(), 10);
  EXPECT_EQ(read_file(path("run.zarr/notes.txt")), "mine");
  for (const auto& entry : fs::recursive_directory_iterator(path("run.zarr"))) {
    EXPECT_NE(entry.path().extension(), ".tmp");
  }
}

TEST_F(ZarrStore, FoldersThatAreNoRunAreRefused) {
  const auto read = [&](const std::string& name) { return sentence([&] { static_cast<void>(read_run(path(name))); }); };
  expect_sentence(read("missing.zarr"), {"missing.zarr", "No such file"});
  fs::create_directory(path("empty.zarr"));
  expect_sentence(read("empty.zarr"), {"empty.zarr does not hold a run of poise"});
  fs::create_directory(path("other.zarr"));
  write_file(path("other.zarr/zarr.json"), R"({"zarr_format":3,"node_type":"group","attributes":{}})");
  expect_sentence(read("other.zarr"), {"is a Zarr group, but it does not hold a run of poise"});
  write_file(path("other.zarr/zarr.json"), R"({"attributes":{"inference_library":"poise","store_format":2}})");
  expect_sentence(read("other.zarr"), {"newer version of poise"});
  write_file(path("other.zarr/zarr.json"), std::string(100'000, '['));
  expect_sentence(read("other.zarr"), {"zarr.json is damaged"});
}

TEST_F(ZarrStore, TheSizeIsBounded) {
  const VariableLayout layout = bits(1000);
  StoreOptions options{.chains = kChains, .draws = 512, .variables = 1000, .monitors = kMonitors.size()};
  {
    zarr::Writer writer(path("run.zarr"), options);
    writer.begin(layout, kChains, kMonitors, "{}");
    for (std::size_t at = 0; at < 512; at += 128) writer.write(make_block(layout, at, 128));
    writer.finish("{}");
  }
  std::uintmax_t states = 0;
  std::uintmax_t all = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("run.zarr"))) {
    if (!entry.is_regular_file()) continue;
    all += entry.file_size();
    if (entry.path().string().find("posterior/x/") != std::string::npos) states += entry.file_size();
  }
  EXPECT_LE(static_cast<double>(states), 1.01 * kChains * 512 * 1000 / 8);
  EXPECT_LE(all, zarr::expected_bytes(options));
  EXPECT_EQ(zarr::expected_bytes({.chains = 2, .variables = 12}), 0U);
}

TEST_F(ZarrStore, MisuseIsRefused) {
  zarr::Writer writer(path("run.zarr"));
  EXPECT_THROW(writer.write(make_block(spins(), 0, 1)), std::logic_error);
  EXPECT_THROW(writer.finish(""), std::logic_error);
  EXPECT_THROW(writer.begin(spins(), 0, kMonitors, ""), std::invalid_argument);
  EXPECT_THROW(writer.begin(spins(), 2, {"energy"}, ""), std::invalid_argument);
  writer.begin(spins(), kChains, kMonitors, "");
  DrawBatch block = make_block(spins(), 0, 2);
  block.count = 1;
  EXPECT_THROW(writer.write(block), std::invalid_argument);
  writer.write(make_block(spins(), 0, 1));
  block = make_block(spins(), 1, 1);
  block.x.clear();
  EXPECT_THROW(writer.write(block), std::invalid_argument);
}

}  // namespace poise::zarr_test
