/// The joint distribution of a few variables: exact by one variable more in the network, or from draws.
///
/// The variable has a level for every combination of levels of the queried ones, and factors of zeros and ones tie it
/// to each of them. Its marginal is their joint distribution, so a junction tree needs no code of its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <poise/marginals.hpp>

namespace poise {

class JointQuery {
 public:
  /// Throws InputError where the table would have more than 100 000 entries.
  JointQuery(std::shared_ptr<const Network> network, std::vector<Index> variables);

  /// The network with the variable of the query, which is its last one.
  [[nodiscard]] const Network& network() const { return tied_; }
  [[nodiscard]] Index joint_variable() const { return tied_.num_variables() - 1; }

  /// Whether variables of a network (ascending; empty: all) hold those of the query that are not observed.
  [[nodiscard]] bool is_among(std::span<const Index> variables) const;

  /// Takes the last variable out of marginals and makes the joint table of it.
  [[nodiscard]] Joint take_from(Marginals& marginals) const;

  /// Frequencies in the draws of a run on `network`, whose variable k is `variables[k]` of the whole, or k where
  /// `variables` is empty. Errors are those of the mean of an indicator, and for combinations that were hardly seen
  /// those of `marginals_of`. Not a number throughout where the states of the draws were not kept.
  [[nodiscard]] Joint from_draws(const RunResult& result, std::span<const double> effective_draws,
                                 std::span<const Index> variables) const;

 private:
  [[nodiscard]] Joint empty() const;
  /// The entry of the table for a level of the joint variable.
  [[nodiscard]] std::size_t entry_of(std::size_t level) const;

  std::shared_ptr<const Network> network_;
  std::vector<Index> variables_;
  std::vector<Index> free_;  // of them, those that are not observed
  std::size_t size_ = 1;     // entries of the table
  std::size_t levels_ = 1;   // of the joint variable
  Network tied_;
};

/// Draws that the run is worth for each variable: the smaller of the effective sample sizes of log_prob and of the
/// variable.
[[nodiscard]] std::vector<double> effective_draws(const RunResult& result, const Report& report);

/// The standard error of a frequency, where what was seen `visits` times in `draws` effective draws says too little of
/// itself.
[[nodiscard]] double with_few_visits(double error, double visits, double draws);

}  // namespace poise
