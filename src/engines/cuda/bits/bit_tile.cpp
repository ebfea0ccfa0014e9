/// A tile of chains that are bits, on the device.
#include "engines/cuda/bits/bit_tile.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/bits/bit_sweeps.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/draw_batches.hpp"
#include "engines/cuda/common/sum_digits.hpp"

namespace poise {

using cuda::Array;

struct CudaBitTile::OnDevice {
  OnDevice(const BitTables& tables, std::shared_ptr<const CudaSpinTerms> the_terms, const cuda::LaneRange& lanes,
           std::uint64_t seed)
      : positions(tables.variables()),
        words(lanes.words()),
        first(lanes.first),
        count(lanes.count),
        terms(std::move(the_terms)),
        sweeps(tables, lanes, seed),
        counts(std::size_t{positions} * words) {
    std::vector<std::uint32_t> positions_of(positions);
    for (Index i = 0; i < positions; ++i) positions_of[i] = tables.position(i);
    position = Array<std::uint32_t>(positions_of);
    std::vector<std::uint8_t> reference = terms->reference;
    reference.resize(positions, 0);
    fields = Array<std::uint32_t>(cuda::rows_of_sums(positions, terms->fields, reference));
    edges = Array<std::array<std::uint32_t, 2>>(terms->edges);
    if (!terms->weights.empty()) {
      weights = Array<std::uint32_t>(cuda::rows_of_sums(terms->weights.size(), terms->weights, {}));
    }
    reference_bits = static_cast<std::uint32_t>(
        std::count_if(reference.begin(), reference.end(), [](std::uint8_t level) { return level != 0; }));
  }

  [[nodiscard]] cuda::TermsView terms_view(const std::uint32_t* state) const {
    return {state,          words,
            positions,      static_cast<std::uint32_t>(edges.size()),
            fields.data(),  reinterpret_cast<const std::uint32_t*>(edges.data()),
            weights.data(), reference_bits};
  }
  [[nodiscard]] std::size_t width_of_sums() const { return 4 * std::size_t{words} * cuda::kWordChains; }
  /// Sums of draws, which come to slots for batches of them on the host, in turns: it looks at some while others are
  /// filled.
  struct Recording {
    static constexpr std::size_t kSlots = cuda::BitSweeps::kSets;
    static constexpr std::size_t kMostOneByOne = 16;  // draws of a batch that are summed by a launch each

    Recording(const OnDevice& device, std::size_t the_draws)
        : draws(the_draws),
          parts(std::max(draws * device.slices(draws), std::min(draws, kMostOneByOne) * device.slices(1)) *
                device.width_of_sums()),
          whole(draws * device.width_of_sums()),
          host(cuda::pinned<std::int64_t>(kSlots * whole.size())) {}
    [[nodiscard]] std::int64_t* slot(std::size_t batch) const { return host.get() + batch % kSlots * whole.size(); }

    std::size_t draws;          // of a batch
    Array<std::int64_t> parts;  // [draw][slice][sum][lane]
    Array<std::int64_t> whole;  // [draw][sum][lane]
    cuda::PinnedArray<std::int64_t> host;
    cuda::CudaStream summing;  // while sweeps go on
    cuda::Event made;
    cuda::Event done[kSlots];
  };
  /// Slices of a draw, where so many draws are summed by one launch.
  [[nodiscard]] std::uint32_t slices(std::size_t draws) const {
    return cuda::slices_of_sums(terms_view(nullptr), draws);
  }
  /// Room for one draw at least.
  Recording& recording() {
    if (!recorded) recorded = std::make_unique<Recording>(*this, 1);
    return *recorded;
  }
  /// As many draws as are recorded together where their sums take little memory.
  [[nodiscard]] std::size_t most_draws() const {
    constexpr std::size_t kMost = 64, kBytes = std::size_t{16} << 20;
    return std::clamp<std::size_t>(kBytes / (width_of_sums() * sizeof(std::int64_t)), 1, kMost);
  }
  void record_many() {
    if (!recorded || recorded->draws < most_draws()) recorded = std::make_unique<Recording>(*this, most_draws());
  }
  cuda::DrawBatches& draw_batches() {
    if (!batches) batches = std::make_unique<cuda::DrawBatches>(Recording::kSlots);
    return *batches;
  }
  /// Draws, and into how many slices each is divided.
  struct SlicedDraws {
    std::size_t first;
    std::size_t count;
    std::uint32_t slices;
  };
  /// Sums states one after the other, into the slots of these draws.
  void launch_sums(const std::uint32_t* states, const SlicedDraws& draws, cudaStream_t stream) {
    const std::size_t of_draw = draws.slices * width_of_sums();
    cuda::launch_sums(
        {terms_view(states), draws.slices, recording().parts.data() + draws.first * of_draw, sweeps.size(), of_draw},
        static_cast<std::uint32_t>(draws.count), stream);
    cuda::check_launch("states were summed");
  }
  /// After the sums of these draws, from the first on.
  void launch_fetch(const SlicedDraws& draws, std::size_t batch, cudaStream_t stream) {
    Recording& to = recording();
    cuda::launch_whole_sums({terms_view(nullptr), draws.slices, to.parts.data()},
                            static_cast<std::uint32_t>(draws.count), to.whole.data(), stream);
    cuda::check_launch("states were summed");
    cuda::check(cudaMemcpyAsync(to.slot(batch), to.whole.data(), draws.count * width_of_sums() * sizeof(std::int64_t),
                                cudaMemcpyDeviceToHost, stream),
                "sums were copied from it");
    to.done[batch % Recording::kSlots].record(stream);
  }
  [[nodiscard]] CudaSpinSums fetched(std::size_t draw, std::size_t batch) const {
    const std::int64_t* const from = recorded->slot(batch) + draw * width_of_sums();
    const auto part = [&](std::size_t number) {
      return std::span<const std::int64_t>(from + number * words * cuda::kWordChains + first, count);
    };
    return {part(0), part(1), part(2), part(3)};
  }

