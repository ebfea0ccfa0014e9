/// What tests of readers share: the sentence of a refusal, files that go away, networks written as text.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <poise/network.hpp>

namespace poise::testing {

/// The sentence with which `action` refuses its input.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A file that lives as long as the test that made it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& ending = "") {
    static int count = 0;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "poise_" + test->name() + std::to_string(count++) + ending;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The UAI text of a network, with all digits.
inline std::string uai_text(const Network& network) {
  std::string text = fmt::format("MARKOV\n{}\n", network.num_variables());
  for (const Index levels : network.cardinalities) text += fmt::format("{} ", levels);
  text += fmt::format("\n{}\n", network.num_factors());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    text += fmt::format("{}", network.scope(f).size());
    for (const Index i : network.scope(f)) text += fmt::format("\t{}", i);
    text += "\n";
  }
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    text += fmt::format("\n{}\n", network.table_size(f));
    for (const double value : network.table(f)) text += fmt::format(" {}", value);
    text += "\n";
  }
  return text;
}

}  // namespace poise::testing
