/// Sweeps of chains across lanes of 8, 16 or 32 bits.
#include "inference/optimize/spin_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <poise/extend/base/hot.hpp>
#include <poise/extend/base/simd.hpp>

namespace poise {

void SpinLanes::set_random() {
  std::vector<Spin> spins(num_variables());
  for (unsigned lane = 0; lane < lanes(); ++lane) {
    for (Spin& spin : spins) spin = rng_.uniform() < 0.5 ? -1 : 1;
    set(lane, spins);
  }
}

namespace {

constexpr std::size_t kThresholdRows = 512;
constexpr std::size_t kExponentials = 1 << 14;

/// What a sweep reads and writes, by value for hot loops.
template <class T>
struct SweepView {
  T* spins;
  const T* thresholds;
  const T* field;
  const T* weight;
  const Index* neighbour;
  const std::size_t* start;
  const std::size_t* middle;       // where negative weights begin
  const std::int32_t* strength;    // of a variable: what bounds its local field
  const std::int32_t* wide_field;  // the field where it may be wider than a lane
  const std::size_t* chunk_start;  // chunks of neighbours whose sums fit a lane; one where all of them do
  const std::size_t* chunks;       // ends of chunks
  std::size_t variables;
  std::size_t threshold_row;  // to begin with
  std::int64_t* gained;       // per lane, in halves
};

/// Numbers of twice the width, for sums of what fits a lane and for local fields that do not.
template <class T>
struct Track {
  using Wide = std::conditional_t<sizeof(T) == 1, std::int16_t, std::int32_t>;
  // NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
  typedef Wide Sums __attribute__((vector_size(32 * sizeof(Wide) / sizeof(T))));
  static constexpr std::int64_t kMost = std::numeric_limits<Wide>::max();
};

/// Adds the rows of neighbours `first` to `last` to a sum.
template <class T, unsigned kParts, bool kUnit>
POISE_INLINE void add_rows(const SweepView<T>& view, std::size_t i, std::size_t first, std::size_t last,
                           typename Lanes<T>::Half* sum) {
  using Vector = typename Lanes<T>::Half;
  constexpr unsigned kWidth = Lanes<T>::kHalf;
  const auto add_row = [&](std::size_t k, auto&& add) {
    const T* from = view.spins + std::size_t{view.neighbour[k]} * (kParts * kWidth);
    for (unsigned part = 0; part < kParts; ++part) {
      Vector spin;
      std::memcpy(&spin, from + part * kWidth, sizeof spin);
      add(sum[part], spin);
    }
  };
  std::size_t k = first;
  if constexpr (kUnit) {
    const std::size_t middle = view.middle[i] < last ? view.middle[i] : last;
    for (; k < middle; ++k) add_row(k, [](Vector& to, const Vector& spin) { to += spin; });
    for (; k < last; ++k) add_row(k, [](Vector& to, const Vector& spin) { to -= spin; });
  } else {
    for (; k < last; ++k) {
      const T weight = view.weight[k];
      if constexpr (sizeof(T) == 1) {  // there are no products of bytes
        add_row(k, [weight](Vector& to, const Vector& spin) {
          const Vector negative = reinterpret_cast<Vector>(spin < 0);
          to += (negative ^ weight) - negative;
        });
      } else {
        add_row(k, [weight](Vector& to, const Vector& spin) { to += spin * weight; });
      }
    }
  }
}

template <class T, unsigned kLanes, bool kUnit, bool kTracked>
POISE_INLINE void sweep_rows(const SweepView<T> view) {
  using Vector = typename Lanes<T>::Half;
  constexpr unsigned kWidth = Lanes<T>::kHalf;
  constexpr unsigned kParts = kLanes / kWidth;
  using Sums = typename Track<T>::Sums;
  Sums sums[kParts] = {};
  std::int64_t bound = 0;  // of the sums
  const auto drain = [&] {
    for (unsigned part = 0; part < kParts; ++part) {
      for (unsigned lane = 0; lane < kWidth; ++lane) view.gained[part * kWidth + lane] += sums[part][lane];
      sums[part] = Sums{};
    }
    bound = 0;
  };
  std::size_t row = view.threshold_row;
  for (std::size_t i = 0; i < view.variables; ++i) {
    T* own = view.spins + i * kLanes;
    const T* limit = view.thresholds + row * kLanes;
    row = row + 1 == kThresholdRows ? 0 : row + 1;
    if (kTracked) {
      if (bound + view.strength[i] > Track<T>::kMost) drain();
      bound += view.strength[i];
    }
    // What is common to fields of both widths: flips the spins whose loss is within the threshold.
    const auto flip = [&](unsigned part, const Vector& loss) {
      Vector spin, threshold;
      std::memcpy(&spin, own + part * kWidth, sizeof spin);
      std::memcpy(&threshold, limit + part * kWidth, sizeof threshold);
      const Vector accepted = reinterpret_cast<Vector>(loss <= threshold);
      spin = (spin ^ accepted) - accepted;
      std::memcpy(own + part * kWidth, &spin, sizeof spin);
      return accepted;
    };
    const auto negative_of = [&](unsigned part) {
      Vector spin;
      std::memcpy(&spin, own + part * kWidth, sizeof spin);
      return reinterpret_cast<Vector>(spin < 0);
    };
    const std::size_t first_chunk = view.chunk_start[i];
    const std::size_t last_chunk = view.chunk_start[i + 1];
    if (sizeof(T) > 1 || first_chunk == last_chunk) {
      Vector field[kParts] = {};
      for (unsigned part = 0; part < kParts; ++part) field[part] += view.field[i];
      add_rows<T, kParts, kUnit>(view, i, view.start[i], view.start[i + 1], field);
      for (unsigned part = 0; part < kParts; ++part) {
        const Vector negative = negative_of(part);
        const Vector loss = (field[part] ^ negative) - negative;
        const Vector accepted = flip(part, loss);
        if constexpr (kTracked) sums[part] -= __builtin_convertvector(loss & accepted, Sums);
      }
    } else {
      // A loss beyond a lane is accepted or not whatever it is exactly, but values need all of it.
      Sums field[kParts] = {};
      for (unsigned part = 0; part < kParts; ++part) {
        field[part] += static_cast<typename Track<T>::Wide>(view.wide_field[i]);
      }
      std::size_t from = view.start[i];
      for (std::size_t chunk = first_chunk; chunk < last_chunk; ++chunk) {
        Vector sum[kParts] = {};
        add_rows<T, kParts, kUnit>(view, i, from, view.chunks[chunk], sum);
        for (unsigned part = 0; part < kParts; ++part) field[part] += __builtin_convertvector(sum[part], Sums);
        from = view.chunks[chunk];
      }
      constexpr auto most = std::numeric_limits<T>::max();
      for (unsigned part = 0; part < kParts; ++part) {
        const Sums negative = __builtin_convertvector(negative_of(part), Sums);
        const Sums loss = (field[part] ^ negative) - negative;
        const Sums too_large = reinterpret_cast<Sums>(loss > most);
        const Sums too_small = reinterpret_cast<Sums>(loss < -most);
        const Sums clamped = (loss & ~(too_large | too_small)) | (too_large & most) | (too_small & -most);
        const Vector accepted = flip(part, __builtin_convertvector(clamped, Vector));
        if constexpr (kTracked) sums[part] -= loss & __builtin_convertvector(accepted, Sums);
      }
    }
  }
  if (kTracked) drain();
}

template <class T>
class LanesOf final : public SpinLanes {
 public:
  static constexpr unsigned kLanes = sizeof(T) == 1 ? 64 : 32;

