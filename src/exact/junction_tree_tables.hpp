/// The tables of a junction tree: where everything lies, collecting towards the roots and handing out again.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <poise/types.hpp>
#include "base/thread_pool.hpp"
#include "exact/junction_tree.hpp"
#include "exact/junction_tree_buckets.hpp"
#include "exact/reduction.hpp"

namespace poise::exact {

/// Rows are held in multiples of eight, so that loops over eight numbers need no remainder.
constexpr std::size_t padded(std::size_t length) { return (length + 7) / 8 * 8; }

/// What a variable of the bucket, by its place in it, contributes to the place in a table: level times stride.
struct Digit {
  Index member;
  std::size_t stride;
};

/// A table that is multiplied into a bucket: logarithms. Where it is a message, probabilities may be handed back to it.
struct Source {
  const double* table;
  std::span<const Digit> digits;  ///< those of variables that are summed out, then the rest, in the bucket's order
  double* probabilities = nullptr;
};

/// Places of all combinations of levels, the last variable fastest. Gives their number.
std::size_t combine(std::span<const Index> levels, std::span<const std::size_t> strides, std::ptrdiff_t* places);

/// The variables of a bucket: summed out, outer, and those that make up a row.
struct Shape {
  std::span<const Index> levels;
  std::size_t summed;
  std::size_t in_row;
};

/// An outer variable of a bucket that stays at one level.
struct Fixed {
  Index member;
  Index level;
};

/// The table of a bucket in chunks, one for each combination of levels of some of its outer variables.
class Chunks {
 public:
  Chunks(const Shape& shape, std::span<const Index> members) : shape_(shape), members_(members) {
    for (const Index member : members) count_ *= shape.levels[member];
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::vector<Fixed> at(std::size_t chunk) const {
    std::vector<Fixed> fixed;
    for (const Index member : members_) {
      fixed.push_back({member, static_cast<Index>(chunk % shape_.levels[member])});
      chunk /= shape_.levels[member];
    }
    return fixed;
  }

 private:
  Shape shape_;
  std::span<const Index> members_;
  std::size_t count_ = 1;
};

/// One pass over the table of a bucket, or over a chunk of it. The outer variables go through their combinations; for
/// each there is a batch, a row for every group (combination of variables summed out).
///
///   pass.prepare(shape, sources);
///   for (bool more = pass.open(sources); more; more = pass.next()) pass.collect(message + pass.offset());
class Pass {
 public:
  /// What all chunks have in common.
  void prepare(const Shape& shape, std::span<const Source> sources);
  /// The sources that it was prepared with; only where their probabilities lie may differ. Always true, for the loop:
  /// there is a first batch.
  bool open(std::span<const Source> sources, std::span<const Fixed> fixed = {});
  bool next();

  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] std::size_t groups() const { return groups_; }
  /// The offset of the batch in the message.
  [[nodiscard]] std::size_t offset() const { return offset_; }

  /// Reduces the groups of this batch to one: the logarithm of what is left, for each place in the row.
  void collect(double* message, Reduction reduction);
  /// Multiplies the batch, divided by what `collect` gave (`message` + `scale`), by the probabilities of its row, adds
  /// the result to the probabilities of all sources that have some, and its sum over the row to `totals`, by group.
  void hand_out(const double* message, double scale, const double* probabilities, double* totals);

  /// How a source lies in a row.
  struct Stretch {
    enum class Kind : unsigned char {
      constant,    ///< each stretch is one value, repeated
      contiguous,  ///< each stretch lies together
      scattered,   ///< every value has a place of its own
    };
    Kind kind;
    std::size_t length;            ///< of each stretch, in row
    std::size_t count;             ///< of stretches
    const std::ptrdiff_t* places;  ///< of each stretch
  };
  struct Term {
    const double* from;              ///< the table, moved to the levels of the outer variables
    double* to;                      ///< the same place among the probabilities, or null
    const std::ptrdiff_t* by_group;  ///< places of the groups
    Stretch stretch;
  };

