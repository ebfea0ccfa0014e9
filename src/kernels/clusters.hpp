/// Clusters of variables that are alike: the bonds of a model, how a cluster grows along them, and what is done with
/// the state afterwards.
///
/// Where log p is a sum of w_ij [x_i = x_j] with all w_ij >= 0, two neighbours that are alike are joined with
/// probability 1 - e^-w. Given these bonds every cluster takes any level with the same probability.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/hot.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

/// Random words for one step: what is left of them at its end is not used, so nothing of them need be kept.
class StepWords {
 public:
  explicit StepWords(Rng& rng) : rng_(rng) {}
  POISE_INLINE std::uint64_t next() {
    if (position_ == words_.size()) {
      rng_.fill(words_);
      position_ = 0;
    }
    return words_[position_++];
  }
  /// Uniform on 0 .. count-1.
  POISE_INLINE Index below(Index count) {
    return static_cast<Index>(static_cast<unsigned __int128>(next()) * count >> 64);
  }

 private:
  Rng& rng_;
  alignas(64) std::array<std::uint64_t, std::size_t{2}* Rng::kBatch> words_ = {};
  std::size_t position_ = words_.size();
};

/// The neighbours of every variable, and how strongly they hold together. A probability has 64 binary digits, of which
/// the first sixteen decide nearly always; so one random word serves four bonds, and each list is filled up to a
/// multiple of four with bonds of a variable to itself, which join nothing.
class BondGraph {
 public:
  struct Pair {
    Index first;
    Index second;
    double weight;  ///< what being alike adds to log p
  };
  struct Bond {
    Index variable;
    double probability;  ///< of joining the two where they are alike, to 64 binary digits
  };

  BondGraph(Index variables, Index levels, std::span<const Pair> pairs);

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(start_.size() - 1); }
  [[nodiscard]] Index levels() const { return levels_; }  ///< of every variable
  [[nodiscard]] std::vector<Bond> bonds(Index i) const;

  /// Adds to a cluster, whose only member is members[0] so far, all that joins it out of those at level `alike`. They
  /// are marked by `mark` in place of their level; members[0] already is. `members` has room for all variables and one
  /// more. Gives the size of the cluster.
  template <class Words>
  POISE_INLINE Index grow(Value* __restrict levels, Value alike, Value mark, Index* __restrict members,
                          Words& words) const {
    // As values: for all the compiler knows, marking a level might change what a vector points to.
    const std::size_t* const start = start_.data();
    const Index* const neighbours = neighbours_.data();
    const std::uint16_t* const high = high_.data();
    const std::size_t length = length_;
    const std::size_t all = is_uniform() ? 0 : ~std::size_t{0};
    const unsigned change = alike ^ mark;
    Index size = 1;
    for (Index done = 0; done < size; ++done) {
      const Index i = members[done];
      const std::size_t first = length > 0 ? i * length : start[i];
      const std::size_t end = length > 0 ? first + length : start[i + std::size_t{1}];
      for (std::size_t bond = first; bond < end; bond += kTogether) {
        const std::uint64_t word = words.next();
        for (unsigned k = 0; k < kTogether; ++k) {
          const Index j = neighbours[bond + k];
          const unsigned digits = static_cast<std::uint16_t>(word >> (kDigits * k));
          const unsigned most = high[(bond + k) & all];
          const unsigned level = levels[j];
          unsigned below = static_cast<unsigned>(digits < most);
          if (digits == most) [[unlikely]] {
            below = static_cast<unsigned>(words.next() >> kDigits < low_[(bond + k) & all]);
          }
          // Without branches: nothing foretells which neighbours join, and a wrong guess costs more than all this.
          const unsigned joins = below & static_cast<unsigned>(level == alike);
          members[size] = j;
          size += joins;
          levels[j] = static_cast<Value>(level ^ (change & (0U - joins)));
        }
      }
    }
    return size;
  }

 private:
  static constexpr unsigned kTogether = 4;  // bonds that share a random word
  static constexpr unsigned kDigits = 16;   // of it, that each has

  /// Whether all bonds have one probability, which is then there once.
  [[nodiscard]] POISE_INLINE bool is_uniform() const { return high_.size() == 1; }

  Index levels_;
  std::vector<std::size_t> start_;   // of the lists, variables + 1
  std::size_t length_ = 0;           // of every list, if they have the same
  std::vector<Index> neighbours_;    // of all variables, list after list
  std::vector<std::uint16_t> high_;  // the first digits of the probabilities, bond by bond
  std::vector<std::uint64_t> low_;   // and those that follow
};

/// The memory of cluster kernels: levels in an array of their own, which clusters are marked in, and what a step made
/// of the state.
struct ClusterScratch {
  explicit ClusterScratch(Index variables) : levels(variables), members(variables + few(variables) + std::size_t{1}) {
    changed.reserve(variables);
  }

  /// Members of a step's clusters that are looked at one by one when it ends; where they are more, all variables are.
  [[nodiscard]] static Index few(Index variables) { return variables / 8; }

  /// Takes the levels of a state over.
  template <Target T>
  void take(const T& target, const typename T::State& state) {
    for (Index i = 0; i < levels.size(); ++i) levels[i] = target.level(state, i);
  }

  /// Puts a state at the present levels, where any variable may have changed, and lists the changes.
  template <Target T>
  POISE_INLINE void put(const T& target, typename T::State& state) {
    changed.clear();
    const auto n = static_cast<Index>(levels.size());
    const Index moves = n > 0 ? target.cardinality(0) - 1 : 1;
    for (Index first = 0; first < n; first += kBlock) {
      std::array<Change, kBlock> block;
      unsigned count = 0;
      for (Index i = first; i < std::min(n, first + kBlock); ++i) {
        const Value old = target.level(state, i);
        block[count] = {i, i * moves, old};
        count += old != levels[i] ? 1 : 0;
      }
      changed.insert(changed.end(), block.begin(), block.begin() + count);
    }
    if constexpr (requires { target.assign(state, std::span<const Value>(levels)); }) {
      target.assign(state, std::span<const Value>(levels));
    } else {
      for (const Change& change : changed) target.apply(state, {change.variable, levels[change.variable]});
    }
  }

  /// The same where only the first `count` members may have changed; a variable may be among them several times.
  template <Target T>
  POISE_INLINE void put_members(const T& target, typename T::State& state, Index count) {
    changed.clear();
    const Index moves = target.cardinality(0) - 1;
    for (Index k = 0; k < count; ++k) {
      const Index i = members[k];
      const Value old = target.level(state, i);
      if (old == levels[i]) continue;
      target.apply(state, {i, levels[i]});
      changed.push_back({i, i * moves, old});
    }
  }

  static constexpr Index kBlock = 64;

  std::vector<Value> levels;  // of the present state
  std::vector<Index> members;
  std::vector<Change> changed;
  Evals evals;
};

}  // namespace poise
