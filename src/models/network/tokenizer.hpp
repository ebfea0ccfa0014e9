/// What the readers of network files share: a tokenizer, and the rules of Bayesian networks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/network.hpp>
#include <poise/types.hpp>

namespace poise {

/// Words end at blanks, line ends and '#', which starts a comment, as does the word `c` at the beginning of a line.
///
/// Nothing that a text claims of its own size is to be believed: `require` compares it with the bytes that are left
/// before a reader allocates.
class Tokenizer {
 public:
  /// The text must outlive this. `name` is for messages.
  Tokenizer(std::string_view text, std::string_view name);

  /// The next word; an empty one at the end.
  std::string_view next();
  /// The line of the last word, from 1.
  [[nodiscard]] std::size_t line() const { return std::max<std::size_t>(word_line_, 1); }

  /// The next word; `expected` gives what to say when there is none.
  template <class Expected>
  std::string_view word(const Expected& expected) {
    const std::string_view found = next();
    if (found.empty()) fail(fmt::format("the file ends, expected {}", expected()));
    return found;
  }
  /// The next word as an integer; `noun` gives its name in messages.
  template <class Noun>
  std::uint64_t integer(std::uint64_t min, std::uint64_t max, const Noun& noun) {
    const std::string_view found = word(noun);
    const std::optional<std::uint64_t> value = parse_count(found);
    if (value && *value >= min && *value <= max) return *value;
    if (min == max) fail(fmt::format("found {}, expected {}, {}", quote(found), min, noun()));
    fail(fmt::format("found {}, expected {}, from {} to {}", quote(found), noun(), min, max));
  }
  /// The next word as a finite number of at least 0.
  template <class Noun>
  double weight(const Noun& noun) {
    const std::string_view found = word(noun);
    double value = 0;
    if (parse_weight(found, value)) return value;
    fail(fmt::format("found {}, expected {}, a finite number of at least 0{}", quote(found), noun(), reason(found)));
  }
  /// Fails unless what is left can hold that many words of at least one character each.
  template <class Noun>
  void require(std::uint64_t words, const Noun& noun) const {
    const auto left = static_cast<std::uint64_t>(end_ - at_);
    if (words > (left + 1) / 2) fail(fmt::format("found only {} more bytes, expected {} {}", left, words, noun()));
  }
  /// Fails when there is another word.
  void finish(std::string_view after);

  [[noreturn]] void fail(const std::string& what) const;

  static std::optional<std::uint64_t> parse_count(std::string_view word);
  static bool parse_weight(std::string_view word, double& value);
  /// What else to say of a word that is no weight; empty when there is nothing.
  static std::string_view reason(std::string_view word);

 private:
  std::string name_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t line_ = 1;
  std::size_t word_line_ = 0;
};

/// Whether numbers in a file are meant as a distribution. Files round: to two decimals each number is off by at most
/// 0.005, and so is the sum for each level. What is further off changes the weight of the parents' levels, and with it
/// the network.
[[nodiscard]] bool adds_up_to_one(std::span<const double> row);

/// A variable that is its own ancestor, if there is one. The last variable of each scope is the child of the others,
/// and each variable is the child in one factor.
[[nodiscard]] std::optional<Index> own_ancestor(const Network& network);

}  // namespace poise
