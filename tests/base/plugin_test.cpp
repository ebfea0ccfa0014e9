/// Where libraries that are loaded at run time are looked for, and what is said of those that cannot be loaded.
#include "base/plugin.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace poise::plugin_test {

class Plugin : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("poise_plugin_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
    ::setenv("POISE_PLUGINS", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("POISE_PLUGINS");
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string make(const char* name) const {
    std::ofstream(folder_ / name) << "no library";
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST_F(Plugin, IsFoundInTheFolderOfTheEnvironment) {
  EXPECT_EQ(find_plugin("libpoise_none.so"), "");
  const std::string path = make("libpoise_none.so");
  EXPECT_EQ(find_plugin("libpoise_none.so"), path);
  ::unsetenv("POISE_PLUGINS");
  EXPECT_EQ(find_plugin("libpoise_none.so"), "");
}

TEST_F(Plugin, SaysWhyItCannotBeLoaded) {
  std::string why;
  EXPECT_EQ(load_plugin(make("libpoise_damaged.so"), PluginNames::own, why), nullptr);
  EXPECT_NE(why.find("libpoise_damaged.so"), std::string::npos) << why;
}

}  // namespace poise::plugin_test
