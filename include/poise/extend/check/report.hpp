/// What a check found: a sentence for each problem, none where all is well.
#pragma once

#include <string>
#include <vector>

namespace poise {

struct CheckReport {
  std::vector<std::string> problems;

  [[nodiscard]] bool ok() const { return problems.empty(); }
  /// All problems, a line each.
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const std::string& problem : problems) lines += problem + "\n";
    return lines;
  }
};

}  // namespace poise
