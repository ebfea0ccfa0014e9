/// Ranges of chains, and what is gathered from them.
#include <poise/run/division.hpp>

#include <algorithm>

namespace poise {

Division::Division(Collective& collective, std::size_t chains, std::size_t together) : collective_(collective) {
  const auto ranks = static_cast<std::size_t>(collective.size());
  const std::size_t units = (chains + together - 1) / together;
  std::size_t end = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    end += units / ranks + (r < units % ranks ? 1 : 0);
    ends_.push_back(std::min(chains, end * together));
  }
  busy_ = std::min(ranks, units);
}

ChainGroup Division::of(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t first = r == 0 ? 0 : ends_[r - 1];
  return {first, ends_[r] - first};
}

std::vector<std::size_t> Division::ends_in(ChainGroup group, std::size_t width) const {
  std::vector<std::size_t> ends;
  for (const std::size_t end : ends_) {
    ends.push_back(width * (std::clamp(end, group.first, group.first + group.count) - group.first));
  }
  return ends;
}

std::vector<std::string> Division::gather(const std::vector<std::string>& own, Collective::To to) const {
  std::vector<std::size_t> counts;
  for (int r = 0; r < collective_.size(); ++r) counts.push_back(of(r).count);
  return collective_.gather_strings(own, counts, to);
}

ChainGroup own_chains(const Engine& engine) {
  return engine.division() == nullptr ? ChainGroup{0, engine.traits().chains} : engine.division()->own();
}

void observe_all(const Engine& engine, ChainGroup group, const Observables& out, Collective::To to) {
  const Division* division = engine.division();
  if (division == nullptr) {
    engine.observe(group, out);
    return;
  }
  const EngineTraits& traits = engine.traits();
  const ChainGroup own = division->own();
  const std::size_t first = std::max(group.first, own.first);
  const std::size_t last = std::min(group.first + group.count, own.first + own.count);
  if (first < last) {
    const auto part = [&](auto span, std::size_t width) {
      return span.empty() ? span : span.subspan((first - group.first) * width, (last - first) * width);
    };
    Observables here;
    here.log_prob = part(out.log_prob, 1);
    here.statistics = part(out.statistics, traits.statistics);
    here.distance = part(out.distance, 1);
    here.accepted = part(out.accepted, 1);
    here.levels = part(out.levels, traits.variables);
    here.frozen = part(out.frozen, traits.variables);
    here.empirical_marginals = part(out.empirical_marginals, traits.entries);
    here.evals = part(out.evals, 1);
    engine.observe({first, last - first}, here);
  }
  const auto gather = [&](auto span, std::size_t width) {
    if (!span.empty()) division->gather(span, group, width, to);
  };
  gather(out.log_prob, 1);
  gather(out.statistics, traits.statistics);
  gather(out.distance, 1);
  gather(out.accepted, 1);
  gather(out.levels, traits.variables);
  gather(out.frozen, traits.variables);
  gather(out.empirical_marginals, traits.entries);
  gather(out.evals, 1);
}

RaoBlackwell rao_blackwell_of(const Engine& engine, std::size_t chain) {
  const Division* division = engine.division();
  if (division == nullptr) return engine.rao_blackwell(chain);
  const ChainGroup own = division->own();
  RaoBlackwell found;
  if (chain >= own.first && chain < own.first + own.count) found = engine.rao_blackwell(chain);
  std::uint64_t length = found.sums.size();
  division->gather(std::span(&length, 1), {chain, 1}, 1);
  found.sums.resize(length);
  division->gather(std::span(found.sums), {chain, 1}, length);
  division->gather(std::span(&found.count, 1), {chain, 1}, 1);
  return found;
}

}  // namespace poise
