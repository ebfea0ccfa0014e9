/// A warp is a chain. Its spins are in shared memory, a word of bits for each row, with two rows more on either side,
/// so that the ends are no special case; each lane has the sums of weights of the rows l and l + 32, and the sum of
/// all lanes up to it. A lane is found by these sums, a column by a scan over the weights of the row; what a flip
/// changes of them is looked at by five lanes.
#include "engines/cuda/flips/flip_kernels.hpp"

#include "engines/common/host_device.hpp"
#include "engines/common/step_guards.hpp"

namespace poise::cuda {

namespace {

constexpr unsigned kLanes = 32;
constexpr unsigned kWarps = 4;  // of a block
constexpr unsigned kAll = 0xffffffff;
constexpr unsigned kBeside = 2;  // rows before the first and after the last

using Word64 = unsigned long long;  // as shuffles take it

__device__ inline std::uint64_t shuffle64(std::uint64_t value, unsigned lane) {
  return __shfl_sync(kAll, static_cast<Word64>(value), static_cast<int>(lane));
}

/// Bits of the columns of a row: up to 32 or up to 64, of which a lane looks at one or two, 32 apart.
template <bool wide>
struct Bits;
template <>
struct Bits<false> {
  using type = std::uint32_t;
};
template <>
struct Bits<true> {
  using type = std::uint64_t;
};

template <bool wide, bool torus>
class Chain {
 public:
  using Row = typename Bits<wide>::type;
  static constexpr unsigned kOfLane = wide ? 2 : 1;  // rows of a lane, and columns
  static constexpr unsigned kRowsHeld = kOfLane * kLanes + 2 * kBeside;

  /// `rows` is room for kRowsHeld of them.
  __device__ Chain(const LatticeView& lattice, Row* rows, const std::uint32_t* state, unsigned lane)
      : lattice_(lattice), rows_(rows + kBeside), lane_(lane), sites_(lattice.rows * lattice.columns) {
    const auto height = static_cast<int>(lattice.rows);
    for (int row = static_cast<int>(lane) - static_cast<int>(kBeside); row < height + static_cast<int>(kBeside);
         row += kLanes) {
      const bool inside = row >= 0 && row < height;
      const int from = row < 0 ? row + height : row >= height ? row - height : row;
      rows_[row] = inside || torus ? load(state, static_cast<std::uint32_t>(from)) : Row{0};
    }
    __syncwarp();
  }

  __device__ void store(std::uint32_t* state) const {
    for (std::uint32_t row = lane_; row < lattice_.rows; row += kLanes) {
      state[row * lattice_.words_in_row] = static_cast<std::uint32_t>(rows_[row]);
      if (wide && lattice_.words_in_row > 1)
        state[row * 2 + 1] = static_cast<std::uint32_t>(rows_[row] >> (wide ? 32 : 0));
    }
  }

  struct Site {
    std::uint32_t row;
    std::uint32_t column;
    bool up;
  };

  /// What flipping a site changes of the sums of its row and of those above and below.
  struct Change {
    std::int64_t own, above, below;
    double total;       ///< of all weights afterwards
    double correction;  ///< see LatticeView
  };

