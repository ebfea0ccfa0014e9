/// The tables of a junction tree: where everything lies, collecting towards the roots and handing out again.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exact/junction_tree.hpp"
#include "base/thread_pool.hpp"

#include "exact/junction_tree_buckets.hpp"
#include "exact/junction_tree_rows.hpp"

namespace poise::exact {

/// Tells the callback how far things are, not too often, and on the thread that made it alone. All threads stop where
/// it says so.
class Meter {
 public:
  Meter(std::function<bool(double)> progress, double operations)
      : progress_(std::move(progress)), total_(operations), owner_(std::this_thread::get_id()) {}

  void add(double operations);

 private:
  std::function<bool(double)> progress_;
  double total_;
  std::thread::id owner_;
  std::atomic<double> done_ = 0.0;
  std::atomic<bool> stopped_ = false;
  double next_ = 0.0;
};

/// Who does the work, and how much memory there is for having more of it at once.
struct Crew {
  Meter& meter;
  ThreadPool& pool;
  double spare_bytes = 0.0;  ///< beyond those of the plan
};

/// What one thread works with, kept from one bucket to the next.
struct Worker {
  Pass pass;
  std::vector<Source> sources;
  std::vector<Source> chunk_sources;
  std::vector<double> largest;  ///< of each chunk
  std::vector<double> totals;
};

struct Tables {
  /// A factor or a message that goes into a bucket.
  struct Entry {
    Index child;         ///< whose message it is; Buckets::kNone: a factor
    std::size_t place;   ///< in the messages or the logarithms of the factors
    std::size_t digits;  ///< where they start
  };

  std::vector<Index> levels;  ///< of the variables of all cliques, one clique after another
  std::vector<Index> members;
  std::vector<std::size_t> clique_start;
  Buckets buckets;
  std::vector<std::size_t> entry_start;  ///< buckets + 1
  std::vector<Entry> entries;
  std::vector<Digit> digits;
  std::vector<double> log_values;
  std::vector<std::size_t> message_start;
  std::unique_ptr<double[]> messages;  ///< each less its largest, which goes into `scale`
  std::vector<double> scale;
  std::vector<Index> state;  ///< observed levels, 0 for the rest
  Marginals marginals;
  double log_partition = 0.0;
  /// Of the messages, while they are being handed out.
  std::vector<std::unique_ptr<double[]>> probabilities;

  Tables(const Network& network, const EliminationPlan& plan);
  /// Results are the same for any number of threads, bit by bit: which sums are made apart does not depend on it.
  void collect(const Crew& crew);
  void hand_out(const Crew& crew);
  void draw(Rng& rng, std::vector<Index>& out) const;

 private:
  void gather_entries(const Network& network);
  void add_factor(const Network& network, std::size_t factor, const std::vector<Index>& member);
  void add_marginals(const Bucket& bucket, std::span<const double> totals);
  /// Chunks are shared out among the threads of the pool, where there is one.
  void collect_bucket(Index b, Worker& own, const Crew& crew, ThreadPool* pool);
  void hand_out_bucket(Index b, Worker& own, const Crew& crew, ThreadPool* pool);

  [[nodiscard]] std::span<const Index> of(const std::vector<Index>& flat, const Bucket& bucket) const {
    const std::size_t first = clique_start[bucket.clique] + bucket.first;
    return {flat.data() + first, clique_start[bucket.clique + 1] - first};
  }
  [[nodiscard]] Shape shape(const Bucket& bucket) const {
    return {.levels = of(levels, bucket), .summed = bucket.summed, .in_row = bucket.in_row};
  }
  [[nodiscard]] std::span<const Entry> entries_of(Index b) const {
    return {entries.data() + entry_start[b], entry_start[b + 1] - entry_start[b]};
  }
  [[nodiscard]] std::span<const Digit> digits_of(const Entry& entry) const {
    return {digits.data() + entry.digits, (&entry)[1].digits - entry.digits};
  }
  [[nodiscard]] const double* table(const Entry& entry) const {
    return (entry.child == Buckets::kNone ? log_values.data() : messages.get()) + entry.place;
  }
};

/// Threads that are worth their while and have room for what they work with.
[[nodiscard]] unsigned threads_for(const Buckets& buckets, unsigned wanted, double spare_bytes);

/// "3.2 GB"
[[nodiscard]] std::string size_text(double bytes);

/// What to say where the tables of a plan exceed the limit.
[[nodiscard]] InputError too_large(const EliminationPlan& plan, double limit);

/// What to say where nothing has positive probability.
[[nodiscard]] InputError no_state(const Network& network);

}  // namespace poise::exact