  [[nodiscard]] std::uint32_t stride() const { return (positions + 31) / 32; }
  [[nodiscard]] cuda::PackView pack_view(const Array<std::uint32_t>& packed) const {
    return {sweeps.state(), words, positions, first, count, stride(), packed.data()};
  }

  /// What the host has of the states: nothing, the same as the device, or newer ones.
  void to_host() const {
    if (host_is_current) return;
    const std::lock_guard lock(mutex);
    if (host_is_current) return;
    host.resize(std::size_t{count} * stride());
    const Array<std::uint32_t> packed(host.size());
    cuda::launch_pack(pack_view(packed));
    cuda::check_launch("states were packed");
    packed.download(host);
    host_is_current = true;
  }
  void to_device() {
    if (!host_is_newer) return;
    const Array<std::uint32_t> packed(host);
    cuda::launch_unpack(pack_view(packed));
    cuda::check_launch("states were unpacked");
    cuda::check(cudaDeviceSynchronize(), "states were unpacked");
    host_is_newer = false;
  }

  std::uint32_t positions;
  std::uint32_t words;
  std::uint32_t first;  // lane
  std::uint32_t count;  // of lanes that are chains
  std::shared_ptr<const CudaSpinTerms> terms;
  cuda::BitSweeps sweeps;
  cuda::BitCounts counts;
  Array<std::uint32_t> position;
  Array<std::uint32_t> fields;
  Array<std::array<std::uint32_t, 2>> edges;
  Array<std::uint32_t> weights;
  std::uint32_t reference_bits = 0;
  std::unique_ptr<Recording> recorded;
  std::unique_ptr<cuda::DrawBatches> batches;

  mutable std::mutex mutex;
  mutable std::vector<std::uint32_t> host;  // [chain of the group][word of 32 positions]
  mutable std::atomic<bool> host_is_current = false;
  std::atomic<bool> host_is_newer = false;
};

CudaBitTile::CudaBitTile(std::shared_ptr<const BitTables> tables, std::shared_ptr<const CudaSpinTerms> terms,
                         ChainGroup group, std::uint64_t seed, std::uint64_t first_chain)
    : tables_(std::move(tables)), group_(group), first_chain_(first_chain) {
  const std::uint64_t first_word = (first_chain + group.first) / cuda::kWordChains;
  first_lane_ = first_word * cuda::kWordChains;
  const cuda::LaneRange lanes{first_word, static_cast<std::uint32_t>(lane(group.first)),
                              static_cast<std::uint32_t>(group.count)};
  device_ = std::make_unique<OnDevice>(*tables_, std::move(terms), lanes, seed);
}

CudaBitTile::~CudaBitTile() = default;
CudaBitTile::CudaBitTile(CudaBitTile&&) noexcept = default;
CudaBitTile& CudaBitTile::operator=(CudaBitTile&&) noexcept = default;

void CudaBitTile::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
}

void CudaBitTile::sweep(std::uint64_t sweeps) {
  start_sweeps(sweeps);
  cuda::check(cudaDeviceSynchronize(), "sweeps were made");
}

void CudaBitTile::start_sweeps(std::uint64_t sweeps) {
  device_->to_device();
  device_->host_is_current = false;
  device_->sweeps.start(sweeps_, sweeps, counts_if_any());
  sweeps_ += sweeps;
}

cuda::BitCounts* CudaBitTile::counts_if_any() const { return counting_ ? &device_->counts : nullptr; }

void CudaBitTile::reset_counts() {
  device_->counts.reset();
  counting_ = true;
}

void CudaBitTile::set_levels(std::size_t chain, std::span<const Value> levels) {
  device_->to_host();
  device_->host_is_newer = true;
  std::uint32_t* const own = device_->host.data() + (chain - group_.first) * device_->stride();
  std::fill(own, own + device_->stride(), 0U);
  for (Index i = 0; i < levels.size(); ++i) {
    const Index position = tables_->position(i);
    own[position / 32] |= std::uint32_t{levels[i] != 0} << position % 32;
  }
}

