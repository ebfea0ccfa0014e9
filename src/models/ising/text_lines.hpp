/// Lines of words, and the numbers in them: what the readers of Ising models share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/types.hpp>

namespace poise {

[[noreturn]] void fail_at(std::string_view name, std::size_t line, const std::string& what);

/// The lines of a text that hold something besides blanks and comments, cut into words.
class Lines {
 public:
  explicit Lines(std::string_view content);

  bool next();

  std::size_t number = 0;                             ///< of the present line, from 1
  std::vector<std::string_view> words;                ///< of the present line
  std::function<void(std::string_view)> see_comment;  ///< called, when given, with what follows a '#'

 private:
  /// Tokenizer end at blanks or at one comma; nothing between two commas, or after the last, is an empty word.
  void split(std::string_view line);

  std::string_view rest_;
};

/// A finite number of at most kLargest in size.
double real_at(std::string_view word, std::string_view name, std::size_t line);

/// Where an integer may lie and what it is called in a message.
struct Expected {
  std::string_view noun;
  std::int64_t min;
  std::int64_t max;
  std::string_view reason = {};  ///< for the upper bound, to end the message with
};

std::int64_t integer_at(std::string_view word, const Expected& one, std::string_view name, std::size_t line);

}  // namespace poise
