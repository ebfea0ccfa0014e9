/// Cutting texts in the Bayesian Interchange Format into tokens.
#include "models/network/bif_lexer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>

namespace poise {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\n' || c == ','; }
bool is_sign(char c) { return std::string_view("{}()[];|").find(c) != std::string_view::npos; }

}  // namespace

BifLexer::BifLexer(std::string_view content, std::string_view name) : content_(content), name_(name) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (content_.starts_with(byte_order_mark)) content_.remove_prefix(byte_order_mark.size());
}

void BifLexer::fail(std::size_t line, const std::string& what) const {
  throw InputError(fmt::format("{}, line {}: {}", name_, line, what));
}

void BifLexer::refuse(const BifToken& found, std::string_view expected) const {
  if (found.kind == BifToken::Kind::end) fail(found.line, fmt::format("the file ends, expected {}", expected));
  fail(found.line, fmt::format("found {}, expected {}", quote(found.text), expected));
}

/// Whether there was one here.
bool BifLexer::skip_comment() {
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

BifToken BifLexer::quoted() {
  const std::size_t end = content_.find_first_of("\"\n", at_ + 1);
  if (end == std::string_view::npos || content_[end] == '\n') {
    fail(line_, fmt::format("found {}, expected a closing quote in the same line",
                            quote(content_.substr(at_, std::min(end, content_.size()) - at_))));
  }
  const BifToken token{BifToken::Kind::word, content_.substr(at_ + 1, end - at_ - 1), line_};
  at_ = end + 1;
  return token;
}

BifToken BifLexer::read() {
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

const BifToken& BifLexer::peek() {
  if (!is_ahead_) token_ = read();
  is_ahead_ = true;
  return token_;
}

BifToken BifLexer::take() {
  peek();
  is_ahead_ = false;
  return token_;
}

bool BifLexer::take_if(char sign) {
  if (!peek().is(sign)) return false;
  take();
  return true;
}

BifToken BifLexer::word(std::string_view expected) {
  const BifToken found = take();
  if (found.kind != BifToken::Kind::word || found.text.empty()) refuse(found, expected);
  return found;
}

void BifLexer::sign(char sign, std::string_view after) {
  const BifToken found = take();
  if (!found.is(sign)) refuse(found, fmt::format("'{}' after {}", sign, after));
}

/// The text of a property is anyone's: only quotes that close in their line hide a semicolon.
void BifLexer::skip_property() {
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

void BifLexer::skip_block(std::string_view block) {
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

}  // namespace poise
