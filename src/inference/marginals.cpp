/// Marginals of a network: the choice between exact inference and sampling, for each connected part, and the answer.
#include <poise/marginals.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <poise/extend/base/archive.hpp>
#include "base/thread_pool.hpp"
#include "exact/exact_inference.hpp"
#include "inference/joint.hpp"
#include "inference/sample_marginals.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using marginals_parts::sample_marginals;

/// Fraction of the time that the search for a plan may take where the answer is to be sampled or time is short.
constexpr double kPlanFraction = 0.1;
/// Fraction of the time that exact parts of a network may take where the others are to be sampled.
constexpr double kExactFraction = 0.25;
/// What is automatic must not take hours: a plan of small memory can still visit a vast number of table entries.
constexpr double kLongest = 600.0;        // seconds of exact inference
constexpr double kLongestAsked = 3600.0;  // the same, where it was asked for
constexpr double kSampling = 10.0;        // seconds, by default

ExactOptions exact_options(const MarginalsOptions& options, const MarginalsHooks& hooks) {
  ExactOptions exact;
  exact.memory_limit = options.memory_limit;
  exact.seconds = options.seconds.value_or(options.method == Method::exact ? kLongestAsked : kLongest);
  exact.threads = options.threads;
  exact.progress = [&hooks](double part_done) {
    if (hooks.exact_progress) hooks.exact_progress(part_done);
    return hooks.stop == nullptr || !hooks.stop->load();
  };
  return exact;
}

/// Copies what is known of a part of the network; `variables` are its own, in their order.
void copy_part(const Marginals& part, std::span<const Index> variables, Marginals& to) {
  if (part.start.empty()) return;
  for (std::size_t k = 0; k < variables.size(); ++k) {
    const std::span<const double> from = part.of(static_cast<Index>(k));
    std::copy(from.begin(), from.end(), to.of(variables[k]).begin());
  }
}

/// Some variables of a network, with the names of the whole.
std::shared_ptr<const Network> rest_of(const Network& network, const std::vector<Index>& variables) {
  auto rest = std::make_shared<Network>(component_network(network, variables));
  rest->names.clear();
  for (const Index i : variables) rest->names.push_back(network.variable_name(i));
  return rest;
}

/// What the root says.
std::vector<Index> of_root(Collective& ranks, const std::vector<Index>& variables) {
  Saver out;
  out(variables);
  const std::string bytes = ranks.of_root(out.take());
  Loader in(bytes);
  std::vector<Index> heard;
  in(heard);
  return heard;
}

/// Connected parts of a network that is too large as a whole: those that fit are solved exactly. What a query joins is
/// one part.
class PartlyExact {
 public:
  PartlyExact(const Network& network, const JointQuery* query, const MarginalsOptions& options,
              const MarginalsHooks& hooks)
      : network_(network), log_partition_(log_constant_of(network)) {
    const Network& whole = query != nullptr ? query->network() : network;
    marginals_ = Marginals(whole.cardinalities);
    solve_parts(whole, options, hooks);
    if (query == nullptr) return;
    Joint joint = query->take_from(marginals_);
    if (std::erase(sampled_, query->joint_variable()) == 0) joint_ = std::move(joint);
    std::erase(exact_, query->joint_variable());
  }

  [[nodiscard]] bool any_exact() const { return !exact_.empty(); }
  [[nodiscard]] bool all_exact() const { return any_exact() && sampled_.empty(); }

  /// What is left to sample.
  [[nodiscard]] const std::vector<Index>& sampled() const { return sampled_; }

  /// Makes an answer for the rest one for the whole.
  void complete(MarginalsAnswer& answer) {
    if (joint_) answer.joint = std::move(joint_);
    for (Index i = 0; i < network_.num_variables(); ++i) {
      if (network_.is_observed(i)) {
        marginals_.of(i)[network_.observed[i]] = 1.0;
      } else if (network_.cardinalities[i] == 1) {
        marginals_.of(i)[0] = 1.0;
      }
    }
    if (all_exact()) {
      answer.method = Method::exact;
      answer.marginals = std::move(marginals_);
      answer.log_partition = log_partition_;
      answer.reason += "; but part by part it fits";
      return;
    }
    Marginals counted = marginals_;
    Marginals mcse(network_.cardinalities);
    copy_part(answer.marginals, sampled_, marginals_);
    copy_part(answer.counted, sampled_, counted);
    copy_part(answer.mcse, sampled_, mcse);
    answer.marginals = std::move(marginals_);
    answer.counted = std::move(counted);
    answer.mcse = std::move(mcse);
    if (answer.log_partition) *answer.log_partition += log_partition_;
    answer.exact_variables = std::move(exact_);
    std::sort(answer.exact_variables.begin(), answer.exact_variables.end());
    answer.reason += fmt::format("; {} in parts that hang together with no other {} exact",
                                 text::plural(answer.exact_variables.size(), "variable"),
                                 answer.exact_variables.size() == 1 ? "is" : "are");
  }

