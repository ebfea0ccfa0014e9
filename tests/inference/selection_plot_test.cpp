/// The picture of variable selection: what it says in words, and that any answer can be drawn.
#include <gtest/gtest.h>

#include <string>

#include <poise/selection.hpp>
#include "inference/select/selection_parts.hpp"
#include "support/selection_cases.hpp"

namespace poise::selection_plot_test {

using namespace poise::testing;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

SelectionAnswer drawn(std::size_t variables) {
  SelectionAnswer answer;
  answer.model = "a <model>";
  for (std::size_t j = 0; j < variables; ++j) {
    SelectedVariable& one = answer.variables.emplace_back();
    one.name = "v" + std::to_string(j);
    one.pip = j == 1 ? 0.7 : j == 2 ? 0.3 : 0.001;
    one.pip_se = j == 1 ? 0.05 : 0.0;
  }
  return answer;
}

TEST(SelectionPlot, SaysWhatItShows) {
  SelectionAnswer answer = drawn(6);
  answer.sets.push_back({{1, 2}, {0.7, 0.3}, 0.99, 0.8});
  answer.top = {1, 2};
  answer.correlations = {1.0, -0.8, -0.8, 1.0};
  const std::string picture = selection_plot(answer);
  EXPECT_NE(picture.find("<title>a &lt;model&gt;</title>\n<desc>"), std::string::npos);
  EXPECT_NE(picture.find("Credible set 1: 2 variables, P(signal) 0.99, led by v1."), std::string::npos) << picture;
  EXPECT_NE(picture.find(">v5<"), std::string::npos);  // few variables are named along the axis
  EXPECT_EQ(count(picture, "<rect x="), 1U + 4U);      // the legend, and a cell for each pair
  EXPECT_EQ(count(picture, "nan"), 0U);
}

TEST(SelectionPlot, StandsWherePositionsAre) {
  SelectionAnswer answer = drawn(30);
  EXPECT_NE(selection_plot(answer).find("in the order of the data"), std::string::npos);
  answer.summary.extra_heads = {"chromosome", "POS"};
  for (int j = 0; j < 30; ++j) answer.summary.extra.push_back({"1", std::to_string(2000000 + 1000 * j)});
  EXPECT_NE(selection_plot(answer).find(">position (Mb)<"), std::string::npos);
  answer.summary.extra[3][1] = "unknown";
  EXPECT_NE(selection_plot(answer).find("in the order of the data"), std::string::npos);
  EXPECT_NE(selection_plot(answer, std::vector<double>(30, 5.0)).find(">position<"), std::string::npos);
  EXPECT_THROW((void)selection_plot(answer, {1.0}), InputError);
}

TEST(SelectionPlot, ManyVariablesTakeFewPoints) {
  const std::string picture = selection_plot(drawn(100000));
  EXPECT_LT(picture.size(), 600000U);
  EXPECT_NE(picture.find("<desc>"), std::string::npos);
}

TEST(SelectionPlot, CorrelationsAreThoseOfTheData) {
  const auto problem = regression_problem(drawn_table(50, 8, 3), Scaling::standard, {});
  SelectOptions options;
  options.draws = 100;
  options.threads = 1;
  const SelectionAnswer answer = select(problem, options);
  ASSERT_FALSE(answer.top.empty());
  ASSERT_EQ(answer.correlations.size(), answer.top.size() * answer.top.size());
  for (std::size_t i = 0; i < answer.top.size(); ++i) {
    for (std::size_t k = 0; k < answer.top.size(); ++k) {
      const double r = i == k ? 1.0 : problem->correlation(answer.top[i], answer.top[k]);
      EXPECT_NEAR(answer.correlations[i * answer.top.size() + k], r, 1e-12);
    }
  }
}

}  // namespace poise::selection_plot_test
