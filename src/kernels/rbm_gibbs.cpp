/// Block Gibbs on RBMs: layers in turn, exactly where bounds do not decide.
#include "kernels/rbm_gibbs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <poise/extend/base/math.hpp>
#include <poise/extend/base/rng.hpp>

namespace poise {

namespace {

/// The 52 random bits whose first sixteen are at `place` of the stream.
double uniform_at(const Rng& rng, std::uint64_t place, std::uint64_t first_bits) {
  const auto half = [](std::uint64_t value, unsigned shift) { return static_cast<std::uint32_t>(value >> shift); };
  const std::uint64_t stream = rng.stream() + static_cast<std::uint64_t>(Stream::further_digits);
  const auto block = philox({half(place, 0), half(place, 32), half(stream, 0), half(stream, 32)},
                            {half(rng.seed(), 0), half(rng.seed(), 32)});
  const std::uint64_t further = (std::uint64_t{block[0]} << 32 | block[1]) >> 28;
  return std::ldexp(static_cast<double>(first_bits << 36 | further), -52);
}

/// The exact rule: u < sigmoid(a).
bool is_on(double u, double activation) { return u * (1.0 + exp8(broadcast8(-activation))[0]) < 1.0; }

/// Decides the units that are open. `offset` is where the random bits of the layer begin, in sixteens.
template <class Activation, class TurnOn>
void settle_open(const RbmGibbs::Member& member, std::size_t words, std::size_t offset, Activation&& activation,
                 TurnOn&& turn_on) {
  const std::vector<std::uint64_t>& random = member.scratch->random;
  for_each_unit({member.scratch->open.data(), words}, [&](Index unit) {
    const std::size_t place = offset + RbmLayer::place(unit);
    const std::uint64_t first_bits = random[place / 4] >> 16 * (place % 4) & 0xffff;
    const double u = uniform_at(*member.rng, member.scratch->first_random + place, first_bits);
    if (is_on(u, activation(unit))) turn_on(unit);
  });
}

void turn_on(RbmUnits& units, Index unit) { units.bits()[unit / 64] |= std::uint64_t{1} << unit % 64; }

}  // namespace

RbmGibbs::Scratch::Scratch(const Rbm& target)
    : hidden(target.num_hidden()),
      visible(target.num_variables()),
      random(RbmLayers::random_words(target.num_variables(), target.num_hidden())),
      open(std::max(hidden.bits().size(), visible.bits().size())),
      unused(RbmLayer::padded(target.num_hidden())),
      counts(RbmLayer::padded(target.num_variables())),
      before(target.num_variables()) {
  changed.reserve(target.num_variables());
}

RbmGibbs::RbmGibbs(const Rbm& target, double doubt)
    : layers_(doubt == 0.0 ? target.layers() : std::make_shared<const RbmLayers>(target, doubt)) {
  if (target.beta() == 1.0) return;
  layers_ = std::make_shared<const RbmLayers>(layers_->hidden.heated(target.beta(), target.offsets().hidden),
                                              layers_->visible.heated(target.beta(), target.offsets().visible));
}

void RbmGibbs::draw_hidden(const Rbm& target, std::span<const Member> group) const {
  std::array<RbmLayer::Lane, kChainsTogether> lanes;
  for (std::size_t c = 0; c < group.size(); ++c) {
    Scratch& scratch = *group[c].scratch;
    scratch.visible.list();
    lanes[c] = {&scratch.visible, scratch.random.data(), scratch.hidden.bits().data(), scratch.open.data(),
                scratch.unused.data()};
  }
  layers_->hidden.draw({lanes.data(), group.size()});
  for (const Member& member : group) {
    Scratch& scratch = *member.scratch;
    settle_open(
        member, scratch.hidden.bits().size(), 0,
        [&](Index j) { return target.hidden_activation(j, scratch.visible.bits()); },
        [&](Index j) { turn_on(scratch.hidden, j); });
  }
}

void RbmGibbs::draw_visible(const Rbm& target, std::span<const Member> group) const {
  const std::size_t offset = RbmLayer::padded(target.num_hidden());
  std::array<RbmLayer::Lane, kChainsTogether> lanes;
  for (std::size_t c = 0; c < group.size(); ++c) {
    Scratch& scratch = *group[c].scratch;
    scratch.hidden.list();
    lanes[c] = {&scratch.hidden, scratch.random.data() + offset / 4, scratch.visible.bits().data(), scratch.open.data(),
                scratch.counts.data()};
  }
  layers_->visible.draw({lanes.data(), group.size()});
  for (const Member& member : group) {
    Scratch& scratch = *member.scratch;
    settle_open(
        member, scratch.visible.bits().size(), offset,
        [&](Index i) { return target.visible_activation(i, scratch.hidden.bits()); },
        [&](Index i) {
          turn_on(scratch.visible, i);
          ++scratch.counts[i];
        });
  }
}

void RbmGibbs::advance(const Rbm& target, std::span<const Member> group, std::uint64_t steps) const {
  for (const Member& member : group) {
    member.scratch->visible.take(member.state->x);
    std::fill(member.scratch->counts.begin(), member.scratch->counts.end(), 0);
    member.scratch->evals.gradient += steps;
  }
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (const Member& member : group) {
      member.rng->fill(member.scratch->random);
      member.scratch->first_random = 4 * (member.rng->position() - member.scratch->random.size());
    }
    draw_hidden(target, group);
    draw_visible(target, group);
  }
  std::array<Rbm::NewLevels, kChainsTogether> levels;
  for (std::size_t c = 0; c < group.size(); ++c) {
    group[c].scratch->visible.list();
    levels[c] = {group[c].state, &group[c].scratch->visible};
  }
  target.set({levels.data(), group.size()});
}

StepInfo RbmGibbs::step(const Rbm& target, Rbm::State& state, Scratch& scratch, Rng& rng) const {
  std::copy(state.x.begin(), state.x.end(), scratch.before.begin());
  const Member one[] = {{&state, &scratch, &rng}};
  advance(target, std::span<const Member>(one), 1);
  scratch.changed.clear();
  for (Index i = 0; i < target.num_variables(); ++i) {
    if (state.x[i] != scratch.before[i]) scratch.changed.push_back({i, i, scratch.before[i]});
  }
  return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
}

}  // namespace poise
