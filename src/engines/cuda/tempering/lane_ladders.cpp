/// Ladders of tempering with replicas across lanes, on the device.
#include "engines/cuda/tempering/lane_ladders.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engines/common/keyed_words.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/lanes/lane_memory.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/ladder_memory.hpp"

namespace poise {

namespace {

static_assert(cuda::kHardZero == LaneModel::kZero);

}  // namespace

/// Everything but the model is made anew where the number of rungs changes.
class CudaLaneLadders::OnDevice {
 public:
  OnDevice(const CudaLaneModel& from, Options the_options)
      : model(from),
        options(std::move(the_options)),
        totals(from.model->num_entries(), static_cast<std::uint32_t>((options.ladders + 1) / 2)),
        components(options.first_neighbour, options.neighbours, options.ladders / 2),
        device(cuda::this_device()),
        variables(from.model->num_variables()) {}

  void set_rungs(std::span<const LaneHeat> heats, std::span<const CudaRungStep> steps) {
    options.rungs = heats.size();
    std::vector<cuda::RungHeat> floats;
    for (const LaneHeat& heat : heats) {
      floats.push_back({static_cast<float>(heat.beta), std::max(static_cast<float>(heat.log_zero), cuda::kHardZero)});
    }
    std::vector<cuda::RungStep> between;
    std::vector<double> guesses;
    for (const CudaRungStep& step : steps) {
      between.push_back({step.beta, step.log_zero});
      guesses.push_back(step.guess);
    }
    rung_steps = cuda::Array<cuda::RungStep>(between);
    energies = cuda::Array<cuda::ReplicaEnergy>(lanes().lanes);
    rung_heats = cuda::Array<cuda::RungHeat>(floats);
    levels = std::make_unique<cuda::LevelsOnDevice>(model.positions(), variables, lanes());
    std::vector<cuda::PairKey> all(lanes().lanes / 2);
    for (std::size_t p = 0; p < all.size(); ++p) {
      const std::size_t of_ladder = options.rungs / 2;
      const std::uint64_t first = options.first_lane + p / of_ladder * options.lanes_apart;
      const WordKey key = word_key(options.seed, Stream::lanes, first / 2 + p % of_ladder);
      all[p] = {key.first, key.second};
    }
    keys = cuda::Array<cuda::PairKey>(all);
    ladders = std::make_unique<cuda::LaddersOnDevice>(options.ladders, guesses);
    components.set_rungs(options.rungs);
    cold_is_current = false;
  }

  [[nodiscard]] cuda::LaneBatch lanes() const {
    const auto count = static_cast<std::uint32_t>(options.ladders * options.rungs);
    return {0, count, count};
  }

  [[nodiscard]] cuda::LaneTileView view(bool averaging) const {
    cuda::LaneTileView view = model.view();
    view.levels = levels->words();
    view.sums = averaging ? totals.sums() : nullptr;
    view.keys = keys.data();
    view.pairs = lanes().lanes / 2;
    view.end_lane = lanes().lanes;
    view.heat = {ladders->rung_of(), rung_heats.data(), static_cast<std::uint32_t>(options.rungs), stride_of_totals()};
    return view;
  }
  [[nodiscard]] std::uint32_t stride_of_totals() const {
    return static_cast<std::uint32_t>((options.ladders + 1) / 2 * 2);
  }

  [[nodiscard]] cuda::LanePlan plan(const cuda::LaneTileView& view) const {
    return cuda::plan_lanes({.pairs = view.pairs,
                             .rows = view.positions,
                             .image_bytes = model.image_bytes(),
                             .colours = model.image().colours},
                            device);
  }

  void sweep(const cuda::LaneTileView& view, cuda::LanePlan plan, std::uint64_t number) const {
    if (plan.resident && cuda::launch_heated_resident(view, plan, number, 1)) return;
    const std::vector<std::uint32_t>& colours = model.image().colours;
    if (plan.resident) plan = cuda::plan_spread({.pairs = view.pairs, .colours = colours});
    for (std::size_t c = 0; c + 1 < colours.size(); ++c) {
      cuda::launch_heated_colour(view, plan, number, colours[c], colours[c + 1]);
    }
  }