  LanesOf(const SpinProblem& problem, unsigned shift, std::uint64_t seed, std::uint64_t number)
      : SpinLanes(kLanes, seed, number), problem_(&problem), shift_(shift) {
    const Index n = problem.num_variables();
    // A row more on either side: exchanges of neighbours look one lane beyond.
    spins_.assign((std::size_t{n} + 2) * kLanes, 1);
    thresholds_.assign(kThresholdRows * kLanes, 0);
    const auto narrow = [&](std::int64_t value) {
      return static_cast<T>(
          shift_ == 0 ? value : std::llround(std::ldexp(static_cast<double>(value), -static_cast<int>(shift_))));
    };
    for (const std::int64_t value : problem.field) field_.push_back(narrow(value));
    for (const std::int64_t value : problem.weight) weight_.push_back(narrow(value));
    neighbour_ = problem.neighbour;
    chunk_start_.push_back(0);
    for (Index i = 0; i < n; ++i) {
      sort_by_sign(i);
      strength_.push_back(static_cast<std::int32_t>((problem.strength(i) >> shift_) + 1 +
                                                    static_cast<std::int64_t>(problem.degree(i))));
      wide_field_.push_back(static_cast<std::int32_t>(problem.field[i] >> shift_));
      if (problem.strength(i) > std::numeric_limits<T>::max() && shift_ == 0) divide(i);
      chunk_start_.push_back(chunks_.size());
    }
    unit_ = std::all_of(weight_.begin(), weight_.end(), [](T value) { return value == 1 || value == -1; });
    exponentials_.resize(kExponentials + kLanes);
    for (float& value : exponentials_) value = static_cast<float>(-std::log1p(-rng_.uniform()));
  }

