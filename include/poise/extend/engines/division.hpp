/// Which chains of a run are whose, and looks at all of them.
///
/// Chains have their numbers of the whole run everywhere. What an Engine does, it does with chains of its own rank;
/// what is named here looks at all chains, and all ranks call it at the same place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <poise/collective.hpp>
#include <poise/extend/engines/engine.hpp>

namespace poise {

/// Ranges of chains in the order of ranks, as equal as can be. Where there are more ranks than chains the last ones
/// have none.
class Division {
 public:
  /// `together` chains, from a multiple of it on, stay on one rank.
  Division(Collective& collective, std::size_t chains, std::size_t together = 1);

  [[nodiscard]] Collective& collective() const { return collective_; }
  [[nodiscard]] std::size_t chains() const { return ends_.back(); }
  [[nodiscard]] ChainGroup own() const { return of(collective_.rank()); }
  [[nodiscard]] ChainGroup of(int rank) const;
  /// Ranks that have chains.
  [[nodiscard]] std::size_t busy() const { return busy_; }

  /// In place: `width` values of each chain of the group.
  template <class T>
  void gather(std::span<T> values, ChainGroup group, std::size_t width, Collective::To to = Collective::To::all) const {
    collective_.gather(values, ends_in(group, width), to);
  }
  /// One string of each chain; `own` has those of this rank.
  [[nodiscard]] std::vector<std::string> gather(const std::vector<std::string>& own,
                                                Collective::To to = Collective::To::all) const;

 private:
  [[nodiscard]] std::vector<std::size_t> ends_in(ChainGroup group, std::size_t width) const;

  Collective& collective_;
  std::vector<std::size_t> ends_;  // of each rank's chains
  std::size_t busy_ = 1;
};

/// The chains that this process moves on.
[[nodiscard]] ChainGroup own_chains(const Engine& engine);

/// Observes chains wherever they are; the same for all ranks, or at the root only.
void observe_all(const Engine& engine, ChainGroup group, const Observables& out,
                 Collective::To to = Collective::To::all);
[[nodiscard]] RaoBlackwell rao_blackwell_of(const Engine& engine, std::size_t chain);

}  // namespace poise
