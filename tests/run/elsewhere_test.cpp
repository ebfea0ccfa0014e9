/// Runs of user code whose chains are all in one mode, where no variable changes: chains from elsewhere show the
/// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/extend/models/batch_function.hpp>
#include <poise/model.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>

namespace poise::elsewhere_test {

constexpr Index kVariables = 30;
constexpr double kCost = 13.0;  // of a variable that leaves a mode

/// Two modes, all at level 0 and all at level 1; the second has `rise` more log p.
class TwoModes final : public BatchFunction {
 public:
  explicit TwoModes(double rise) : rise_(rise) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      const auto row = rows.subspan(r * kVariables, kVariables);
      const auto ones = static_cast<double>(std::count(row.begin(), row.end(), 1));
      const double low = -kCost * ones, high = rise_ - kCost * (kVariables - ones);
      out[r] = std::max(low, high) + std::log1p(std::exp(-std::abs(low - high)));
    }
  }

 private:
  double rise_;
};

Report report_of(double rise) {
  RunOptions options;
  options.chains = 4;
  options.draws = 500;
  options.warmup = 100;
  options.start = Start::zeros;
  options.threads = 1;
  const Model model =
      callback_model("modes", {std::vector<Index>(kVariables, 2), {}}, std::make_shared<TwoModes>(rise), {});
  return make_report(run(model, parse_sampler("gibbs"), options));
}

TEST(Elsewhere, AModeThatNoChainIsInIsAWarning) {
  const Report report = report_of(0.0);
  ASSERT_EQ(report.warnings.size(), 1U);
  const Warning& stuck = report.warnings[0];
  EXPECT_EQ(stuck.code, "stuck");
  EXPECT_NE(stuck.text.find("in one of several modes"), std::string::npos) << stuck.text;
  EXPECT_EQ(stuck.next, "--sampler temper");
  EXPECT_EQ(report.checks.elsewhere.size(), kVariables);
  EXPECT_EQ(report.certain, "");
  EXPECT_EQ(report_json(report).at("checks").at("elsewhere").size(), 2 * kVariables);
}

TEST(Elsewhere, AModeWithoutProbabilityIsNone) {
  const Report report = report_of(-20.0);
  EXPECT_TRUE(report.checks.elsewhere.empty());
  EXPECT_NE(report.certain.find("never changed"), std::string::npos) << report.certain;
}

}  // namespace poise::elsewhere_test
