/// Contrastive divergence: a few rows of the batch at a time, then the gradient a few hidden units at a time.
///
/// Threads share out chunks of a fixed size, so that every matrix product has the same shape, and hence the same order
/// of sums, for any number of them. Each row of the batch has random numbers of its own.
#include "inference/train/rbm_trainer.hpp"
#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/learning/optimizer.hpp>
#include "base/matrix_product.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace poise {

namespace {

constexpr std::size_t kRows = 4;     // of the batch in one chunk: as many as matrix products compute together
constexpr std::size_t kHidden = 32;  // hidden units in one chunk of the gradient

std::size_t chunks(std::size_t count, std::size_t size) { return (count + size - 1) / size; }

std::size_t padded(std::size_t count) { return chunks(count, kUnitLanes) * kUnitLanes; }

RbmWeights zeros_like(const RbmWeights& rbm) {
  RbmWeights out = rbm;
  for (auto* values : {&out.weights, &out.visible_bias, &out.hidden_bias}) std::fill(values->begin(), values->end(), 0);
  return out;
}

void check_start(const RbmWeights& rbm) {
  if (rbm.visible == 0 || rbm.hidden == 0 || rbm.weights.size() != std::size_t{rbm.visible} * rbm.hidden ||
      rbm.visible_bias.size() != rbm.visible || rbm.hidden_bias.size() != rbm.hidden) {
    throw InputError("the weights to start from do not fit their numbers of visible and hidden units");
  }
}

std::size_t rows_of(std::span<const Value> data, std::size_t visible) {
  if (data.empty() || visible == 0 || data.size() % visible != 0) {
    throw InputError(fmt::format("found {} values to learn from, expected a multiple of the {} visible units",
                                 data.size(), visible));
  }
  const auto bad = std::find_if(data.begin(), data.end(), [](Value value) { return value > 1; });
  if (bad != data.end()) {
    throw InputError(fmt::format("found {} in the data to learn from, expected 0 or 1", unsigned{*bad}));
  }
  return data.size() / visible;
}

/// As many as there are chunks of a batch at most, and one where a step is over before a second thread has woken up.
unsigned useful_threads(const RbmWeights& rbm, const RbmTrainerOptions& options) {
  constexpr double few = 1e6;  // products, which take about 0.1 ms
  const double products = static_cast<double>(options.batch) * static_cast<double>(options.gibbs_steps) *
                          static_cast<double>(rbm.visible) * static_cast<double>(rbm.hidden);
  if (products < few) return 1;
  const unsigned wanted = options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  const std::size_t most = std::max(chunks(options.batch, kRows), chunks(rbm.hidden, kHidden));
  return static_cast<unsigned>(std::min<std::size_t>(wanted, most));
}

/// Some units of all rows of a batch, or of all chains.
struct Units {
  const float* first;
  std::size_t rows;
  std::size_t stride;

  [[nodiscard]] double mean(std::size_t unit) const {
    double sum = 0.0;
    for (std::size_t r = 0; r < rows; ++r) sum += static_cast<double>(first[r * stride + unit]);
    return sum / static_cast<double>(rows);
  }
};

void mean_difference(const Units& data, const Units& chains, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(data.mean(i) - chains.mean(i));
}

}  // namespace

