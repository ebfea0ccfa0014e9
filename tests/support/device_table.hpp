/// A user target on a GPU whose numbers come from a table on the host, so that every state can be checked.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <poise/extend/base/rng.hpp>
#include <poise/model.hpp>
#include "engines/rows.hpp"
#include "models/user/batch_target.hpp"

namespace poise::testing {

struct DeviceTableOptions {
  Index variables = 7;
  std::vector<double> labels = {};
  bool one_hot = false;
  bool double_states = false;
  bool double_answers = false;
  /// Of a state by its number; may make its log p and its gradient anything.
  std::function<void(std::size_t state, double& log_prob, std::vector<double>& gradient)> spoil = {};
};

/// log p(x) = h.x + x J x / 2 of levels 0 and 1, and the derivative by each level, where the others are as they are.
class DeviceTable : public BatchFunction {
 public:
  explicit DeviceTable(DeviceTableOptions options) : options_(std::move(options)) {
    const std::size_t n = options_.variables, states = std::size_t{1} << n;
    Rng rng(3, 5);
    std::vector<double> field(n), coupling(n * n, 0.0);
    for (double& h : field) h = 0.7 * rng.normal();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) coupling[i * n + j] = coupling[j * n + i] = 0.6 * rng.normal();
    }
    for (std::size_t s = 0; s < states; ++s) {
      double log_p = 0.0;
      std::vector<double> derivative(n);
      for (std::size_t i = 0; i < n; ++i) {
        double around = 0.0;
        for (std::size_t j = 0; j < n; ++j) around += (s >> j & 1) != 0 ? coupling[i * n + j] : 0.0;
        derivative[i] = field[i] + around;
        if ((s >> i & 1) != 0) log_p += field[i] + 0.5 * around;
      }
      derivatives.push_back(derivative);
      std::vector<double> gradient = as_gradient(derivative);
      if (options_.spoil) options_.spoil(s, log_p, gradient);
      log_probs.push_back(options_.double_answers ? log_p : static_cast<double>(static_cast<float>(log_p)));
      gradients.push_back(std::move(gradient));
    }
  }

  /// Probabilities of all states.
  [[nodiscard]] std::vector<double> probabilities() const {
    std::vector<double> out;
    double sum = 0.0;
    for (const double log_p : log_probs) out.push_back(std::exp(log_p)), sum += out.back();
    for (double& p : out) p /= sum;
    return out;
  }
  [[nodiscard]] BatchShape shape() const { return {std::vector<Index>(options_.variables, 2), options_.labels}; }

  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = log_probs[number(rows, r)];
  }
  [[nodiscard]] bool has_gradient() const override { return true; }
  [[nodiscard]] bool one_hot() const override { return options_.one_hot; }
  void gradient(std::span<const Value> rows, std::span<double> log_prob, std::span<double> out) override {
    for (std::size_t r = 0; r < log_prob.size(); ++r) {
      const std::size_t s = number(rows, r);
      log_prob[r] = log_probs[s];
      std::copy(gradients[s].begin(), gradients[s].end(), out.begin() + static_cast<std::ptrdiff_t>(r * width()));
    }
  }
  [[nodiscard]] std::shared_ptr<DeviceFunction> device_function(std::string& why) const override;

  [[nodiscard]] const DeviceTableOptions& options() const { return options_; }
  [[nodiscard]] std::size_t width() const { return options_.variables * (options_.one_hot ? std::size_t{2} : 1); }

  std::vector<double> log_probs;
  std::vector<std::vector<double>> derivatives;  ///< from the lower level to the upper one
  std::vector<std::vector<double>> gradients;    ///< by what stands for the levels
  /// Before each call on the device; what it throws is the code's own error.
  std::function<void()> before_call;

 private:
  [[nodiscard]] std::vector<double> as_gradient(const std::vector<double>& derivative) const {
    std::vector<double> out;
    const double step = options_.labels.empty() ? 1.0 : options_.labels[1] - options_.labels[0];
    for (const double s : derivative) {
      if (options_.one_hot) {
        out.push_back(0.25);
        out.push_back(0.25 + s);
      } else {
        out.push_back(s / step);
      }
    }
    return out;
  }
  [[nodiscard]] std::size_t number(std::span<const Value> rows, std::size_t r) const {
    std::size_t s = 0;
    for (std::size_t i = 0; i < options_.variables; ++i) s |= std::size_t{rows[r * options_.variables + i]} << i;
    return s;
  }

  DeviceTableOptions options_;
};

/// States are copied to the host, looked up, and answers copied back.
class DeviceTableFunction final : public DeviceFunction {
 public:
  explicit DeviceTableFunction(const DeviceTable& table) : table_(table) {}

  [[nodiscard]] void* stream() override { return nullptr; }
  DeviceRoom room(std::size_t states) override {
    if (states != count_) {
      count_ = states;
      const auto allocate = engine_table().gpu->allocate;
      states_ = allocate(8 * states * table_.width());
      log_prob_ = allocate(8 * states);
      gradient_ = allocate(8 * states * table_.width());
    }
    return {states_.get(), table_.options().double_states};
  }
  DeviceAnswers evaluate() override {
    if (table_.before_call) table_.before_call();
    return table_.options().double_states ? read<double>() : read<float>();
  }

 private:
  template <class Real>
  DeviceAnswers read() {
    const std::size_t width = table_.width(), n = table_.options().variables;
    std::vector<Real> x(count_ * width);
    cudaMemcpy(x.data(), states_.get(), x.size() * sizeof(Real), cudaMemcpyDeviceToHost);
    const std::vector<double>& labels = table_.options().labels;
    const auto up = static_cast<Real>(labels.empty() || table_.options().one_hot ? 1.0 : labels[1]);
    const std::size_t stride = width / n;
    std::vector<std::size_t> numbers(count_, 0);
    for (std::size_t c = 0; c < count_; ++c) {
      for (std::size_t i = 0; i < n; ++i) {
        if (x[c * width + i * stride + stride - 1] == up) numbers[c] |= std::size_t{1} << i;
      }
    }
    return table_.options().double_answers ? answer<double>(numbers) : answer<float>(numbers);
  }
  template <class Real>
  DeviceAnswers answer(const std::vector<std::size_t>& numbers) {
    std::vector<Real> log_prob, gradient;
    for (const std::size_t s : numbers) {
      log_prob.push_back(static_cast<Real>(table_.log_probs[s]));
      for (const double derivative : table_.gradients[s]) gradient.push_back(static_cast<Real>(derivative));
    }
    cudaMemcpy(log_prob_.get(), log_prob.data(), log_prob.size() * sizeof(Real), cudaMemcpyHostToDevice);
    cudaMemcpy(gradient_.get(), gradient.data(), gradient.size() * sizeof(Real), cudaMemcpyHostToDevice);
    constexpr bool is_double = sizeof(Real) == 8;
    return {{log_prob_.get(), is_double}, {gradient_.get(), is_double}};
  }

  const DeviceTable& table_;
  std::size_t count_ = 0;
  std::shared_ptr<void> states_, log_prob_, gradient_;
};

inline std::shared_ptr<DeviceFunction> DeviceTable::device_function(std::string&) const {
  return std::make_shared<DeviceTableFunction>(*this);
}

inline Model model_of(const std::shared_ptr<DeviceTable>& table) {
  return callback_model("table", table->shape(), table, {});
}

}  // namespace poise::testing
