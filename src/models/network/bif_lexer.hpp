/// The tokens of the Bayesian Interchange Format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise {

struct BifToken {
  enum class Kind { word, sign, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< without quotes
  std::size_t line = 1;

  [[nodiscard]] bool is(char sign) const { return kind == Kind::sign && text[0] == sign; }
  [[nodiscard]] bool is(std::string_view word) const { return kind == Kind::word && text == word; }
};

/// Tokens end at blanks, signs, quotes and comments. Commas count as blanks, as the format has it: people forget them.
/// A copy continues independently from where it was made.
class BifLexer {
 public:
  BifLexer(std::string_view content, std::string_view name) : content_(without_byte_order_mark(content)), name_(name) {}

  /// The next token, not yet taken.
  const BifToken& peek() {
    if (!is_ahead_) token_ = read();
    is_ahead_ = true;
    return token_;
  }

  BifToken take() {
    peek();
    is_ahead_ = false;
    return token_;
  }

  /// The line of the last token.
  [[nodiscard]] std::size_t line() const { return token_.line; }
  bool take_if(char sign) {
    if (!peek().is(sign)) return false;
    take();
    return true;
  }

  /// A word that is not empty.
  BifToken word(std::string_view expected) {
    const BifToken found = take();
    if (found.kind != BifToken::Kind::word || found.text.empty()) refuse(found, expected);
    return found;
  }

  void sign(char sign, std::string_view after) {
    const BifToken found = take();
    if (!found.is(sign)) refuse(found, fmt::format("'{}' after {}", sign, after));
  }

  /// After the word `property`: to the next semicolon, whatever comes before it.
  /// The text of a property is anyone's: only quotes that close in their line hide a semicolon.
  void skip_property() {
    while (at_ < content_.size() && content_[at_] != ';') {
      if (content_[at_] == '"') {
        const std::size_t end = content_.find_first_of("\"\n", at_ + 1);
        if (end != std::string_view::npos && content_[end] == '"') at_ = end;
      }
      line_ += content_[at_++] == '\n' ? 1 : 0;
    }
    if (at_ == content_.size()) fail(token_.line, "the file ends, expected ';' after a property");
    ++at_;
  }

  /// To the brace that closes the next block.
  void skip_block(std::string_view block) {
    bool is_start = false;  // of a statement
    for (std::size_t depth = 0;;) {
      const BifToken found = take();
      const bool is_end = found.kind == BifToken::Kind::end;
      if (depth == 0 && (is_end || found.is('}'))) refuse(found, fmt::format("'{{' after {}", block));
      if (is_end) refuse(found, fmt::format("'}}' at the end of {}", block));
      if (is_start && found.is("property")) {
        skip_property();
        continue;
      }
      is_start = found.is('{') || found.is('}') || found.is(';');
      if (found.is('{')) ++depth;
      if (found.is('}') && --depth == 0) return;
    }
  }

  [[noreturn]] void fail(std::size_t line, const std::string& what) const { fail_at(name_, line, what); }

  /// "found ..., expected ..." for a token, or for the end of the file.
  [[noreturn]] void refuse(const BifToken& found, std::string_view expected) const {
    if (found.kind == BifToken::Kind::end) fail(found.line, fmt::format("the file ends, expected {}", expected));
    fail(found.line, fmt::format("found {}, expected {}", quote(found.text), expected));
  }

 private:
  static bool is_blank(char c) { return std::string_view(" \t\r\v\f\n,").find(c) != std::string_view::npos; }
  static bool is_sign(char c) { return std::string_view("{}()[];|").find(c) != std::string_view::npos; }

  [[nodiscard]] BifToken read() {
    do {
      while (at_ < content_.size() && is_blank(content_[at_])) line_ += content_[at_++] == '\n' ? 1 : 0;
      if (at_ == content_.size()) return {BifToken::Kind::end, {}, token_.line};
    } while (skip_comment());
    if (content_[at_] == '"') return quoted();
    if (is_sign(content_[at_])) return {BifToken::Kind::sign, content_.substr(at_++, 1), line_};
    const std::size_t first = at_;
    const auto goes_on = [&] {
      const std::string_view pair = content_.substr(at_, 2);
      return !is_blank(pair[0]) && !is_sign(pair[0]) && pair[0] != '"' && pair != "//" && pair != "/*";
    };
    while (at_ < content_.size() && goes_on()) ++at_;
    return {BifToken::Kind::word, content_.substr(first, at_ - first), line_};
  }

  [[nodiscard]] BifToken quoted() {
    const std::size_t end = content_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || content_[end] == '\n') {
      fail(line_, fmt::format("found {}, expected a closing quote in the same line",
                              quote(content_.substr(at_, std::min(end, content_.size()) - at_))));
    }
    const BifToken token{BifToken::Kind::word, content_.substr(at_ + 1, end - at_ - 1), line_};
    at_ = end + 1;
    return token;
  }

  /// Whether there was one here.
  bool skip_comment() {
    const std::string_view rest = content_.substr(at_);
    if (rest.starts_with("//")) {
      at_ = std::min(content_.find('\n', at_), content_.size());
      return true;
    }
    if (!rest.starts_with("/*")) return false;
    const std::size_t end = content_.find("*/", at_ + 2);
    if (end == std::string_view::npos) fail(line_, "found '/*' without an end, expected '*/' after it");
    line_ +=
        static_cast<std::size_t>(std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(end - at_), '\n'));
    at_ = end + 2;
    return true;
  }

  std::string_view content_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  BifToken token_;  ///< read ahead, or else the last one
  bool is_ahead_ = false;
};

}  // namespace poise
