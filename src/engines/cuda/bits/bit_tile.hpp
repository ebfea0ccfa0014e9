/// A tile of chains that are bits, 32 of them in a word, on the device.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/bits/bit_states.hpp"
#include "engines/cuda/bits/bit_sweeps.hpp"
#include "engines/cuda/common/draw_batches.hpp"
#include "engines/cuda/common/sum_digits.hpp"

namespace poise {

class CudaBitTile : public CudaBits<CudaBitTile> {
 public:
  /// The chains first_chain + group.first and so on; numbers are those of the run. Throws an InputError where the GPU
  /// has too little memory.
  CudaBitTile(const std::shared_ptr<const BitTables>& tables, const std::shared_ptr<const CudaSpinTerms>& terms,
              ChainGroup group, std::uint64_t seed, std::uint64_t first_chain)
      : CudaBits(tables, group),
        lanes_(lanes_of(group, first_chain)),
        positions_(tables->variables()),
        device_(*tables, lanes_, seed),
        host_(group.count, stride()) {
    std::vector<std::uint32_t> positions_of(positions_);
    for (Index i = 0; i < positions_; ++i) positions_of[i] = tables->position(i);
    position_ = cuda::Array<std::uint32_t>(positions_of);
    std::vector<std::uint8_t> reference = terms->reference;
    reference.resize(positions_, 0);
    fields_ = cuda::Array<std::uint32_t>(cuda::rows_of_sums(positions_, terms->fields, reference));
    edges_ = cuda::Array<std::array<std::uint32_t, 2>>(terms->edges);
    if (!terms->weights.empty()) {
      weights_ = cuda::Array<std::uint32_t>(cuda::rows_of_sums(terms->weights.size(), terms->weights, {}));
    }
    reference_bits_ = static_cast<std::uint32_t>(
        std::count_if(reference.begin(), reference.end(), [](std::uint8_t level) { return level != 0; }));
  }

  /// Good until the next ones are asked for.
  [[nodiscard]] CudaSpinSums sums() const {
    to_device();
    const SlicedDraws one{0, 1, slices(1)};
    launch_sums(device_.state(), one, device_.stream());
    launch_fetch(one, 0, device_.stream());
    recording().done[0].wait("states were summed");
    return fetched(0, 0);
  }
  /// The same `draws` times, each after so many sweeps.
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws, const UseSpinSums& use) {
    if (!recorded_ || recorded_->draws < most_draws()) recorded_ = std::make_unique<Recording>(*this, most_draws());
    if (!batches_) batches_ = std::make_unique<cuda::DrawBatches>(kSlots);
    to_device();
    host_.forget();
    Recording& to = *recorded_;
    const std::size_t of_graph = device_.draws_of_graph(sweeps, to.draws);
    const std::size_t together = of_graph > 0 ? of_graph : std::min(to.draws, kMostOneByOne);
    const std::uint32_t slices_of_draw = slices(of_graph > 0 ? to.draws : 1);
    const cudaStream_t sweeping = device_.stream();
    const auto start = [&](std::size_t batch, std::size_t size) {
      const SlicedDraws all{0, size, slices_of_draw};
      if (size == of_graph) {
        device_.start_draws(sweeps_, {sweeps, size}, counts_if_any(), batch % kSlots);
        sweeps_ += sweeps * size;
        to.made.record(sweeping);
        to.made.hold(to.summing);
        launch_sums(device_.draws(batch % kSlots), all, to.summing);
        launch_fetch(all, batch, to.summing);
        return;
      }
      to.done[(batch + kSlots - 1) % kSlots].hold(sweeping);  // the batch before may still be summed
      for (std::size_t draw = 0; draw < size; ++draw) {
        start_sweeps(sweeps);
        launch_sums(device_.state(), {draw, 1, slices_of_draw}, sweeping);
      }
      launch_fetch(all, batch, sweeping);
    };
    batches_->run(
        draws, together,
        {.start = start,
         .wait = [&](std::size_t batch) { to.done[batch % kSlots].wait("sweeps were made"); },
         .use = [&](std::size_t batch, std::size_t draw) { use(batch * together + draw, fetched(draw, batch)); }});
  }
  /// Chain after chain.
  void get_all_levels(std::span<Value> levels) const {
    to_device();
    // As many chains at a time as take little memory.
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    const std::size_t at_a_time = std::clamp<std::size_t>(kMostBytes / positions_, 1, 65535);
    const cuda::Array<std::uint8_t> out(std::min(at_a_time, group_.count) * positions_);
    for (std::size_t done = 0; done < group_.count; done += at_a_time) {
      const std::size_t some = std::min(at_a_time, group_.count - done);
      cuda::launch_levels({device_.state(), lanes_.words(), position_.data(), positions_,
                           static_cast<std::uint32_t>(lanes_.first + done), static_cast<std::uint32_t>(some)},
                          out.data());
      cuda::check_launch("states were unpacked");
      out.download(levels.subspan(done * positions_, some * positions_));
    }
  }

