/// What readers of selection data share with the models made from them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/extend/models/selection_data.hpp>
#include "models/selection/cross_products.hpp"

namespace poise {

/// A table of words with a head. Fields are separated by commas, tabs, semicolons or blanks, whichever the first line
/// has, and may be in double quotes.
struct WordTable {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  ///< number of each row in the file
};
[[nodiscard]] WordTable read_words(std::string_view text, const std::string& name);

/// A number, or nothing where a word is none; "NA", "NaN" and the like are none.
[[nodiscard]] std::optional<double> number_of(const std::string& word);

/// Columns of a table by their names.
[[nodiscard]] RegressionTable read_columns(const std::string& path, const std::vector<std::string>& names);

/// A model by its spec: selection:data=FILE,response=NAME or selection:z=FILE,ld=FILE,n=N.
[[nodiscard]] Model read_selection_model(const Spec& spec);

/// Rows of a .npy file of correlations, read when they are wanted, times `scale`.
[[nodiscard]] std::shared_ptr<const CrossProducts> map_correlations(const std::string& path, Index size, double scale);

}  // namespace poise
