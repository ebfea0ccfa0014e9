/// Who speaks.
#include "ranks.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include "base/ranks/ranks.hpp"

namespace poise::app {

namespace {

std::shared_ptr<Collective> all_ranks;
bool speaks = true;

void be_silent() {
  speaks = false;
  for (std::FILE* stream : {stdout, stderr}) {
    // Without a place to write to there is nothing to be done about it.
    if (std::freopen("/dev/null", "w", stream) == nullptr) continue;
  }
}

}  // namespace

void join_ranks() {
  const std::optional<Launch> launch = find_launch();
  try {
    all_ranks = start_ranks();
  } catch (...) {
    if (launch && launch->rank != 0) be_silent();
    throw;
  }
  if (all_ranks && !all_ranks->is_root()) be_silent();
}

void leave_ranks() {
  if (!all_ranks) return;
  all_ranks->leave();
  all_ranks.reset();
}

Collective* ranks() { return all_ranks.get(); }
bool is_root() { return speaks; }

}  // namespace poise::app
