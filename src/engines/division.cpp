/// Ranges of chains, and what is gathered from them.
#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>

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
  const std::size_t last = std::max(first, std::min(group.first + group.count, own.first + own.count));
  const auto part = [&](auto span, std::size_t width) {
    return span.empty() ? span : span.subspan((first - group.first) * width, (last - first) * width);
  };
  if (first < last) {
    Observables here;
    here.log_prob = part(out.log_prob, 1);
    here.statistics = part(out.statistics, traits.statistics);
    here.distance = part(out.distance, 1);
    here.accepted = part(out.accepted, 1);
    here.levels = part(out.levels, traits.variables);
    here.bits = part(out.bits, (traits.variables + 7) / 8);
    here.frozen = part(out.frozen, traits.variables);
    here.empirical_marginals = part(out.empirical_marginals, traits.entries);
    here.evals = part(out.evals, 1);
    here.proposals = part(out.proposals, 1);
    engine.observe({first, last - first}, here);
  }
  // One message for all that is wanted, chain by chain.
  const auto for_each = [&](auto&& visit) {
    const auto with = [&](auto span, std::size_t width) {
      if (!span.empty()) visit(std::as_writable_bytes(span), width * sizeof(typename decltype(span)::value_type));
    };
    with(out.log_prob, 1);
    with(out.statistics, traits.statistics);
    with(out.distance, 1);
    with(out.accepted, 1);
    with(out.levels, traits.variables);
    with(out.bits, (traits.variables + 7) / 8);
    with(out.frozen, traits.variables);
    with(out.empirical_marginals, traits.entries);
    with(out.evals, 1);
    with(out.proposals, 1);
  };
  std::size_t width = 0;
  for_each([&](std::span<std::byte>, std::size_t bytes) { width += bytes; });
  std::vector<std::byte> all(group.count * width);
  const auto copy = [&](std::size_t from, std::size_t until, bool in) {
    for (std::size_t k = from; k < until; ++k) {
      std::byte* at = all.data() + k * width;
      for_each([&](std::span<std::byte> values, std::size_t bytes) {
        std::byte* const of_chain = values.data() + k * bytes;
        in ? std::copy_n(of_chain, bytes, at) : std::copy_n(at, bytes, of_chain);
        at += bytes;
      });
    }
  };
  copy(first - group.first, last - group.first, true);
  division->gather(std::span(all), group, width, to);
  if (to == Collective::To::all || division->collective().is_root()) copy(0, group.count, false);
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
