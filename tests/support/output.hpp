/// What tests of written files share: a folder for each, and the sentences of refusals.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise::testing {

namespace fs = std::filesystem;

/// A folder of its own for each test.
class OutputTest : public ::testing::Test {
 protected:
  OutputTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) /
              ("poise_" + std::string(info->test_suite_name()) + info->name() + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~OutputTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// The sentence of the InputError that a call throws.
template <typename Call>
std::string sentence(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

inline void expect_sentence(const std::string& message, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  EXPECT_EQ(message.back(), '.') << message;
}

}  // namespace poise::testing
