/// Runs the real binary as several ranks of MPI, where there is a launcher.
#pragma once

#include <cstdlib>

#include "run/checkpoint.hpp"
#include "support/program.hpp"

#ifndef POISE_MPIRUN
#define POISE_MPIRUN ""
#endif

namespace poise::testing_program {

class MpiProgramTest : public ProgramTest {
 protected:
  static bool has_launcher() { return !std::string(POISE_MPIRUN).empty(); }
  [[nodiscard]] bool has_checkpoint(const std::string& name) const {
    std::string note;
    try {
      static_cast<void>(read_checkpoint(in_work(name), note));
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  /// One rank is the program by itself.
  void use_ranks(int ranks) {
    launcher_.clear();
    ::unsetenv("LSAN_OPTIONS");
    if (ranks == 1) return;
    ::setenv("LSAN_OPTIONS", "detect_leaks=0", 1);  // Open MPI does not free all of its memory
    // Open MPI asks twice before it runs for root, as in a container.
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    launcher_ = {POISE_MPIRUN, "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
  }

  /// Processes of the program that the child has started.
  [[nodiscard]] std::vector<pid_t> ranks_of_child() const {
    std::vector<pid_t> found;
    const std::string name_of_process = std::filesystem::path(program_).filename().string().substr(0, 15) + '\n';
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string status = read_text(entry.path() / "stat");
      const std::size_t end = status.rfind(')');
      if (end == std::string::npos) continue;
      std::istringstream rest(status.substr(end + 1));
      std::string state;
      pid_t parent = 0;
      rest >> state >> parent;
      if (parent == child_ && read_text(entry.path() / "comm") == name_of_process) found.push_back(std::stoi(name));
    }
    return found;
  }

  static int count(const std::string& text, const std::string& word) {
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  }
};

}  // namespace poise::testing_program