void RbmTrainerOptions::check() const {
  std::vector<std::string> problems;
  if (gibbs_steps == 0) problems.emplace_back("found 0 steps of Gibbs sampling, expected at least 1");
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  if (batch == 0 || batch > most) {
    problems.push_back(fmt::format("found a batch of {} rows, expected from 1 to {}", batch, most));
  }
  if (!(rate > 0.0 && rate <= 1.0)) {
    problems.push_back(fmt::format("found a rate of {}, expected more than 0 and at most 1", rate));
  }
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

RbmWeights initial_rbm(Index visible, Index hidden, std::span<const Value> data, std::uint64_t seed) {
  constexpr double spread = 0.01;
  const std::size_t rows = rows_of(data, visible);
  RbmWeights rbm;
  rbm.visible = visible;
  rbm.hidden = hidden;
  Rng rng = make_rng(seed, Stream::training_weights);
  rbm.weights.resize(std::size_t{visible} * hidden);
  for (float& weight : rbm.weights) weight = static_cast<float>(spread * rng.normal());
  std::vector<std::uint64_t> on(visible, 0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (Index i = 0; i < visible; ++i) on[i] += data[r * visible + i];
  }
  for (const std::uint64_t count : on) {
    const double rate = static_cast<double>(count) / static_cast<double>(rows);
    const double mean = std::clamp(rate, RbmWeights::kRarest, 1.0 - RbmWeights::kRarest);
    rbm.visible_rates.push_back(static_cast<float>(rate));
    rbm.visible_bias.push_back(static_cast<float>(std::log(mean / (1.0 - mean))));
  }
  rbm.hidden_bias.assign(hidden, 0.0F);
  return rbm;
}

RbmTrainer::RbmTrainer(RbmWeights start, const RbmTrainerOptions& options)
    : options_(options),
      weights_(std::move(start)),
      gradient_(zeros_like(weights_)),
      first_moment_(gradient_),
      second_moment_(gradient_),
      visible_stride_(padded(weights_.visible)),
      hidden_stride_(padded(weights_.hidden)),
      shuffle_(make_rng(options.seed, Stream::training_order)),
      pool_(useful_threads(weights_, options)) {
  check_start(weights_);
  options_.check();
  for (auto* rows : {&data_visible_, &chain_visible_, &reconstruction_}) rows->resize(options_.batch * visible_stride_);
  for (auto* rows : {&data_hidden_, &chain_hidden_, &change_}) rows->resize(options_.batch * hidden_stride_);
  metrics_.resize(options_.batch);
  for (std::size_t r = 0; r < options_.batch; ++r) rngs_.push_back(make_rng(options_.seed, Stream::training_row, r));

  // Chains that are kept begin with independent pixels, which is what an RBM of small weights draws.
  Rng rng = make_rng(options_.seed, Stream::training_particles);
  for (std::size_t r = 0; r < options_.batch; ++r) {
    float* row = chain_visible_.data() + r * visible_stride_;
    std::copy(weights_.visible_bias.begin(), weights_.visible_bias.end(), row);
    sample_units(row, weights_.visible, rng, row);
  }

  start_on_device();
}

/// Activations are products on top of the biases.
void RbmTrainer::hidden_activations(const std::vector<float>& visible, std::vector<float>& hidden, Rows rows) const {
  const float* from = visible.data() + rows.first * visible_stride_;
  float* to = hidden.data() + rows.first * hidden_stride_;
  for (std::size_t r = 0; r < rows.count; ++r) {
    std::copy(weights_.hidden_bias.begin(), weights_.hidden_bias.end(), to + r * hidden_stride_);
  }
  add_transposed_product({from, rows.count, weights_.visible, visible_stride_},
                         {weights_.weights.data(), weights_.hidden, weights_.visible, weights_.visible}, to,
                         hidden_stride_);
}

void RbmTrainer::visible_activations(const std::vector<float>& hidden, std::vector<float>& visible, Rows rows) const {
  const float* from = hidden.data() + rows.first * hidden_stride_;
  float* to = visible.data() + rows.first * visible_stride_;
  for (std::size_t r = 0; r < rows.count; ++r) {
    std::copy(weights_.visible_bias.begin(), weights_.visible_bias.end(), to + r * visible_stride_);
  }
  add_product(1.0F, {from, rows.count, hidden_stride_, 1},
              {weights_.weights.data(), weights_.hidden, weights_.visible, weights_.visible}, to, visible_stride_);
}

/// log p(v_i | the others) = -softplus(log p(v with i changed) - log p(v)).
double RbmTrainer::pseudo_log_likelihood(std::size_t row, Rng& rng) {
  const std::size_t visible = weights_.visible;
  const auto i = static_cast<std::size_t>(rng.uniform() * static_cast<double>(visible));
  const float sign = data_visible_[row * visible_stride_ + i] != 0.0F ? -1.0F : 1.0F;
  float* change = change_.data() + row * hidden_stride_;
  for (std::size_t j = 0; j < weights_.hidden; ++j) change[j] = sign * weights_.weights[j * visible + i];
  const double log_ratio = static_cast<double>(sign * weights_.visible_bias[i]) +
                           softplus_change(data_hidden_.data() + row * hidden_stride_, change, weights_.hidden);
  const double softplus = std::max(log_ratio, 0.0) + std::log1p(std::exp(-std::abs(log_ratio)));
  return -softplus * static_cast<double>(visible);
}

/// The positive phase, and what is told about it.
void RbmTrainer::see_data(std::span<const Value> data, Rows rows, std::span<Rng> rngs) {
  const std::size_t visible = weights_.visible;
  for (std::size_t r = rows.first; r < rows.first + rows.count; ++r) {
    std::copy_n(data.begin() + r * visible, visible, data_visible_.begin() + r * visible_stride_);
  }
  hidden_activations(data_visible_, data_hidden_, rows);
  if (options_.method == Divergence::cd) {
    std::copy_n(data_hidden_.begin() + rows.first * hidden_stride_, rows.count * hidden_stride_,
                chain_hidden_.begin() + rows.first * hidden_stride_);
  }
  for (std::size_t r = rows.first; r < rows.first + rows.count; ++r) {
    metrics_[r].pseudo_log_likelihood = pseudo_log_likelihood(r, rngs[r]);
    to_probabilities(data_hidden_.data() + r * hidden_stride_, weights_.hidden);
  }
  visible_activations(data_hidden_, reconstruction_, rows);
  for (std::size_t r = rows.first; r < rows.first + rows.count; ++r) {
    float* row = reconstruction_.data() + r * visible_stride_;
    to_probabilities(row, visible);
    metrics_[r].reconstruction_error =
        squared_distance(data_visible_.data() + r * visible_stride_, row, visible) / static_cast<double>(visible);
  }
}

/// The negative phase, from activations of the hidden units given where the chains are.
void RbmTrainer::run_chains(Rows rows) {
  const std::size_t end = rows.first + rows.count;
  for (std::uint64_t step = 0; step < options_.gibbs_steps; ++step) {
    for (std::size_t r = rows.first; r < end; ++r) {
      float* row = chain_hidden_.data() + r * hidden_stride_;
      sample_units(row, weights_.hidden, rngs_[r], row);
    }
    visible_activations(chain_hidden_, chain_visible_, rows);
    for (std::size_t r = rows.first; r < end; ++r) {
      float* row = chain_visible_.data() + r * visible_stride_;
      sample_units(row, weights_.visible, rngs_[r], row);
    }
    hidden_activations(chain_visible_, chain_hidden_, rows);
  }
  for (std::size_t r = rows.first; r < end; ++r) {
    to_probabilities(chain_hidden_.data() + r * hidden_stride_, weights_.hidden);
  }
}

RbmMetrics RbmTrainer::mean_metrics(std::size_t rows) const {
  RbmMetrics mean;
  for (std::size_t r = 0; r < rows; ++r) mean.add(metrics_[r].over(rows), 1.0);
  return mean;
}

RbmMetrics RbmTrainer::step(std::span<const Value> rows) {
  const std::size_t data_rows = rows_of(rows, weights_.visible);
  if (data_rows > options_.batch) {
    throw InputError(fmt::format("found a batch of {} rows, expected at most {}", data_rows, options_.batch));
  }
  if (device_) {
    std::vector<std::uint64_t> order(data_rows);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    device_->set_data(rows, order);
    const RbmMetrics metrics = step_on_device(0, data_rows);
    fetch();
    return metrics;
  }
  const bool kept = options_.method == Divergence::pcd;
  const std::size_t chains = kept ? options_.batch : data_rows;
  pool_.for_each(chunks(chains, kRows), [&](std::size_t chunk) {
    const std::size_t first = chunk * kRows;
    if (first < data_rows) see_data(rows, {first, std::min(kRows, data_rows - first)}, rngs_);
    const Rows mine{first, std::min(kRows, chains - first)};
    if (kept) hidden_activations(chain_visible_, chain_hidden_, mine);
    run_chains(mine);
  });
  update(data_rows, chains);
  return mean_metrics(data_rows);
}

void RbmTrainer::update(std::size_t data_rows, std::size_t chains) {
  ++updates_;
  const std::size_t last = chunks(weights_.hidden, kHidden);
  pool_.for_each(last + 1, [&](std::size_t chunk) {
    if (chunk < last) return update_hidden(chunk * kHidden, data_rows, chains);
    mean_difference({data_visible_.data(), data_rows, visible_stride_},
                    {chain_visible_.data(), chains, visible_stride_}, gradient_.visible_bias);
    AdamStep<float>(options_.rate, updates_)
        .apply(weights_.visible_bias.data(), first_moment_.visible_bias.data(), second_moment_.visible_bias.data(),
               gradient_.visible_bias.data(), weights_.visible);
  });
}

/// The part of some hidden units: H^T V / rows of the data minus the same of the chains.
void RbmTrainer::update_hidden(std::size_t first, std::size_t data_rows, std::size_t chains) {
  const std::size_t visible = weights_.visible;
  const std::size_t count = std::min(kHidden, weights_.hidden - first);
  const std::size_t place = first * visible;
  float* gradient = gradient_.weights.data() + place;
  std::fill_n(gradient, count * visible, 0.0F);
  const auto add = [&](const std::vector<float>& h, const std::vector<float>& v, std::size_t rows, float sign) {
    add_product(sign / static_cast<float>(rows), {h.data() + first, count, 1, hidden_stride_},
                {v.data(), rows, visible, visible_stride_}, gradient, visible);
  };
  add(data_hidden_, data_visible_, data_rows, 1.0F);
  add(chain_hidden_, chain_visible_, chains, -1.0F);
  mean_difference({data_hidden_.data() + first, data_rows, hidden_stride_},
                  {chain_hidden_.data() + first, chains, hidden_stride_},
                  std::span(gradient_.hidden_bias).subspan(first, count));
  const AdamStep<float> adam(options_.rate, updates_);
  adam.apply(weights_.weights.data() + place, first_moment_.weights.data() + place,
             second_moment_.weights.data() + place, gradient_.weights.data() + place, count * visible);
  adam.apply(weights_.hidden_bias.data() + first, first_moment_.hidden_bias.data() + first,
             second_moment_.hidden_bias.data() + first, gradient_.hidden_bias.data() + first, count);
}

RbmEpoch RbmTrainer::epoch(std::span<const Value> data, const RbmTrainerHooks& hooks) {
  const auto begun = std::chrono::steady_clock::now();
  const std::size_t visible = weights_.visible;
  const std::size_t count = rows_of(data, visible);
  if (!present_) {
    present_ = Present{};
    present_->progress.batches = chunks(count, options_.batch);
    std::vector<std::uint64_t>& order = present_->order;
    order.resize(count);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    for (std::size_t left = count; left > 1; --left) {
      std::swap(order[left - 1], order[static_cast<std::size_t>(shuffle_.uniform() * static_cast<double>(left))]);
    }
  }
  if (present_->order.size() != count) {
    throw InputError(
        fmt::format("found {} rows, expected the {} of the epoch that is under way", count, present_->order.size()));
  }
  const double seconds_before = present_->seconds;
  RbmProgress& progress = present_->progress;
  RbmEpoch epoch;
  std::vector<Value> batch;
  if (device_) device_->set_data(data, present_->order);
  while (progress.rows < count && !epoch.interrupted) {
    const std::size_t rows = std::min<std::size_t>(options_.batch, count - progress.rows);
    if (device_) {
      progress.metrics = step_on_device(progress.rows, rows);
    } else {
      batch.resize(rows * visible);
      for (std::size_t r = 0; r < rows; ++r) {
        std::copy_n(data.begin() + present_->order[progress.rows + r] * visible, visible, batch.begin() + r * visible);
      }
      progress.metrics = step(batch);
    }
    progress.rows += rows;
    ++progress.batch;
    present_->sums.add(progress.metrics, static_cast<double>(rows));
    present_->seconds =
        seconds_before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (hooks.progress) hooks.progress(progress);
    epoch.interrupted = progress.rows < count && hooks.stop != nullptr && *hooks.stop;
  }
  if (device_) fetch();
  epoch.rows = progress.rows;
  epoch.metrics = present_->sums.over(epoch.rows);
  epoch.seconds = present_->seconds;
  if (!epoch.interrupted) present_.reset();
  return epoch;
}

template <class A>
void RbmTrainer::archive(A& archive) {
  for (RbmWeights* all : {&weights_, &first_moment_, &second_moment_}) {
    archive(all->weights, all->visible_bias, all->hidden_bias);
  }
  archive(updates_, chain_visible_, shuffle_);
  for (Rng& rng : rngs_) archive(rng);
}

std::string RbmTrainer::save() const {
  if (device_) fetch();
  Saver out;
  const_cast<RbmTrainer*>(this)->archive(out);  // the one function for both directions changes nothing here
  const Present present = present_.value_or(Present{});
  out(present_.has_value(), present.order, present.progress, present.sums, present.seconds);
  return out.take();
}

void RbmTrainer::load(std::string_view bytes) {
  Loader in(bytes);
  archive(in);
  bool has_present = false;
  Present present;
  in(has_present, present.order, present.progress, present.sums, present.seconds);
  bool fits = in.at_end() && chain_visible_.size() == options_.batch * visible_stride_;
  for (const RbmWeights* all : {&weights_, &first_moment_, &second_moment_}) {
    fits = fits && all->weights.size() == std::size_t{weights_.visible} * weights_.hidden &&
           all->visible_bias.size() == weights_.visible && all->hidden_bias.size() == weights_.hidden;
  }
  for (const std::uint64_t row : present.order) fits = fits && row < present.order.size();
  if (!fits) throw std::runtime_error("the saved state is of another training");
  if (device_) put_on_device();
  present_.reset();
  if (has_present) present_ = std::move(present);
}

RbmMetrics RbmTrainer::evaluate(std::span<const Value> data) {
  const std::size_t visible = weights_.visible;
  const std::size_t count = rows_of(data, visible);
  std::vector<Rng> rngs;
  for (std::size_t r = 0; r < options_.batch; ++r)
    rngs.push_back(make_rng(options_.seed, Stream::training_evaluation, r));
  RbmMetrics sum;
  for (std::size_t done = 0; done < count; done += options_.batch) {
    const std::size_t rows = std::min<std::size_t>(options_.batch, count - done);
    const auto part = data.subspan(done * visible, rows * visible);
    pool_.for_each(chunks(rows, kRows), [&](std::size_t chunk) {
      see_data(part, {chunk * kRows, std::min(kRows, rows - chunk * kRows)}, rngs);
    });
    sum.add(mean_metrics(rows), static_cast<double>(rows));
  }
  return sum.over(count);
}

}  // namespace poise
