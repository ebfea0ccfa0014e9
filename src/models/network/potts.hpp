/// The Potts model on a lattice, as a network.
#pragma once

#include <poise/extend/base/spec.hpp>
#include <poise/network.hpp>

namespace poise {

/// Reads `potts:key=value,...`: log p(x) = coupling * (edges whose ends are at the same level) + field * (sites at
/// level 0). Throws InputError.
///
/// - `size=30`: N or ROWSxCOLUMNS or up to eight sides, each 1 to 65535, at most 2^24 sites in all
/// - `levels=3`: of every site, 2 to 128
/// - `coupling=1`: positive: neighbours like to agree; log(1 + sqrt(levels)) is the critical point of the square
/// lattice
/// - `field=0`
/// - `sigma=0`, `seed=1`: every level of every site has a field of its own beside that, drawn from U(-sigma, sigma)
/// - `beta=1` or `T=1`, one over the other: coupling, field and sigma are multiplied by beta
/// - `boundary=torus` or `open`; as in `ising`, a torus of two sites in a dimension joins them twice
[[nodiscard]] Network make_potts(const Spec& spec);

}  // namespace poise