void CudaBitTile::get_levels(std::size_t chain, std::span<Value> levels) const {
  device_->to_host();
  const std::uint32_t* const own = device_->host.data() + (chain - group_.first) * device_->stride();
  for (Index i = 0; i < levels.size(); ++i) {
    const Index position = tables_->position(i);
    levels[i] = static_cast<Value>(own[position / 32] >> position % 32 & 1U);
  }
}

// Bits of the counts go by position, then by lane.

void CudaBitTile::set_totals(std::size_t chain, const BitTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  std::vector<std::uint64_t> sorted(totals.counts.size());
  for (Index i = 0; i < sorted.size(); ++i) sorted[tables_->position(i)] = totals.counts[i];
  device_->counts.set(lane(chain), std::size_t{device_->words} * cuda::kWordChains, sorted);
}

BitTotals CudaBitTile::get_totals(std::size_t chain) const {
  BitTotals totals{std::vector<std::uint64_t>(counting_ ? tables_->variables() : 0)};
  if (counting_) get_counts(chain, totals.counts);
  return totals;
}

void CudaBitTile::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  const std::lock_guard lock(device_->mutex);
  const std::vector<std::uint64_t> sorted =
      device_->counts.get(lane(chain), std::size_t{device_->words} * cuda::kWordChains, device_->positions);
  for (Index i = 0; i < counts.size(); ++i) counts[i] = sorted[tables_->position(i)];
}

CudaSpinSums CudaBitTile::sums() const {
  device_->to_device();
  const OnDevice::SlicedDraws one{0, 1, device_->slices(1)};
  device_->launch_sums(device_->sweeps.state(), one, device_->sweeps.stream());
  device_->launch_fetch(one, 0, device_->sweeps.stream());
  device_->recording().done[0].wait("states were summed");
  return device_->fetched(0, 0);
}

void CudaBitTile::sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                                const std::function<void(std::size_t draw, const CudaSpinSums& sums)>& use) {
  OnDevice& device = *device_;
  device.record_many();
  device.to_device();
  device.host_is_current = false;
  OnDevice::Recording& recording = device.recording();
  constexpr std::size_t kSlots = OnDevice::Recording::kSlots;
  const std::size_t of_graph = device.sweeps.draws_of_graph(sweeps, recording.draws);
  const std::size_t together = of_graph > 0 ? of_graph : std::min(recording.draws, OnDevice::Recording::kMostOneByOne);
  const std::uint32_t slices = device.slices(of_graph > 0 ? recording.draws : 1);
  const cudaStream_t sweeping = device.sweeps.stream();
  const auto start = [&](std::size_t batch, std::size_t size) {
    if (size == of_graph) {
      device.sweeps.start_draws(sweeps_, {sweeps, size}, counts_if_any(), batch % kSlots);
      sweeps_ += sweeps * size;
      recording.made.record(sweeping);
      recording.made.hold(recording.summing);
      device.launch_sums(device.sweeps.draws(batch % kSlots), {0, size, slices}, recording.summing);
      device.launch_fetch({0, size, slices}, batch, recording.summing);
      return;
    }
    recording.done[(batch + kSlots - 1) % kSlots].hold(sweeping);  // the batch before may still be summed
    for (std::size_t draw = 0; draw < size; ++draw) {
      start_sweeps(sweeps);
      device.launch_sums(device.sweeps.state(), {draw, 1, slices}, sweeping);
    }
    device.launch_fetch({0, size, slices}, batch, sweeping);
  };
  device.draw_batches().run(
      draws, together,
      {.start = start,
       .wait = [&](std::size_t batch) { recording.done[batch % kSlots].wait("sweeps were made"); },
       .use = [&](std::size_t batch, std::size_t draw) { use(batch * together + draw, device.fetched(draw, batch)); }});
}

void CudaBitTile::get_all_levels(std::span<Value> levels) const {
  OnDevice& device = *device_;
  device.to_device();
  // As many chains at a time as take little memory.
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  const std::size_t at_a_time = std::clamp<std::size_t>(kMostBytes / device.positions, 1, 65535);
  const Array<std::uint8_t> out(std::min<std::size_t>(at_a_time, device.count) * device.positions);
  for (std::size_t done = 0; done < device.count; done += at_a_time) {
    const std::size_t some = std::min(at_a_time, device.count - done);
    cuda::launch_levels({device.sweeps.state(), device.words, device.position.data(), device.positions,
                         static_cast<std::uint32_t>(device.first + done), static_cast<std::uint32_t>(some)},
                        out.data());
    cuda::check_launch("states were unpacked");
    out.download(levels.subspan(done * device.positions, some * device.positions));
  }
}

}  // namespace poise