  void sum_energies() const {
    const cuda::FactorsView factors{model.exact(), model.factors(), levels->bytes(), lanes().lanes};
    if (model.log_sums() == CudaLogSums::in_integers) {
      cuda::launch_exact_energies(factors, energies.data());
    } else {
      cuda::launch_energies(factors, energies.data());
    }
  }

  [[nodiscard]] cuda::ColdView cold() const {
    return {levels->bytes(), lanes().lanes, ladders->replica_at(), static_cast<std::uint32_t>(options.ladders),
            static_cast<std::uint32_t>(options.rungs)};
  }

  /// Ladders with the random streams of their swaps, by the number of the first ladder.
  [[nodiscard]] cuda::LadderView ladder_view() const {
    return ladders->view(options.seed, static_cast<std::uint64_t>(Stream::swaps) + options.first_chain);
  }

  void exchange(std::uint64_t step) const {
    const auto rung = static_cast<std::uint32_t>(step % options.rungs);
    if (!components.is_on(rung)) return;
    const std::uint64_t stream = static_cast<std::uint64_t>(Stream::components) + options.first_chain;
    auto* const bytes = reinterpret_cast<std::uint8_t*>(levels->words());
    cuda::launch_exchange(components.view({bytes, lanes().lanes}, options.seed, stream), ladder_view(), rung);
  }

  /// Records the cold replicas, whose lanes are the ladders.
  cuda::LaneRecording& recording() {
    const auto count = static_cast<std::uint32_t>(options.ladders);
    if (!recorded) recorded = std::make_unique<cuda::LaneRecording>(model, variables, cuda::LaneBatch{0, count, count});
    return *recorded;
  }
  /// Copies their states to where those of a draw are summed.
  void keep_cold(std::size_t draw) {
    cuda::launch_keep_cold(cold(), variables, recording().states() + draw * recording().bytes());
    cuda::check_launch("states were recorded");
  }

  void to_host_cold() const {
    if (cold_is_current) return;
    levels->to_device();
    cold_levels.resize(options.ladders * variables);
    const cuda::Array<std::uint8_t> out(cold_levels.size());
    cuda::launch_gather_cold(cold(), model.positions(), variables, out.data());
    cuda::check_launch("levels were gathered");
    out.download(cold_levels);
    cold_is_current = true;
  }

  cuda::ModelOnDevice model;
  Options options;
  cuda::LaneTotalsOnDevice totals;
  cuda::ComponentsOnDevice components;
  cuda::DeviceShape device;
  std::uint32_t variables;
  cuda::Array<cuda::RungHeat> rung_heats;
  cuda::Array<cuda::RungStep> rung_steps;
  cuda::Array<cuda::ReplicaEnergy> energies;
  cuda::Array<cuda::PairKey> keys;
  std::unique_ptr<cuda::LevelsOnDevice> levels;
  std::unique_ptr<cuda::LaddersOnDevice> ladders;
  std::unique_ptr<cuda::LaneRecording> recorded;
  std::mutex mutex;                        // of the totals and of
  mutable std::vector<Value> cold_levels;  // [ladder][variable]
  mutable bool cold_is_current = false;
};

CudaLaneLadders::CudaLaneLadders(std::shared_ptr<const CudaLaneModel> model, Options options)
    : model_(std::move(model)), device_(std::make_unique<OnDevice>(*model_, std::move(options))) {}

CudaLaneLadders::~CudaLaneLadders() = default;
CudaLaneLadders::CudaLaneLadders(CudaLaneLadders&&) noexcept = default;
CudaLaneLadders& CudaLaneLadders::operator=(CudaLaneLadders&&) noexcept = default;

void CudaLaneLadders::set_rungs(std::span<const LaneHeat> heats, std::span<const CudaRungStep> steps) {
  device_->set_rungs(heats, steps);
}

void CudaLaneLadders::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  counting_ = averaging_ = false;
  if (progress.counts != 0) reset_counts();
  if (progress.averages != 0) reset_sums();
}

