/// RBMs, and targets that are code of users: callbacks with values, gradients or ratios, and C++ classes.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/models/batch_function.hpp>
#include "laws/kinds.hpp"
#include "models/rbm/rbm.hpp"
#include "support/small_rbms.hpp"
#include "support/table_model.hpp"

namespace poise::laws {

namespace {

/// log p as user code: rows in, numbers out, in the forms that users give it in.
class UserCode : public BatchFunction {
 public:
  UserCode(std::vector<Index> cardinalities, LogProb log_prob)
      : cardinalities_(std::move(cardinalities)), log_prob_(std::move(log_prob)) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = cardinalities_.size();
    for (std::size_t r = 0; r < out.size(); ++r) out[r] = log_prob_(rows.subspan(r * n, n));
  }

 protected:
  std::vector<Index> cardinalities_;
  LogProb log_prob_;
};

class UserRatios final : public UserCode {
 public:
  using UserCode::UserCode;
  [[nodiscard]] bool has_log_ratios() const override { return true; }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    const std::size_t n = cardinalities_.size();
    std::size_t next = 0;
    for (std::size_t first = 0; first < rows.size(); first += n) {
      std::vector<Value> x(rows.begin() + static_cast<std::ptrdiff_t>(first),
                           rows.begin() + static_cast<std::ptrdiff_t>(first + n));
      const double here = log_prob_(x);
      for (std::size_t i = 0; i < n; ++i) {
        const Value now = x[i];
        for (Index level = 0; level < cardinalities_[i]; ++level) {
          if (level == now) continue;
          x[i] = static_cast<Value>(level);
          out[next++] = log_prob_(x) - here;
        }
        x[i] = now;
      }
    }
  }
};

/// Quadratic in numbers that stand for levels: log p = sum a_i x_i + sum over pairs of J_ij x_i x_j.
struct Quadratic {
  std::vector<double> linear;
  std::vector<double> coupling;  ///< n by n, symmetric, none on the diagonal

  [[nodiscard]] std::size_t size() const { return linear.size(); }
  [[nodiscard]] double derivative(std::span<const Value> x, std::size_t i) const {
    double sum = linear[i];
    for (std::size_t j = 0; j < size(); ++j) sum += coupling[i * size() + j] * x[j];
    return sum;
  }
  [[nodiscard]] double log_prob(std::span<const Value> x) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < size(); ++i) sum += 0.5 * (linear[i] + derivative(x, i)) * x[i];
    return sum;
  }
};

Quadratic draw_quadratic(Dice& dice, std::size_t variables, double strength) {
  Quadratic made;
  const double bias = dice.pick({0.01, 0.5, 1.5});
  const double density = dice.pick({0.3, 1.0});
  made.coupling.assign(variables * variables, 0.0);
  for (std::size_t i = 0; i < variables; ++i) {
    made.linear.push_back(bias * dice.normal());
    for (std::size_t j = 0; j < i; ++j) {
      if (!dice.chance(density)) continue;
      made.coupling[i * variables + j] = made.coupling[j * variables + i] = strength * dice.normal();
    }
  }
  return made;
}

class UserGradient final : public UserCode {
 public:
  using Derivative = std::function<double(std::span<const Value> x, std::size_t i)>;
  UserGradient(std::vector<Index> cardinalities, LogProb log_prob, Derivative derivative)
      : UserCode(std::move(cardinalities), std::move(log_prob)), derivative_(std::move(derivative)) {}
  [[nodiscard]] bool has_gradient() const override { return true; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    UserCode::log_prob(rows, log_p);
    const std::size_t n = cardinalities_.size();
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = derivative_(rows.subspan(k / n * n, n), k % n);
  }

 private:
  Derivative derivative_;
};

/// log p = sum of a field for every level of every variable + J_ij for every pair at the same level. Derivatives are by
/// the indicators of levels.
struct Alike {
  std::vector<std::vector<double>> field;
  std::vector<double> coupling;

  [[nodiscard]] double derivative(std::span<const Value> x, std::size_t i, Value level) const {
    double sum = field[i][level];
    for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] == level && j != i ? coupling[i * x.size() + j] : 0.0;
    return sum;
  }
  [[nodiscard]] double log_prob(std::span<const Value> x) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += 0.5 * (field[i][x[i]] + derivative(x, i, x[i]));
    return sum;
  }
};

