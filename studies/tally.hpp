/// In how many cases something is so, and what that makes of a claim about all of them.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "studies/reproduce.hpp"

namespace poise::reproduction {

/// A claim holds if it is so beyond chance in every case; it does not if it is so in none and the opposite is so beyond
/// chance in some; all else is open.
class Tally {
 public:
  void add(const std::string& name, bool so, bool opposite) {
    ++cases_;
    if (so) so_.push_back(name);
    opposite_ += opposite ? 1 : 0;
  }

  [[nodiscard]] Verdict::Holds holds() const {
    if (so_.size() == cases_) return Verdict::Holds::yes;
    return so_.empty() && opposite_ > 0 ? Verdict::Holds::no : Verdict::Holds::open;
  }
  /// For what is said of every case: one clear exception is enough to refute it.
  [[nodiscard]] Verdict::Holds holds_throughout() const {
    if (so_.size() == cases_) return Verdict::Holds::yes;
    return opposite_ > 0 ? Verdict::Holds::no : Verdict::Holds::open;
  }
  /// "case 1, case 3", or "none".
  [[nodiscard]] std::string text() const {
    return so_.empty() ? std::string("none") : fmt::format("{}", fmt::join(so_, ", "));
  }

 private:
  std::vector<std::string> so_;
  std::size_t opposite_ = 0;
  std::size_t cases_ = 0;
};

}  // namespace poise::reproduction
