/// Ladders of an RBM on a GPU as an engine: the host knows of them what it has last asked for.
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/engines.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/tempered_engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "engines/common/saved_rbm_chain.hpp"
#include "engines/common/tempering/heat.hpp"
#include "engines/common/tempering/rung_numbers.hpp"
#include "engines/cuda/tempering/ladder.hpp"
#include "engines/cuda/tempering/rbm_ladders.hpp"

namespace poise {

namespace {

using RbmPointer = std::shared_ptr<const Rbm>;

RbmPointer rbm_at(const Heat& heat, double beta) { return std::get<RbmPointer>(heat.at(beta)); }

class CudaTemperedRbm final : public TemperedEngine {
 public:
  CudaTemperedRbm(std::shared_ptr<const Heat> heat, const EngineOptions& options)
      : TemperedEngine(traits_of(*rbm_at(*heat, 1.0), options), options, heat->log_hot()),
        heat_(std::move(heat)),
        target_(rbm_at(*heat_, 1.0)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        ladders_(*target_, rbm_at(*heat_, 0.0)->offsets(),
                 {.ladders = traits_.chains,
                  .seed = options.seed,
                  .first_chain = options.first_chain,
                  .sweeps = static_cast<std::uint32_t>(kSweepsOfRbm)}),
        chains_(traits_.chains) {
    ladders_.set_reference(reference_);
    set_first_betas(first_betas(kFirstRungs));
    set_rungs();
    for (std::size_t c = 0; c < traits_.chains; ++c) set_replicas(c, options.starts[c]);
  }

  std::vector<ChainGroup> share_out(unsigned) override { return {{0, traits_.chains}}; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    if (group.count != traits_.chains) throw std::logic_error("ladders on a GPU are moved on together");
    send_ladders();
    while (steps > 0) {
      // Up to where paths of replicas have their next point.
      const std::uint64_t step = rungs(0).step;
      const std::uint64_t stride = rungs(0).ladder.paths().stride();
      const std::uint64_t some = std::min(steps, steps_to_point(rungs(0).ladder, step));
      ladders_.advance(step, some);
      device_is_newer_ = true;
      for (std::size_t c = 0; c < traits_.chains; ++c) rungs(c).step += some;
      steps -= some;
      if ((step + some - 1) % stride == 0) follow(step + some - 1);
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    send_ladders();
    if (wants_sums(out)) observe_rbm_sums(ladders_.cold_sums(), group, out);
    for (std::size_t k = 0; k < out.accepted.size(); ++k) out.accepted[k] = accepted(group.first + k);
    observe_each(*this, traits_, group, out);
  }

  // For observe_each.
  void get_levels(std::size_t c, std::span<Value> out) const { ladders_.get_cold_levels(c, out); }
  void copy_marginals(std::size_t c, std::span<double> out) const {
    copy_fractions(ladders_.up_counts(c), ladders_.sweeps() - chains_[c].counted_from, out);
  }
  [[nodiscard]] Evals evals(std::size_t c) const { return evals(c, betas().size()); }

  void restart(std::size_t c, std::span<const Value> levels) override {
    set_replicas(c, levels);
    ++chains_[c].placed;
    chains_[c].counted_from = ladders_.sweeps();
    if (ladders_.counts()) ladders_.set_up_counts(c, std::vector<std::uint64_t>(traits_.variables, 0));
  }

  void start_marginals(ChainGroup, bool rao_blackwell) override {
    bring_ladders();
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      restart_counts(c);
      chains_[c].counted_from = ladders_.sweeps();
      if (rao_blackwell) chains_[c].rao_blackwell = {std::vector<double>(target_->num_moves(), 0.0), 0};
    }
    host_is_newer_ = true;
    ladders_.start_counting();
  }

  void visit_marginals(ChainGroup group) override {
    send_ladders();
    std::vector<Value> levels(traits_.variables);
    visit_conditionals(
        *target_, group, [&](std::size_t c) -> RaoBlackwell& { return chains_[c].rao_blackwell; },
        [&](std::size_t c) -> std::span<const Value> {
          ladders_.get_cold_levels(c, levels);
          return levels;
        });
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override { return chains_[c].rao_blackwell; }

  // As RungEngines saves ladders whose rungs have engines of `rbm-gibbs`. Only cold replicas are counted here.

  void save_common(Saver& out) const override {
    constexpr bool learned = false;  // a function
    save_ladder(out);
    out(generation_, learned);
  }

  void load_common(Loader& in) override {
    load_ladder(in);
    bool learned = false;
    in(generation_, learned);
    if (learned) throw std::runtime_error("the saved state was made by another model, sampler or version");
    set_rungs();
  }

  void save_chain(std::size_t c, Saver& out) const override {
    bring_ladders();
    out(rungs(c), chains_[c].past);
    SavedRbmChain chain{.steps = ladders_.sweeps(), .counted_from = ladders_.sweeps(), .placed = chains_[c].placed};
    chain.levels.resize(traits_.variables);
    for (std::size_t rung = 0; rung < betas().size(); ++rung) {
      ladders_.get_levels(c, rungs(c).ladder.replica_at(rung), chain.levels);
      if (rung + 1 == betas().size()) {
        chain.counted_from = chains_[c].counted_from;
        chain.up_counts = ladders_.up_counts(c);
        chain.rao_blackwell = chains_[c].rao_blackwell;
      }
      save_rbm_chain(chain_of(c, rung), chain, out);
    }
  }

  void load_chain(std::size_t c, Loader& in) override {
    in(rungs(c), chains_[c].past);
    SavedRbmChain chain;
    for (std::size_t rung = 0; rung < betas().size(); ++rung) {
      chain = load_rbm_chain(chain_of(c, rung), in);
      ladders_.set_levels(c, rungs(c).ladder.replica_at(rung), chain.levels);
    }
    {
      const std::lock_guard lock(mutex_);
      host_is_newer_ = true;
      device_is_newer_ = false;
      ladders_.set_sweeps(chain.steps);
      if (!ladders_.counts()) ladders_.start_counting();
    }
    chains_[c].counted_from = chain.counted_from;
    chains_[c].placed = chain.placed;
    chains_[c].rao_blackwell = std::move(chain.rao_blackwell);
    ladders_.set_up_counts(c, chain.up_counts);
  }

 protected:
  [[nodiscard]] std::size_t round_rungs(std::size_t wanted) const override {
    return std::clamp<std::size_t>(wanted, 2, kMostRungs);
  }

  void remake_replicas(const std::vector<double>& before) override {
    std::vector<std::vector<Value>> states;  // [ladder][rung]
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      for (const double beta : betas()) {
        states.emplace_back(traits_.variables);
        ladders_.get_levels(c, rungs(c).ladder.replica_at(nearest_rung(before, beta)), states.back());
      }
      chains_[c] = {.past = {accepted(c), evals(c, before.size())}};
    }
    ++generation_;
    set_rungs();
    for (std::size_t k = 0; k < states.size(); ++k) {
      ladders_.set_levels(k / betas().size(), k % betas().size(), states[k]);
    }
  }

  void fetch_ladders(std::vector<Rungs>& all) const override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(device_is_newer_, false)) return;
    const std::vector<CudaLadder> ladders = ladders_.ladders();
    for (std::size_t c = 0; c < all.size(); ++c) to_host(ladders[c], all[c]);
  }