class OneHotGradient final : public UserCode {
 public:
  OneHotGradient(std::vector<Index> cardinalities, Alike numbers)
      : UserCode(std::move(cardinalities), [numbers](std::span<const Value> x) { return numbers.log_prob(x); }),
        numbers_(std::move(numbers)) {}
  [[nodiscard]] bool has_gradient() const override { return true; }
  [[nodiscard]] bool one_hot() const override { return true; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    UserCode::log_prob(rows, log_p);
    const std::size_t n = cardinalities_.size();
    std::size_t next = 0;
    for (std::size_t first = 0; first < rows.size(); first += n) {
      for (std::size_t i = 0; i < n; ++i) {
        for (Index level = 0; level < cardinalities_[i]; ++level) {
          out[next++] = numbers_.derivative(rows.subspan(first, n), i, static_cast<Value>(level));
        }
      }
    }
  }

 private:
  Alike numbers_;
};

SmallModel from_code(std::shared_ptr<BatchFunction> code, std::vector<Index> cardinalities, LogProb log_prob) {
  SmallModel made;
  made.model = callback_model("user", {cardinalities, {}}, std::move(code), {});
  made.cardinalities = std::move(cardinalities);
  made.log_prob = std::move(log_prob);
  return made;
}

std::vector<Index> draw_cardinalities(Dice& dice) {
  if (dice.chance(0.6)) return std::vector<Index>(dice.between(2, 10), 2);
  std::vector<Index> cardinalities(dice.between(2, 5));
  for (Index& levels : cardinalities) levels = dice.between(2, 4);
  return cardinalities;
}

/// A quadratic function, at times with pairs of neighbours that must not both be on: single changes join all states,
/// through the one at level 0.
LogProb draw_values(Dice& dice, const std::vector<Index>& cardinalities, double strength) {
  const Quadratic numbers = draw_quadratic(dice, cardinalities.size(), strength);
  const bool hard = dice.chance(0.25);
  return [numbers, hard](std::span<const Value> x) {
    for (std::size_t i = 1; hard && i < x.size(); ++i) {
      if (x[i - 1] > 0 && x[i] > 0) return kMinusInfinity;
    }
    return numbers.log_prob(x);
  };
}

std::string describe(const std::vector<Index>& cardinalities, double strength) {
  std::size_t states = 1;
  for (const Index levels : cardinalities) states *= levels;
  return fmt::format("{} variables, {} states, strength {}", cardinalities.size(), states, strength);
}

}  // namespace

SmallModel rbm(Dice& dice, const Folder& folder) {
  const double strength = dice.pick({0.01, 0.3, 0.8, 1.5, 4.0});
  const Index visible = dice.between(2, 10);
  const Index hidden = dice.between(1, 8);
  const RbmWeights weights = testing::random_rbm(visible, hidden, strength, dice.seed());
  SmallModel made;
  const std::string file = (folder.path / (folder.stem + ".safetensors")).string();
  write_rbm(file, weights);
  made.text = "rbm:weights=" + file;
  made.rbm = std::make_shared<const Rbm>(weights);
  made.model = make_model(made.text);
  made.cardinalities.assign(visible, 2);
  made.log_prob = [weights](std::span<const Value> x) {
    return testing::plain_log_prob(weights, std::vector<Value>(x.begin(), x.end()));
  };
  made.recipe = fmt::format("{} visible, {} hidden, strength {}", visible, hidden, strength);
  return made;
}

SmallModel user_values(Dice& dice, const Folder& /*folder*/) {
  const std::vector<Index> cardinalities = draw_cardinalities(dice);
  const double strength = dice.pick({0.01, 0.3, 1.0, 2.0});
  const LogProb log_prob = draw_values(dice, cardinalities, strength);
  SmallModel made = from_code(std::make_shared<UserCode>(cardinalities, log_prob), cardinalities, log_prob);
  made.recipe = describe(cardinalities, strength);
  return made;
}

SmallModel user_ratios(Dice& dice, const Folder& /*folder*/) {
  const std::vector<Index> cardinalities = draw_cardinalities(dice);
  const double strength = dice.pick({0.01, 0.3, 1.0, 2.0});
  const LogProb log_prob = draw_values(dice, cardinalities, strength);
  SmallModel made = from_code(std::make_shared<UserRatios>(cardinalities, log_prob), cardinalities, log_prob);
  made.recipe = describe(cardinalities, strength);
  return made;
}

SmallModel user_gradient(Dice& dice, const Folder& /*folder*/) {
  const std::vector<Index> cardinalities = draw_cardinalities(dice);
  const double strength = dice.pick({0.01, 0.3, 1.0, 2.0});
  const Quadratic numbers = draw_quadratic(dice, cardinalities.size(), strength);
  SmallModel made;
  if (dice.chance(0.6)) {
    const LogProb log_prob = [numbers](std::span<const Value> x) { return numbers.log_prob(x); };
    const auto derivative = [numbers](std::span<const Value> x, std::size_t i) { return numbers.derivative(x, i); };
    made = from_code(std::make_shared<UserGradient>(cardinalities, log_prob, derivative), cardinalities, log_prob);
  } else {
    Alike alike{{}, numbers.coupling};
    for (const Index levels : cardinalities) {
      std::vector<double>& field = alike.field.emplace_back(levels);
      for (double& value : field) value = dice.normal();
    }
    made = from_code(std::make_shared<OneHotGradient>(cardinalities, alike), cardinalities,
                     [alike](std::span<const Value> x) { return alike.log_prob(x); });
  }
  made.recipe = describe(cardinalities, strength);
  return made;
}

