/// The journal of draws and the file of a checkpoint: whatever part of them is there, what is read is right.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <poise/extend/base/rng.hpp>
#include "base/file.hpp"
#include "run/checkpoint.hpp"
#include "store/journal.hpp"

namespace poise::journal_test {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    std::string name = (std::filesystem::temp_directory_path() / "poise-journal-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~JournalTest() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string path(const std::string& name = "run.nc.draws") const { return (root_ / name).string(); }

  std::filesystem::path root_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}
void put_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

VariableLayout spins() {
  VariableLayout layout;
  layout.variables = 11;
  layout.labels = {-1, 1};
  return layout;
}
VariableLayout levels() {
  VariableLayout layout;
  layout.variables = 5;
  layout.cardinalities = {2, 4, 1, 3, 2};
  return layout;
}

/// Draws `first` and on of two chains, with numbers that tell where they belong.
DrawBatch block_of(const VariableLayout& layout, std::size_t first, std::size_t count) {
  DrawBatch block;
  block.count = count;
  block.monitors.resize(2);
  for (std::size_t chain = 0; chain < 2; ++chain) {
    for (std::size_t draw = first; draw < first + count; ++draw) {
      block.monitors[0].push_back(static_cast<double>(1000 * chain + draw));
      block.monitors[1].push_back(-0.5 * static_cast<double>(draw));
      block.acceptance_rate.push_back(1.0 / static_cast<double>(draw + 1));
      block.n_steps.push_back(static_cast<std::int64_t>(draw));
      for (Index i = 0; i < layout.variables; ++i) {
        block.x.push_back(layout.label(static_cast<Value>((chain + 3 * draw + i * i) % layout.levels(i))));
      }
    }
  }
  return block;
}

void expect_same(const DrawBatch& found, const DrawBatch& expected) {
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.x, expected.x);
  EXPECT_EQ(found.monitors, expected.monitors);
  EXPECT_EQ(found.acceptance_rate, expected.acceptance_rate);
  EXPECT_EQ(found.n_steps, expected.n_steps);
}

TEST_F(JournalTest, GivesBackWhatWasWritten) {
  for (const VariableLayout& layout : {spins(), levels()}) {
    const DrawShape shape = draw_shape(layout, 2, 2, true);
    {
      DrawJournal journal(path(), shape);
      journal.begin();
      journal.write(block_of(layout, 0, 3));
      journal.write(block_of(layout, 3, 4));
      journal.sync();
    }
    DrawJournal journal(path(), shape);
    EXPECT_EQ(journal.draws(), 7U);
    std::size_t first = 0;
    journal.read(5, [&](const DrawBatch& block) {
      expect_same(block, block_of(layout, first, first == 0 ? 3 : 2));
      first += block.count;
    });
    EXPECT_EQ(first, 5U);
    // Goes on in the middle of a block.
    journal.cut(5);
    journal.write(block_of(layout, 5, 6));
    EXPECT_EQ(journal.draws(), 11U);
    first = 0;
    journal.read(11, [&](const DrawBatch& block) {
      expect_same(block, block_of(layout, first, block.count));
      first += block.count;
    });
    EXPECT_EQ(first, 11U);
  }
}

TEST_F(JournalTest, TwoValuedVariablesTakeABit) {
  VariableLayout layout = spins();
  layout.variables = 8000;
  DrawJournal journal(path(), draw_shape(layout, 2, 2, true));
  journal.begin();
  journal.write(block_of(layout, 0, 10));
  EXPECT_LT(std::filesystem::file_size(path()), 2 * 10 * (8000 / 8 + 40) + 200);
}

/// Cut off anywhere, or with any byte changed: blocks before the damage are there, what comes after is not.
TEST_F(JournalTest, EveryTornOrChangedJournalGivesItsWholeBlocks) {
  const VariableLayout layout = levels();
  const DrawShape shape = draw_shape(layout, 2, 2, true);
  std::vector<std::size_t> ends;  // of blocks
  {
    DrawJournal journal(path(), shape);
    journal.begin();
    for (std::size_t block = 0; block < 3; ++block) {
      journal.write(block_of(layout, 2 * block, 2));
      ends.push_back(std::filesystem::file_size(path()));
    }
  }
  const std::string whole = bytes_of(path());
  for (std::size_t place = 0; place <= whole.size(); ++place) {
    std::size_t expected = 0;
    while (expected < 3 && ends[expected] <= place) ++expected;
    for (const bool cut : {true, false}) {
      if (!cut && place == whole.size()) continue;
      std::string damaged = whole;
      if (cut) {
        damaged.resize(place);
      } else {
        damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
      }
      put_bytes(path(), damaged);
      DrawJournal journal(path(), shape);
      ASSERT_EQ(journal.draws(), 2 * expected) << (cut ? "cut at " : "changed at ") << place;
    }
  }
  put_bytes(path(), whole);
  EXPECT_EQ(DrawJournal(path(), draw_shape(layout, 3, 2, true)).draws(), 0U) << "another shape";
}

