/// Observations from tables with a head.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "models/selection/read_selection.hpp"

namespace poise {

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
  if (std::count(words.heads.begin(), words.heads.end(), response) > 1) {
    throw InputError(fmt::format("--response: found {} columns {} in {}, expected one",
                                 std::count(words.heads.begin(), words.heads.end(), response), quote(response), name));
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
  return read_regression(read_data_file(path), path, response);
}

RegressionTable read_columns(const std::string& path, const std::vector<std::string>& names) {
  const WordTable words = read_words(read_data_file(path), path);
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

}  // namespace poise
