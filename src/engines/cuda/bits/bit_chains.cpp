/// Few chains of Gibbs on two-valued variables on a GPU, in words of 32 variables of one chain.
#include "engines/cuda/bits/bit_tile.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/cuda/bits/bit_counts.hpp"
#include "engines/cuda/bits/bit_runs.hpp"
#include "engines/cuda/bits/chain_kernels.hpp"
#include "engines/cuda/common/call.hpp"

namespace poise::cuda {

// A run of variables of one colour in words of 32 variables: which neighbours stand side by side, and the digits of
// probabilities.

/// Where positions are: runs begin with words of their own, and the variable that is always 0 has two words behind
/// them.
class ChainOffsets {
 public:
  explicit ChainOffsets(const BitTables& tables) : offset_(tables.variables() + std::size_t{1}) {
    for (const BitTables::Run& run : tables.runs()) {
      for (std::size_t k = 0; k < run.count; ++k) offset_[run.first + k] = static_cast<std::uint32_t>(32 * words_ + k);
      words_ += (run.count + 31) / 32;
    }
    offset_.back() = static_cast<std::uint32_t>(32 * words_);
    words_ += 2;
  }

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::uint32_t of(std::size_t position) const { return offset_[position]; }
  [[nodiscard]] std::uint32_t zero() const { return offset_.back(); }

 private:
  std::vector<std::uint32_t> offset_;
  std::size_t words_ = 0;
};

class ChainRun {
 public:
  ChainRun(const BitTables& tables, const BitTables::Run& run, const ChainOffsets& offsets)
      : count_(static_cast<std::uint32_t>(run.count)), size_(run.size), first_(offsets.of(run.first) / 32) {
    std::vector<std::uint32_t> sorted(run.count * run.size);
    for (std::size_t k = 0; k < run.count; ++k) {
      for (unsigned j = 0; j < run.size; ++j) sorted[j * run.count + k] = offsets.of(run.blanket[k * run.size + j]);
    }
    variable_ = Array<std::uint32_t>(std::span<const std::uint32_t>(run.variable).first(run.count));
    blanket_ = Array<std::uint32_t>(sorted);
    together_ = Array<std::uint32_t>(side_by_side(sorted, offsets.zero()));
    if (size_ == 4) make_tables<4>({tables, run}, run);
    if (size_ == 5) make_tables<5>({tables, run}, run);
    if (size_ == 6) make_tables<6>({tables, run}, run);
  }

  [[nodiscard]] ChainRunView view() const {
    return {count_,           words(),         first_,           size_,         stride_,       tables_,
            variable_.data(), blanket_.data(), together_.data(), table_.data(), alike_.data(), nibbles_.data(),
            digits_.data()};
  }

 private:
  [[nodiscard]] std::uint32_t words() const { return (count_ + 31) / 32; }
  /// Variables of a word.
  [[nodiscard]] std::uint32_t in_word(std::uint32_t word) const { return std::min(32U, count_ - 32 * word); }

  [[nodiscard]] std::vector<std::uint32_t> side_by_side(const std::vector<std::uint32_t>& sorted,
                                                        std::uint32_t zero) const {
    std::vector<std::uint32_t> out;
    for (unsigned j = 0; j < size_; ++j) {
      for (std::uint32_t word = 0; word < words(); ++word) {
        const std::uint32_t* const own = sorted.data() + std::size_t{j} * count_ + std::size_t{32} * word;
        bool together = true, none = true;
        for (std::uint32_t k = 0; k < in_word(word); ++k) {
          together = together && own[k] == own[0] + k;
          none = none && own[k] == zero;  // and so are those behind it
        }
        out.push_back(together || none ? own[0] : kApart);
      }
    }
    return out;
  }

