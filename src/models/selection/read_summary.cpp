/// z scores from tables, arrays and plain numbers; FINEMAP's master files.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "base/npz.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

SummaryTable numbered(std::vector<double> z, const std::string& name) {
  SummaryTable table;
  table.source = name;
  table.is_numbered = true;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (std::isnan(z[j])) refuse_file(name, fmt::format("entry {} is not a number", j));
    table.names.push_back(fmt::format("x[{}]", j));
  }
  table.extra.resize(z.size());
  table.z = std::move(z);
  return table;
}

SummaryTable read_array(std::string_view content, const std::string& name) {
  NumberArray array = numbers_of(parse_npy(content, name), name);
  std::size_t longest = 1;
  for (const std::uint64_t one : array.shape) longest = std::max<std::size_t>(longest, one);
  if (array.shape.empty() || array.values.size() != longest) {
    refuse_file(name, fmt::format("found an array of shape {}, expected z scores in a row", shape_text(array.shape)));
  }
  return numbered(std::move(array.values), name);
}

/// Whether a table has no head: its first line is a number.
bool is_headless(const WordTable& table) { return table.heads.size() == 1 && number_of(table.heads[0]); }

SummaryTable read_plain(const WordTable& words, const std::string& name) {
  std::vector<double> z{*number_of(words.heads[0])};
  for (std::size_t row = 0; row < words.rows.size(); ++row) {
    const std::optional<double> value = number_of(words.rows[row][0]);
    if (!value) {
      fail_at(name, words.lines[row], fmt::format("found {}, expected a z score", quote(words.rows[row][0])));
    }
    z.push_back(*value);
  }
  return numbered(std::move(z), name);
}

}  // namespace

SummaryTable read_summary(std::string_view text, const std::string& name) {
  if (text.starts_with(kNpyMagic)) return read_array(text, name);
  const WordTable words = read_words(text, name);
  if (is_headless(words)) return read_plain(words, name);
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
  table.is_numbered = !id;
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

SummaryTable read_summary(const std::string& path) { return read_summary(read_data_file(path), path); }

std::vector<double> read_inclusions(const std::string& path, const std::vector<std::string>& names) {
  const WordTable words = read_words(read_data_file(path), path);
  const std::optional<std::size_t> column = find_any(words, {"prob", "prior", "inclusion", "pip"});
  if (!column) {
    throw InputError(
        fmt::format("{}: found the columns {}, expected one named prob", path, fmt::join(words.heads, ", ")));
  }
  const std::size_t id = find_any(words, {"rsid", "snp", "id", "name", "variable"}).value_or(0);
  std::unordered_map<std::string, double> known;
  for (std::size_t row = 0; row < words.rows.size(); ++row) {
    known.emplace(words.rows[row][id], number_at(words, row, *column, path));
  }
  std::vector<double> out;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    if (found == known.end()) {
      throw InputError(fmt::format("{}: found no row for {}, expected one for each variable", path, quote(name)));
    }
    out.push_back(found->second);
  }
  return out;
}

std::vector<FinemapInput> read_master(const std::string& path) {
  const WordTable words = read_words(read_data_file(path), path);
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
