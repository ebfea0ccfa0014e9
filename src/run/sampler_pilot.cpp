/// Slices, scores and the choice.
#include "run/sampler_pilot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "run/warmup.hpp"

namespace poise {

namespace {

/// The fraction of the run's work that the pilot may take.
constexpr double kPilotFraction = 0.1;
/// The fractions of that which the first candidate gets before any other is tried, and which all others get in the
/// first round.
constexpr double kFirstFraction = 0.3;
constexpr double kOthersFraction = 0.4;
/// Points of a chain that are the least to judge it by, and the most that are worth recording.
constexpr std::uint64_t kFewestPoints = 32;
constexpr std::uint64_t kMostPoints = 512;
/// Chains with a larger R-hat disagree.
constexpr double kDisagree = 2.0;
/// A time in which chains have not mixed says nothing of how long they need. Until it is seen to mix, a draw of a
/// candidate is taken to be worth at most so many of the first one's: informed proposals were seen to gain one to four.
constexpr double kBestGuess = 2.0;
/// Sweeps in which chains must be seen to mix; fewer will do where those of the first candidate plainly do not.
constexpr double kTellingSweeps = 16.0;
constexpr double kTellingSweepsElsewhere = 4.0;
/// Sweeps after which chains that still disagree are taken to be stuck, rather than on their way.
constexpr double kStuckSweeps = 64.0;
/// Replicas of a ladder, roughly: how many there are is known when it has been run.
constexpr double kRungs = 16.0;
/// Powers of R-hat by which a pilot is trusted less. An R-hat of 1.1 means that chains were some ten times as long as
/// their memory, and slower modes may not have shown yet: beside draws that are known to be independent that counts
/// threefold.
constexpr double kWary = 4.0;
constexpr double kVeryWary = 12.0;
/// Independent draws are worth what they are said to be, and a first look at chains may flatter those so many times.
constexpr double kDoubt = 4.0;
/// Candidates that are so much worse need no second look.
constexpr double kFarBehind = 4.0;
/// Where a sweep of clusters costs ten times one of Gibbs, a tenth of a run of Gibbs cannot show that they mix. It need
/// not: near criticality a draw of Wolff's was seen to be worth 0.24 to 0.34 independent ones on lattices of 32 to 256
/// rows. Where single changes are not seen to mix, they are compared with this.
constexpr double kClusterDraw = 0.25;
/// Draws of a run whose length is not known.
constexpr double kUsualDraws = 1000.0;
constexpr const char* kFewer = "fewer per unit of work";
constexpr const char* kNotMixing = "its chains were not seen to mix";
constexpr const char* kTooExpensive = "skipped: too expensive to be tested within the pilot budget";
/// The fraction of a limit in seconds that the pilot may take by the clock.
constexpr double kPilotSeconds = 0.15;

}  // namespace

double SamplerPilot::Trial::sure_value(double wariness) const { return value() / std::pow(score->r_hat, wariness); }

SamplerPilot::SamplerPilot(Model model, const RunOptions& options)
    : model_(std::move(model)), options_(options), facts_(model_facts(model_, options.chains)) {
  if (options_.warmup) {
    const double all = static_cast<double>(*options_.warmup) + static_cast<double>(options_.draws);
    reuses_ = static_cast<double>(*options_.warmup) >= kPilotFraction * all;
  }
  for (Candidate& candidate : find_candidates(facts_)) trials_.push_back(make_trial(std::move(candidate)));
  std::stable_sort(trials_.begin(), trials_.end(),
                   [](const Trial& a, const Trial& b) { return a.bound() > b.bound(); });
}

SamplerPilot::Trial SamplerPilot::make_trial(Candidate candidate) const {
  Trial made;
  const SamplerCost& cost = candidate.cost;
  const auto chains = static_cast<double>(options_.chains);
  made.thin = options_.thin > 0 ? options_.thin : cost.steps_per_sweep;
  made.step_work = chains * cost.of(cost.step);
  const double draw_work = made.step_work * static_cast<double>(made.thin);
  double warmup = options_.warmup ? static_cast<double>(*options_.warmup) * static_cast<double>(made.thin)
                                  : static_cast<double>(kWarmupSweeps) * static_cast<double>(cost.steps_per_sweep);
  if (candidate.independent && !options_.warmup) warmup = 0.0;
  made.most_steps = static_cast<std::uint64_t>(
      reuses_ ? warmup : static_cast<double>(kWarmupSweeps) * static_cast<double>(cost.steps_per_sweep));
  const double before = cost.setup + made.step_work * warmup * (candidate.sampler.learns() ? cost.learning : 1.0);
  if (options_.seconds > 0.0 && facts_.kind != ModelKind::callback) {
    made.run_work = 1e9 * options_.seconds;
    made.draws = std::max(1.0, chains * (made.run_work - std::min(before, made.run_work / 2)) / draw_work);
    if (cost.setup > made.run_work / 2) made.draws = 1.0;
  } else {
    const double draws = options_.seconds > 0.0 ? kUsualDraws : static_cast<double>(options_.draws);
    made.run_work = before + draw_work * draws;
    made.draws = chains * draws;
  }
  if (candidate.independent) made.score = PilotScore{1.0, "", 1.0, true};
  made.candidate = std::move(candidate);
  return made;
}

bool SamplerPilot::is_decided() const { return trials_.size() == 1 || trials_.front().candidate.independent; }

double SamplerPilot::limit() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Trial& one : trials_) {
    if (!one.out) least = std::min(least, one.run_work);
  }
  return kPilotFraction * least;
}

