/// Sums of non-negative weights in a 16-ary tree: draw an entry in proportion to its weight, change a few, draw again.
///
/// A node is sixteen doubles, two cache lines. A changed node is summed anew from its children, so nothing drifts.
/// Nodes are only ever written as whole vectors (load, blend the changed lane, store): a scalar store followed by a
/// vector load of the same line would stall on store forwarding at every level of every step.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <poise/extend/base/simd.hpp>
#include <poise/types.hpp>

namespace poise {

class WeightTree {
 public:
  static constexpr Index kWidth = 16;

  explicit WeightTree(Index entries = 1) : entries_(entries) {
    std::array<std::size_t, kMaxLevels> start{};
    std::size_t size = 0;
    Index n = entries;
    do {
      const Index nodes = (n + kWidth - 1) / kWidth;
      start[levels_++] = size;
      size += std::size_t{nodes} * kWidth;
      top_ = n;
      n = nodes;
    } while (n > 1);
    data_.reset(allocate(size));
    std::fill(data_.get(), data_.get() + size, 0.0);
    for (unsigned level = 0; level < levels_; ++level) level_[level] = data_.get() + start[level];
  }

  [[nodiscard]] Index size() const { return entries_; }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] double weight(Index entry) const { return level_[0][entry]; }

  /// All weights, to be filled at once; `rebuild` afterwards.
  [[nodiscard]] std::span<double> weights() { return {data_.get(), entries_}; }
  [[nodiscard]] std::span<const double> weights() const { return {data_.get(), entries_}; }

  /// Sums follow from the weights.
  template <class A>
  void archive(A& archive) {
    std::vector<double> weights(data_.get(), data_.get() + entries_);
    archive(weights);
    std::copy(weights.begin(), weights.end(), data_.get());
    rebuild();
  }

  void rebuild() {
    Index n = entries_;
    for (unsigned level = 0; level + 1 < levels_; ++level) {
      n = (n + kWidth - 1) / kWidth;
      for (Index node = 0; node < n; ++node) level_[level + 1][node] = sum_node(level_[level], node);
    }
    total_ = sum_top();
  }

  /// The entry in which `target`, a number in [0, total), falls.
  POISE_INLINE Index select(double target) const {
    const Index node = find_node(target);
    return find_entry(node, target);
  }

  // The two halves of select, for callers that do something else while the weights of the node come from memory.

  /// The node of sixteen weights in which `target` falls; `target` becomes the rest within it.
  POISE_INLINE Index find_node(double& target) const {
    unsigned level = levels_ - 1;
    if (level == 0) return 0;
    Index node = top_ <= 4 ? select_of_four(level_[level], target) : select_child(level_[level], target);
    while (--level > 0) {
      node = node * kWidth + select_child(level_[level] + std::size_t{node} * kWidth, target);
    }
    __builtin_prefetch(level_[0] + std::size_t{node} * kWidth);
    __builtin_prefetch(level_[0] + std::size_t{node} * kWidth + 8);
    return node;
  }
  POISE_INLINE Index find_entry(Index node, double target) const {
    return node * kWidth + select_child(level_[0] + std::size_t{node} * kWidth, target);
  }

  /// Whether the weights are too many for the caches near the processor, so that fetching them ahead pays.
  [[nodiscard]] bool is_large() const { return levels_ > 3; }
  /// Fetches the weight of an entry, and those beside it.
  POISE_INLINE void prefetch_weight(Index entry) const { __builtin_prefetch(level_[0] + entry, 1); }
  /// Fetches what an update of the entry will touch.
  POISE_INLINE void prefetch(Index entry) const {
    const double* node = level_[0] + std::size_t{entry / kWidth} * kWidth;
    __builtin_prefetch(node, 1);
    __builtin_prefetch(node + 8, 1);
    __builtin_prefetch(level_[1] + entry / kWidth, 1);
  }

  /// Sets `count` entries; entries that are near each other share the work on their common nodes.
  POISE_INLINE void update(const Index* entries, const double* weights, std::size_t count) {
    constexpr std::size_t kAtOnce = 32;
    for (std::size_t first = 0; first < count; first += kAtOnce) {
      update_some(entries + first, weights + first, std::min(kAtOnce, count - first));
    }
    total_ = sum_top();
  }

 private:
  static constexpr unsigned kMaxLevels = 8;  // 16^8 entries and more than an Index can count

  struct Free {
    void operator()(double* p) const { std::free(p); }
  };

