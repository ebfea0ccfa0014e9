/// Collecting and handing out, by one thread or many.
///
/// Rows of a large bucket are worked through in chunks, subtrees of small ones as a whole. What belongs to one chunk is
/// summed by itself, and chunks are added up in their order, whichever thread made them.
#include <algorithm>
#include <utility>

#include "exact/junction_tree_tables.hpp"

namespace poise::exact {

namespace {

/// Subtrees that are small beside what each thread has to do, neighbours taken together. There is something to share
/// out only where the whole is not small.
struct Subtrees {
  std::vector<std::size_t> first;  ///< in the order of handing out, in which a subtree lies together
  std::vector<std::size_t> last;
  std::vector<Index> above;  ///< buckets in no subtree, parents first
  double waiting = 0.0;      ///< entries of the messages to all subtrees
  double largest = 0.0;      ///< most entries of probabilities within one

  Subtrees(const Buckets& buckets, unsigned threads) {
    const std::vector<Index>& order = buckets.handing_out;
    std::vector<double> work(buckets.all.size(), 0.0);
    std::vector<std::size_t> size(buckets.all.size(), 1);
    double total = 0.0;
    for (std::size_t k = order.size(); k-- > 0;) {
      const Bucket& bucket = buckets.all[order[k]];
      const double own = bucket.operations();
      work[order[k]] += own;
      total += own;
      if (bucket.parent == order[k]) continue;
      work[bucket.parent] += work[order[k]];
      size[bucket.parent] += size[order[k]];
    }
    constexpr double worth_sharing = 4e6;
    constexpr double per_thread = 8.0;
    const double most = threads > 1 && total > worth_sharing ? total / (per_thread * threads) : 0.0;
    double together = 0.0;
    for (std::size_t k = 0; k < order.size();) {
      const Index b = order[k];
      if (work[b] > most) {
        above.push_back(b);
        ++k;
        continue;
      }
      const bool joins = !last.empty() && last.back() == k && together + work[b] <= most;
      together = joins ? together + work[b] : work[b];
      if (!joins) {
        first.push_back(k);
        last.push_back(k);
      }
      last.back() = k += size[b];
      waiting += buckets.all[b].kept;
      largest = std::max(largest, buckets.handed_out_below[b]);
    }
  }
};

/// Calls begin(worker) and then work(worker, chunk) for all chunks: on the threads of the pool, each with a range of
/// chunks and a worker of its own, or one after another where there is none.
template <class Begin, class Work>
void for_each_chunk(std::size_t count, Worker& own, ThreadPool* pool, const Begin& begin, const Work& work) {
  if (pool == nullptr || count < 2) {
    begin(own);
    for (std::size_t chunk = 0; chunk < count; ++chunk) work(own, chunk);
    return;
  }
  constexpr std::size_t per_thread = 2;  // threads are not equally fast at all times
  const std::size_t ranges = std::min<std::size_t>(count, per_thread * pool->threads());
  pool->for_each(ranges, [&](std::size_t range) {
    Worker worker;
    begin(worker);
    const std::size_t end = (range + 1) * count / ranges;
    for (std::size_t chunk = range * count / ranges; chunk < end; ++chunk) work(worker, chunk);
  });
}

/// Operations are told now and then.
constexpr double kTold = 1e6;

}  // namespace

void Meter::add(double operations) {
  constexpr double now_and_then = 4e6;  // a few milliseconds
  const double done = done_.fetch_add(operations) + operations;
  if (stopped_) throw ExactStopped();
  if (!progress_ || std::this_thread::get_id() != owner_ || done < next_) return;  // next_ is the owner's
  next_ = done + now_and_then;
  if (progress_(std::min(1.0, done / total_))) return;
  stopped_ = true;
  throw ExactStopped();
}

void Tables::collect_bucket(Index b, Worker& own, const Crew& crew, ThreadPool* pool) {
  const Bucket& bucket = buckets.all[b];
  own.sources.clear();
  for (const Entry& entry : entries_of(b)) own.sources.push_back({table(entry), digits_of(entry)});
  const std::span<const Source> sources = own.sources;
  double* const message = messages.get() + message_start[b];
  const Chunks chunks(shape(bucket), buckets.chunked(b));
  own.largest.assign(chunks.count(), kMinusInfinity);
  const auto prepare = [&](Worker& worker) { worker.pass.prepare(shape(bucket), sources); };
  for_each_chunk(chunks.count(), own, pool, prepare, [&](Worker& worker, std::size_t chunk) {
    Pass& pass = worker.pass;
    double operations = 0.0;
    double largest = kMinusInfinity;
    for (bool more = pass.open(sources, chunks.at(chunk)); more; more = pass.next()) {
      double* row = message + pass.offset();
      pass.collect(row, reduction);
      largest = std::max(largest, *std::max_element(row, row + pass.row()));
      operations += static_cast<double>(pass.groups() * pass.row()) * (bucket.reads + 1.0);
      if (operations > kTold) crew.meter.add(std::exchange(operations, 0.0));
    }
    own.largest[chunk] = largest;
    crew.meter.add(operations);
  });
  const double largest = scale[b] = *std::max_element(own.largest.begin(), own.largest.end());
  if (largest == kMinusInfinity) return;
  const std::size_t size = message_start[b + 1] - message_start[b];
  const std::size_t share = (size + chunks.count() - 1) / chunks.count();
  const auto nothing = [](Worker&) {};
  for_each_chunk(chunks.count(), own, pool, nothing, [&](Worker&, std::size_t chunk) {
    const std::size_t end = std::min(size, (chunk + 1) * share);
    for (std::size_t k = chunk * share; k < end; ++k) message[k] -= largest;
  });
}

void Tables::collect(const Crew& crew) {
  const Subtrees subtrees(buckets, crew.pool.threads());
  std::atomic<bool> impossible = false;
  crew.pool.for_each(subtrees.first.size(), [&](std::size_t task) {
    Worker worker;
    for (std::size_t k = subtrees.last[task]; k > subtrees.first[task] && !impossible; --k) {
      const Index b = buckets.handing_out[k - 1];
      collect_bucket(b, worker, crew, nullptr);
      if (scale[b] == kMinusInfinity) impossible = true;
    }
  });
  Worker worker;
  ThreadPool* const pool = crew.pool.threads() > 1 ? &crew.pool : nullptr;
  for (std::size_t k = subtrees.above.size(); k > 0 && !impossible; --k) {
    const Index b = subtrees.above[k - 1];
    collect_bucket(b, worker, crew, pool);
    if (scale[b] == kMinusInfinity) impossible = true;
  }
  if (impossible) {
    log_partition = kMinusInfinity;
    return;
  }
  for (const double log_largest : scale) log_partition += log_largest;
}

void Tables::add_marginals(const Bucket& bucket, std::span<const double> totals) {
  std::size_t stride = totals.size();
  for (Index k = 0; k < bucket.summed; ++k) {
    const Index variable = of(members, bucket)[k];
    const std::span<double> marginal = marginals.of(variable);
    stride /= marginal.size();
    for (std::size_t group = 0; group < totals.size(); ++group)
      marginal[group / stride % marginal.size()] += totals[group];
    double sum = 0.0;
    for (const double value : marginal) sum += value;
    for (double& value : marginal) value /= sum;
  }
}

/// The message that a bucket sends is the sum of its table over the variables summed out, so the table divided by the
/// message is their conditional probability given the variables of the message; times the probability of these it is
/// that of the whole bucket, which the children take their share of.
void Tables::hand_out_bucket(Index b, Worker& own, const Crew& crew, ThreadPool* pool) {
  const Bucket& bucket = buckets.all[b];
  if (bucket.parent == b) {
    probabilities[b] = std::make_unique<double[]>(1);
    probabilities[b][0] = 1.0;
  }
  const std::span<const Index> told_apart_by = buckets.chunked(b);
  const Chunks chunks(shape(bucket), told_apart_by);
  struct Apart {
    std::size_t source;
    std::size_t size;
    std::unique_ptr<double[]> sums;  ///< of one chunk after another
  };
  std::vector<Apart> apart;
  own.sources.clear();
  for (const Entry& entry : entries_of(b)) {
    own.sources.push_back({table(entry), digits_of(entry)});
    if (entry.child == Buckets::kNone) continue;
    const std::size_t size = message_start[entry.child + 1] - message_start[entry.child];
    probabilities[entry.child] = std::make_unique<double[]>(size);
    own.sources.back().probabilities = probabilities[entry.child].get();
    const auto has = [&](Index member) {
      return std::ranges::any_of(digits_of(entry), [&](const Digit& digit) { return digit.member == member; });
    };
    if (std::ranges::all_of(told_apart_by, has)) continue;
    apart.push_back({own.sources.size() - 1, size, std::make_unique<double[]>(chunks.count() * size)});
  }
  const std::span<const Source> sources = own.sources;
  const auto groups = static_cast<std::size_t>(bucket.groups);
  own.totals.assign(chunks.count() * groups, 0.0);
  const auto prepare = [&](Worker& worker) {
    worker.chunk_sources.assign(sources.begin(), sources.end());
    worker.pass.prepare(shape(bucket), sources);
  };
  for_each_chunk(chunks.count(), own, pool, prepare, [&](Worker& worker, std::size_t chunk) {
    for (const Apart& one : apart) worker.chunk_sources[one.source].probabilities = one.sums.get() + chunk * one.size;
    Pass& pass = worker.pass;
    double operations = 0.0;
    for (bool more = pass.open(worker.chunk_sources, chunks.at(chunk)); more; more = pass.next()) {
      pass.hand_out(messages.get() + message_start[b] + pass.offset(), scale[b], probabilities[b].get() + pass.offset(),
                    own.totals.data() + chunk * groups);
      operations += static_cast<double>(pass.groups() * pass.row()) * (bucket.reads + 1.0);
      if (operations > kTold) crew.meter.add(std::exchange(operations, 0.0));
    }
    crew.meter.add(operations);
  });
  for (const Apart& one : apart) {
    double* const share = sources[one.source].probabilities;
    for (std::size_t k = 0; k < chunks.count() * one.size; ++k) share[k % one.size] += one.sums[k];
  }
  for (std::size_t k = groups; k < own.totals.size(); ++k) own.totals[k % groups] += own.totals[k];
  add_marginals(bucket, std::span(own.totals).first(groups));
  probabilities[b].reset();
}

void Tables::hand_out(const Crew& crew) {
  probabilities.resize(buckets.all.size());
  Worker worker;
  ThreadPool* const pool = crew.pool.threads() > 1 ? &crew.pool : nullptr;
  const Subtrees subtrees(buckets, crew.pool.threads());
  // What lies above goes first, so all subtrees wait at once: that takes more memory than going down one by one.
  const double more = subtrees.waiting + buckets.handed_out + crew.pool.threads() * subtrees.largest;
  if (sizeof(double) * more > crew.spare_bytes) {
    for (const Index b : buckets.handing_out) hand_out_bucket(b, worker, crew, pool);
  } else {
    for (const Index b : subtrees.above) hand_out_bucket(b, worker, crew, pool);
    crew.pool.for_each(subtrees.first.size(), [&](std::size_t task) {
      Worker of_task;
      for (std::size_t k = subtrees.first[task]; k < subtrees.last[task]; ++k) {
        hand_out_bucket(buckets.handing_out[k], of_task, crew, nullptr);
      }
    });
  }
  probabilities.clear();
}

}  // namespace poise::exact
