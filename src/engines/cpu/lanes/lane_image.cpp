/// Copies the layout of lanes into plain arrays.
#include "engines/cpu/lanes/lane_image.hpp"

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "engines/cpu/lanes/lane_sweep.hpp"

namespace poise {

LaneImage::LaneImage(const LaneModel& model) : colours(model.colours()) {
  const std::vector<LaneModel::Variable>& from = model.variables();
  for (std::size_t k = 0; k + 1 < from.size(); ++k) {
    const LaneModel::Variable& variable = from[k];
    const LaneModel::Variable& next = from[k + 1];
    variables.push_back({.scatter = std::uint64_t{variable.variable} * kWordsPerUpdate * kWordStep,
                         .first_pair = variable.first_pair,
                         .end_pair = next.first_pair,
                         .first_term = variable.first_term,
                         .end_term = next.first_term,
                         .entry = variable.entry,
                         .levels = variable.levels,
                         .base = variable.base,
                         .spread = variable.spread,
                         .margin = variable.margin + 0x1p-21F,
                         .variable = variable.variable});
  }
  for (const LaneModel::Pair& pair : model.pairs()) {
    pairs.push_back({pair.position, {pair.log_odds[0], pair.log_odds[1]}, 0});
  }
  for (std::size_t k = 0; k + 1 < model.terms().size(); ++k) {
    const LaneModel::Term& term = model.terms()[k];
    const Index end = model.terms()[k + 1].first_other;
    const auto first = static_cast<std::uint32_t>(others.size());
    unsigned shift = 0;
    for (Index j = term.first_other; j < end; ++j) {
      const std::uint32_t position = model.others()[j].position;
      const std::uint32_t factor = std::uint32_t{1} << shift;
      if ((j - term.first_other) % 2 == 0) {
        others.push_back({{position, position}, {factor, 0}});
      } else {
        others.back().position[1] = position;
        others.back().factor[1] = factor;
      }
      shift += model.others()[j].bits;
    }
    terms.push_back(
        {static_cast<std::uint32_t>(term.table), first, static_cast<std::uint32_t>(others.size()), term.bits});
  }
  bool has_zeros = false;
  for (std::size_t k = 0; k + 1 < from.size(); ++k) {
    zeros.push_back(from[k].zeros);
    has_zeros = has_zeros || from[k].zeros != 0.0F;
  }
  for (std::size_t k = 0; k + 1 < model.terms().size(); ++k) {
    zero_tables.push_back(static_cast<std::uint32_t>(model.terms()[k].zeros));
    has_zeros = has_zeros || model.terms()[k].zeros != 0;
  }
  if (!has_zeros) {
    zeros.clear();
    zero_tables.clear();
  }
  if (model.tables() != nullptr) tables.assign(model.tables(), model.tables() + model.table_entries());
}

}  // namespace poise
