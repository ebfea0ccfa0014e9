/// What tests of binary files share: bytes in order, deflate streams, folders that go away, tables of refusals.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/image/inflate.hpp"
#include "support/input.hpp"

namespace poise::testing {

/// The lowest bytes of a number, the lowest first.
inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int k = 0; k < bytes; ++k) text.push_back(static_cast<char>(value >> (8 * k) & 0xff));
  return text;
}

inline std::uint32_t crc(const std::string& bytes) {
  return crc32_of({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

/// A deflate stream of one block without compression.
inline std::string deflated(const std::string& bytes) {
  return "\x01" + little(bytes.size(), 2) + little(~bytes.size(), 2) + bytes;
}

inline std::string with(std::string content, std::size_t at, const std::string& bytes) {
  return content.replace(at, bytes.size(), bytes);
}

/// Each content is refused with a sentence that begins with "file" and holds what stands beside it.
inline void expect_refusals(const std::vector<std::pair<std::string, std::string>>& cases,
                            const std::function<void(const std::string&)>& read) {
  for (const auto& [content, expected] : cases) {
    const std::string sentence = refusal([&read, &content = content] { read(content); });
    EXPECT_TRUE(sentence.starts_with("file")) << sentence;
    EXPECT_NE(sentence.find(expected), std::string::npos) << "found: " << sentence << "\nexpected: " << expected;
  }
}

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "poise_folder_" + test->name();
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace poise::testing
