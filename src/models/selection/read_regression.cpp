/// Observations and z scores from tables with a head.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

std::optional<std::size_t> find_head(const WordTable& table, std::string_view name) {
  for (std::size_t k = 0; k < table.heads.size(); ++k) {
    if (table.heads[k] == name) return k;
  }
  return std::nullopt;
}

/// The first head of several that is there, whatever its case.
std::optional<std::size_t> find_any(const WordTable& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (std::size_t k = 0; k < table.heads.size(); ++k) {
      if (same_letters(table.heads[k], name)) return k;
    }
  }
  return std::nullopt;
}

double number_at(const WordTable& table, std::size_t row, std::size_t column, const std::string& name) {
  const std::optional<double> value = number_of(table.rows[row][column]);
  if (value) return *value;
  const std::string& word = table.rows[row][column];
  const bool missing = word.empty() || same_letters(word, "NA") || same_letters(word, "NaN") || word == ".";
  fail_at(name, table.lines[row],
          fmt::format("found {} in column {}, expected a number{}", missing ? "no value" : quote(word),
                      quote(table.heads[column]),
                      missing                               ? "; leave the row out or fill the value in"
                      : word.find(',') != std::string::npos ? " with a point before its decimals"
                                                            : ""));
}

/// Files of data tables may be large.
constexpr std::uint64_t kLongestTable = std::uint64_t{1} << 36;

}  // namespace

RegressionTable read_regression(std::string_view text, const std::string& name, const std::string& response) {
  const WordTable words = read_words(text, name);
  const std::optional<std::size_t> found = find_head(words, response);
  if (!found) {
    throw InputError(
        fmt::format("--response: found {}, which is no column of {}{}; columns are {}", quote(response), name,
                    did_you_mean(response, words.heads),
                    fmt::join(words.heads.begin(),
                              words.heads.begin() + std::min<std::ptrdiff_t>(8, std::ssize(words.heads)), ", ")));
  }
  if (words.rows.empty()) throw InputError(fmt::format("{}: found a head and no rows, expected observations", name));
  RegressionTable table;
  table.source = name;
  table.response = response;
  for (std::size_t row = 0; row < words.rows.size(); ++row) table.y.push_back(number_at(words, row, *found, name));
  for (std::size_t k = 0; k < words.heads.size(); ++k) {
    if (k == *found) continue;
    // A head without a name is that of row names, as R and pandas write them.
    if (k == 0 && words.heads[k].empty()) continue;
    table.names.push_back(words.heads[k]);
    for (std::size_t row = 0; row < words.rows.size(); ++row) table.x.push_back(number_at(words, row, k, name));
  }
  return table;
}

RegressionTable read_regression(const std::string& path, const std::string& response) {
  return read_regression(read_file(path, kLongestTable), path, response);
}

RegressionTable read_columns(const std::string& path, const std::vector<std::string>& names) {
  const WordTable words = read_words(read_file(path, kLongestTable), path);
  RegressionTable table;
  table.source = path;
  for (const std::string& name : names) {
    const std::optional<std::size_t> found = find_head(words, name);
    if (!found) {
      throw InputError(
          fmt::format("{}: found no column {}, expected all that the model was fitted to", path, quote(name)));
    }
    table.names.push_back(name);
    for (std::size_t row = 0; row < words.rows.size(); ++row) table.x.push_back(number_at(words, row, *found, path));
  }
  return table;
}

SummaryTable read_summary(std::string_view text, const std::string& name) {
  const WordTable words = read_words(text, name);
  std::optional<std::size_t> id = find_any(words, {"rsid", "snp", "id", "name", "variant", "variant_id"});
  if (!id && words.heads.front().empty()) id = 0;  // row names
  const std::optional<std::size_t> z = find_any(words, {"z", "zscore", "z_score"});
  const std::optional<std::size_t> beta = find_any(words, {"beta", "b", "effect"});
  const std::optional<std::size_t> se = find_any(words, {"se", "standard_error", "stderr"});
  if (!z && !(beta && se)) {
    throw InputError(fmt::format("{}: found the columns {}, expected one named z, or beta and se", name,
                                 fmt::join(words.heads, ", ")));
  }
  SummaryTable table;
  table.source = name;
  std::vector<std::size_t> extra;
  for (std::size_t k = 0; k < words.heads.size(); ++k) {
    if (k == id || k == z) continue;
    table.extra_heads.push_back(words.heads[k]);
    extra.push_back(k);
  }
  const std::optional<std::size_t> n = find_any(words, {"n", "sample_size"});
  std::vector<double> sizes;
  for (std::size_t row = 0; row < words.rows.size(); ++row) {
    table.names.push_back(id ? words.rows[row][*id] : fmt::format("x[{}]", row));
    if (z) {
      table.z.push_back(number_at(words, row, *z, name));
    } else {
      const double error = number_at(words, row, *se, name);
      if (!(error > 0.0)) {
        fail_at(name, words.lines[row], fmt::format("found a standard error of {}, expected a positive number", error));
      }
      table.z.push_back(number_at(words, row, *beta, name) / error);
    }
    if (n) {
      sizes.push_back(number_at(words, row, *n, name));
      if (!(sizes.back() > 0.0)) {
        fail_at(name, words.lines[row],
                fmt::format("found a sample size of {}, expected a positive number", sizes.back()));
      }
    }
    std::vector<std::string>& own = table.extra.emplace_back();
    for (const std::size_t k : extra) own.push_back(words.rows[row][k]);
  }
  // The median stands for sample sizes that differ.
  if (!sizes.empty()) {
    std::nth_element(sizes.begin(), sizes.begin() + std::ssize(sizes) / 2, sizes.end());
    table.n = sizes[sizes.size() / 2];
  }
  return table;
}

SummaryTable read_summary(const std::string& path) { return read_summary(read_file(path, kLongestTable), path); }

std::vector<FinemapInput> read_master(const std::string& path) {
  const WordTable words = read_words(read_file(path), path);
  std::vector<FinemapInput> out;
  const auto word = [&](std::size_t row, std::string_view head) {
    const std::optional<std::size_t> k = find_head(words, head);
    return k ? words.rows[row][*k] : std::string();
  };
  for (std::size_t row = 0; row < words.rows.size(); ++row) {
    FinemapInput one{word(row, "z"), word(row, "ld"), word(row, "snp"), word(row, "config"), word(row, "cred"), {}};
    if (one.z.empty() || one.ld.empty()) {
      fail_at(path, words.lines[row],
              "found no file of z or ld, expected a master file with columns z, ld and n_samples");
    }
    if (const std::optional<std::size_t> k = find_any(words, {"n_samples", "n"})) {
      one.n = number_at(words, row, *k, path);
    }
    out.push_back(std::move(one));
  }
  if (out.empty()) throw InputError(fmt::format("{}: found no rows, expected a data set in each", path));
  return out;
}

}  // namespace poise