  template <unsigned size>
  void make_tables(RunThresholds<size>&& thresholds, const BitTables::Run& run) {
    constexpr std::size_t kWords = (std::size_t{1} << size) / 8;
    const std::optional<SharedTables<size>> shared = thresholds.find_shared();
    tables_ = shared ? static_cast<std::uint32_t>(shared->tables.size()) : count_;
    nibbles_ = Array<std::uint32_t>(std::size_t{tables_} * kDigitGroups * kWords);
    const auto upload = [&](const std::vector<Thresholds<size>>& block, std::size_t first) {
      std::vector<std::uint32_t> made(block.size() * kDigitGroups * kWords, 0);  // [group][table][word]
      thresholds.for_each_chunk(block.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t group = 0; group < kDigitGroups; ++group) {
          std::uint32_t* to = made.data() + (group * block.size() + begin) * kWords;
          for (std::size_t k = begin; k < end; ++k) {
            for (std::size_t c = 0; c < block[k].size(); c += 8) {
              std::uint32_t eight = 0;
              for (std::size_t j = 0; j < 8; ++j) {
                eight |= static_cast<std::uint32_t>(block[k][c + j] >> (60 - 4 * group) & 15) << 4 * j;
              }
              *to++ = eight;
            }
          }
        }
      });
      const std::size_t row = block.size() * kWords;
      for (std::size_t group = 0; group < kDigitGroups; ++group) {
        nibbles_.upload(std::span(made).subspan(group * row, row), (group * tables_ + first) * kWords);
      }
      return true;
    };
    alike_ = Array<std::uint32_t>(std::vector<std::uint32_t>(words(), kApart));
    if (!shared) {
      thresholds.for_each_block(upload);
      return;
    }
    upload(shared->tables, 0);
    upload_digits<size>(shared->tables);
    table_ = Array<std::uint32_t>(shared->of_variable);
    alike_.upload(find_alike(run, shared->of_variable));
  }

  /// The first group is all that is compared for many variables together.
  template <unsigned size>
  void upload_digits(const std::vector<Thresholds<size>>& different) {
    std::vector<Digits<size>> firsts;
    for (const Thresholds<size>& thresholds : different) {
      std::array<Digits<size>, kDigitGroups> digits{};
      digits_of<size>(thresholds, digits);
      firsts.push_back(digits[0]);
    }
    const auto bytes = std::as_bytes(std::span(firsts));
    digits_ = Array<std::byte>(bytes);
  }

  [[nodiscard]] std::vector<std::uint32_t> find_alike(const BitTables::Run& run,
                                                      const std::vector<std::uint32_t>& table) {
    std::vector<std::uint32_t> out(words(), kApart);
    if (count_ < 2) return out;
    stride_ = run.variable[1] - run.variable[0];
    for (std::uint32_t word = 0; word < words(); ++word) {
      bool alike = true;
      for (std::uint32_t k = 32 * word + 1; k < 32 * word + in_word(word); ++k) {
        alike = alike && table[k] == table[32 * word] && run.variable[k] - run.variable[k - 1] == stride_;
      }
      if (alike) out[word] = table[32 * word];
    }
    return out;
  }

  std::uint32_t count_;
  unsigned size_;
  std::uint32_t first_;
  std::uint32_t stride_ = 1;
  std::uint32_t tables_ = 0;
  Array<std::uint32_t> variable_, blanket_, together_, table_, alike_, nibbles_;
  Array<std::byte> digits_;
};

}  // namespace poise::cuda

namespace poise {

using cuda::Array;

struct CudaBitChains::OnDevice {
  OnDevice(std::shared_ptr<const BitTables> the_tables, const CudaSpinTerms& terms, ChainGroup group,
           std::uint64_t seed, std::uint64_t first_chain)
      : tables(std::move(the_tables)),
        offsets(*tables),
        chains(static_cast<std::uint32_t>(group.count)),
        state(group.count, offsets.words()),
        counts(group.count * offsets.words()),
        edges(static_cast<std::uint32_t>(terms.edges.size())) {
    std::vector<cuda::ChainKey> some;
    for (std::uint64_t number = first_chain + group.first; number < first_chain + group.first + group.count; ++number) {
      const WordKey key = word_key(seed, Stream::bits, number / kKeyChains);
      some.push_back({key.first, key.second, static_cast<std::uint32_t>(number % kKeyChains)});
    }
    keys = Array<cuda::ChainKey>(some);
    for (const BitTables::Run& run : tables->runs()) {
      if (run.count > 0) runs.emplace_back(*tables, run, offsets);
    }
    upload(terms);
  }