double SamplerPilot::spent() const {
  double sum = 0.0;
  for (const Trial& one : trials_) sum += one.spent;
  return sum;
}

SamplerPilot::Trial* SamplerPilot::leader() {
  Trial* best = nullptr;
  for (Trial& one : trials_) {
    if (!one.out && one.score && (best == nullptr || worth(one) > worth(*best))) best = &one;
  }
  return best;
}

double SamplerPilot::worth(const Trial& trial) const {
  return has_certain() ? trial.sure_value(kVeryWary) : trial.value();
}

bool SamplerPilot::has_certain() const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const Trial& one) { return !one.out && one.candidate.independent; });
}

std::vector<SamplerPilot::Trial*> SamplerPilot::remaining() {
  std::vector<Trial*> found;
  for (Trial& one : trials_) {
    if (!one.out && !one.candidate.independent) found.push_back(&one);
  }
  return found;
}

double SamplerPilot::least_slice(const Trial& trial) const {
  return trial.step_work * static_cast<double>(kFewestPoints);
}

bool SamplerPilot::stopped() const {
  // Among ranks only what all of them know counts, and the candidate's run has agreed on it.
  const bool told = view_.collective == nullptr && view_.stop != nullptr && view_.stop->load(std::memory_order_relaxed);
  return broken_ || told_to_stop_ || told;
}

SamplerPilot::Outcome SamplerPilot::run(std::unique_ptr<Run> first, const View& view) {
  view_ = view;
  began_ = Clock::now();
  if (!is_decided()) {
    if (reuses_) trials_.front().run = std::move(first);
    if (!resumed_.empty()) resume();
    run_trials();
    if (broken_) return {{}, first ? std::move(first) : std::move(trials_.front().run)};
    if (stopped()) return {};
  }
  Outcome outcome{choose(), nullptr};
  const auto chosen = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& one) {
    return one.candidate.sampler.name == outcome.choice->sampler;
  });
  if (chosen == trials_.end()) return outcome;
  if (reuses_ && chosen->run) {
    outcome.run = std::move(chosen->run);
  } else if (chosen == trials_.begin()) {
    outcome.run = std::move(first);
  }
  return outcome;
}

void SamplerPilot::run_trials() {
  Trial& first = trials_.front();
  if (!pilot(first, std::max(kFirstFraction * limit(), least_slice(first)))) {
    too_short_ = !stopped();
    return;
  }
  if (take_clusters()) return;
  drop_hopeless();
  const std::vector<Trial*> others = remaining();
  for (Trial* one : others) {
    if (one == &first || one->out || stopped()) continue;
    const double share = kOthersFraction * limit() / static_cast<double>(others.size());
    if (!pilot(*one, std::max(share, least_slice(*one))) && !stopped()) {
      one->out = true;
      one->verdict = late_ ? "not tried: the time for the pilot was up"
                           : "not tried: a pilot of it would take more than a tenth of the run";
    }
    drop_hopeless();
  }
  drop_disagreeing();
  final_round();
}