  [[nodiscard]] std::size_t num_variables() const override { return field_.size(); }

  void recompute_values() override {
    std::vector<Spin> spins(field_.size());
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      get(lane, spins);
      values_[lane] = problem_->value(spins);
    }
  }

  void renew() override { renew_rows(kThresholdRows); }
  void sweep(unsigned variables_per_row) override {
    renew_rows(field_.size() / variables_per_row + 1);
    unit_ ? sweep_as<true, false>() : sweep_as<false, false>();
  }
  void sweep_with_values(unsigned variables_per_row) override {
    renew_rows(field_.size() / variables_per_row + 1);
    unit_ ? sweep_as<true, true>() : sweep_as<false, true>();
  }

  void exchange_neighbours(const std::vector<bool>& exchange) override {
    T masks[2 * kLanes] = {};  // lanes that take the state of the next one, and of the one before
    for (unsigned lane = 0; lane + 1 < kLanes; ++lane) {
      if (!exchange[lane]) continue;
      masks[lane] = -1;
      masks[kLanes + lane + 1] = -1;
      std::swap(values_[lane], values_[lane + 1]);
    }
    T* rows = row(0);
    const T* mask = masks;
    const std::size_t n = field_.size();
    hot([rows, mask, n] {
      using Vector = typename Lanes<T>::Half;
      constexpr unsigned kWidth = Lanes<T>::kHalf;
      constexpr unsigned kParts = kLanes / kWidth;
      Vector next[kParts], before[kParts], after[kParts];
      std::memcpy(next, mask, sizeof next);
      std::memcpy(before, mask + kLanes, sizeof before);
      for (std::size_t i = 0; i < n; ++i) {
        T* own = rows + i * kLanes;
        for (unsigned part = 0; part < kParts; ++part) {
          Vector spin, above, below;
          std::memcpy(&spin, own + part * kWidth, sizeof spin);
          std::memcpy(&above, own + part * kWidth + 1, sizeof above);
          std::memcpy(&below, own + part * kWidth - 1, sizeof below);
          after[part] = (spin & ~(next[part] | before[part])) | (above & next[part]) | (below & before[part]);
        }
        std::memcpy(own, after, sizeof after);
      }
    });
  }

  void get(unsigned lane, std::span<Spin> spins) const override {
    for (std::size_t i = 0; i < spins.size(); ++i) spins[i] = static_cast<Spin>(spins_[(i + 1) * kLanes + lane]);
  }
  void set(unsigned lane, std::span<const Spin> spins) override {
    for (std::size_t i = 0; i < spins.size(); ++i) row(i)[lane] = spins[i];
  }

  void save(Saver& out) override { archive(out); }
  void load(Loader& in) override { archive(in); }

 private:
  template <class A>
  void archive(A& archive) {
    archive(temperatures, values_, rng_, spins_, thresholds_, renewed_);
  }
  [[nodiscard]] T* row(std::size_t i) { return spins_.data() + (i + 1) * kLanes; }

