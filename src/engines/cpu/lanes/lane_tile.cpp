/// Blocks of chains across lanes: random numbers, undecided lanes, counts.
#include "engines/cpu/lanes/lane_tile.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

namespace poise {

LaneTile::LaneTile(std::shared_ptr<const LaneModel> model, ChainGroup group, std::uint64_t seed,
                   std::uint64_t first_chain)
    : model_(std::move(model)), group_(group), first_chain_(first_chain), first_number_(first_chain + group.first) {
  // Lanes of a vector are those of the run's numbers, so that random words have their halves in place.
  const bool few = group.count <= kFew;
  constexpr std::size_t kHalf = kVector / 2;
  if (!few) first_number_ = first_number_ / kHalf * kHalf;
  const std::size_t needed = lane(group.first) + group.count;
  lanes_ = few ? group.count : needed <= kHalf ? kHalf : (needed + kVector - 1) / kVector * kVector;
  alone_ = few || kInstructionSet == InstructionSet::baseline;
  chains_ = (group.count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << group.count) - 1) << lane(group.first);
  for (std::size_t k = 0; k < (alone_ ? lanes_ : lanes_ / 2); ++k) {
    const WordKey key = word_key(seed, Stream::lanes, alone_ ? (first_number_ + k) / 2 : first_number_ / 2 + k);
    first_keys_.push_back(key.first);
    second_keys_.push_back(key.second);
    shifts_.push_back((first_number_ + k) % 2 == 0 ? 0 : 32);
  }
  levels_.assign(std::size_t{model_->num_variables()} * lanes_, 0);
}

void LaneTile::sweep(std::uint64_t sweeps) {
  LaneSweep sweep{};
  sweep.variables = model_->variables().data();
  sweep.pairs = model_->pairs().data();
  sweep.terms = model_->terms().data();
  sweep.others = model_->others().data();
  sweep.tables = model_->tables();
  sweep.count = model_->variables().size() - 1;
  sweep.levels = levels_.data();
  sweep.counts = counts() ? recent_counts_.data() : nullptr;
  sweep.sums = averages() ? recent_sums_.data() : nullptr;
  sweep.lanes = lanes_;
  sweep.first_keys = first_keys_.data();
  sweep.second_keys = second_keys_.data();
  sweep.shifts = shifts_.data();
  sweep.betas = heat_.empty() ? nullptr : betas_.data();
  sweep.log_zeros = log_zeros_.data();
  sweep.weights = weights_.data();
  sweep.settle = &LaneTile::settle;
  sweep.tile = this;
  for (; sweeps > 0; --sweeps) {
    sweep.first_word = sweeps_ * model_->num_variables() * kWordsPerUpdate;
    if (alone_) {
      sweep_lanes_scalar(sweep);
#if defined(__x86_64__)
    } else if (kInstructionSet == InstructionSet::avx512 && lanes_ >= kVector) {
      sweep_lanes_avx512(sweep);
    } else {
      sweep_lanes_avx2(sweep);
#endif
    }
    ++sweeps_;
    if (sweeps_ % LaneModel::kMostCounted == 0) spill_counts();
    if (sweeps_ % LaneModel::kMostSummed == 0) spill_sums();
  }
}

void LaneTile::settle(const LaneSweep& sweep, std::size_t position, std::uint64_t unsure) {
  LaneTile& tile = *static_cast<LaneTile*>(sweep.tile);
  for (std::uint64_t left = unsure & tile.chains_; left != 0; left &= left - 1) {
    tile.settle_lane(position, static_cast<std::size_t>(__builtin_ctzll(left)));
  }
}

void LaneTile::settle_lane(std::size_t position, std::size_t lane) {
  const LaneModel::Variable& variable = model_->variables()[position];
  const std::size_t key = alone_ ? lane : lane / 2;
  const unsigned shift = alone_ ? shifts_[lane] : lane % 2 * 32;
  const auto digits = [&](std::uint64_t more) {
    const std::uint64_t word = (sweeps_ * model_->num_variables() + variable.variable) * kWordsPerUpdate + more;
    return keyed_word(first_keys_[key], second_keys_[key], word * kWordStep) >> shift & 0xffffffff;
  };
  const std::uint64_t drawn = (digits(0) << 32 | digits(1)) >> 11;
  std::uint64_t thresholds[LaneModel::kMostLevels];
  const std::span<std::uint64_t> used(thresholds, variable.levels - 1);
  model_->thresholds(variable.variable, {levels_.data() + lane, lanes_, model_->positions().data()},
                     heat_.empty() ? LaneHeat{} : heat_[lane], used);
  Value level = 0;
  while (level < used.size() && drawn >= used[level]) ++level;
  levels_[position * lanes_ + lane] = level;
}

void LaneTile::heat(std::size_t lane, const LaneHeat& heat, bool counts) {
  if (heat_.empty()) {
    heat_.resize(lanes_);
    betas_.assign(lanes_, 1.0F);
    log_zeros_.assign(lanes_, LaneModel::kZero);
    weights_.assign(lanes_, 0.0F);
  }
  heat_[lane] = heat;
  betas_[lane] = static_cast<float>(heat.beta);
  log_zeros_[lane] = std::max(static_cast<float>(heat.log_zero), LaneModel::kZero);
  weights_[lane] = counts ? 1.0F : 0.0F;
}

void LaneTile::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
  if (progress.averages != 0) reset_sums();
}

