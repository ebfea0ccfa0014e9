/// A run that records nothing, and a word on whether the target is still the same.
#include <poise/stepper.hpp>

#include <poise/extend/engines/samplers.hpp>

namespace poise {

namespace {

/// Listens to `keep_going` while a call lasts.
class Listening {
 public:
  Listening(const std::function<bool()>& keep_going, const std::function<bool()>*& slot, std::atomic<bool>& stop)
      : slot_(slot) {
    slot_ = keep_going ? &keep_going : nullptr;
    stop = false;
  }
  ~Listening() { slot_ = nullptr; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  const std::function<bool()>*& slot_;
};

const Sampler& by_name(const Sampler& sampler) {
  if (is_row<AutoRow>(sampler)) {
    throw InputError(
        "the sampler 'auto' chooses for a run, and a stepper is none: name a sampler, such as gibbs or gwg");
  }
  return sampler;
}

}  // namespace

Stepper::Stepper(Model model, const Sampler& sampler, const RunOptions& options)
    : follows_(sampler.settings.many && sampler.settings.tuning != StepTuning::fixed),
      run_(std::move(model), by_name(sampler), options, {.stop = &stop_, .after_round = [this](const Run&) {
                                                           if (keep_going_ != nullptr && !(*keep_going_)())
                                                             stop_ = true;
                                                         }}) {}

void Stepper::refresh() {
  if (!stale_) return;
  run_.restart(run_.states());
  stale_ = false;
}

void Stepper::step(std::uint64_t steps, const std::function<bool()>& keep_going) {
  const bool follow = follows_ && stale_;
  refresh();
  const Listening listening(keep_going, keep_going_, stop_);
  if (follow) {
    run_.warm_up({.steps = steps, .follow = true});
  } else {
    run_.advance(steps);
  }
}

void Stepper::warm_up(std::uint64_t steps, const std::function<bool()>& keep_going) {
  refresh();
  const Listening listening(keep_going, keep_going_, stop_);
  run_.warm_up({.steps = steps});
}

void Stepper::set_states(std::span<const Value> levels) {
  run_.restart(levels);
  stale_ = false;
}

std::vector<double> Stepper::log_prob() {
  refresh();
  return run_.log_prob();
}

double Stepper::acceptance_rate() const {
  return total_accepted(run_.engine()) / (static_cast<double>(run_.steps()) * static_cast<double>(num_chains()));
}

}  // namespace poise
