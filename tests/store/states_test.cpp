/// States in memory: what is put in comes out, as bits and as labels.
#include <poise/states.hpp>

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/trace.hpp>

namespace poise::states_test {

/// Seven rows of labels at random.
std::vector<std::int8_t> labels_of(const VariableLayout& layout) {
  Rng rng(3, 0);
  std::vector<std::int8_t> labels;
  for (std::size_t row = 0; row < 7; ++row) {
    for (Index i = 0; i < layout.variables; ++i) {
      const auto level = static_cast<Value>(rng.uniform() * static_cast<double>(layout.cardinality(i)));
      labels.push_back(layout.label(level));
    }
  }
  return labels;
}

void expect_kept(const VariableLayout& layout, std::size_t row_bytes) {
  const std::vector<std::int8_t> labels = labels_of(layout);
  States states(layout);
  EXPECT_TRUE(states.empty());
  EXPECT_EQ(states.rows(), 0U);
  const auto three = static_cast<std::ptrdiff_t>(3 * layout.variables);
  states.append(std::vector<std::int8_t>(labels.begin(), labels.begin() + three));
  states.append(std::vector<std::int8_t>(labels.begin() + three, labels.end()));
  EXPECT_EQ(states.row_bytes(), row_bytes);
  ASSERT_EQ(states.rows(), 7U);
  ASSERT_EQ(states.size(), labels.size());
  EXPECT_EQ(states.bytes().size(), 7 * row_bytes);
  EXPECT_EQ(states.unpack(), labels);
  EXPECT_TRUE(std::equal(states.begin(), states.end(), labels.begin(), labels.end()));
  for (std::size_t k = 0; k < labels.size(); ++k) ASSERT_EQ(states[k], labels[k]);
  EXPECT_THROW((void)states.at(labels.size()), std::out_of_range);
  std::vector<std::int8_t> row(layout.variables);
  for (std::size_t k = 0; k < 7; ++k) {
    states.unpack(k, row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), labels.begin() + static_cast<std::ptrdiff_t>(k * row.size())));
  }
  States some(layout);
  some.append(states, 2, 3);
  EXPECT_EQ(some.label(0, layout.variables - 1), labels[3 * layout.variables - 1]);
  EXPECT_NE(some, states);
  Saver out;
  out(states);
  const std::string bytes = out.take();
  States again;
  Loader in(bytes);
  in(again);
  EXPECT_EQ(again, states);
  states.clear();
  EXPECT_EQ(states, States());
}

TEST(States, TwoValuesAreBits) {
  for (const Index variables : {1U, 7U, 8U, 9U, 63U, 64U, 65U}) {
    for (const std::vector<std::int8_t>& labels : {std::vector<std::int8_t>{}, {-1, 1}, {1, 0}}) {
      VariableLayout layout;
      layout.variables = variables;
      layout.labels = labels;
      expect_kept(layout, (variables + 7) / 8);
    }
  }
}

TEST(States, MoreValuesAreLabels) {
  VariableLayout layout;
  layout.variables = 9;
  layout.cardinalities = {2, 2, 3, 2, 2, 2, 5, 2, 2};
  expect_kept(layout, 9);
  layout.cardinalities.assign(9, 1);
  expect_kept(layout, 9);
}

TEST(States, OtherLabelsAreRefused) {
  VariableLayout layout;
  layout.variables = 3;
  States states(layout);
  EXPECT_THROW(states.append(std::vector<std::int8_t>{0, 1, 2}), std::invalid_argument);
  EXPECT_THROW(states.append(std::vector<std::int8_t>{0, 1}), std::invalid_argument);
  EXPECT_TRUE(states.empty());
}

}  // namespace poise::states_test