  void upload(const CudaSpinTerms& terms) {
    std::vector<std::int64_t> by_offset(terms.fields.empty() ? 0 : 32 * offsets.words(), 0);
    for (std::size_t p = 0; p < terms.fields.size(); ++p) by_offset[offsets.of(p)] = terms.fields[p];
    fields = Array<std::int64_t>(by_offset);
    std::vector<std::uint32_t> both;
    for (const auto& edge : terms.edges) {
      for (const std::uint32_t end : edge) both.push_back(offsets.of(end));
    }
    ends = Array<std::uint32_t>(both);
    weights = Array<std::int64_t>(terms.weights);
    std::vector<std::uint32_t> bits(offsets.words(), 0);
    for (std::size_t p = 0; p < terms.reference.size(); ++p) {
      bits[offsets.of(p) / 32] |= std::uint32_t{terms.reference[p] != 0} << offsets.of(p) % 32;
    }
    reference = Array<std::uint32_t>(bits);
  }

  [[nodiscard]] std::uint32_t words() const { return static_cast<std::uint32_t>(offsets.words()); }
  [[nodiscard]] std::uint32_t offset(Index variable) const { return offsets.of(tables->position(variable)); }

  void launch_sweep(std::uint32_t ahead, const cuda::BitCounts* counted, cudaStream_t stream) const {
    const cuda::ChainSweepView view{state.on_device(),    words(), chains, keys.data(), tables->variables(),
                                    progress.on_device(), ahead};
    for (const cuda::ChainRun& run : runs) cuda::launch_chain_sweep(run.view(), view, stream);
    if (counted == nullptr) return;
    cuda::launch_count(counted->view(), state.on_device(), progress.on_device(), ahead, stream);
  }

  static constexpr std::size_t kSums = 4;
  /// Adds the sums of the present states to zeros.
  void launch_sums(std::int64_t* out) const {
    cuda::launch_chain_sums(
        {state.on_device(), words(), chains, edges, fields.data(), ends.data(), weights.data(), reference.data()}, out);
    cuda::check_launch("states were summed");
  }
  [[nodiscard]] CudaSpinSums fetched(std::size_t draw) const {
    const auto part = [&](std::size_t number) {
      return std::span<const std::int64_t>(host_sums).subspan((draw * kSums + number) * chains, chains);
    };
    return {part(0), part(1), part(2), part(3)};
  }

  std::shared_ptr<const BitTables> tables;
  cuda::ChainOffsets offsets;
  std::uint32_t chains;
  cuda::MirroredWords state;
  cuda::BitCounts counts;
  std::uint32_t edges;
  std::vector<cuda::ChainRun> runs;
  Array<cuda::ChainKey> keys;
  Array<std::int64_t> fields;
  Array<std::uint32_t> ends;
  Array<std::int64_t> weights;
  Array<std::uint32_t> reference;
  cuda::SweepProgress progress;
  std::vector<std::int64_t> host_sums;
  std::mutex mutex;
};

CudaBitChains::CudaBitChains(const std::shared_ptr<const BitTables>& tables,
                             const std::shared_ptr<const CudaSpinTerms>& terms, ChainGroup group, std::uint64_t seed,
                             std::uint64_t first_chain)
    : group_(group), device_(std::make_unique<OnDevice>(tables, *terms, group, seed, first_chain)) {}

CudaBitChains::~CudaBitChains() = default;
CudaBitChains::CudaBitChains(CudaBitChains&&) noexcept = default;
CudaBitChains& CudaBitChains::operator=(CudaBitChains&&) noexcept = default;

void CudaBitChains::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
}