bool SamplerPilot::take_clusters() {
  const auto moves_clusters = [](const Trial& one) {
    return is_row<WolffRow>(one.candidate.sampler) || is_row<SwendsenWangRow>(one.candidate.sampler);
  };
  Trial& first = trials_.front();
  if (moves_clusters(first) || first.score->mixed || has_certain() || stopped()) return false;
  for (Trial& one : trials_) {
    // Cheaper ones can be tried.
    if (!moves_clusters(one) || kFarBehind * one.bound() > first.bound()) continue;
    if (kClusterDraw * one.bound() <= first.sure_value(kWary)) continue;
    taken_ = &one;
    break;
  }
  if (taken_ == nullptr) return false;
  for (Trial& one : trials_) one.verdict = &one == &first ? kNotMixing : "not tried: clusters were taken";
  return true;
}

void SamplerPilot::final_round() {
  std::vector<Trial*> finalists = remaining();
  std::erase_if(finalists, [](const Trial* one) { return !one->score; });
  if (finalists.empty() || stopped()) return;
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Trial* a, const Trial* b) { return a->value() > b->value(); });
  const double best = leader()->value();
  std::erase_if(finalists, [&](const Trial* one) { return one->value() < best / kFarBehind; });
  if (finalists.size() > 2) finalists.resize(2);
  // The one that is left alone needs no more proof.
  const bool alone = finalists.size() == 1 && leader() == finalists[0] && remaining().size() == 1 && !has_certain();
  if (alone) return;
  const double share = (limit() - spent()) / static_cast<double>(finalists.size());
  for (Trial* one : finalists) {
    if (!stopped()) pilot(*one, share);
  }
  drop_disagreeing();
}

bool SamplerPilot::pilot(Trial& trial, double work) {
  const double left = std::min(work, limit() - spent());
  const auto steps = static_cast<std::uint64_t>(std::max(0.0, left / trial.step_work));
  const std::uint64_t possible = std::min(steps, trial.most_steps - std::min(trial.most_steps, trial.steps));
  if (trial.spacing == 0) {
    if (possible < kFewestPoints) return false;
    const std::uint64_t draws = possible / trial.thin;
    trial.spacing = draws < kFewestPoints ? std::min(trial.thin, possible / kFewestPoints)
                                          : trial.thin * ((draws + kMostPoints - 1) / kMostPoints);
  }
  if (possible < trial.spacing) return false;
  if (!repeat(trial)) {
    try {
      if (!trial.run) trial.run = make_run(trial);
    } catch (const RunStopped&) {
      broken_ = true;
      return false;
    }
    make_steps(trial, possible, left);
  }
  if (stopped() || trial.record->points() < kFewestPoints / 2) return false;
  const Division* const division = trial.run ? trial.run->engine().division() : nullptr;
  if (division != nullptr) trial.record->share(*division);
  score_all();
  return true;
}

std::unique_ptr<Run> SamplerPilot::make_run(const Trial& trial) const {
  RunOptions options = options_;
  if (!reuses_) options.warmup.reset();
  options.memory = std::numeric_limits<double>::max();  // pilots make no draws
  RunHooks hooks;
  hooks.stop = view_.stop;
  hooks.collective = view_.collective;
  if (view_.after_round) hooks.after_round = [this](const Run&) { view_.after_round(); };
  return std::make_unique<Run>(model_, trial.candidate.sampler, options, hooks);
}

void SamplerPilot::make_steps(Trial& trial, std::uint64_t possible, double left) {
  Run& run = *trial.run;
  if (!trial.record) trial.record.emplace(model_, options_.chains);
  const std::uint64_t end = trial.steps + possible;
  const double spent_before = trial.spent;
  present_ = Present{};
  present_->trial = static_cast<std::uint64_t>(&trial - trials_.data());
  present_->evals_before = total_evals(run.engine());
  present_->point_end = run.steps() + trial.spacing;
  take_up_present(trial);
  for (; trial.steps + trial.spacing <= end && !stopped(); present_->point_end = run.steps() + trial.spacing) {
    run.begin_warm_up(present_->point_end - std::min(present_->point_end, run.steps()));
    broken_ = run.is_broken();
    told_to_stop_ = run.stopped();
    if (run.ended()) break;
    trial.record->record(run.engine());
    trial.steps += trial.spacing;
    trial.spent = spent_before + trial.candidate.cost.of(total_evals(run.engine()) - present_->evals_before);
    tell(trial);
    late_ = options_.seconds > 0.0 && seconds() > kPilotSeconds * options_.seconds;
    if (options_.seconds > 0.0 && view_.collective != nullptr) late_ = view_.collective->any(late_);
    if (late_ || trial.spent - spent_before >= left) break;
  }
  if (stopped()) return;  // in the middle of it
  slices_.push_back({trial.record->points(), trial.steps, trial.spent, late_});
  present_.reset();
}

