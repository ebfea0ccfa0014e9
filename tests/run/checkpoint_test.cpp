/// The file of a checkpoint: whatever part of it is there, what is read is right.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include <poise/extend/base/rng.hpp>
#include "base/file.hpp"
#include "run/checkpoint.hpp"

namespace poise::checkpoint_test {

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}
void put_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    std::string name = (std::filesystem::temp_directory_path() / "poise-checkpoint-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~CheckpointTest() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string run() const { return (root_ / "weights.safetensors").string(); }
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

  std::filesystem::path root_;
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

}  // namespace poise::checkpoint_test
