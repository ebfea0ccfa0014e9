/// Escaping and measuring text.
#include "report/svg_text.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace poise::svg {

namespace {

/// Length of a well-formed UTF-8 sequence at the start of a text, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  const std::size_t multibyte = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  const std::size_t length = first < 0x80 ? 1 : multibyte;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const bool surrogate_or_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return surrogate_or_overlong ? 0 : length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0 || (length == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) {
      out += "\ufffd";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

double width_of(std::string_view text, double size) {
  double ems = 0;
  for (; !text.empty(); text.remove_prefix(std::max<std::size_t>(utf8_length(text), 1))) {
    const char c = text.front();
    const bool narrow = std::string_view("ijl.,:;|!'()[]tfr I/").find(c) != std::string_view::npos;
    const bool wide = (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%' || c == '@';
    ems += narrow ? 0.37 : wide ? 0.78 : 0.6;
  }
  return ems * size;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace poise::svg
