/// The pilot of the sampler `auto`: candidates get slices of equal work, and the best of them continues as the run.
///
/// A candidate is a run with the options of the whole run, of which the pilot makes the first steps of the warm-up. So
/// the winner continues exactly as if it had been named, and what the pilot spent on it is not lost. Three rules keep
/// it short. Draws can hardly be better than independent ones: a candidate that would lose even with those is not
/// tried. What all candidates have spent together stays under a tenth of the work of the cheapest run that can still
/// win. And the candidate whose run is the cheapest comes first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poise/choice.hpp>
#include <poise/extend/engines/candidates.hpp>
#include <poise/run.hpp>
#include "run/chains.hpp"
#include "run/pilot.hpp"

namespace poise {

class SamplerPilot {
 public:
  SamplerPilot(Model model, const RunOptions& options);

  /// The candidate whose run is the cheapest.
  [[nodiscard]] const Sampler& first() const { return trials_.front().candidate.sampler; }
  /// As they were given.
  [[nodiscard]] const RunOptions& options() const { return options_; }
  /// Whether there is nothing to find out: one candidate, or the cheapest has independent draws.
  [[nodiscard]] bool is_decided() const;
  /// Whether the first steps of a candidate's run can be those of the pilot: not where the warm-up is too short.
  [[nodiscard]] bool reuses() const { return reuses_; }

  /// How the pilot is seen from outside.
  struct View {
    std::function<void(const Progress&)> progress = {};
    const std::atomic<bool>* stop = nullptr;
    std::function<void()> after_round = {};  ///< called between rounds of a candidate; may save the pilot
    Collective* collective = nullptr;        ///< the ranks, where there are several
    bool listens = false;                    ///< whether any rank reports progress
  };

  /// The choice, and its run where that has begun; otherwise the winner is to be made. No choice where the pilot was
  /// stopped, and only where the target did so a run, the broken one. `first` is the run of the first candidate.
  struct Outcome {
    std::optional<Choice> choice;
    std::unique_ptr<Run> run;
  };
  [[nodiscard]] Outcome run(std::unique_ptr<Run> first, const View& view);

  /// Everything that the rest of the pilot depends on, between two rounds or after a stop; empty before it has begun.
  /// All ranks call it, and the root gets the bytes.
  [[nodiscard]] std::string save();
  /// Has `run` resume from there. Decisions are not saved: they are made again, from what candidates had shown when
  /// they were made the first time.
  void load(std::string state) { resumed_ = std::move(state); }

 private:
  /// What a candidate had shown at the end of a slice.
  struct Slice {
    std::uint64_t points = 0;
    std::uint64_t steps = 0;
    double spent = 0.0;
    bool late = false;
  };
  /// A candidate and what the pilot knows of it.
  struct Trial {
    Candidate candidate;
    double step_work = 0.0;  // of all chains
    double run_work = 0.0;
    double draws = 0.0;            // of all chains together, that this work gives
    std::uint64_t most_steps = 0;  // of the pilot: its warm-up has no more
    std::uint64_t thin = 1;
    std::unique_ptr<Run> run;
    std::optional<PilotRecord> record;
    std::optional<PilotScore> score;
    std::uint64_t spacing = 0;  // steps between two points
    std::uint64_t steps = 0;
    double spent = 0.0;
    bool out = false;
    std::string verdict;

    /// Effective samples per unit of work.
    [[nodiscard]] double value() const { return score->ess_per_draw * draws / run_work; }
    /// The same, if draws were independent.
    [[nodiscard]] double bound() const { return draws / run_work; }
    /// As far as the pilot can be believed: a short one of chains that disagree flatters.
    [[nodiscard]] double sure_value(double wariness) const;
  };

  [[nodiscard]] Trial make_trial(Candidate candidate) const;
  [[nodiscard]] double limit() const;
  [[nodiscard]] double spent() const;
  [[nodiscard]] Trial* leader();
  /// What the leader is found by: beside draws that are known to be independent, what is sure.
  [[nodiscard]] double worth(const Trial& trial) const;
  /// Whether a candidate with independent draws is still in.
  [[nodiscard]] bool has_certain() const;
  [[nodiscard]] double least_slice(const Trial& trial) const;
  [[nodiscard]] std::vector<Trial*> remaining();
  void run_trials();
  /// Whether clusters are chosen because single changes were not seen to mix.
  bool take_clusters();
  void final_round();
  /// Makes steps of this work, if there is room for as many as can be judged. Scores all candidates anew.
  bool pilot(Trial& trial, double work);
  /// The steps, up to `possible` of them or work of `left`.
  void make_steps(Trial& trial, std::uint64_t possible, double left);
  [[nodiscard]] std::unique_ptr<Run> make_run(const Trial& trial) const;
  /// Takes the saved state up, with all candidates as they were then.
  void resume();
  /// Whether this slice was made before the state was saved: the trial is then as it was after it.
  bool repeat(Trial& trial);
  /// Puts the trial where the saved state was in the slice that has just begun, if it was in it.
  void take_up_present(Trial& trial);
  void score_all();
  /// Whether a pilot of it can be long enough to see that it mixes.
  [[nodiscard]] bool can_show(const Trial& trial) const;
  /// Sweeps that are long enough.
  [[nodiscard]] double telling_sweeps() const;
  void drop_hopeless();
  /// Frees the memory of a candidate that is out; the first one may be needed once more.
  void forget(Trial& trial);
  void drop_disagreeing();
  [[nodiscard]] bool stopped() const;
  [[nodiscard]] double seconds() const { return seconds_before_ + seconds_since(began_); }
  void tell(const Trial& trial) const;
  [[nodiscard]] Choice choose();
  [[nodiscard]] std::string reason(const Trial& winner) const;
  /// Whether all that was tried is stuck, and the model can be tempered: a ladder, which takes longer than a pilot to
  /// find its temperatures, is then taken unseen.
  [[nodiscard]] bool calls_for_tempering(const Trial& winner) const;

  Model model_;
  RunOptions options_;
  ModelFacts facts_;
  bool reuses_ = true;
  std::vector<Trial> trials_;  // by the work of a run
  View view_;
  Clock::time_point began_;
  double seconds_before_ = 0.0;  // by the pilot that was saved
  bool late_ = false;
  bool told_to_stop_ = false;
  bool broken_ = false;  // by the target
  bool too_short_ = false;
  Trial* taken_ = nullptr;  // without a pilot of its own

  std::vector<Slice> slices_;  // that are over
  /// The one that is not.
  struct Present {
    std::uint64_t trial = 0;
    std::uint64_t point_end = 0;  // steps of its run at which the next point is recorded
    Evals evals_before;
  };
  std::optional<Present> present_;
  std::string resumed_;  // the saved state, as long as not all of it has been repeated
  /// Slices of the saved state, which are repeated in their order.
  struct Repeated {
    std::vector<Slice> slices;
    std::size_t next = 0;
    Present present;
    Slice at;  // where the present slice was
    std::vector<std::optional<PilotRecord>> records;
  };
  std::optional<Repeated> repeated_;
};

}  // namespace poise
