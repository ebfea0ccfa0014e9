/// Words of 32 variables of one chain, on the device.
#include "engines/cuda/bits/bit_chains.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "engines/common/keyed_words.hpp"

#include "engines/cuda/bits/bit_counts.hpp"
#include "engines/cuda/common/chain_runs.hpp"
#include "engines/cuda/common/mirrored.hpp"
#include "engines/cuda/common/sweep_progress.hpp"

namespace poise {

using cuda::Array;

struct CudaBitChains::OnDevice {
  OnDevice(std::shared_ptr<const BitTables> the_tables, const CudaSpinTerms& terms, ChainGroup group,
           std::uint64_t seed, std::uint64_t first_chain)
      : tables(std::move(the_tables)),
        places(*tables),
        chains(static_cast<std::uint32_t>(group.count)),
        state(group.count, places.words()),
        counts(group.count * places.words()),
        edges(static_cast<std::uint32_t>(terms.edges.size())) {
    std::vector<cuda::ChainKey> some;
    for (std::uint64_t number = first_chain + group.first; number < first_chain + group.first + group.count; ++number) {
      const WordKey key = word_key(seed, Stream::bits, number / kKeyChains);
      some.push_back({key.first, key.second, static_cast<std::uint32_t>(number % kKeyChains)});
    }
    keys = Array<cuda::ChainKey>(some);
    for (const BitTables::Run& run : tables->runs()) {
      if (run.count > 0) runs.emplace_back(*tables, run, places);
    }
    upload(terms);
  }

  void upload(const CudaSpinTerms& terms) {
    std::vector<std::int64_t> by_place(terms.fields.empty() ? 0 : 32 * places.words(), 0);
    for (std::size_t p = 0; p < terms.fields.size(); ++p) by_place[places.of(p)] = terms.fields[p];
    fields = Array<std::int64_t>(by_place);
    std::vector<std::uint32_t> both;
    for (const auto& edge : terms.edges) {
      for (const std::uint32_t end : edge) both.push_back(places.of(end));
    }
    ends = Array<std::uint32_t>(both);
    weights = Array<std::int64_t>(terms.weights);
    std::vector<std::uint32_t> bits(places.words(), 0);
    for (std::size_t p = 0; p < terms.reference.size(); ++p) {
      bits[places.of(p) / 32] |= std::uint32_t{terms.reference[p] != 0} << places.of(p) % 32;
    }
    reference = Array<std::uint32_t>(bits);
  }

  [[nodiscard]] std::uint32_t words() const { return static_cast<std::uint32_t>(places.words()); }
  [[nodiscard]] std::uint32_t place(Index variable) const { return places.of(tables->position(variable)); }

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
  cuda::ChainPlaces places;
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

void CudaBitChains::set_progress(const BlockProgress& progress) {
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
    const std::uint32_t place = device_->place(i);
    own[place / 32] |= std::uint32_t{levels[i] != 0} << place % 32;
  }
}

void CudaBitChains::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const std::uint32_t> own = device_->state.row(chain - group_.first);
  for (Index i = 0; i < levels.size(); ++i) {
    const std::uint32_t place = device_->place(i);
    levels[i] = static_cast<Value>(own[place / 32] >> place % 32 & 1U);
  }
}

// Bits of the counts are those of the states.

void CudaBitChains::set_totals(std::size_t chain, const BitTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  const std::size_t bits = std::size_t{32} * device_->words();
  std::vector<std::uint64_t> sorted(bits, 0);
  for (Index i = 0; i < totals.counts.size(); ++i) sorted[device_->place(i)] = totals.counts[i];
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
  for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[device_->place(i)];
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
