/// Most probable states in the UAI format, read and written.
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "base/file.hpp"
#include "models/network/tokenizer.hpp"

namespace poise {
namespace {

constexpr std::string_view kBetterState = "-BEGIN-";

/// Where the last state is in a text.
struct LastState {
  std::size_t begins = 0;         ///< words -BEGIN- before it: programs put one before each better answer
  bool has_sample_count = false;  ///< the older form, with the number of samples of evidence, here 1
};

/// `1 level` is the state of one variable; the older form has at least three words, and as many as it says.
LastState find_last_state(std::string_view content, std::string_view name) {
  LastState found;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> first;
  Tokenizer words(content, name);
  words.next();
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == kBetterState) {
      ++found.begins;
      count = 0;
      continue;
    }
    if (++count == 1) first = Tokenizer::parse_count(word);
  }
  found.has_sample_count = count > 2 && first == 1;
  return found;
}

}  // namespace

std::vector<Value> parse_mpe(std::string_view content, std::string_view name) {
  Tokenizer words(content, name);
  const std::string_view header = words.word([] { return "MPE or MAP"; });
  if (!same_letters(header, "MPE") && !same_letters(header, "MAP")) {
    words.fail(fmt::format("found {}, expected MPE or MAP", quote(header)));
  }
  const LastState last = find_last_state(content, name);
  for (std::size_t begins = 0; begins < last.begins;) begins += words.next() == kBetterState ? 1 : 0;
  if (last.has_sample_count) words.next();
  const std::uint64_t n = words.integer(1, content.size(), [] { return "the number of variables"; });
  words.require(n, [] { return "levels"; });
  std::vector<Value> state;
  state.reserve(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto noun = [&] { return fmt::format("the level of x[{}]", i); };
    state.push_back(static_cast<Value>(words.integer(0, std::numeric_limits<Value>::max(), noun)));
  }
  words.finish(fmt::format("{} variables", n));
  return state;
}

std::vector<Value> read_mpe(const std::string& path) { return parse_mpe(read_file(path), path); }

std::string mpe_text(std::span<const Value> state) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "MPE\n{}", state.size());
  for (const Value level : state) fmt::format_to(std::back_inserter(text), " {}", level);
  text.push_back('\n');
  return fmt::to_string(text);
}

}  // namespace poise
