/// Slices of a network: the combinations of levels of the variables that a plan conditions on, and who works on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "exact/exact_inference.hpp"
#include "models/network/support.hpp"

namespace poise::exact {

/// One combination of levels after another, the first variable slowest. Zeros are propagated after each level, so that
/// all combinations that begin with what they rule out are passed over at once.
class Slices {
 public:
  Slices(const Network& network, const std::vector<Index>& variables)
      : network_(network), variables_(variables), levels_(variables.size(), 0), zeros_(network.has_zeros()) {
    if (network_.observed.empty()) network_.observed.assign(network.num_variables(), Network::kFree);
  }

  /// False after the last.
  bool next() {
    std::size_t k = started_ ? variables_.size() - 1 : 0;
    Index level = started_ ? levels_[k] + 1 : 0;
    started_ = true;
    while (true) {
      if (level == network_.cardinalities[variables_[k]]) {
        network_.observed[variables_[k]] = Network::kFree;
        if (k == 0) return false;
        level = levels_[--k] + 1;
        continue;
      }
      network_.observed[variables_[k]] = levels_[k] = level;
      if (!possible()) {
        ++level;
      } else if (k + 1 == variables_.size()) {
        return true;
      } else {
        ++k;
        level = 0;
      }
    }
  }
  /// The network of the slice.
  [[nodiscard]] const Network& network() const { return network_; }
  /// Fraction of all combinations that are passed, 0 to 1.
  [[nodiscard]] double passed() const {
    double fraction = 0.0;
    double unit = 1.0;
    for (std::size_t k = 0; k < variables_.size(); ++k) {
      unit /= network_.cardinalities[variables_[k]];
      fraction += unit * levels_[k];
    }
    return fraction;
  }

 private:
  [[nodiscard]] bool possible() const {
    if (!zeros_) return true;
    try {
      (void)propagate_zeros(network_);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  Network network_;
  const std::vector<Index>& variables_;
  std::vector<Index> levels_;
  bool zeros_;
  bool started_ = false;
};

/// How threads are shared out: so many slices at a time, with so many threads each. Slices keep out of each other's
/// way, so there are as many at a time as there is memory for.
struct Sharing {
  std::size_t at_a_time = 1;
  unsigned threads_each = 1;

  Sharing(const ExactPlan& plan, const ExactOptions& options) {
    const unsigned all = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
    const double room = std::min(options.memory_limit / plan.tree.bytes, plan.slices);
    at_a_time = static_cast<std::size_t>(std::clamp(room, 1.0, static_cast<double>(all)));
    threads_each = std::max(1U, all / static_cast<unsigned>(at_a_time));
  }
};

/// Throws InputError with all numbers where a plan exceeds the limits of memory or time.
void check_limits(const ExactPlan& plan, const ExactOptions& options);

}  // namespace poise::exact
