/// Runs the real binary in a directory of its own.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "store/run_file.hpp"

namespace poise::testing_program {

using Arguments = std::vector<std::string>;
using namespace std::chrono_literals;

/// Seconds after which a program that does not end, or does not get anywhere, fails its test. No test waits so long
/// where all is well, on a busy machine either.
constexpr unsigned kPatience = 500;

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

struct Outcome {
  int code = -1;  ///< exit code; -1 when a signal ended it
  std::string out;
  std::string err;
};

/// Runs have at most so many files of states where that can be, for as long as this lives: what a long run needs, a
/// short one shows.
class MostFiles {
 public:
  explicit MostFiles(std::size_t most) { ::setenv("POISE_MOST_FILES", std::to_string(most).c_str(), 1); }
  ~MostFiles() { ::unsetenv("POISE_MOST_FILES"); }
  MostFiles(const MostFiles&) = delete;
  MostFiles& operator=(const MostFiles&) = delete;
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "poise-program-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directory(work());
  }
  ~ProgramTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  /// Where the program runs; what it prints is kept elsewhere, so that everything found here is its doing.
  [[nodiscard]] std::filesystem::path work() const { return root_ / "work"; }
  [[nodiscard]] std::string in_work(const std::string& name) const { return (work() / name).string(); }

  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(work())) names.insert(entry.path().filename());
    return names;
  }

  void start(const Arguments& arguments, const std::string& out = {}) {
    const std::string out_path = out.empty() ? (root_ / "out").string() : out;
    const std::string err_path = (root_ / "err").string();
    std::vector<char*> words;
    for (const std::string& word : launcher_) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(const_cast<char*>(program_.c_str()));
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    const int out_file = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err_file = ::open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (::dup2(out_file, 1) < 0 || ::dup2(err_file, 2) < 0 || ::chdir(work().c_str()) != 0) ::_exit(99);
    ::alarm(kPatience);  // a program that never ends fails the test instead of holding it up
    ::execvp(words[0], words.data());
    ::_exit(99);
  }

  Outcome wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(root_ / "out"), read_text(root_ / "err")};
  }

  Outcome run(const Arguments& arguments) {
    start(arguments);
    return wait();
  }

  /// Waits until the child has shown progress: it is then at work and listens to signals.
  void wait_for_progress() { wait_for_progress("", "initial"); }

  /// Until its progress shows one thing, and after it another.
  void wait_for_progress(const std::string& first, const std::string& then) {
    wait_until("progress", [&] {
      const std::string shown = read_text(root_ / "err");
      const std::size_t start = shown.find(first);
      return start != std::string::npos && shown.find(then, start) != std::string::npos;
    });
  }

  /// Waits until the child has stored a few draws for good.
  void wait_for_draws(const std::string& path) {
    wait_until("draws in " + path, [&] {
      try {
        return read_run(path).trace.draws > 2;
      } catch (const InputError&) {
        return false;  // not there yet, or just being written
      }
    });
  }

  /// Waits for a condition, however long the machine takes.
  template <class Condition>
  void wait_until(const std::string& what, const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (std::chrono::steady_clock::now() < deadline) {
      if (holds()) return;
      std::this_thread::sleep_for(20ms);
    }
    FAIL() << "no " << what << ": " << read_text(root_ / "err");
  }

  std::filesystem::path root_;
  Arguments launcher_;  // words before the program
  std::string program_ = POISE_PROGRAM;
  pid_t child_ = -1;
};

}  // namespace poise::testing_program
