/// Marginals by sampling, for the choice in marginals.cpp.
#pragma once

#include <chrono>

#include <poise/marginals.hpp>
#include "base/thread_pool.hpp"

namespace poise::marginals_parts {

/// Fills the answer by sampling, until the deadline.
void sample_marginals(const std::shared_ptr<const Network>& network, const MarginalsOptions& options,
                      const MarginalsHooks& hooks, Clock::time_point deadline, MarginalsAnswer& answer);

}  // namespace poise::marginals_parts