void CudaLaneLadders::start(std::uint64_t step, std::uint64_t steps) {
  OnDevice& device = *device_;
  device.levels->to_device();
  device.levels->changed();
  device.cold_is_current = false;
  const cuda::LaneTileView view = device.view(averaging_);
  const cuda::LanePlan plan = device.plan(view);
  const cuda::LadderView ladders = device.ladder_view();
  for (; steps > 0; --steps, ++step) {
    device.sweep(view, plan, sweeps_);
    device.sum_energies();
    cuda::launch_swaps(ladders, {device.energies.data(), device.rung_steps.data()}, step);
    if (counting_) {
      cuda::launch_count_cold(device.cold(), view.image, device.model.image().colours.back(),
                              reinterpret_cast<std::uint8_t*>(device.totals.counts()), device.stride_of_totals());
    }
    device.exchange(step + 1);
    cuda::check_launch("steps of ladders were started");
    ++sweeps_;
    if (!counting_ && !averaging_) continue;
    device.totals.changed(1);
    if (sweeps_ % (averaging_ ? LaneModel::kMostSummed : LaneModel::kMostCounted) == 0) device.totals.spill();
  }
}

void CudaLaneLadders::wait() const { cuda::check(cudaDeviceSynchronize(), "steps of ladders were made"); }

void CudaLaneLadders::reset_counts() {
  device_->totals.reset_counts();
  counting_ = true;
}

void CudaLaneLadders::reset_sums() {
  device_->totals.reset_sums();
  averaging_ = true;
}

std::vector<CudaLadder> CudaLaneLadders::ladders() const { return device_->ladders->get(); }

void CudaLaneLadders::set_ladders(std::span<const CudaLadder> ladders) {
  device_->ladders->set(ladders);
  device_->cold_is_current = false;
}

std::vector<CudaExchange> CudaLaneLadders::exchanges() const { return device_->components.get(); }

void CudaLaneLadders::set_exchanges(std::span<const CudaExchange> exchanges) { device_->components.set(exchanges); }

bool CudaLaneLadders::follow() { return device_->ladders->follow(); }

std::vector<std::uint8_t> CudaLaneLadders::followed() { return device_->ladders->followed(); }

CudaLaneSums CudaLaneLadders::sums() const {
  device_->levels->to_device();
  cuda::LaneRecording& recording = device_->recording();
  device_->keep_cold(0);
  recording.start(recording.states(), 1, 0);
  recording.wait(0);
  return recording.sums(0, 0);
}

void CudaLaneLadders::sum_draws(std::size_t draws, const std::function<void()>& start_draw,
                                const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use) {
  cuda::LaneRecording& recording = device_->recording();
  const auto start = [&](std::size_t batch, std::size_t size) {
    for (std::size_t draw = 0; draw < size; ++draw) {
      start_draw();
      device_->keep_cold(draw);
    }
    recording.start(recording.states(), size, batch);
  };
  recording.run(draws, start, use);
}

CudaLaneLadders::Energies CudaLaneLadders::energies() const {
  device_->levels->to_device();
  device_->sum_energies();
  cuda::check_launch("states were summed");
  std::vector<cuda::ReplicaEnergy> found(device_->energies.size());
  device_->energies.download(found);
  Energies out;
  for (const cuda::ReplicaEnergy& energy : found) {
    out.log_weight.push_back(energy.log_weight);
    out.zeros.push_back(energy.zeros);
  }
  return out;
}

void CudaLaneLadders::set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels) {
  device_->levels->set(ladder * device_->options.rungs + replica, levels);
  const std::lock_guard lock(device_->mutex);
  device_->cold_is_current = false;
}

std::span<const Value> CudaLaneLadders::levels(std::size_t ladder, std::size_t replica) const {
  return device_->levels->get(ladder * device_->options.rungs + replica);
}

std::span<const Value> CudaLaneLadders::cold_levels(std::size_t ladder) const {
  const std::lock_guard lock(device_->mutex);
  device_->to_host_cold();
  return std::span<const Value>(device_->cold_levels).subspan(ladder * device_->variables, device_->variables);
}

LaneTotals CudaLaneLadders::totals(std::size_t ladder) const {
  const std::lock_guard lock(device_->mutex);
  return device_->totals.get(static_cast<std::uint32_t>(ladder), {counting_, averaging_}, device_->model);
}

void CudaLaneLadders::set_totals(std::size_t ladder, const LaneTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  device_->totals.set(static_cast<std::uint32_t>(ladder), {counting_, averaging_}, device_->model, totals);
}

}  // namespace poise