  /// Positive weights first.
  void sort_by_sign(Index i) {
    std::vector<std::pair<Index, T>> pairs;
    for (std::size_t k = problem_->start[i]; k < problem_->start[i + 1]; ++k) {
      pairs.emplace_back(neighbour_[k], weight_[k]);
    }
    const auto middle =
        std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.second > 0; });
    middle_.push_back(problem_->start[i] + static_cast<std::size_t>(middle - pairs.begin()));
    std::size_t k = problem_->start[i];
    for (const auto& [j, weight] : pairs) {
      neighbour_[k] = j;
      weight_[k++] = weight;
    }
  }

  /// Chunks of neighbours whose weights add up to no more than a lane holds.
  void divide(Index i) {
    std::int64_t sum = 0;
    for (std::size_t k = problem_->start[i]; k < problem_->start[i + 1]; ++k) {
      const std::int64_t weight = std::abs(static_cast<std::int64_t>(weight_[k]));
      if (sum + weight > std::numeric_limits<T>::max()) {
        chunks_.push_back(k);
        sum = 0;
      }
      sum += weight;
    }
    chunks_.push_back(problem_->start[i + 1]);
  }

  void renew_rows(std::size_t count) {
    constexpr T largest = std::numeric_limits<T>::max();
    constexpr T below_largest = largest - largest / 64;  // so that rounding to a float stays within the type
    constexpr auto most = static_cast<float>(below_largest);
    float scale[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      scale[lane] = static_cast<float>(std::ldexp(temperatures[lane], -static_cast<int>(shift_)));
    }
    for (std::size_t k = 0; k < std::min(count, kThresholdRows); ++k) {
      const float* from =
          exponentials_.data() + static_cast<std::size_t>(rng_.uniform() * static_cast<double>(kExponentials));
      T* to = thresholds_.data() + renewed_ * kLanes;
      renewed_ = (renewed_ + 1) % kThresholdRows;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const float limit = from[lane] * scale[lane];
        to[lane] = static_cast<T>(limit < most ? limit : most);
      }
    }
  }

  template <bool kUnit, bool kTracked>
  void sweep_as() {
    std::int64_t gained[kLanes] = {};
    SweepView<T> view{row(0),
                      thresholds_.data(),
                      field_.data(),
                      weight_.data(),
                      neighbour_.data(),
                      problem_->start.data(),
                      middle_.data(),
                      strength_.data(),
                      wide_field_.data(),
                      chunk_start_.data(),
                      chunks_.data(),
                      field_.size(),
                      static_cast<std::size_t>(rng_.uniform() * static_cast<double>(kThresholdRows)),
                      gained};
    hot([view] { sweep_rows<T, kLanes, kUnit, kTracked>(view); });
    if constexpr (kTracked) {
      for (unsigned lane = 0; lane < kLanes; ++lane) values_[lane] += (2 * gained[lane]) << shift_;
    }
  }

  const SpinProblem* problem_;
  unsigned shift_;  // weights are divided by 2 to the power of this
  bool unit_ = false;
  std::vector<T> spins_;
  std::vector<T> thresholds_;
  std::size_t renewed_ = 0;  // the next row to be renewed
  std::vector<T> field_;
  std::vector<T> weight_;
  std::vector<Index> neighbour_;
  std::vector<std::size_t> middle_;
  std::vector<std::int32_t> strength_;
  std::vector<std::int32_t> wide_field_;
  std::vector<std::size_t> chunk_start_;
  std::vector<std::size_t> chunks_;
  std::vector<float> exponentials_;
};

}  // namespace

std::unique_ptr<SpinLanes> make_spin_lanes(const SpinProblem& problem, double hottest, std::uint64_t seed,
                                           std::uint64_t number) {
  constexpr std::int64_t byte = std::numeric_limits<std::int8_t>::max();
  constexpr std::int64_t word = std::numeric_limits<std::int16_t>::max();
  std::int64_t strongest = 0;
  std::int64_t heaviest = 0;
  for (Index i = 0; i < problem.num_variables(); ++i) strongest = std::max(strongest, problem.strength(i));
  for (const std::int64_t weight : problem.weight) heaviest = std::max(heaviest, std::abs(weight));
  constexpr double kRareLoss = 4.0;  // in temperatures: thresholds beyond it are cut off where lanes are narrow
  if (heaviest <= byte && strongest < word && kRareLoss * hottest <= static_cast<double>(byte)) {
    return std::make_unique<LanesOf<std::int8_t>>(problem, 0, seed, number);
  }
  if (strongest <= word) return std::make_unique<LanesOf<std::int16_t>>(problem, 0, seed, number);
  unsigned shift = 0;
  while (strongest >> shift > std::numeric_limits<std::int32_t>::max() / 2) ++shift;
  return std::make_unique<LanesOf<std::int32_t>>(problem, shift, seed, number);
}

}  // namespace poise
