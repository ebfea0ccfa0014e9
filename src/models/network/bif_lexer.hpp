/// The tokens of the Bayesian Interchange Format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <poise/types.hpp>

namespace poise {

struct BifToken {
  enum class Kind { word, sign, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< without quotes
  std::size_t line = 1;

  [[nodiscard]] bool is(char sign) const { return kind == Kind::sign && text[0] == sign; }
  [[nodiscard]] bool is(std::string_view word) const { return kind == Kind::word && text == word; }
};

/// Tokenizer end at blanks, signs, quotes and comments. Commas are left out, as the format has it: people forget them.
/// A copy goes on by itself from where it was made.
class BifLexer {
 public:
  BifLexer(std::string_view content, std::string_view name);

  /// The next token, not yet taken.
  const BifToken& peek();
  BifToken take();
  /// Of the last token.
  [[nodiscard]] std::size_t line() const { return token_.line; }
  bool take_if(char sign);
  /// A word that is not empty.
  BifToken word(std::string_view expected);
  void sign(char sign, std::string_view after);

  /// After the word `property`: to the next semicolon, whatever comes before it.
  void skip_property();
  /// To the brace that closes the next block.
  void skip_block(std::string_view block);

  [[noreturn]] void fail(std::size_t line, const std::string& what) const;
  /// "found ..., expected ..." for a token, or for the end of the file.
  [[noreturn]] void refuse(const BifToken& found, std::string_view expected) const;

 private:
  [[nodiscard]] BifToken read();
  [[nodiscard]] BifToken quoted();
  bool skip_comment();

  std::string_view content_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  BifToken token_;  ///< read ahead, or else the last one
  bool is_ahead_ = false;
};

}  // namespace poise