 private:
  void solve_parts(const Network& network, const MarginalsOptions& options, const MarginalsHooks& hooks) {
    const std::vector<std::vector<Index>> parts = connected_components(network);
    if (parts.size() < 2) return;
    PlanOptions planning{.memory_limit = options.memory_limit};
    if (options.seconds) planning.seconds = kPlanFraction * *options.seconds / static_cast<double>(parts.size());
    double spent = 0.0;  // seconds of one core, on parts that are exact
    for (const std::vector<Index>& part : parts) {
      const Network own = component_network(network, part);
      const ExactPlan plan = plan_exact(own, planning);
      // Exact parts, all together, leave most of the time to the others.
      const auto most = options.seconds ? std::optional(kExactFraction * *options.seconds - spent) : std::nullopt;
      if (!fits(plan, options.memory_limit, most)) {
        sampled_.insert(sampled_.end(), part.begin(), part.end());
        continue;
      }
      spent += plan.seconds();
      const ExactAnswer exact = solve_exact(own, plan, exact_options(options, hooks));
      copy_part(exact.marginals, part, marginals_);
      log_partition_ += exact.log_partition;
      exact_.insert(exact_.end(), part.begin(), part.end());
    }
    std::sort(sampled_.begin(), sampled_.end());
  }

  const Network& network_;
  Marginals marginals_;
  double log_partition_;
  std::optional<Joint> joint_;
  std::vector<Index> exact_;
  std::vector<Index> sampled_;
};

}  // namespace

bool fits(const ExactPlan& plan, double memory_limit, std::optional<double> seconds) {
  return plan.fits(memory_limit) && plan.seconds() <= seconds.value_or(kLongest);
}

std::string exact_cost(const ExactPlan& plan) {
  if (!plan.tree.complete) {
    return fmt::format("a table of over {} entries in every order", text::number(plan.tree.largest_clique, 3));
  }
  std::string tables = fmt::format("{} of tables (induced width {})", text::bytes(plan.tree.bytes), plan.tree.width);
  if (plan.conditioned.empty()) return tables;
  return fmt::format("{} slices (conditioning on {}) with {} each, about {} on one core", text::count(plan.slices),
                     text::plural(plan.conditioned.size(), "variable"), tables, text::duration(plan.seconds()));
}

MarginalsAnswer find_marginals(const std::shared_ptr<const Network>& network, const MarginalsOptions& options,
                               const MarginalsHooks& hooks) {
  const auto started = Clock::now();
  const double budget = options.seconds.value_or(kSampling) - options.elapsed;
  std::optional<JointQuery> query;
  if (!options.query.empty()) query.emplace(network, parse_variables(options.query, "query", *network));
  const JointQuery* const asked = query ? &*query : nullptr;
  const Network& whole = query ? query->network() : *network;
  MarginalsAnswer answer;
  answer.model = network->name;
  answer.method = options.method;
  // Where the answer is to be sampled, or time is short, planning must leave most of it.
  const bool hurried = options.method == Method::sample || options.seconds.has_value();
  PlanOptions planning{.memory_limit = options.memory_limit};
  if (hurried) planning.seconds = kPlanFraction * budget;
  Collective* const ranks = hooks.collective;
  const bool is_root = ranks == nullptr || ranks->is_root();
  ExactPlan plan;
  if (options.method == Method::sample && is_root) {
    plan.tree = plan_elimination(whole, planning);
  } else if (is_root) {
    plan = plan_exact(whole, planning);
  }
  answer.width = plan.tree.width;
  answer.bytes = plan.tree.bytes;
  const std::string cost = "exact inference would take " + exact_cost(plan);
  const std::string limit = text::bytes(options.memory_limit);
  switch (options.method) {
    case Method::automatic:
      answer.method = fits(plan, options.memory_limit, options.seconds) ? Method::exact : Method::sample;
      answer.reason = !plan.fits(options.memory_limit) ? fmt::format("{}, over the limit of {}", cost, limit)
                      : answer.method == Method::exact ? fmt::format("{}, within the limit of {}", cost, limit)
                      : plan.conditioned.empty() ? fmt::format("{}, within the limit, but about {} on one core", cost,
                                                               text::duration(plan.seconds()))
                                                 : cost + ", too long";
      break;
    case Method::exact: answer.reason = "exact inference was requested; it takes " + exact_cost(plan); break;
    case Method::sample: answer.reason = fmt::format("sampling was requested; {}", cost); break;
  }
  if (ranks != nullptr) answer.method = ranks->of_root(answer.method);
  if (answer.method == Method::exact && is_root) {
    ExactAnswer exact = solve_exact(whole, plan, exact_options(options, hooks));
    answer.marginals = std::move(exact.marginals);
    answer.log_partition = exact.log_partition;
    if (query) answer.joint = query->take_from(answer.marginals);
  } else if (answer.method != Method::exact) {
    std::optional<PartlyExact> parts;
    if (options.method == Method::automatic && is_root) parts.emplace(*network, asked, options, hooks);
    // Without a time limit the search for a plan takes nothing from sampling.
    const auto begins = options.seconds ? started : Clock::now();
    const auto deadline = begins + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(budget));
    const bool split = parts && parts->any_exact();
    bool is_whole = !split;
    std::vector<Index> sampled = split ? parts->sampled() : std::vector<Index>();
    if (ranks != nullptr) {
      is_whole = ranks->of_root(is_whole);
      sampled = of_root(*ranks, sampled);
    }
    if (is_whole || !sampled.empty()) {
      sample_marginals({is_whole ? network : rest_of(*network, sampled), deadline, asked, sampled}, options, hooks,
                       answer);
    }
    if (split && (answer.report || parts->all_exact())) parts->complete(answer);
  }
  answer.seconds = seconds_since(started);
  return answer;
}

}  // namespace poise