 private:
  friend CudaBits<CudaBitTile>;

  static cuda::LaneRange lanes_of(ChainGroup group, std::uint64_t first_chain) {
    const std::uint64_t first = first_chain + group.first;
    return {first / cuda::kWordChains, static_cast<std::uint32_t>(first % cuda::kWordChains),
            static_cast<std::uint32_t>(group.count)};
  }

  // For CudaBits. Bits of the counts go by position, then by lane.
  void start_sweeps(std::uint64_t sweeps) {
    to_device();
    host_.forget();
    device_.start(sweeps_, sweeps, counts_if_any());
    sweeps_ += sweeps;
  }
  [[nodiscard]] std::size_t offset(Index variable) const { return tables_->position(variable); }
  [[nodiscard]] std::span<const std::uint32_t> row(std::size_t number) const { return host_.row(number, fetch()); }
  [[nodiscard]] std::span<std::uint32_t> row_to_change(std::size_t number) const {
    return host_.row_to_change(number, fetch());
  }
  [[nodiscard]] std::size_t counted_words() const { return std::size_t{positions_} * lanes_.words(); }
  [[nodiscard]] CountedBits counted_bits(std::size_t number) const {
    return {lanes_.first + number, std::size_t{lanes_.words()} * cuda::kWordChains, positions_};
  }

  // States lane by lane, in words of 32 positions, for the host.
  [[nodiscard]] std::uint32_t stride() const { return (positions_ + 31) / 32; }
  [[nodiscard]] cuda::PackView pack_view(const cuda::Array<std::uint32_t>& packed) const {
    return {device_.state(), lanes_.words(), positions_, lanes_.first, lanes_.count, stride(), packed.data()};
  }
  [[nodiscard]] std::function<void(std::span<std::uint32_t>)> fetch() const {
    return [this](std::span<std::uint32_t> all) {
      const cuda::Array<std::uint32_t> packed(all.size());
      cuda::launch_pack(pack_view(packed));
      cuda::check_launch("states were packed");
      packed.download(all);
    };
  }
  void to_device() const {
    host_.send_changes([&](std::span<const std::uint32_t> all) {
      const cuda::Array<std::uint32_t> packed(all);
      cuda::launch_unpack(pack_view(packed));
      cuda::check_launch("states were unpacked");
      cuda::check(cudaDeviceSynchronize(), "states were unpacked");
    });
  }

  /// Sums of draws, which come to slots for batches of them on the host, in turns: it looks at some while others are
  /// filled.
  static constexpr std::size_t kSlots = cuda::BitSweeps::kSets;
  static constexpr std::size_t kMostOneByOne = 16;  // draws of a batch that are summed by a launch each
  struct Recording {
    Recording(const CudaBitTile& tile, std::size_t the_draws)
        : draws(the_draws),
          parts(std::max(draws * tile.slices(draws), std::min(draws, kMostOneByOne) * tile.slices(1)) *
                tile.width_of_sums()),
          whole(draws * tile.width_of_sums()),
          host(cuda::pinned<std::int64_t>(kSlots * whole.size())) {}
    [[nodiscard]] std::int64_t* slot(std::size_t batch) const { return host.get() + batch % kSlots * whole.size(); }