  /// Large trees ask for large pages: steps go all over them, and small pages are more than the processor's table of
  /// them holds.
  static double* allocate(std::size_t size) {
    constexpr std::size_t line = 64;
    constexpr std::size_t large_page = std::size_t{1} << 21;
    const std::size_t alignment = size * sizeof(double) >= large_page ? large_page : line;
    const std::size_t bytes = (size * sizeof(double) + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == large_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<double*>(memory);
  }

  POISE_INLINE void update_some(const Index* entries, const double* weights, std::size_t count) {
    Index nodes[32];
    std::size_t different = 0;
    Index previous = ~Index{0};
    for (std::size_t k = 0; k < count; ++k) {
      set_lane(level_[0], entries[k], weights[k]);
      const Index node = entries[k] / kWidth;
      nodes[different] = node;
      different += node != previous ? 1 : 0;
      if (node != previous) previous = node;
    }
    for (unsigned level = 0; level + 1 < levels_; ++level) {
      const std::size_t here = different;
      different = 0;
      previous = ~Index{0};
      for (std::size_t k = 0; k < here; ++k) {
        set_lane(level_[level + 1], nodes[k], sum_node(level_[level], nodes[k]));
        const Index parent = nodes[k] / kWidth;
        if (parent != previous) nodes[different++] = parent;
        previous = parent;
      }
    }
  }

  POISE_INLINE static double sum_node(const double* level, Index node) {
    const double* p = level + std::size_t{node} * kWidth;
    return sum8(load8(p) + load8(p + 8));
  }

  POISE_INLINE double sum_top() const {
    const double* p = level_[levels_ - 1];
    return top_ <= 4 ? sum4(load4(p)) : sum_node(p, 0);
  }

  POISE_INLINE static Doubles8::Half load4(const double* p) {
    Doubles8::Half v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  POISE_INLINE static void set_lane(double* level, Index entry, double weight) {
    double* p = level + (entry & ~Index{3});
    constexpr Ints8::Half kLanes = {0, 1, 2, 3};
    const Doubles8::Half v = kLanes == static_cast<std::int64_t>(entry & 3) ? weight : load4(p);
    std::memcpy(p, &v, sizeof v);
  }

  /// The same as select_child for a node with at most four children.
  POISE_INLINE static Index select_of_four(const double* p, double& target) {
    const double a = p[0], b = a + p[1], c = b + p[2];
    Index child = (a <= target ? 1U : 0U) + (b <= target ? 1U : 0U) + (c <= target ? 1U : 0U);
    while (p[child] <= 0.0 && child > 0) --child;
    target -= child == 0 ? 0.0 : child == 1 ? a : child == 2 ? b : c;
    return child;
  }

  /// Index of the child of a node in which `target` falls; `target` becomes the rest within that child.
  POISE_INLINE static Index select_child(const double* p, double& target) {
    const Doubles8 first = prefix_sums(load8(p));
    const Doubles8 second = prefix_sums(load8(p + 8)) + first.high[3];
    alignas(32) double before[kWidth + 4];
    before[3] = 0.0;
    store8(before + 4, first);
    store8(before + 12, second);
    const Doubles8 wanted = broadcast8(target);
    const Ints8 ended = less_equal8(first, wanted) + less_equal8(second, wanted);  // -1 for every child that ends
    const std::int64_t index = -sum4(ended.low + ended.high);                      // at or before the target
    Index child = index < kWidth ? static_cast<Index>(index) : kWidth - 1;
    // Rounding can push the target past the last positive weight; step back to it.
    while (p[child] <= 0.0 && child > 0) --child;
    target -= before[3 + child];
    return child;
  }

  POISE_INLINE static Doubles8 prefix_sums(Doubles8 v) {
    v.low = prefix_sums(v.low);
    v.high = prefix_sums(v.high);
    v.high += v.low[3];
    return v;
  }
  POISE_INLINE static Doubles8::Half prefix_sums(Doubles8::Half v) {
    constexpr Doubles8::Half zero = {};
    v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
    v += __builtin_shufflevector(zero, v, 0, 0, 4, 5);
    return v;
  }

  Index entries_;
  Index top_ = 0;  // entries of the top level
  unsigned levels_ = 0;
  std::array<double*, kMaxLevels> level_{};  // level 0 holds the weights themselves
  std::unique_ptr<double[], Free> data_;
  double total_ = 0.0;
};

}  // namespace poise
