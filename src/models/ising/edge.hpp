/// An edge of a graph, as readers give it and targets take it.
#pragma once

#include <poise/types.hpp>

namespace poise {

/// Two variables of a graph, counted from 0, and the coupling between them.
struct Edge {
  Index i;
  Index j;
  double coupling;
};

}  // namespace poise
