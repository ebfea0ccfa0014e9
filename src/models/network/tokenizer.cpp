/// Cutting texts into words, chunk by chunk.
#include "models/network/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

#include "base/file.hpp"

namespace poise {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kLongestWord = std::size_t{1} << 16;
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 31;

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

/// Nothing where the size says nothing: pipes have none, and files that the system makes up have 0.
std::optional<std::uint64_t> size_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) return std::nullopt;
  return size;
}

}  // namespace

Tokenizer::Tokenizer(std::string_view text, std::string_view name)
    : name_(name), size_(text.size()), taken_(text.size()), at_(text.data()), end_(text.data() + text.size()) {
  skip_byte_order_mark();
}

Tokenizer::Tokenizer(const std::string& path)
    : name_(path), file_(open_file(path)), buffer_(kChunk), size_(size_of(path)) {
  at_ = end_ = buffer_.data();
  refill();
  skip_byte_order_mark();
}

void Tokenizer::skip_byte_order_mark() {
  at_ = without_byte_order_mark({at_, static_cast<std::size_t>(end_ - at_)}).data();
}

/// Moves what is not yet used to the front and reads on behind it; whether anything came.
bool Tokenizer::refill() {
  if (buffer_.empty()) return false;
  const auto kept = static_cast<std::size_t>(end_ - at_);
  std::memmove(buffer_.data(), at_, kept);
  file_.read(buffer_.data() + kept, static_cast<std::streamsize>(buffer_.size() - kept));
  const auto came = static_cast<std::size_t>(file_.gcount());
  if (file_.bad()) throw InputError(fmt::format("{}: reading failed, expected a file that can be read", name_));
  taken_ += came;
  at_ = buffer_.data();
  end_ = at_ + kept + came;
  return came > 0;
}

void Tokenizer::skip_line() {
  do {
    at_ = std::find(at_, end_, '\n');
  } while (at_ == end_ && refill());
}

std::string_view Tokenizer::next() {
  for (;;) {
    while (at_ != end_ || refill()) {
      const Kind kind = kind_of(*at_);
      if (kind == kLetter) break;
      if (kind == kComment) {
        skip_line();
        continue;
      }
      if (kind == kLineEnd) ++line_;
      ++at_;
    }
    std::size_t size = 0;
    do {
      const char* last = at_ + size;
      while (last != end_ && kind_of(*last) == kLetter) ++last;
      size = static_cast<std::size_t>(last - at_);
      if (size > kLongestWord) {
        word_line_ = line_;
        fail(fmt::format("found {}, expected words of at most {} characters", quote({at_, size}), kLongestWord));
      }
    } while (at_ + size == end_ && size > 0 && refill());
    const std::string_view word(at_, size);
    const bool is_first = line_ != word_line_;
    at_ += size;
    if (word == "c" && is_first) {
      skip_line();
      continue;
    }
    if (!word.empty()) word_line_ = line_;
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