    std::size_t draws;                // of a batch
    cuda::Array<std::int64_t> parts;  // [draw][slice][sum][lane]
    cuda::Array<std::int64_t> whole;  // [draw][sum][lane]
    cuda::PinnedArray<std::int64_t> host;
    cuda::CudaStream summing;  // beside the sweeps
    cuda::Event made;
    cuda::Event done[kSlots];
  };
  /// Room for one draw at least.
  Recording& recording() const {
    if (!recorded_) recorded_ = std::make_unique<Recording>(*this, 1);
    return *recorded_;
  }
  [[nodiscard]] cuda::TermsView terms_view(const std::uint32_t* state) const {
    return {state,           lanes_.words(),
            positions_,      static_cast<std::uint32_t>(edges_.size()),
            fields_.data(),  reinterpret_cast<const std::uint32_t*>(edges_.data()),
            weights_.data(), reference_bits_};
  }
  [[nodiscard]] std::size_t width_of_sums() const { return 4 * std::size_t{lanes_.words()} * cuda::kWordChains; }
  /// Slices of a draw, where so many draws are summed by one launch.
  [[nodiscard]] std::uint32_t slices(std::size_t draws) const {
    return cuda::slices_of_sums(terms_view(nullptr), draws);
  }
  /// As many draws as are recorded together where their sums take little memory.
  [[nodiscard]] std::size_t most_draws() const {
    constexpr std::size_t kMost = 64, kBytes = std::size_t{16} << 20;
    return std::clamp<std::size_t>(kBytes / (width_of_sums() * sizeof(std::int64_t)), 1, kMost);
  }
  /// Draws, and into how many slices each is divided.
  struct SlicedDraws {
    std::size_t first;
    std::size_t count;
    std::uint32_t slices;
  };
  /// Sums states one after the other, into the slots of these draws.
  void launch_sums(const std::uint32_t* states, const SlicedDraws& draws, cudaStream_t stream) const {
    const std::size_t of_draw = draws.slices * width_of_sums();
    cuda::launch_sums(
        {terms_view(states), draws.slices, recording().parts.data() + draws.first * of_draw, device_.size(), of_draw},
        static_cast<std::uint32_t>(draws.count), stream);
    cuda::check_launch("states were summed");
  }
  /// After the sums of these draws, from the first on.
  void launch_fetch(const SlicedDraws& draws, std::size_t batch, cudaStream_t stream) const {
    Recording& to = recording();
    cuda::launch_whole_sums({terms_view(nullptr), draws.slices, to.parts.data()},
                            static_cast<std::uint32_t>(draws.count), to.whole.data(), stream);
    cuda::check_launch("states were summed");
    cuda::check(cudaMemcpyAsync(to.slot(batch), to.whole.data(), draws.count * width_of_sums() * sizeof(std::int64_t),
                                cudaMemcpyDeviceToHost, stream),
                "sums were copied from it");
    to.done[batch % kSlots].record(stream);
  }
  [[nodiscard]] CudaSpinSums fetched(std::size_t draw, std::size_t batch) const {
    const std::int64_t* const from = recorded_->slot(batch) + draw * width_of_sums();
    const auto part = [&](std::size_t number) {
      return std::span<const std::int64_t>(from + number * lanes_.words() * cuda::kWordChains + lanes_.first,
                                           lanes_.count);
    };
    return {part(0), part(1), part(2), part(3)};
  }

  cuda::LaneRange lanes_;
  std::uint32_t positions_;
  cuda::BitSweeps device_;
  mutable cuda::HostRows<std::uint32_t> host_;
  cuda::Array<std::uint32_t> position_;
  cuda::Array<std::uint32_t> fields_;
  cuda::Array<std::array<std::uint32_t, 2>> edges_;
  cuda::Array<std::uint32_t> weights_;
  std::uint32_t reference_bits_ = 0;
  mutable std::unique_ptr<Recording> recorded_;
  std::unique_ptr<cuda::DrawBatches> batches_;
};

}  // namespace poise
