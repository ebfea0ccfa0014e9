/// What readers of selection data share with the models made from them.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
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
/// A file of data, unpacked where it is a gzip file.
[[nodiscard]] std::string read_data_file(const std::string& path);

/// The column with a head; of several heads, the first that is there, whatever its case.
[[nodiscard]] std::optional<std::size_t> find_head(const WordTable& table, std::string_view name);
[[nodiscard]] std::optional<std::size_t> find_any(const WordTable& table,
                                                  std::initializer_list<std::string_view> names);
/// Throws an InputError with line and column where a field is no number.
[[nodiscard]] double number_at(const WordTable& table, std::size_t row, std::size_t column, const std::string& name);

/// A number, or nothing where a word is none; "NA", "NaN" and the like are none.
[[nodiscard]] std::optional<double> number_of(const std::string& word);

/// Columns of a table by their names.
[[nodiscard]] RegressionTable read_columns(const std::string& path, const std::vector<std::string>& names);

/// A model by its spec: selection:data=FILE,response=NAME or selection:z=FILE,ld=FILE,n=N.
[[nodiscard]] Model read_selection_model(const Spec& spec);

/// Correlations from an npz file: a sparse matrix of SciPy's, or one dense array.
[[nodiscard]] SymmetricMatrix read_npz_correlations(std::string_view content, const std::string& name);

/// Rows of a .npy file of correlations, read when they are wanted, times `scale`.
[[nodiscard]] std::shared_ptr<const CrossProducts> map_correlations(const std::string& path, Index size, double scale);

}  // namespace poise