void CudaBitChains::sweep(std::uint64_t sweeps) {
  start_sweeps(sweeps);
  cuda::check(cudaDeviceSynchronize(), "sweeps were made");
}

void CudaBitChains::start_sweeps(std::uint64_t sweeps) {
  OnDevice& device = *device_;
  static_cast<void>(device.state.to_device(true));
  cuda::BitCounts* const counts = counting_ ? &device.counts : nullptr;
  device.progress.start(sweeps_, sweeps, counts, nullptr,
                        [&](std::uint32_t ahead, cudaStream_t stream) { device.launch_sweep(ahead, counts, stream); });
  sweeps_ += sweeps;
}

void CudaBitChains::reset_counts() {
  device_->counts.reset();
  counting_ = true;
}

void CudaBitChains::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::span<std::uint32_t> own = device_->state.row_to_change(chain - group_.first);
  std::fill(own.begin(), own.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) {
    const std::uint32_t offset = device_->offset(i);
    own[offset / 32] |= std::uint32_t{levels[i] != 0} << offset % 32;
  }
}

void CudaBitChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const std::uint32_t> own = device_->state.row(chain - group_.first);
  for (Index i = 0; i < levels.size(); ++i) {
    const std::uint32_t offset = device_->offset(i);
    levels[i] = static_cast<Value>(own[offset / 32] >> offset % 32 & 1U);
  }
}

// Bits of the counts are those of the states.

void CudaBitChains::set_totals(std::size_t chain, const BitTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  const std::size_t bits = std::size_t{32} * device_->words();
  std::vector<std::uint64_t> sorted(bits, 0);
  for (Index i = 0; i < totals.counts.size(); ++i) sorted[device_->offset(i)] = totals.counts[i];
  device_->counts.set((chain - group_.first) * bits, 1, sorted);
}

BitTotals CudaBitChains::get_totals(std::size_t chain) const {
  BitTotals totals{std::vector<std::uint64_t>(counting_ ? device_->tables->variables() : 0)};
  if (counting_) get_counts(chain, totals.counts);
  return totals;
}

void CudaBitChains::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  const std::lock_guard lock(device_->mutex);
  const std::size_t bits = std::size_t{32} * device_->words();
  const std::vector<std::uint64_t> sorted = device_->counts.get((chain - group_.first) * bits, 1, bits);
  for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[device_->offset(i)];
}

CudaSpinSums CudaBitChains::sums() const {
  OnDevice& device = *device_;
  static_cast<void>(device.state.to_device(false));
  Array<std::int64_t> out(OnDevice::kSums * device.chains);
  out.clear();
  device.launch_sums(out.data());
  device.host_sums.resize(out.size());
  out.download(device.host_sums);
  return device.fetched(0);
}

void CudaBitChains::sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                                  const std::function<void(std::size_t draw, const CudaSpinSums& sums)>& use) {
  OnDevice& device = *device_;
  const std::size_t width = OnDevice::kSums * device.chains;
  Array<std::int64_t> out(draws * width);
  out.clear();
  for (std::size_t draw = 0; draw < draws; ++draw) {
    start_sweeps(sweeps);
    device.launch_sums(out.data() + draw * width);
  }
  device.host_sums.resize(out.size());
  out.download(device.host_sums);
  for (std::size_t draw = 0; draw < draws; ++draw) use(draw, device.fetched(draw));
}

void CudaBitChains::get_all_levels(std::span<Value> levels) const {
  const std::size_t variables = device_->tables->variables();
  for (std::size_t k = 0; k < group_.count; ++k) {
    get_levels(group_.first + k, levels.subspan(k * variables, variables));
  }
}

}  // namespace poise
