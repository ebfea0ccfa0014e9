/// Whole files: what is read and refused, and that a write leaves the old file or the new one and nothing beside it.
#include <iterator>
#include <stdexcept>

#include "base/file.hpp"
#include "support/output.hpp"

namespace poise::file_test {

using namespace poise::testing;

class FileTest : public OutputTest {
 protected:
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(path("")), fs::directory_iterator());
  }
};

TEST_F(FileTest, ContentComesBack) {
  const std::string content = std::string("\0\r\n\xff", 4) + std::string(200'000, 'x');
  write_atomically(path("a"), content);
  EXPECT_EQ(read_file(path("a")), content);
  write_atomically(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(sentence([&] { static_cast<void>(read_file("no/such")); }),
            "no/such: cannot be opened, expected a file that can be read");
  EXPECT_EQ(sentence([&] { static_cast<void>(read_file("/")); }), "/: found a directory, expected a file");
  EXPECT_NE(sentence([&] { static_cast<void>(read_file("/dev/zero", 1000)); }).find("too long, expected at most"),
            std::string::npos);
  try {
    static_cast<void>(read_file("no/such"));
  } catch (const FileError& error) {
    EXPECT_EQ(error.reason, "No such file or directory");
  }
}

TEST_F(FileTest, WhatCannotBeWrittenIsNamed) {
  expect_sentence(sentence([&] { write_atomically(path("no/such"), "x"); }), {"Cannot write", "No such file"});
  fs::create_directory(path("folder"));
  write_file(path("folder/file"), "");
  expect_sentence(sentence([&] { write_atomically(path("folder"), "x"); }), {"Cannot write", "directory"});
  EXPECT_EQ(files(), 1) << "what was written beside the path stays behind";
  EXPECT_EQ(obstacle_at(path("folder")), "it is a directory");
  EXPECT_EQ(obstacle_at(path("folder/file/x")), path("folder/file") + " is not a directory");
  EXPECT_EQ(obstacle_at("no/such"), "the directory no does not exist");
  EXPECT_EQ(obstacle_at(path("new")), "");
}

TEST_F(FileTest, DevicesAreWrittenTo) {
  write_atomically("/dev/null", "x");
  EXPECT_TRUE(is_special("/dev/null"));
  try {
    write_atomically("/dev/full", "x");
    FAIL() << "a full device takes nothing";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "Cannot write /dev/full: No space left on device.");
  }
}

}  // namespace poise::file_test
