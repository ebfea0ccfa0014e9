/// Networks in the UAI format: type, cardinalities, scopes, then tables; and the choice of a reader by file ending.
/// docs/files.md describes the format for users.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <poise/network.hpp>

#include "base/file.hpp"
#include "models/network/tokenizer.hpp"

namespace poise {
namespace {

/// Levels of all variables together: what marginals take. No honest file comes near, its tables would be larger yet.
constexpr std::uint64_t kMaxLevels = std::uint64_t{1} << 28;
/// The same of variables in no scope, whose levels no table backs.
constexpr std::uint64_t kMaxFreeLevels = 1'000'000;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) { return a != 0 && b > kMost / a ? kMost : a * b; }
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) { return b > kMost - a ? kMost : a + b; }

class UaiReader {
 public:
  UaiReader(std::string_view content, std::string_view name) : words_(content, name) { network_.name = name; }

  Network read() {
    const std::string_view type = words_.word([] { return "MARKOV or BAYES"; });
    is_bayes_ = same_letters(type, "BAYES");
    if (!is_bayes_ && !same_letters(type, "MARKOV")) {
      words_.fail(fmt::format("found {}, expected MARKOV or BAYES", quote(type)));
    }
    read_cardinalities();
    read_scopes();
    read_tables();
    words_.finish("the last table");
    if (is_bayes_) refuse_cycle();
    network_.bayesian = is_bayes_;
    return std::move(network_);
  }