 private:
  /// What there is of a ladder besides its replicas and rungs.
  struct Kept {
    RungPast past;
    RaoBlackwell rao_blackwell = {};
    std::uint64_t counted_from = 0;  // sweeps
    std::uint64_t placed = 1;        // times that each replica was put at a state, on this ladder
  };

  static EngineTraits traits_of(const Rbm& target, const EngineOptions& options) {
    EngineTraits traits = device_traits(target, options);
    // Microseconds that a step takes: some at least, and so many weights of all replicas in one more.
    constexpr double least = 60.0, weights = 1e7, milliseconds = 5.0;
    const auto replicas = static_cast<double>(traits.chains * kFirstRungs);
    const double step = least + replicas * static_cast<double>(target.weights().weights.size()) / weights;
    traits.chunk = static_cast<std::uint64_t>(std::clamp(1000.0 * milliseconds / step, 1.0, 64.0));
    return traits;
  }

  [[nodiscard]] RbmChainOf chain_of(std::size_t c, std::size_t rung) const {
    return {*heated_[rung], reference_, seed_,
            first_chain_ + c + stream_offset(betas().size() - 1 - rung, generation_)};
  }

  /// After the ladder has changed: the device begins with the new one, from any states.
  void set_rungs() {
    heated_.clear();
    for (const double beta : betas()) heated_.push_back(rbm_at(*heat_, beta));
    ladders_.set_rungs({betas(), guesses(), first_chain_ + stream_offset(0, generation_)});
    host_is_newer_ = true;
    device_is_newer_ = false;
  }

  void set_replicas(std::size_t c, std::span<const Value> levels) {
    for (std::size_t r = 0; r < betas().size(); ++r) ladders_.set_levels(c, r, levels);
  }

  /// Before the device looks at them.
  void send_ladders() const {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(host_is_newer_, false)) return;
    std::vector<CudaLadder> ladders;
    for (std::size_t c = 0; c < traits_.chains; ++c) ladders.push_back(to_device(rungs(c)));
    ladders_.set_ladders(ladders);
  }

  void follow(std::uint64_t step) {
    const std::vector<std::uint8_t> all = ladders_.rungs_of_replicas();
    std::vector<std::uint32_t> rung_of(betas().size());
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(c * rung_of.size()), rung_of.size(), rung_of.begin());
      rungs(c).ladder.follow(step, rung_of);
    }
  }

  /// Every sweep counts as accepted, and a step is one, however many sweeps it has.
  [[nodiscard]] double accepted(std::size_t c) const {
    return chains_[c].past.accepted + static_cast<double>(ladders_.sweeps()) / static_cast<double>(kSweepsOfRbm);
  }

  [[nodiscard]] Evals evals(std::size_t c, std::uint64_t rungs) const {
    Evals all = chains_[c].past.evals;
    all.target += rungs * chains_[c].placed;
    all.gradient += rungs * ladders_.sweeps();
    return all;
  }

  std::shared_ptr<const Heat> heat_;
  RbmPointer target_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  mutable CudaRbmLadders ladders_;
  std::vector<RbmPointer> heated_;  // of each rung
  std::vector<Kept> chains_;
  std::uint64_t generation_ = 0;          // how many times the ladder has changed
  mutable std::mutex mutex_;              // of
  mutable bool host_is_newer_ = true;     // than the ladders of the device
  mutable bool device_is_newer_ = false;  // than those of the host
};

}  // namespace

TunableEngine make_cuda_tempered_rbm(const Model& model, const Sampler&, const EngineOptions& options) {
  auto engine = std::make_unique<CudaTemperedRbm>(make_heat(model), options);
  auto tuner = std::make_unique<LadderTuner>(*engine);
  return {.engine = std::move(engine), .ladder = std::move(tuner)};
}

}  // namespace poise