 private:
  void describe(std::span<const Source> sources, std::size_t source);
  void walk(std::span<const Fixed> fixed);
  void move(std::size_t outer, std::ptrdiff_t times);
  [[nodiscard]] std::span<const Term> outer_terms() const { return {terms_.data(), outer_terms_}; }

  std::size_t groups_ = 0;
  std::size_t row_ = 0;
  std::size_t stride_ = 0;  ///< the row, padded
  std::size_t offset_ = 0;
  std::size_t outer_terms_ = 0;  ///< terms that depend on outer variables; they come first

  std::vector<Term> terms_;
  std::vector<std::size_t> source_of_;  ///< the term
  std::vector<std::ptrdiff_t> by_group_;
  std::vector<std::ptrdiff_t> places_;
  std::vector<std::size_t> strides_;         ///< of the variables of one source
  std::vector<std::size_t> outer_strides_;   ///< by outer variable, then term
  std::vector<std::size_t> offset_strides_;  ///< in the message, by outer variable
  std::vector<Index> outer_levels_;          ///< how many levels
  std::vector<Index> outer_now_;             ///< and which one
  Shape shape_{};
  std::vector<double> base_;  ///< rows of the terms that no outer variable changes
  std::vector<double> rows_;
  std::vector<double> row_message_;
  std::vector<double> row_probabilities_;
};

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
  /// For draws: places of the groups in the table of each entry; weights of the groups, cumulated, for every
  /// combination of the variables of the message, where a bucket is small.
  std::vector<std::ptrdiff_t> group_places;
  std::vector<std::size_t> place_start;  ///< by entry
  std::vector<double> weights;
  /// A bucket as a draw sees it. What a draw needs lies together, in the order in which it is needed.
  struct DrawStep {
    std::size_t weights;  ///< where its kept weights start; kNotKept: they are made anew
    std::size_t groups;
    const Index* summed;  ///< the variables that are drawn
    const Index* levels;  ///< and how many they have
    Index count;          ///< of them
    Index bucket;
    std::size_t digits;  ///< where those of `draw_digits` start
  };
  /// A variable of the message, and how far a level of it goes in the weights.
  struct DrawDigit {
    Index variable;
    Index stride;
  };
  static constexpr std::size_t kNotKept = std::numeric_limits<std::size_t>::max();
  std::vector<DrawStep> draw_steps;    ///< parents before children, then one that ends the last one's digits
  std::vector<DrawDigit> draw_digits;  ///< of buckets whose weights are kept
  /// Probabilities of the messages, while they are being handed out.
  std::vector<std::unique_ptr<double[]>> probabilities;
  Reduction reduction = Reduction::sum;

  Tables(const Network& network, const EliminationPlan& plan);
  /// Results are the same for any number of threads, bit by bit: which sums are made apart does not depend on it. With
  /// Reduction::max `log_partition` becomes the logarithm of the largest product.
  void collect(const Crew& crew);
  void hand_out(const Crew& crew);
  /// Before the first draw.
  void prepare_draws();
  void draw(Rng& rng, std::vector<Index>& out) const;
  /// Before the first `weigh_groups`.
  void place_groups();
  /// The table of a bucket at levels of the variables of its message: a logarithm for each group.
  void weigh_groups(Index b, const Index* x, std::span<double> out) const;
  /// Puts the variables that a bucket eliminates at the levels of a group.
  void set_group(Index b, std::size_t group, std::vector<Index>& x) const;

 private:
  /// Weights of the groups of a bucket, cumulated, at levels of the variables of its message.
  void weigh(Index b, const Index* x, std::span<double> out) const;
  /// Keeps the weights of small buckets; where they start, by bucket.
  [[nodiscard]] std::vector<std::size_t> keep_weights();
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

/// "3.2 GiB"
[[nodiscard]] std::string size_text(double bytes);

/// What to say where the tables of a plan exceed the limit.
[[nodiscard]] InputError too_large(const EliminationPlan& plan, double limit);

/// What to say where nothing has positive probability.
[[nodiscard]] InputError no_state(const Network& network);

}  // namespace poise::exact
