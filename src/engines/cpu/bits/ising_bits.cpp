/// Conditionals and sums of Ising models.
#include "engines/cpu/bits/ising_bits.hpp"

#include <algorithm>
#include <utility>

#include "engines/common/spin_terms.hpp"

namespace poise {

namespace {

/// +1 or -1 by a bit of a configuration.
double spin_at(unsigned configuration, std::size_t k) { return (configuration >> k & 1U) != 0 ? 1.0 : -1.0; }

}  // namespace

template <SpinGraph T>
BitModel bit_model(const std::shared_ptr<const T>& target) {
  const auto blanket = [target](Index i) {
    std::vector<Index> out;
    target->for_each_neighbour(i, [&](Index j, double, std::int64_t) { out.push_back(j); });
    return out;
  };
  const auto log_odds = [target](Index i, unsigned configuration) {
    return 2.0 * target->local_field(i, [&](std::size_t k) { return spin_at(configuration, k); });
  };
  return {target->num_variables(), blanket, log_odds, true};
}

template BitModel bit_model(const std::shared_ptr<const LatticeIsing>&);
template BitModel bit_model(const std::shared_ptr<const GraphIsing>&);

SpinSums::SpinSums(SpinTerms terms)
    : sites_(BitTerms::all(static_cast<Index>(terms.fields.size()))), fields_(std::move(terms.fields)) {
  for (const std::int64_t field : fields_) {
    sum_of_fields_ += field;
    has_fields_ = has_fields_ || field != 0;
  }
  std::vector<Edge>& edges = terms.edges;
  // Edges between positions equally far apart come one after the other: on lattices most of them form long stretches.
  for (Edge& edge : edges) {
    if (edge.first > edge.second) std::swap(edge.first, edge.second);
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.second - a.first, a.first) < std::pair(b.second - b.first, b.first);
  });
  if (!edges.empty()) weight_ = edges.front().weight;
  const bool alike = std::all_of(edges.begin(), edges.end(), [&](const Edge& edge) { return edge.weight == weight_; });
  for (const Edge& edge : edges) {
    edges_.add(edge.first, edge.second);
    sum_of_weights_ += edge.weight;
    if (!alike) weights_.push_back(edge.weight);
  }
}

SpinSums::Sums SpinSums::sums(const BitView& view) const {
  Sums out{std::vector<std::int64_t>(view.lanes), std::vector<std::int64_t>(view.lanes, 0),
           std::vector<std::int64_t>(view.lanes)};
  count_terms(view, sites_, out.spins);
  for (std::int64_t& spins : out.spins) spins = 2 * spins - static_cast<std::int64_t>(sites_.count);
  if (has_fields_) {
    weigh_terms(view, sites_, fields_, out.fields);
    for (std::int64_t& sum : out.fields) sum = 2 * sum - sum_of_fields_;
  }
  if (weights_.empty()) {
    count_terms(view, edges_, out.edges);
    for (std::int64_t& sum : out.edges) sum = sum_of_weights_ - 2 * weight_ * sum;
  } else {
    weigh_terms(view, edges_, weights_, out.edges);
    for (std::int64_t& sum : out.edges) sum = sum_of_weights_ - 2 * sum;
  }
  return out;
}

template <class T>
BitLayout<T>::BitLayout(const std::shared_ptr<const T>& target, BitModel model)
    : tables_(std::make_shared<const BitTables>(std::move(model))),
      sums_(spin_terms(*target, [&](Index i) { return tables_->position(i); })) {}

template <class T>
void BitLayout<T>::set_reference(std::span<const Value> reference) {
  reference_.resize(reference.size());
  for (Index i = 0; i < reference.size(); ++i) {
    reference_[tables_->position(i)] = reference[i] != 0 ? ~std::uint64_t{0} : 0;
  }
}

template <class T>
void BitLayout<T>::observe(const T& target, const BitTile& tile, const Observables& out) const {
  const BitView view{tile.state(), tile.words(), tile.lane_number(tile.group().first), tile.group().count};
  if (!out.log_prob.empty() || !out.statistics.empty()) {
    observe_sums(target, sums_.sums(view), out);
  }
  if (!out.distance.empty()) count_differences(view, reference_, out.distance);
  if (!out.levels.empty()) tile.get_all_levels(out.levels);
  if (!out.bits.empty()) tile.get_all_bits(out.bits);
}

template class BitLayout<LatticeIsing>;
template class BitLayout<GraphIsing>;

}  // namespace poise