void SamplerPilot::score_all() {
  std::vector<PilotSummary> summaries;
  std::vector<Trial*> scored;
  for (Trial& one : trials_) {
    if (!one.record || one.record->points() < kFewestPoints / 2) continue;
    summaries.push_back(one.record->summarize());
    scored.push_back(&one);
  }
  std::vector<const PilotSummary*> all;
  for (const PilotSummary& summary : summaries) all.push_back(&summary);
  for (std::size_t k = 0; k < scored.size(); ++k) {
    const double points_per_draw = static_cast<double>(scored[k]->thin) / static_cast<double>(scored[k]->spacing);
    scored[k]->score = score_pilot(summaries[k], all, points_per_draw);
  }
  const Trial& first = trials_.front();
  for (Trial* one : scored) {
    const std::uint64_t steps = one->record->points() / 2 * one->spacing;
    const double sweeps = static_cast<double>(steps) / static_cast<double>(one->candidate.cost.steps_per_sweep);
    one->score->mixed = one->score->mixed && sweeps >= telling_sweeps();
    if (one == &first || one->score->mixed || first.score->ess_per_draw == 0.0) continue;
    one->score->ess_per_draw = std::min(one->score->ess_per_draw, kBestGuess * first.score->ess_per_draw);
  }
}

double SamplerPilot::telling_sweeps() const {
  const auto& first = trials_.front().score;
  return first && first->r_hat > kDisagree ? kTellingSweepsElsewhere : kTellingSweeps;
}

bool SamplerPilot::can_show(const Trial& trial) const {
  const double sweep = trial.step_work * static_cast<double>(trial.candidate.cost.steps_per_sweep);
  return limit() - spent() >= 2.0 * telling_sweeps() * sweep;
}

void SamplerPilot::drop_hopeless() {
  const Trial* best = nullptr;
  for (const Trial& one : trials_) {
    if (!one.out && one.score && (best == nullptr || one.sure_value(kWary) > best->sure_value(kWary))) best = &one;
  }
  if (best == nullptr) return;
  const Trial& first = trials_.front();
  for (Trial& one : trials_) {
    if (&one == best || one.out) continue;
    const double doubt = one.candidate.independent ? kDoubt : 1.0;
    const bool lost = doubt * one.bound() <= best->sure_value(kWary);
    const bool too_expensive = &one != &first && !one.score && first.score && first.value() > 0.0 && !can_show(one) &&
                               kBestGuess * one.bound() <= first.bound();
    if (!lost && !too_expensive) continue;
    one.out = true;
    forget(one);
    one.verdict = one.record ? kFewer : lost ? "not tried: even independent draws would lose" : kTooExpensive;
  }
}

void SamplerPilot::forget(Trial& trial) {
  if (&trial != &trials_.front()) trial.run.reset();
}

void SamplerPilot::drop_disagreeing() {
  const auto disagrees = [](const Trial& one) { return one.score && one.score->r_hat > kDisagree; };
  const bool any_agrees = std::any_of(trials_.begin(), trials_.end(),
                                      [](const Trial& one) { return !one.out && one.score && one.score->mixed; });
  for (Trial& one : trials_) {
    if (!any_agrees || one.out || !disagrees(one)) continue;
    one.out = true;
    forget(one);
    one.verdict = "disqualified: its chains disagree";
  }
}

void SamplerPilot::tell(const Trial& trial) const {
  if (!view_.listens) return;
  Progress progress;
  progress.phase = Phase::pilot;
  progress.done = static_cast<std::uint64_t>(spent());
  progress.total = std::max(progress.done, static_cast<std::uint64_t>(limit()));
  progress.seconds = seconds();
  const double steps = static_cast<double>(trial.steps) * static_cast<double>(options_.chains);
  progress.steps_per_second = steps / std::max(progress.seconds, 1e-9);
  progress.seconds_left = progress.seconds * static_cast<double>(progress.total - progress.done) /
                          static_cast<double>(std::max<std::uint64_t>(1, progress.done));
  progress.acceptance_rate = total_accepted(trial.run->engine()) / std::max(1.0, steps);
  progress.log_prob = mean_log_prob(trial.run->engine());
  progress.ess_log_prob = std::numeric_limits<double>::quiet_NaN();
  if (view_.progress) view_.progress(progress);
}