TEST_F(JournalTest, OneProgramAtATime) {
  const DrawShape shape = draw_shape(spins(), 2, 2, true);
  const DrawJournal journal(path(), shape);
  try {
    const DrawJournal other(path(), shape);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("another program is writing it"), std::string::npos);
  }
}

class CheckpointTest : public JournalTest {
 protected:
  [[nodiscard]] std::string run() const { return path("run.nc"); }
  /// The sentence of what was read, empty where it is a checkpoint.
  [[nodiscard]] std::string sentence() const {
    std::string note;
    try {
      static_cast<void>(read_checkpoint(run(), note));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(CheckpointTest, GivesBackWhatWasWrittenAndKeepsTheOneBefore) {
  EXPECT_NE(sentence().find("has no checkpoint to resume from"), std::string::npos);
  write_checkpoint(run(), {{{"words", "first"}}, 7, false, std::string("\0abc", 4)});
  write_checkpoint(run(), {{{"words", "second"}}, 9, true, "def"});
  std::string note;
  const Checkpoint last = read_checkpoint(run(), note);
  EXPECT_EQ(last.command["words"], "second");
  EXPECT_EQ(last.draws, 9U);
  EXPECT_TRUE(last.finished);
  EXPECT_EQ(last.state, "def");
  EXPECT_EQ(note, "");
  put_bytes(checkpoint_path(run()), bytes_of(checkpoint_path(run())).substr(0, 60));
  const Checkpoint before = read_checkpoint(run(), note);
  EXPECT_EQ(before.draws, 7U);
  EXPECT_FALSE(before.finished);
  EXPECT_EQ(before.state, std::string("\0abc", 4));
  EXPECT_NE(note.find("damaged or only a part"), std::string::npos);
  std::filesystem::remove(checkpoint_path(run()));
  EXPECT_EQ(read_checkpoint(run(), note).draws, 7U);
  EXPECT_NE(note.find("is missing, so the one before it is used"), std::string::npos);
}

TEST_F(CheckpointTest, EveryDamageIsASentence) {
  write_checkpoint(run(), {{{"words", "first"}}, 7, false, "state"});
  const std::string whole = bytes_of(checkpoint_path(run()));
  for (std::size_t place = 0; place < whole.size(); ++place) {
    put_bytes(checkpoint_path(run()), whole.substr(0, place));
    EXPECT_NE(sentence(), "") << "cut at " << place;
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x40);
    put_bytes(checkpoint_path(run()), damaged);
    EXPECT_NE(sentence(), "") << "changed at " << place;
  }
  std::string newer = whole;
  newer[16] = 99;
  put_bytes(checkpoint_path(run()), newer);
  EXPECT_NE(sentence().find("newer version of poise"), std::string::npos);
  newer[16] = 1;
  put_bytes(checkpoint_path(run()), newer);
  EXPECT_NE(sentence().find("older version of poise"), std::string::npos);
  put_bytes(checkpoint_path(run()), "something else");
  EXPECT_NE(sentence().find("is not a checkpoint of poise"), std::string::npos);
}

TEST(Checksum, IsThatOfXz) {
  EXPECT_EQ(checksum("123456789"), 0x995dc9bbdf1939faU);
  EXPECT_EQ(checksum("6789", checksum("12345")), checksum("123456789"));
}

/// Long ones are taken many bytes at a time, however that is done here.
TEST(Checksum, IsTheSameInOneGoAndByteByByte) {
  std::string bytes;
  Rng rng(3, 3);
  for (int k = 0; k < 700; ++k) bytes += static_cast<char>(rng.uniform() * 256);
  for (std::size_t first = 0; first < 20; ++first) {
    std::uint64_t sum = 5;
    for (std::size_t end = first; end < bytes.size(); ++end) {
      const std::string_view part = std::string_view(bytes).substr(first, end - first);
      ASSERT_EQ(checksum(part, 5), sum) << part.size() << " bytes from " << first;
      sum = checksum(std::string_view(bytes).substr(end, 1), sum);
    }
  }
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

}  // namespace poise::journal_test