  /// Sums of weights anew.
  __device__ void sum_up() {
    end_ = first_ = 0;
    for (std::uint32_t row = 0; row < lattice_.rows; ++row) {
      std::uint64_t weights[kOfLane];
      weights_of(row, weights);
      std::uint64_t sum = weights[0];
      if (wide) sum += weights[kOfLane - 1];
#pragma unroll
      for (unsigned step = kLanes / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(kAll, static_cast<Word64>(sum), step);
      if (lane_ == row % kLanes) {
        end_ += sum;
        if (row < kLanes) first_ = sum;
      }
    }
    end_ = scan(end_);
    all_ = shuffle64(end_, kLanes - 1);
    total_ = static_cast<double>(all_);
  }

  [[nodiscard]] __device__ std::uint64_t all() const { return all_; }
  [[nodiscard]] __device__ double total() const { return total_; }

  /// The site at a offset below the sum of all weights.
  __device__ Site find(std::uint64_t offset) const {
    const unsigned owner = __popc(__ballot_sync(kAll, end_ <= offset));
    const std::uint64_t before = shuffle64(end_, (owner + kLanes - 1) % kLanes);
    if (owner > 0) offset -= before;
    Site site{owner, 0, false};
    if (wide) {
      const std::uint64_t first = shuffle64(first_, owner);
      if (offset >= first) {
        offset -= first;
        site.row += kLanes;
      }
    }
    std::uint64_t weights[kOfLane];
    weights_of(site.row, weights);
    const std::uint64_t mine = wide ? weights[0] + weights[kOfLane - 1] : weights[0];
    const std::uint64_t end = scan(mine);
    site.column = __popc(__ballot_sync(kAll, end <= offset));
    if (wide) {
      const bool second = offset >= end - mine + weights[0];
      if (__shfl_sync(kAll, second, site.column)) site.column += kLanes;
    }
    site.up = (rows_[site.row] >> site.column & 1U) != 0;
    return site;
  }

  /// Lanes 0 to 4 look at the site, its left and right neighbours, those above and below.
  __device__ Change look_at(const Site& site) const {
    const std::uint32_t last = lattice_.columns - 1;
    std::uint32_t column = site.column;
    if (lane_ == 1) column = column > 0 ? column - 1 : last;
    if (lane_ == 2) column = column < last ? column + 1 : 0;
    const int row = static_cast<int>(site.row) + (lane_ == 4) - (lane_ == 3);
    bool there = lane_ < 5;
    if (!torus) {
      there = there && !(lane_ == 1 && site.column == 0) && !(lane_ == 2 && site.column == last);
      there = there && row >= 0 && row < static_cast<int>(lattice_.rows);
    }
    std::int64_t difference = 0;
    double correction = 0.0;
    if (there) {
      const Row own = rows_[row];
      const std::uint32_t left = column > 0 ? column - 1 : last, right = column < last ? column + 1 : 0;
      std::uint32_t count = bit(rows_[row - 1], column) + bit(rows_[row + 1], column);
      if (torus || column > 0) count += bit(own, left);
      if (torus || column < last) count += bit(own, right);
      const std::uint32_t code = 5 * bit(own, column) + count;
      const int step = lane_ == 0 ? 5 : 1;
      const std::uint32_t number =
          static_cast<std::uint32_t>(row < 0                                  ? row + static_cast<int>(lattice_.rows)
                                     : row >= static_cast<int>(lattice_.rows) ? row - static_cast<int>(lattice_.rows)
                                                                              : row) *
              lattice_.columns +
          column;
      const std::uint32_t index = code * sites_ + number;
      const std::uint32_t after = index + static_cast<std::uint32_t>(site.up ? -step : step) * sites_;
      difference = static_cast<std::int64_t>(weight(after) - weight(index));
      if (lane_ == 0) correction = __ldg(lattice_.corrections + index);
    }
    const auto of_lane = [&](unsigned lane) {
      return static_cast<std::int64_t>(shuffle64(static_cast<std::uint64_t>(difference), lane));
    };
    Change change;
    change.own = of_lane(0) + of_lane(1) + of_lane(2);
    change.above = of_lane(3);
    change.below = of_lane(4);
    change.total = static_cast<double>(all_ + static_cast<std::uint64_t>(change.own + change.above + change.below));
    change.correction = __shfl_sync(kAll, correction, 0);
    return change;
  }

  __device__ void flip(const Site& site, const Change& change) {
    const std::uint32_t last = lattice_.rows - 1;
    const std::uint32_t above = site.row > 0 ? site.row - 1 : last, below = site.row < last ? site.row + 1 : 0;
    add(site.row, change.own);
    add(above, change.above);
    add(below, change.below);
    all_ += static_cast<std::uint64_t>(change.own + change.above + change.below);
    total_ = change.total;
    __syncwarp();  // all have read
    if (lane_ == 0) {
      const Row flipped = rows_[site.row] ^ Row { 1 } << site.column;
      const int row = static_cast<int>(site.row), height = static_cast<int>(lattice_.rows);
      rows_[row] = flipped;
      if (torus && row < static_cast<int>(kBeside)) rows_[row + height] = flipped;
      if (torus && row >= height - static_cast<int>(kBeside)) rows_[row - height] = flipped;
    }
    __syncwarp();
  }

  __device__ std::uint64_t weight_of(const Site& site) const {
    const Row own = rows_[site.row];
    return weight((5 * bit(own, site.column) + count_up(site)) * sites_ + site.row * lattice_.columns + site.column);
  }

 private:
  __device__ Row load(const std::uint32_t* state, std::uint32_t row) const {
    Row bits = state[row * lattice_.words_in_row];
    if (wide && lattice_.words_in_row > 1) bits |= Row{state[row * 2 + 1]} << (wide ? 32 : 0);
    return bits;
  }

  static __device__ std::uint32_t bit(Row row, std::uint32_t column) {
    return static_cast<std::uint32_t>(row >> column) & 1U;
  }

  __device__ std::uint32_t count_up(const Site& site) const {
    const std::uint32_t last = lattice_.columns - 1, column = site.column;
    const Row own = rows_[site.row];
    std::uint32_t count =
        bit(rows_[static_cast<int>(site.row) - 1], column) + bit(rows_[static_cast<int>(site.row) + 1], column);
    if (torus || column > 0) count += bit(own, column > 0 ? column - 1 : last);
    if (torus || column < last) count += bit(own, column < last ? column + 1 : 0);
    return count;
  }

  __device__ std::uint64_t weight(std::uint32_t index) const {
    return __ldg(reinterpret_cast<const Word64*>(lattice_.weights) + index);
  }

  /// The weights of the columns that this lane has of a row.
  __device__ void weights_of(std::uint32_t row, std::uint64_t (&out)[kOfLane]) const {
    const int at = static_cast<int>(row);
    const Row above = rows_[at - 1], own = rows_[at], below = rows_[at + 1];
    const std::uint32_t last = lattice_.columns - 1;
    // Neighbours to the left and right, at the offset of the column itself.
    Row left = own << 1, right = own >> 1;
    if (torus) {
      left |= own >> last;
      right |= (own & 1U) << last;
    }
#pragma unroll
    for (unsigned k = 0; k < kOfLane; ++k) {
      const std::uint32_t column = lane_ + k * kLanes;
      const auto here = [&](Row bits) { return static_cast<std::uint32_t>(bits >> k * kLanes) >> lane_ & 1U; };
      const std::uint32_t code = 5 * here(own) + here(above) + here(below) + here(left) + here(right);
      out[k] = column <= last ? weight(code * sites_ + row * lattice_.columns + column) : 0;
    }
  }

  /// Sums up to each lane.
  __device__ std::uint64_t scan(std::uint64_t sum) const {
#pragma unroll
    for (unsigned step = 1; step < kLanes; step *= 2) {
      const std::uint64_t other = __shfl_up_sync(kAll, static_cast<Word64>(sum), step);
      if (lane_ >= step) sum += other;
    }
    return sum;
  }

  __device__ void add(std::uint32_t row, std::int64_t difference) {
    if (lane_ >= row % kLanes) end_ += static_cast<std::uint64_t>(difference);
    if (wide && lane_ == row) first_ += static_cast<std::uint64_t>(difference);
  }

  const LatticeView& lattice_;
  Row* rows_;  // from the first row on
  unsigned lane_;
  std::uint32_t sites_;
  std::uint64_t first_;  // sum of the first row of this lane
  std::uint64_t end_;    // of all rows of the lanes up to this one
  std::uint64_t all_;
  double total_;
};

template <bool wide, bool torus>
__global__ void __launch_bounds__(kWarps* kLanes) flip_kernel(LatticeView lattice, FlipView view, std::uint64_t steps) {
  using Walk = Chain<wide, torus>;
  __shared__ typename Walk::Row rows[kWarps][Walk::kRowsHeld];
  const unsigned lane = threadIdx.x % kLanes;
  const std::uint32_t number = blockIdx.x * kWarps + threadIdx.x / kLanes;
  if (number >= view.chains) return;
  std::uint32_t* const state = view.state + static_cast<std::size_t>(number) * lattice.rows * lattice.words_in_row;
  std::int64_t* const up =
      view.up == nullptr ? nullptr : view.up + static_cast<std::size_t>(number) * lattice.rows * lattice.columns;
  Walk chain(lattice, rows[threadIdx.x / kLanes], state, lane);
  chain.sum_up();
  double accepted = 0.0;
  for (std::uint64_t done = 0; done < steps; done += kLanes) {
    // The random numbers of as many steps as there are lanes.
    const Philox mine = philox(view.first_step + done + lane, view.first_chain + number, view.seed);
    const std::uint64_t offset = static_cast<std::uint64_t>(mine.word[0]) << 32 | mine.word[1];
    const double level =
        resting_level(level_of(static_cast<std::uint64_t>(mine.word[2]) << 32 | mine.word[3]), view.stretch);
    const unsigned some = static_cast<unsigned>(steps - done < kLanes ? steps - done : kLanes);
    for (unsigned k = 0; k < some; ++k) {
      const auto site = chain.find(__umul64hi(shuffle64(offset, k), chain.all()));
      const auto change = chain.look_at(site);
      const double ahead = change.correction * chain.total();
      accepted += fminf(1.0F, __fdividef(static_cast<float>(ahead), static_cast<float>(change.total)));
      if (__shfl_sync(kAll, level, k) * change.total >= ahead) continue;
      chain.flip(site, change);
      if (up == nullptr || lane != 0) continue;
      const auto when = static_cast<std::int64_t>(view.first_step + done + k + 1 - view.counted_from);
      atomicAdd(reinterpret_cast<Word64*>(up + site.row * lattice.columns + site.column),
                static_cast<Word64>(site.up ? when : -when));
    }
  }
  chain.store(state);
  if (lane == 0) view.accepted[number] += accepted;
}

template <bool wide, bool torus>
__global__ void __launch_bounds__(kWarps* kLanes)
    probability_kernel(LatticeView lattice, const std::uint32_t* states, std::uint32_t chains, std::uint64_t* weights,
                       double* acceptance) {
  using Walk = Chain<wide, torus>;
  __shared__ typename Walk::Row rows[kWarps][Walk::kRowsHeld];
  const unsigned lane = threadIdx.x % kLanes;
  const std::uint32_t number = blockIdx.x * kWarps + threadIdx.x / kLanes;
  if (number >= chains) return;
  const std::uint32_t sites = lattice.rows * lattice.columns;
  Walk chain(lattice, rows[threadIdx.x / kLanes],
             states + static_cast<std::size_t>(number) * lattice.rows * lattice.words_in_row, lane);
  chain.sum_up();
  // Every site is met by going from one to the next, as a step would find it.
  std::uint64_t offset = 0;
  while (offset < chain.all()) {
    const auto site = chain.find(offset);
    const auto change = chain.look_at(site);
    const std::uint64_t weight = chain.weight_of(site);
    const std::size_t index = static_cast<std::size_t>(number) * sites + site.row * lattice.columns + site.column;
    if (lane == 0) {
      weights[index] = weight;
      acceptance[index] = fmin(1.0, change.correction * chain.total() / change.total);
    }
    offset += weight;
  }
}

__global__ void __launch_bounds__(kWarps* kLanes)
    flip_sums_kernel(LatticeView lattice, const std::uint32_t* states, std::uint32_t chains, FlipSums sums) {
  const unsigned lane = threadIdx.x % kLanes;
  const std::uint32_t number = blockIdx.x * kWarps + threadIdx.x / kLanes;
  if (number >= chains) return;
  const std::uint32_t words = lattice.words_in_row;
  const std::uint32_t* const state = states + static_cast<std::size_t>(number) * lattice.rows * words;
  const auto at = [&](std::uint32_t row, std::uint32_t column) {
    return state[row * words + column / 32] >> (column % 32) & 1U;
  };
  std::int64_t up = 0, fields = 0, pairs = 0, different = 0;
  for (std::uint32_t site = lane; site < lattice.rows * lattice.columns; site += kLanes) {
    const std::uint32_t row = site / lattice.columns, column = site % lattice.columns;
    const std::uint32_t x = at(row, column);
    up += x;
    different += x != (lattice.reference[row * words + column / 32] >> (column % 32) & 1U);
    if (lattice.fields != nullptr && x != 0) fields += lattice.fields[site];
    if (lattice.torus || column + 1 < lattice.columns) {
      pairs += x != at(row, column + 1 < lattice.columns ? column + 1 : 0);
    }
    if (lattice.torus || row + 1 < lattice.rows) pairs += x != at(row + 1 < lattice.rows ? row + 1 : 0, column);
  }
  const auto total = [](std::int64_t value) {
    for (unsigned step = kLanes / 2; step > 0; step /= 2) {
      value += __shfl_xor_sync(kAll, static_cast<long long>(value), step);
    }
    return value;
  };
  up = total(up), fields = total(fields), pairs = total(pairs), different = total(different);
  if (lane != 0) return;
  sums.up[number] = up;
  sums.fields[number] = fields;
  sums.pairs[number] = pairs;
  sums.different[number] = different;
}

unsigned blocks_for(std::uint32_t chains) { return (chains + kWarps - 1) / kWarps; }

/// Calls work with what a lattice is, as constants.
template <class Work>
void with_shape(const LatticeView& lattice, const Work& work) {
  using Yes = std::true_type;
  using No = std::false_type;
  const bool wide = lattice.rows > kLanes || lattice.columns > kLanes;
  if (wide && lattice.torus) work(Yes{}, Yes{});
  if (wide && !lattice.torus) work(Yes{}, No{});
  if (!wide && lattice.torus) work(No{}, Yes{});
  if (!wide && !lattice.torus) work(No{}, No{});
}

}  // namespace

void launch_flips(const LatticeView& lattice, const FlipView& view, std::uint64_t steps) {
  with_shape(lattice, [&](auto wide, auto torus) {
    flip_kernel<wide.value, torus.value><<<blocks_for(view.chains), kWarps * kLanes>>>(lattice, view, steps);
  });
}

void launch_flip_sums(const LatticeView& lattice, const std::uint32_t* state, std::uint32_t chains,
                      const FlipSums& sums) {
  flip_sums_kernel<<<blocks_for(chains), kWarps * kLanes>>>(lattice, state, chains, sums);
}

void launch_flip_probabilities(const LatticeView& lattice, const std::uint32_t* state, std::uint32_t chains,
                               std::uint64_t* weights, double* acceptance) {
  with_shape(lattice, [&](auto wide, auto torus) {
    probability_kernel<wide.value, torus.value>
        <<<blocks_for(chains), kWarps * kLanes>>>(lattice, state, chains, weights, acceptance);
  });
}

}  // namespace poise::cuda
