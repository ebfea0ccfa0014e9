/// Junction trees: limits, and the tables behind the class.
#include "exact/junction_tree.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "exact/junction_tree_tables.hpp"

namespace poise {

namespace {


}  // namespace

struct JunctionTree::Tables : exact::Tables {
  using exact::Tables::Tables;
};

JunctionTree::JunctionTree(const Network& network, const EliminationPlan& plan, const ExactOptions& options) {
  if (!plan.complete || plan.bytes > options.memory_limit) throw exact::too_large(plan, options.memory_limit);
  tables_ = std::make_unique<Tables>(network, plan);
  exact::Meter meter(options.progress, plan.operations);
  const double spare = options.memory_limit - plan.bytes;
  const unsigned threads = exact::threads_for(tables_->buckets, options.threads, spare);
  ThreadPool pool(threads);
  const exact::Crew crew{meter, pool, spare - (threads - 1) * tables_->buckets.workspace};
  tables_->collect(crew);
  if (tables_->log_partition == kMinusInfinity) throw exact::no_state(network);
  tables_->hand_out(crew);
}

JunctionTree::~JunctionTree() = default;
JunctionTree::JunctionTree(JunctionTree&&) noexcept = default;
JunctionTree& JunctionTree::operator=(JunctionTree&&) noexcept = default;

double JunctionTree::log_partition() const { return tables_->log_partition; }
const Marginals& JunctionTree::marginals() const { return tables_->marginals; }
void JunctionTree::draw(Rng& rng, std::vector<Index>& out) const { tables_->draw(rng, out); }

unsigned exact::threads_for(const Buckets& buckets, unsigned wanted, double spare_bytes) {
  constexpr double worth_a_thread = 4e6;  // operations: a few milliseconds
  const unsigned all = wanted == 0 ? std::max(1U, std::thread::hardware_concurrency()) : wanted;
  const double room = buckets.workspace > 0.0 ? spare_bytes / buckets.workspace : spare_bytes;
  const double useful = std::min(1.0 + std::max(0.0, room), std::max(1.0, buckets.operations / worth_a_thread));
  return static_cast<unsigned>(std::min<double>(all, useful));
}

std::string exact::size_text(double bytes) {
  constexpr std::array units{"bytes", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000.0 && unit + 1 < units.size(); ++unit) bytes /= 1000.0;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

InputError exact::too_large(const EliminationPlan& plan, double limit) {
  return InputError(fmt::format(
      "exact inference needs {}{} of tables (induced width {}{}), more than the limit of {}; observe more variables, "
      "allow more memory, or sample",
      plan.complete ? "" : "more than ", size_text(plan.bytes), plan.width, plan.complete ? "" : " or more",
      size_text(limit)));
}

InputError exact::no_state(const Network& network) {
  const bool observed = std::any_of(network.observed.begin(), network.observed.end(),
                                    [](Index level) { return level != Network::kFree; });
  return InputError(fmt::format("no state has positive probability{}", observed ? " given the evidence" : ""));
}

}  // namespace poise