 private:
  void read_cardinalities() {
    const std::uint64_t n = words_.integer(1, kMaxLevels, [] { return "the number of variables"; });
    words_.require(n, [] { return "numbers of levels"; });
    network_.cardinalities.reserve(n);
    std::uint64_t left = kMaxLevels;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t most = left - (n - 1 - i);  // the others have one level at least
      const std::uint64_t levels =
          words_.integer(1, most, [&] { return fmt::format("the number of levels of x[{}]", i); });
      left -= levels;
      network_.cardinalities.push_back(static_cast<Index>(levels));
    }
  }

  void read_scopes() {
    const std::uint64_t factors =
        words_.integer(0, std::numeric_limits<Index>::max(), [] { return "the number of factors"; });
    const std::uint64_t least = 3 * factors;  // size of the scope, size of the table, one number
    words_.require(least, [&] { return fmt::format("numbers for {} factors", factors); });
    network_.scope_start.reserve(factors + 1);
    network_.table_start.reserve(factors);
    if (is_bayes_) child_in_.assign(network_.num_variables(), Network::kFree);
    std::uint64_t entries = 0;
    for (std::uint64_t f = 0; f < factors; ++f) {
      read_scope(f);
      network_.table_start.push_back(entries);
      entries = saturated_sum(entries, table_size(f));
    }
    refuse_free_levels();
    if (is_bayes_) refuse_orphan();
    std::vector<Index>().swap(child_in_);
    words_.require(entries, [] { return "numbers in tables"; });
    network_.values.reserve(entries);
  }

  void read_scope(std::uint64_t f) {
    const Index n = network_.num_variables();
    const std::uint64_t size =
        words_.integer(0, n, [&] { return fmt::format("the number of variables in the scope of factor {}", f); });
    const std::size_t first = network_.scopes.size();
    for (std::uint64_t k = 0; k < size; ++k) {
      const std::uint64_t i = words_.integer(
          0, n - 1, [&] { return fmt::format("the number of a variable in the scope of factor {}", f); });
      network_.scopes.push_back(static_cast<Index>(i));
    }
    network_.scope_start.push_back(network_.scopes.size());
    sorted_.assign(network_.scopes.begin() + static_cast<std::ptrdiff_t>(first), network_.scopes.end());
    std::sort(sorted_.begin(), sorted_.end());
    if (const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end()); twice != sorted_.end()) {
      words_.fail(fmt::format("found variable {} twice in the scope of factor {}, expected it once", *twice, f));
    }
    if (is_bayes_) note_child(f);
  }

  void refuse_free_levels() const {
    std::vector<bool> in_scope(network_.num_variables());
    for (const Index i : network_.scopes) in_scope[i] = true;
    std::uint64_t levels = 0;
    for (Index i = 0; i < network_.num_variables(); ++i) levels += in_scope[i] ? 0 : network_.cardinalities[i];
    if (levels <= kMaxFreeLevels) return;
    words_.fail(
        fmt::format("found {} levels of variables that are in no scope, expected at most {}", levels, kMaxFreeLevels));
  }

  void note_child(std::uint64_t f) {
    const std::span<const Index> scope = network_.scope(f);
    if (scope.empty()) words_.fail(fmt::format("found no variable in the scope of factor {}, expected a child", f));
    Index& factor = child_in_[scope.back()];
    if (factor != Network::kFree) {
      words_.fail(
          fmt::format("found {} as the last variable of the scopes of factors {} and {}, expected each variable to be "
                      "the child of one factor in a network of type BAYES; type MARKOV has no such rule",
                      network_.variable_name(scope.back()), factor, f));
    }
    factor = static_cast<Index>(f);
  }

  void refuse_orphan() const {
    const auto orphan = std::find(child_in_.begin(), child_in_.end(), Network::kFree);
    if (orphan == child_in_.end()) return;
    words_.fail(
        fmt::format("found no scope that ends with {}, expected each variable to be the child of one factor in a "
                    "network of type BAYES; type MARKOV has no such rule",
                    network_.variable_name(static_cast<Index>(orphan - child_in_.begin()))));
  }

  void read_tables() {
    for (std::size_t f = 0; f < network_.num_factors(); ++f) {
      const std::size_t start = network_.values.size();
      const std::uint64_t size = table_size(f);
      words_.integer(size, size, [&] { return fmt::format("the size of the table of {}", network_.factor_name(f)); });
      double largest = 0;
      for (std::uint64_t k = 0; k < size; ++k) {
        const double value =
            words_.weight([&] { return fmt::format("number {} of {} of {}", k + 1, size, network_.factor_name(f)); });
        largest = std::max(largest, value);
        network_.values.push_back(value);
        if (is_bayes_) check_row(f, start);
      }
      if (largest == 0) {
        words_.fail(fmt::format("found only zeros in the table of {}, expected one that does not sum to zero",
                                network_.factor_name(f)));
      }
    }
  }

  /// As Network::table_size, but a file may claim anything.
  std::uint64_t table_size(std::size_t f) const {
    std::uint64_t size = 1;
    for (const Index i : network_.scope(f)) size = saturated_product(size, network_.cardinalities[i]);
    return size;
  }

  /// Each row of a conditional distribution adds up to 1, or to 0 where the levels of the parents are impossible.
  void check_row(std::size_t f, std::size_t start) {
    const std::size_t levels = network_.cardinalities[network_.scope(f).back()];
    const std::size_t done = network_.values.size() - start;
    if (done % levels != 0) return;
    const std::span<const double> row = std::span(network_.values).last(levels);
    const auto is_zero = [](double value) { return value == 0; };
    if (adds_up_to_one(row) || std::all_of(row.begin(), row.end(), is_zero)) return;
    words_.fail(
        fmt::format("found {:.6g} as the sum of row {} of {}, expected probabilities that add up to 1 in a network of "
                    "type BAYES; type MARKOV has no such rule",
                    std::accumulate(row.begin(), row.end(), 0.0), done / levels, network_.factor_name(f)));
  }

  void refuse_cycle() const {
    const std::optional<Index> variable = own_ancestor(network_);
    if (!variable) return;
    words_.fail(fmt::format("found {} among its own ancestors, expected no cycle in a network of type BAYES",
                            network_.variable_name(*variable)));
  }

  Tokenizer words_;
  Network network_;
  bool is_bayes_ = false;
  std::vector<Index> child_in_;  ///< the factor a variable is the child of; kFree: none yet
  std::vector<Index> sorted_;    ///< a scope
};

}  // namespace

Network parse_uai(std::string_view content, std::string_view name) { return UaiReader(content, name).read(); }

Network read_uai(const std::string& path) { return parse_uai(read_file(path, kMost), path); }

Network read_network(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (same_letters(ending, ".uai")) return read_uai(path);
  if (same_letters(ending, ".bif")) return read_bif(path);
  throw InputError(fmt::format("{}: found a name that ends in neither, expected .uai or .bif", path));
}

}  // namespace poise
