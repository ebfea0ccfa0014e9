/// A small random model and what enumeration says of it.
///
/// log p is written down here a second time, from the numbers that the model is made of and by nothing of the library,
/// so that a test compares two programs and not one with itself.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/check/exactness.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>

namespace poise::laws {

using LogProb = std::function<double(std::span<const Value>)>;

/// log p(x) = constant + sum_i field[i] x[i] + sum over couplings of value x[i] x[j], x[i] in {-1, +1}.
struct Spins {
  struct Coupling {
    Index i;
    Index j;
    double value;
  };
  std::vector<double> field;
  std::vector<Coupling> couplings;
  double constant = 0.0;

  [[nodiscard]] double log_prob(std::span<const Value> x) const;
};

struct SmallModel {
  std::string kind;    ///< a row of the table
  std::string recipe;  ///< what was drawn, in a few words
  Model model;
  std::vector<Index> cardinalities;
  LogProb log_prob;
  bool has_constant = true;  ///< whether log p is complete, so that its sum is the partition function

  // What else is known of the same model; empty where it is not of that kind.
  std::optional<Spins> spins = {};
  std::shared_ptr<const Network> network = {};
  std::shared_ptr<const Rbm> rbm = {};
  std::string text = {};  ///< how the program is told of it
  ModelFiles files = {};
};

/// What is known of a distribution: what runs are judged by.
struct Known {
  Marginals marginals;  ///< of the first variables; later ones are not judged
  std::optional<double> mean_log_prob = {};
  double sd_log_prob = 0.0;
};

struct Truth {
  StateSpace space;
  double log_partition = 0.0;
  double spread = 0.0;  ///< largest less smallest log p of possible states
  Known known;
};

[[nodiscard]] Truth enumerate(const SmallModel& small);

/// Where the files of one model lie while it is being tested.
struct Folder {
  std::filesystem::path path;
  std::string stem;  ///< of the names of the model's files

  /// Writes a file and gives its path.
  [[nodiscard]] std::string write(const std::string& ending, const std::string& content) const;
};

/// The kinds there are, in the order in which models take turns.
[[nodiscard]] std::vector<std::string> kinds();

/// Model number `number` of a seed; its kind is number modulo the number of kinds.
[[nodiscard]] SmallModel make_small_model(std::uint64_t seed, std::uint64_t number, const Folder& folder);

}  // namespace poise::laws
