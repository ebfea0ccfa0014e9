/// The state of a pilot that is under way.
///
/// Decisions depend on what slices have shown and on nothing else, so only that is saved: the runs of the candidates,
/// what was recorded of them, and how far each slice went. A resumed pilot begins once more; slices that were over give
/// what they had given at once, and the one that was not is continued.
#include "run/sampler_pilot.hpp"

#include <stdexcept>
#include <utility>

#include <poise/extend/base/archive.hpp>

namespace poise {

std::string SamplerPilot::save() {
  if (!resumed_.empty()) return resumed_;  // of which not all has been repeated yet
  if (!present_ && slices_.empty()) return "";
  Saver out;
  out(seconds(), slices_, present_.has_value(), present_.value_or(Present{}));
  for (Trial& one : trials_) {
    if (const Division* division = one.run && one.record ? one.run->engine().division() : nullptr) {
      one.record->share(*division);
    }
    out(one.record.has_value(), one.steps, one.spent);
    if (one.record) out(*one.record);
    out(one.run && one.record ? one.run->save_rest() : std::string());
  }
  return out.take();
}

void SamplerPilot::resume() {
  Loader in(resumed_);
  Repeated saved;
  bool has_present = false;
  in(seconds_before_, saved.slices, has_present, saved.present);
  if (has_present && saved.present.trial >= trials_.size()) throw std::runtime_error("the saved pilot is another");
  for (std::size_t k = 0; k < trials_.size(); ++k) {
    Trial& one = trials_[k];
    bool has_record = false;
    Slice at;
    in(has_record, at.steps, at.spent);
    std::optional<PilotRecord>& record = saved.records.emplace_back();
    if (has_record) in(record.emplace(model_, options_.chains));
    std::string state;
    in(state);
    if (!state.empty()) {
      if (!one.run) one.run = make_run(one);
      one.run->load_rest(state);
    }
    if (!has_present || k != saved.present.trial || !record) continue;
    at.points = record->points();
    saved.at = at;
  }
  if (!has_present) saved.present.trial = trials_.size();
  repeated_ = std::move(saved);
}

bool SamplerPilot::repeat(Trial& trial) {
  if (!repeated_ || repeated_->next == repeated_->slices.size()) return false;
  const Slice& slice = repeated_->slices[repeated_->next++];
  const auto& record = repeated_->records[static_cast<std::size_t>(&trial - trials_.data())];
  if (!record || record->points() < slice.points) throw std::runtime_error("the saved pilot is of another run");
  trial.record = record->first(slice.points);
  trial.steps = slice.steps;
  trial.spent = slice.spent;
  late_ = slice.late;
  slices_.push_back(slice);
  return true;
}

void SamplerPilot::take_up_present(Trial& trial) {
  if (!repeated_) return;
  const Repeated saved = std::move(*repeated_);
  repeated_.reset();
  resumed_.clear();
  if (saved.present.trial == trials_.size()) return;
  if (&trial != &trials_[saved.present.trial]) throw std::runtime_error("the saved pilot is of another run");
  present_ = saved.present;
  trial.record = saved.records[saved.present.trial];
  trial.steps = saved.at.steps;
  trial.spent = saved.at.spent;
}

}  // namespace poise