void LaneTile::reset_counts() {
  recent_counts_.assign(model_->num_entries() * lanes_, 0);
  earlier_counts_.assign(recent_counts_.size(), 0);
}

void LaneTile::reset_sums() {
  recent_sums_.assign(model_->num_entries() * lanes_, 0.0F);
  earlier_sums_.assign(recent_sums_.size(), 0.0);
}

void LaneTile::spill_counts() {
  for (std::size_t k = 0; k < recent_counts_.size(); ++k) earlier_counts_[k] += recent_counts_[k];
  std::fill(recent_counts_.begin(), recent_counts_.end(), std::uint8_t{0});
}

void LaneTile::spill_sums() {
  for (std::size_t k = 0; k < recent_sums_.size(); ++k) earlier_sums_[k] += static_cast<double>(recent_sums_[k]);
  std::fill(recent_sums_.begin(), recent_sums_.end(), 0.0F);
}

void LaneTile::set_levels(std::size_t chain, std::span<const Value> levels) {
  const std::size_t at = lane(chain);
  for (Index i = 0; i < levels.size(); ++i) levels_[model_->position(i) * lanes_ + at] = levels[i];
}

void LaneTile::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::size_t at = lane(chain);
  for (Index i = 0; i < levels.size(); ++i) levels[i] = levels_[model_->position(i) * lanes_ + at];
}

/// Calls `use` with the number of each entry in the order of variables, and in that of updates.
template <class Use>
void LaneTile::for_each_entry(Use&& use) const {
  const std::vector<LaneModel::Variable>& variables = model_->variables();
  for (std::size_t k = 0; k + 1 < variables.size(); ++k) {
    const Index first = model_->entries()[variables[k].variable];
    for (Index level = 1; level < variables[k].levels; ++level) use(first + level - 1, variables[k].entry + level - 1);
  }
}

void LaneTile::set_totals(std::size_t chain, const LaneTotals& totals) {
  for_each_entry([&, at = lane(chain)](std::size_t outside, std::size_t inside) {
    const std::size_t place = inside * lanes_ + at;
    if (counts()) {
      recent_counts_[place] = 0;
      earlier_counts_[place] = totals.counts[outside];
    }
    if (averages()) {
      recent_sums_[place] = totals.recent[outside];
      earlier_sums_[place] = totals.sums[outside];
    }
  });
}

LaneTotals LaneTile::get_totals(std::size_t chain) const {
  LaneTotals totals;
  totals.counts.resize(counts() ? model_->num_entries() : 0);
  totals.sums.resize(averages() ? model_->num_entries() : 0);
  totals.recent.resize(totals.sums.size());
  get_counts(chain, totals.counts);
  if (!averages()) return totals;
  for_each_entry([&, at = lane(chain)](std::size_t outside, std::size_t inside) {
    totals.sums[outside] = earlier_sums_[inside * lanes_ + at];
    totals.recent[outside] = recent_sums_[inside * lanes_ + at];
  });
  return totals;
}

void LaneTile::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  if (earlier_counts_.empty()) return std::fill(counts.begin(), counts.end(), std::uint64_t{0});
  for_each_entry([&, at = lane(chain)](std::size_t outside, std::size_t inside) {
    counts[outside] = earlier_counts_[inside * lanes_ + at] + recent_counts_[inside * lanes_ + at];
  });
}

void LaneTile::get_sums(std::size_t chain, std::span<double> sums) const {
  for_each_entry([&, at = lane(chain)](std::size_t outside, std::size_t inside) {
    sums[outside] = earlier_sums_[inside * lanes_ + at] + static_cast<double>(recent_sums_[inside * lanes_ + at]);
  });
}

void LaneTile::get_all_levels(std::span<Value> levels) const {
  const std::size_t n = model_->num_variables();
  const std::size_t first = lane(group_.first);
  // Sixteen variables at a time, so that what is written stays in the cache.
  for (std::size_t begin = 0; begin < n; begin += 16) {
    const std::size_t end = std::min(n, begin + 16);
    for (std::size_t c = 0; c < group_.count; ++c) {
      for (std::size_t i = begin; i < end; ++i) {
        levels[c * n + i] = levels_[model_->position(static_cast<Index>(i)) * lanes_ + first + c];
      }
    }
  }
}

void LaneTile::get_all_bits(std::span<std::uint8_t> bits) const {
  const std::size_t n = model_->num_variables();
  const std::size_t width = (n + 7) / 8;
  const std::size_t first = lane(group_.first);
  const std::size_t last = first + group_.count;
  // Eight lanes are a word of bytes; a variable's goes k places up, so that byte c gets the bits of lane c.
  for (std::size_t byte = 0; byte < width; ++byte) {
    const std::size_t many = std::min<std::size_t>(8, n - 8 * byte);
    for (std::size_t begin = first; begin < last; begin += 8) {
      const std::size_t lanes = std::min<std::size_t>(8, last - begin);
      std::uint64_t eight = 0;
      for (std::size_t k = 0; k < many; ++k) {
        const Value* const row = levels_.data() + model_->position(static_cast<Index>(8 * byte + k)) * lanes_ + begin;
        std::uint64_t one = 0;
        if (lanes == 8) {
          std::memcpy(&one, row, sizeof one);
        } else {
          std::memcpy(&one, row, lanes);
        }
        eight |= one << k;
      }
      for (std::size_t c = 0; c < lanes; ++c) {
        bits[(begin - first + c) * width + byte] = static_cast<std::uint8_t>(eight >> 8 * c);
      }
    }
  }
}

}  // namespace poise
