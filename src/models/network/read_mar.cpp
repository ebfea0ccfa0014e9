/// Marginals in the UAI format, read and written; partition functions, written.
#include <iterator>
#include <numbers>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "base/file.hpp"
#include "models/network/tokenizer.hpp"

namespace poise {
namespace {

constexpr std::string_view kHeader = "MAR";
constexpr std::string_view kBegin = "-BEGIN-";

/// Where the marginals are in a text.
struct Place {
  std::size_t begins = 0;         ///< words -BEGIN- before them: programs put one before each better answer
  bool has_sample_count = false;  ///< the older form, with the number of samples of evidence, here 1
};

/// `1 levels p ...` is one variable when nothing follows its probabilities, otherwise the older form: in that form as
/// many variables as this takes for levels need at least twice as many words.
Place find_marginals(std::string_view content, std::string_view name) {
  Place place;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> second;
  Tokenizer words(content, name);
  words.next();
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == kBegin) {
      ++place.begins;
      count = 0;
      continue;
    }
    ++count;
    if (count == 1) first = Tokenizer::parse_count(word);
    if (count == 2) second = Tokenizer::parse_count(word);
  }
  place.has_sample_count = count > 2 && first == 1 && second && *second != count - 2;
  return place;
}

}  // namespace

Marginals parse_mar(std::string_view content, std::string_view name) {
  Tokenizer words(content, name);
  const std::string_view header = words.word([] { return kHeader; });
  if (!same_letters(header, kHeader)) words.fail(fmt::format("found {}, expected {}", quote(header), kHeader));
  const Place place = find_marginals(content, name);
  for (std::size_t begins = 0; begins < place.begins;) begins += words.next() == kBegin ? 1 : 0;
  if (place.has_sample_count) words.next();

  Marginals marginals;
  const std::uint64_t n = words.integer(1, content.size(), [] { return "the number of variables"; });
  words.require(2 * n, [] { return "numbers"; });
  marginals.start.reserve(n + 1);
  marginals.start.push_back(0);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t levels =
        words.integer(1, content.size(), [&] { return fmt::format("the number of levels of x[{}]", i); });
    for (std::uint64_t level = 0; level < levels; ++level) {
      const auto noun = [&] { return fmt::format("the probability of level {} of x[{}]", level, i); };
      constexpr double rounding = 1e-6;
      const double value = words.weight(noun);
      if (value > 1 + rounding) words.fail(fmt::format("found {}, expected {}, at most 1", value, noun()));
      marginals.values.push_back(value);
    }
    if (!adds_up_to_one(std::span(marginals.values).last(levels))) {
      words.fail(fmt::format("found probabilities of x[{}] that do not add up to 1, expected marginals", i));
    }
    marginals.start.push_back(marginals.values.size());
  }
  words.finish(fmt::format("{} variables", n));
  return marginals;
}

Marginals read_mar(const std::string& path) { return parse_mar(read_file(path), path); }

std::string mar_text(const Marginals& marginals) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{}\n{}", kHeader, marginals.num_variables());
  for (Index i = 0; i < marginals.num_variables(); ++i) {
    const std::span<const double> row = marginals.of(i);
    fmt::format_to(std::back_inserter(text), " {}", row.size());
    for (const double value : row) fmt::format_to(std::back_inserter(text), " {:.12g}", value);
  }
  text.push_back('\n');
  return fmt::to_string(text);
}

std::string pr_text(double log_partition) { return fmt::format("PR\n{:.15g}\n", log_partition / std::numbers::ln10); }

}  // namespace poise
