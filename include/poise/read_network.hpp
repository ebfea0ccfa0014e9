/// Networks, evidence, marginals and partition functions from and to files: UAI and BIF.
///
/// What is wrong with a file is an InputError that names the file, the line, what was found and what was expected. No
/// size that a file declares is believed before the file is known to be long enough for it.
#pragma once

#include <string>
#include <string_view>

#include <poise/network.hpp>

namespace poise {

/// Reads a network; the ending of the path says how: `.uai` or `.bif`.
[[nodiscard]] Network read_network(const std::string& path);

/// The UAI format: `MARKOV` or `BAYES`, the number of variables and their cardinalities, the number of factors and
/// their scopes (`size variable ...`), then their tables (`size number ...`), in any layout. '#' starts a comment, and
/// so does a line that begins with the word `c`. In a network of type BAYES each variable must be the last one in one
/// scope, without cycles, and its numbers must add up to 1 for each combination of the others, up to rounding, or all
/// be 0. The file is read in chunks, so that memory is needed for the network only.
[[nodiscard]] Network read_uai(const std::string& path);

/// The Bayesian Interchange Format as JavaBayes and bnlearn write it: blocks `variable` and `probability`, the latter
/// with rows `(level, ...) number, ...;`, with a `default` row, or with one `table` in which the child changes slowest.
/// Comments and properties are skipped. The scope of a factor is the parents, then the child.
[[nodiscard]] Network read_bif(const std::string& path);

/// Reads evidence for a network, by content: UAI evidence in its present form (`count variable level ...`, on any
/// number of lines) or in the older form (the number of samples, here 1, before that), where an empty file means none;
/// or lines `variable = level`, each a name or a number. Where a name of a level is itself a number, the name counts.
[[nodiscard]] Evidence read_evidence(const std::string& path, const Network& network);

/// The same from text; `name` is for messages.
[[nodiscard]] Network parse_uai(std::string_view content, std::string_view name);
[[nodiscard]] Network parse_bif(std::string_view content, std::string_view name);
[[nodiscard]] Evidence parse_evidence(std::string_view content, std::string_view name, const Network& network);

/// Marginals in the UAI format: `MAR`, then the number of variables and for each its cardinality and probabilities. Of
/// several solutions in a file, separated by `-BEGIN-`, the last one counts; the older form with the number of samples,
/// here 1, before the number of variables is read as well.
[[nodiscard]] std::string mar_text(const Marginals& marginals);
[[nodiscard]] Marginals parse_mar(std::string_view content, std::string_view name);
[[nodiscard]] Marginals read_mar(const std::string& path);

/// A partition function in the UAI format: `PR`, then its logarithm to the base 10.
[[nodiscard]] std::string pr_text(double log_partition);

}  // namespace poise
