/// Cutting texts into words, and what rules of Bayesian networks they must keep.
#include "models/network/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <system_error>
#include <vector>

#include "base/file.hpp"

namespace poise {
namespace {

constexpr std::size_t kLongestWord = std::size_t{1} << 16;

enum Kind : std::uint8_t { kLetter, kBlank, kLineEnd, kComment };

constexpr std::array<Kind, 256> make_kinds() {
  std::array<Kind, 256> kinds{};
  for (const unsigned char c : {' ', '\t', '\r', '\v', '\f'}) kinds[c] = kBlank;
  kinds['\n'] = kLineEnd;
  kinds['#'] = kComment;
  return kinds;
}
constexpr std::array<Kind, 256> kKinds = make_kinds();

Kind kind_of(char c) { return kKinds[static_cast<unsigned char>(c)]; }

/// Reads all of `word`, with or without a '+', into `value`; gives the error, or none.
template <class Number>
std::errc parse_whole(std::string_view word, Number& value) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return end == word.data() + word.size() ? error : std::errc::invalid_argument;
}

}  // namespace

Tokenizer::Tokenizer(std::string_view text, std::string_view name) : name_(name) {
  text = without_byte_order_mark(text);
  at_ = text.data();
  end_ = at_ + text.size();
}

std::string_view Tokenizer::next() {
  for (;;) {
    for (Kind kind = kLetter; at_ != end_ && (kind = kind_of(*at_)) != kLetter;) {
      if (kind == kComment) {
        at_ = std::find(at_, end_, '\n');
        continue;
      }
      if (kind == kLineEnd) ++line_;
      ++at_;
    }
    const char* const first = at_;
    while (at_ != end_ && kind_of(*at_) == kLetter) ++at_;
    const std::string_view word(first, static_cast<std::size_t>(at_ - first));
    const bool is_first = line_ != word_line_;
    if (word == "c" && is_first) {
      at_ = std::find(at_, end_, '\n');
      continue;
    }
    if (!word.empty()) word_line_ = line_;
    if (word.size() > kLongestWord) {
      fail(fmt::format("found {}, expected words of at most {} characters", quote(word), kLongestWord));
    }
    return word;
  }
}

void Tokenizer::finish(std::string_view after) {
  const std::string_view found = next();
  if (!found.empty()) fail(fmt::format("found {}, expected nothing after {}", quote(found), after));
}

void Tokenizer::fail(const std::string& what) const { fail_at(name_, line(), what); }

std::optional<std::uint64_t> Tokenizer::parse_count(std::string_view word) {
  std::uint64_t value = 0;
  return parse_whole(word, value) == std::errc{} ? std::optional(value) : std::nullopt;
}

bool Tokenizer::parse_weight(std::string_view word, double& value) {
  if (parse_whole(word, value) != std::errc{} || !std::isfinite(value) || value < 0) return false;
  value += 0.0;  // -0 becomes 0
  return true;
}

std::string_view Tokenizer::reason(std::string_view word) {
  double value = 0;
  const bool beyond = parse_whole(word, value) == std::errc::result_out_of_range;
  return beyond ? ", not beyond what double precision can hold" : "";
}

bool adds_up_to_one(std::span<const double> row) {
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  return std::abs(sum - 1) <= 0.005 * static_cast<double>(std::max<std::size_t>(row.size(), 2)) + 1e-9;
}

namespace {

std::span<const Index> parents_in(const Network& network, std::size_t factor) {
  const std::span<const Index> scope = network.scope(factor);
  return scope.first(scope.size() - 1);
}

/// From a variable that waits for a parent, some parent waits as well: where the walk upwards meets itself is a cycle.
Index walk_to_cycle(const Network& network, const std::vector<Index>& pending) {
  const Index n = network.num_variables();
  std::vector<std::size_t> factor_of(n);
  for (std::size_t f = 0; f < network.num_factors(); ++f) factor_of[network.scope(f).back()] = f;
  const auto waits = [&](Index i) { return pending[i] > 0; };
  std::vector<bool> visited(n, false);
  Index i = 0;
  while (!waits(i)) ++i;
  while (!visited[i]) {
    visited[i] = true;
    const std::span<const Index> parents = parents_in(network, factor_of[i]);
    i = *std::find_if(parents.begin(), parents.end(), waits);
  }
  return i;
}

}  // namespace

std::optional<Index> own_ancestor(const Network& network) {
  const std::size_t n = network.num_variables();
  std::vector<std::size_t> start(n + 1, 0);  // of each variable's children in `children`
  std::vector<Index> pending(n, 0);          // parents not yet ordered
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const Index> parents = parents_in(network, f);
    pending[network.scope(f).back()] = static_cast<Index>(parents.size());
    for (const Index parent : parents) ++start[parent];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Index> children(start.back());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index parent : parents_in(network, f)) children[--start[parent]] = network.scope(f).back();
  }
  std::vector<Index> ordered;
  ordered.reserve(n);
  for (Index i = 0; i < n; ++i) {
    if (pending[i] == 0) ordered.push_back(i);
  }
  for (std::size_t k = 0; k < ordered.size(); ++k) {
    for (std::size_t c = start[ordered[k]]; c < start[ordered[k] + std::size_t{1}]; ++c) {
      if (--pending[children[c]] == 0) ordered.push_back(children[c]);
    }
  }
  if (ordered.size() == n) return std::nullopt;
  return walk_to_cycle(network, pending);
}

}  // namespace poise
