/// Sums of non-negative weights in a 16-ary tree: draw an entry in proportion to its weight, change a few, draw again.
///
/// A node is sixteen doubles, two cache lines. A changed node is summed anew from its children, so nothing drifts. Nodes
/// are only ever written as whole vectors (load, blend the changed lane, store): a scalar store followed by a vector
/// load of the same line would stall on store forwarding at every level of every step.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <poise/simd.hpp>
#include <poise/types.hpp>

namespace poise {

class WeightTree {
 public:
  static constexpr Index kWidth = 16;

  explicit WeightTree(Index entries = 1) : entries_(entries) {
    std::size_t offset = 0;
    for (Index n = entries;;) {
      const Index nodes = (n + kWidth - 1) / kWidth;
      level_.push_back(offset);
      offset += std::size_t{nodes} * kWidth;
      if (nodes == 1) break;
      n = nodes;
    }
    size_ = offset;
    data_.reset(static_cast<double*>(std::aligned_alloc(64, size_ * sizeof(double))));
    if (!data_) throw std::bad_alloc();
    std::fill(data_.get(), data_.get() + size_, 0.0);
  }

  [[nodiscard]] Index size() const { return entries_; }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] double weight(Index entry) const { return data_[entry]; }

  /// All weights, to be filled at once; `rebuild` afterwards.
  [[nodiscard]] std::span<double> weights() { return {data_.get(), entries_}; }
  [[nodiscard]] std::span<const double> weights() const { return {data_.get(), entries_}; }

  void rebuild() {
    Index n = entries_;
    for (std::size_t level = 0; level + 1 < level_.size(); ++level) {
      const Index nodes = (n + kWidth - 1) / kWidth;
      for (Index node = 0; node < nodes; ++node) data_[level_[level + 1] + node] = sum_node(level, node);
      n = nodes;
    }
    total_ = sum_node(level_.size() - 1, 0);
  }

  /// The entry in which `target`, a number in [0, total), falls.
  POISE_INLINE Index select(double target) const {
    Index node = 0;
    for (std::size_t level = level_.size(); level-- > 0;) {
      node = node * kWidth + select_child(data_.get() + level_[level] + std::size_t{node} * kWidth, target);
    }
    return node;
  }

  /// Sets `count` entries; entries that are near each other share the work on their common nodes.
  POISE_INLINE void update(const Index* entries, const double* weights, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) set_lane(0, entries[k], weights[k]);
    unsigned shift = 4;
    for (std::size_t level = 0; level + 1 < level_.size(); ++level, shift += 4) {
      Index previous = ~Index{0};
      for (std::size_t k = 0; k < count; ++k) {
        const Index node = entries[k] >> shift;
        if (node == previous) continue;
        set_lane(level + 1, node, sum_node(level, node));
        previous = node;
      }
    }
    total_ = sum_node(level_.size() - 1, 0);
  }

 private:
  struct Free {
    void operator()(double* p) const { std::free(p); }
  };

  POISE_INLINE double sum_node(std::size_t level, Index node) const {
    const double* p = data_.get() + level_[level] + std::size_t{node} * kWidth;
    return sum8(load8(p) + load8(p + 8));
  }

  POISE_INLINE void set_lane(std::size_t level, Index entry, double weight) {
    double* p = data_.get() + level_[level] + (entry & ~Index{7});
    constexpr Ints8 kLanes = {0, 1, 2, 3, 4, 5, 6, 7};
    const std::int64_t lane = entry & 7;
    store8(p, kLanes == lane ? weight : load8(p));
  }

  /// Index of the child of a node in which `target` falls; `target` becomes the rest within that child.
  POISE_INLINE static Index select_child(const double* p, double& target) {
    const Doubles8 a = prefix_sums(load8(p));
    const Doubles8 b = prefix_sums(load8(p + 8)) + a[7];
    alignas(64) double before[kWidth + 8];
    before[7] = 0.0;
    store8(before + 8, a);
    store8(before + 16, b);
    const Ints8 counts = (a <= target) + (b <= target);  // -1 for every child that ends at or before the target
    const std::int64_t index = -sum_lanes(counts);
    Index child = index < kWidth ? static_cast<Index>(index) : kWidth - 1;
    // Rounding can push the target past the last positive weight; step back to it.
    while (p[child] <= 0.0 && child > 0) --child;
    target -= before[7 + child];
    return child;
  }

  POISE_INLINE static Doubles8 prefix_sums(Doubles8 v) {
    constexpr Doubles8 zero = {};
    v += __builtin_shufflevector(zero, v, 0, 8, 9, 10, 11, 12, 13, 14);
    v += __builtin_shufflevector(zero, v, 0, 0, 8, 9, 10, 11, 12, 13);
    v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 8, 9, 10, 11);
    return v;
  }

  POISE_INLINE static std::int64_t sum_lanes(Ints8 v) {
    using Ints4 = std::int64_t __attribute__((vector_size(32)));
    using Ints2 = std::int64_t __attribute__((vector_size(16)));
    const Ints4 a = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    const Ints2 b = __builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3);
    return b[0] + b[1];
  }

  Index entries_;
  std::size_t size_ = 0;
  std::vector<std::size_t> level_;  // where each level starts in data_; level 0 holds the weights themselves
  std::unique_ptr<double[], Free> data_;
  double total_ = 0.0;
};

}  // namespace poise
