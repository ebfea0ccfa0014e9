/// Runs of user code whose chains are all in one mode: chains from elsewhere show the others.
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
constexpr double kRare = 13.0;  // cost of a variable that leaves a mode: it does not in a run
constexpr double kUsual = 3.0;  // it does, now and then

/// What a variable costs that is not at the level of the mode, and what the mode has beside.
struct Mode {
  double cost;
  double peak;

  /// Log of its sum over all states.
  [[nodiscard]] double log_weight() const { return peak + kVariables * std::log1p(std::exp(-cost)); }
};

/// Two modes, all at level 0 and all at level 1.
class TwoModes final : public BatchFunction {
 public:
  TwoModes(Mode zeros, Mode ones) : zeros_(zeros), ones_(ones) {}
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      const auto row = rows.subspan(r * kVariables, kVariables);
      const auto ones = static_cast<double>(std::count(row.begin(), row.end(), 1));
      const double low = zeros_.peak - zeros_.cost * ones, high = ones_.peak - ones_.cost * (kVariables - ones);
      out[r] = std::max(low, high) + std::log1p(std::exp(-std::abs(low - high)));
    }
  }

 private:
  Mode zeros_, ones_;
};

/// Of chains that begin in the first mode.
Report report_of(Mode zeros, Mode ones) {
  RunOptions options;
  options.chains = 4;
  options.draws = 1000;
  options.warmup = 100;
  options.start = Start::zeros;
  options.threads = 1;
  const Model model =
      callback_model("modes", {std::vector<Index>(kVariables, 2), {}}, std::make_shared<TwoModes>(zeros, ones), {});
  return make_report(run(model, parse_sampler("gibbs"), options));
}

TEST(Elsewhere, AModeThatNoChainIsInIsAWarning) {
  const Report report = report_of({kRare, 0.0}, {kRare, 0.0});
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
  const Report report = report_of({kRare, 0.0}, {kRare, -20.0});
  EXPECT_TRUE(report.checks.elsewhere.empty());
  EXPECT_NE(report.certain.find("never changed"), std::string::npos) << report.certain;
}

TEST(Elsewhere, AModeIsSeenWhereVariablesChange) {
  const Report report = report_of({kUsual, 0.0}, {kUsual, 0.0});
  EXPECT_TRUE(report.checks.constant.empty());
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].code, "modes");
  EXPECT_EQ(report.warnings[0].next, "--sampler temper");
  ASSERT_TRUE(report.checks.other);
  EXPECT_NEAR(report.checks.other->gain, 0.0, 2.5);
  EXPECT_LT(report.checks.other->here, 0.2);
  EXPECT_GT(report.checks.other->there, 0.8);
  EXPECT_EQ(report_json(report).at("checks").at("other").size(), 7U);
}

TEST(Elsewhere, AModeCountsByItsWeightAndNotByItsPeak) {
  // Many states of low log p, beside few of high.
  const Mode wide{1.0, 0.0};
  const Mode lighter{6.0, 4.0}, heavier{6.0, 20.0};
  const Report among_lighter = report_of(lighter, wide);
  ASSERT_TRUE(among_lighter.checks.other);
  EXPECT_NEAR(among_lighter.checks.other->gain, wide.log_weight() - lighter.log_weight(), 2.5);
  const Report among_heavier = report_of(heavier, wide);
  EXPECT_FALSE(among_heavier.checks.other);
  EXPECT_TRUE(among_heavier.warnings.empty());
}

}  // namespace poise::elsewhere_test