/// User code with states of probability zero between others: parity checks, pairs that must agree, as few or as many
/// ones as allowed, permutations, and chains with levels that are never left.
SmallModel user_support(Dice& dice, const Folder& /*folder*/) {
  const Index form = dice.below(5);
  const bool has_levels = form >= 3;
  const Index n = has_levels ? dice.between(3, form == 3 ? 4 : 6) : 2 * dice.between(3, 6);
  const Index levels = form == 3 ? n : form == 4 ? 3 : 2;
  const Quadratic numbers = draw_quadratic(dice, n, dice.pick({0.01, 0.3}));
  std::vector<std::array<Index, 3>> sums;
  for (Index k = 0; k < n / 2; ++k) sums.push_back({dice.below(n), dice.below(n), dice.below(n)});
  const LogProb log_prob = [=](std::span<const Value> x) {
    bool possible = true;
    const auto ones = static_cast<Index>(std::count(x.begin(), x.end(), 1));
    switch (form) {
      case 0:
        for (const auto& [i, j, k] : sums) possible = possible && (x[i] + x[j] + x[k]) % 2 == 0;
        break;
      case 1:
        for (Index i = 0; i < n; i += 2) possible = possible && x[i] == x[i + 1];
        break;
      case 2: possible = ones <= n / 4 || ones + n / 4 >= n; break;
      case 3:
        for (Value level = 0; level < levels; ++level)
          possible = possible && std::count(x.begin(), x.end(), level) == 1;
        break;
      default:
        for (Index i = 1; i < n; ++i) possible = possible && (x[i - 1] == 0 || x[i] == x[i - 1]);
    }
    return possible ? numbers.log_prob(x) : kMinusInfinity;
  };
  const std::vector<Index> cardinalities(n, levels);
  SmallModel made = from_code(std::make_shared<UserCode>(cardinalities, log_prob), cardinalities, log_prob);
  const std::array<const char*, 5> names = {"parity", "pairs", "few or many", "permutation", "absorbing"};
  made.recipe = fmt::format("{}, {} variables of {} levels", names[form], n, levels);
  return made;
}

SmallModel own_target(Dice& dice, const Folder& /*folder*/) {
  SmallModel made;
  made.cardinalities = draw_cardinalities(dice);
  std::vector<std::size_t> strides;
  std::size_t size = 1;
  for (const Index levels : made.cardinalities) {
    strides.push_back(size);
    size *= levels;
  }
  const double strength = dice.pick({0.01, 0.5, 1.5, 3.0});
  std::vector<double> log_p(size);
  for (double& value : log_p) value = strength * dice.uniform(-1.0, 1.0);
  made.model = testing::table_model(testing::TableTarget(made.cardinalities, log_p));
  made.log_prob = [log_p, strides](std::span<const Value> x) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < x.size(); ++i) place += x[i] * strides[i];
    return log_p[place];
  };
  made.recipe = describe(made.cardinalities, strength);
  return made;
}

Model planted_user_triples(const std::vector<double>& planted, double strength, bool has_gradient) {
  const std::vector<Index> cardinalities(planted.size(), 2);
  const auto overlap = [planted](std::span<const Value> x) {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] == 1 ? planted[i] : -planted[i];
    return sum;
  };
  const double scale = strength / static_cast<double>(planted.size() * planted.size());
  const LogProb log_prob = [=](std::span<const Value> x) { return scale * std::pow(overlap(x), 3.0); };
  if (!has_gradient) {
    return callback_model("triples", {cardinalities, {}}, std::make_shared<UserCode>(cardinalities, log_prob), {});
  }
  const auto derivative = [=](std::span<const Value> x, std::size_t i) {
    return 6.0 * scale * std::pow(overlap(x), 2.0) * planted[i];
  };
  return callback_model("triples", {cardinalities, {}},
                        std::make_shared<UserGradient>(cardinalities, log_prob, derivative), {});
}

Model hidden_in_user_code(const SmallModel& small) {
  return callback_model("hidden", {small.cardinalities, {}},
                        std::make_shared<UserRatios>(small.cardinalities, small.log_prob), {});
}

}  // namespace poise::laws