Choice SamplerPilot::choose() {
  Trial* winner = leader();
  if (winner == nullptr || too_short_) winner = &trials_.front();
  if (taken_ != nullptr) winner = taken_;
  Choice choice;
  choice.sampler = winner->candidate.sampler.name;
  choice.unit = work_unit(facts_.kind);
  choice.pilot_work = spent();
  choice.reason = reason(*winner);
  std::vector<Trial*> order;
  for (Trial& one : trials_) order.push_back(&one);
  // The winner, then those with scores, then by what independent draws would be worth.
  std::stable_sort(order.begin(), order.end(), [&](const Trial* a, const Trial* b) {
    if ((a == winner) != (b == winner)) return a == winner;
    if (a->score.has_value() != b->score.has_value()) return a->score.has_value();
    return a->score ? a->value() > b->value() : a->bound() > b->bound();
  });
  for (const Trial* one : order) {
    CandidateScore row;
    row.sampler = one->candidate.sampler.name;
    row.setup = one->candidate.cost.setup;
    row.target = one->candidate.cost.target;
    row.ratio = one->candidate.cost.ratio;
    row.gradient = one->candidate.cost.gradient;
    row.run_work = one->run_work;
    row.draws = one->draws;
    row.pilot_work = one->spent;
    if (one->score) {
      row.ess_per_draw = one->score->ess_per_draw;
      row.slowest = one->score->slowest;
      row.score = one->value();
      if (!one->candidate.independent) row.r_hat = one->score->r_hat;
    }
    row.verdict = one == winner           ? "chosen"
                  : !one->verdict.empty() ? one->verdict
                  : too_short_            ? "not tried: the run is too short for a pilot"
                                          : kFewer;
    choice.candidates.push_back(std::move(row));
  }
  if (calls_for_tempering(*winner)) {
    choice.sampler = TemperRow::name;
    choice.reason = "the chains of all others disagree, so replicas at higher temperatures are to carry them";
    choice.candidates.front().verdict = "its chains disagree";
    CandidateScore tempered;
    tempered.sampler = TemperRow::name;
    tempered.run_work = kRungs * winner->run_work;
    tempered.draws = winner->draws;
    tempered.verdict = "chosen";
    choice.candidates.insert(choice.candidates.begin(), std::move(tempered));
  }
  return choice;
}

bool SamplerPilot::calls_for_tempering(const Trial& winner) const {
  const bool can = facts_.kind != ModelKind::callback && facts_.kind != ModelKind::own;
  const double sweeps = static_cast<double>(winner.steps) / static_cast<double>(winner.candidate.cost.steps_per_sweep);
  return can && !winner.candidate.independent && winner.score && winner.score->r_hat > kDisagree &&
         sweeps >= kStuckSweeps;
}

std::string SamplerPilot::reason(const Trial& winner) const {
  if (trials_.size() == 1) return "it is the only candidate for this model";
  if (too_short_) return "the run is too short for a pilot, and this is the cheapest";
  if (&winner == taken_) return "single changes were not seen to mix, and clusters move what they cannot";
  const std::string late = late_ ? "; the pilot was cut short by the limit of time" : "";
  const bool disagreed = std::any_of(trials_.begin(), trials_.end(),
                                     [](const Trial& one) { return one.verdict.starts_with("disqualified"); });
  if (winner.candidate.independent) {
    return (disagreed ? "its draws are independent, and the chains of others disagree"
                      : "its draws are independent, and others need more work for as many effective ones") +
           late;
  }
  const Trial* second = nullptr;
  for (const Trial& one : trials_) {
    if (&one == &winner || !one.score || one.out) continue;
    if (second == nullptr || one.value() > second->value()) second = &one;
  }
  if (second != nullptr && second->value() > 0.0) {
    return fmt::format("{:.2g} times the effective samples per unit of work of {}", winner.value() / second->value(),
                       second->candidate.sampler.name) +
           late;
  }
  const bool unproven =
      std::any_of(trials_.begin(), trials_.end(), [](const Trial& one) { return one.verdict == kTooExpensive; });
  return (disagreed  ? "the chains of the others disagree"
          : unproven ? "no other could be shown to do better in a tenth of its work"
                     : "no other could do better, even with independent draws") +
         late;
}

}  // namespace poise
