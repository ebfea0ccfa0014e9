/// What selection reads: tables, z scores, correlations; and the sentences for what is wrong with them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <poise/selection.hpp>
#include "base/image/inflate.hpp"
#include "models/selection/read_selection.hpp"
#include "models/selection/selection_problem.hpp"
#include "support/selection_cases.hpp"

namespace poise::selection_input_test {

using namespace poise::testing;

std::string bytes_of(std::initializer_list<int> numbers) {
  std::string out;
  for (const int number : numbers) out += static_cast<char>(number);
  return out;
}

template <class Work>
std::string refusal_of(Work&& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(SelectionInput, TablesInEveryUsualForm) {
  for (const char* text : {"y,a,b\n1,2,3\n4,5,6\n", "y\ta\tb\r\n1\t2\t3\r\n4\t5\t6\r\n", "y;a;b\n1;2;3\n\n4;5;6",
                           "  y a  b\n 1 2 3\n4   5 6 \n", "\xef\xbb\xbf\"y\",\"a\",b\n1,2,3\n4,\"5\",6\n"}) {
    SCOPED_TRACE(text);
    const RegressionTable table = read_regression(std::string_view(text), "t", "y");
    EXPECT_EQ(table.names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(table.y, (std::vector<double>{1, 4}));
    EXPECT_EQ(table.x, (std::vector<double>{2, 5, 3, 6}));
  }
  // Lines that end by a carriage return alone.
  EXPECT_EQ(read_regression(std::string_view("y,a\r1,2\r3,4\r"), "t", "y").x, (std::vector<double>{2, 4}));
  // Row names, as R and pandas write them.
  EXPECT_EQ(read_regression(std::string_view("y a\nr1 1 2\nr2 3 4\n"), "t", "y").x, (std::vector<double>{2, 4}));
  EXPECT_EQ(read_regression(std::string_view(",y,a\n0,1,2\n1,3,4\n"), "t", "y").names, std::vector<std::string>{"a"});
}

TEST(SelectionInput, WhatIsWrongWithATable) {
  const auto read = [](const char* text) {
    return refusal_of([&] { (void)read_regression(std::string_view(text), "t.csv", "y"); });
  };
  EXPECT_EQ(read("y,a\n1,2\n3,NA\n"),
            "t.csv, line 3: found no value in column 'a', expected a number; leave the row out or fill the value in");
  EXPECT_EQ(read("y,a\n1,x\n"), "t.csv, line 2: found 'x' in column 'a', expected a number");
  EXPECT_EQ(read("y,a\n1,2,3\n"), "t.csv, line 2: found 3 fields, expected 2 as in the head");
  EXPECT_EQ(read("y,a,\n1,2,\n"), "t.csv, line 1: found no name for column 3, expected one");
  EXPECT_EQ(read("y;a\n1;2,5\n"),
            "t.csv, line 2: found '2,5' in column 'a', expected a number with a point before its decimals");
  EXPECT_NE(read("Y,a\n1,2\n").find("is no column of t.csv"), std::string::npos);
  EXPECT_NE(read("").find("found nothing in it"), std::string::npos);
  EXPECT_NE(read("y,\"a\n1,2\n").find("without an end"), std::string::npos);
}

TEST(SelectionInput, SummariesKeepTheirColumns) {
  const SummaryTable table = read_summary(
      "rsid chromosome position allele1 allele2 maf beta se\nrs1 1 5 A G 0.2 0.1 0.05\nrs2 1 9 C T 0.3 -0.3 0.1\n",
      "z");
  EXPECT_EQ(table.names, (std::vector<std::string>{"rs1", "rs2"}));
  EXPECT_EQ(table.z, (std::vector<double>{0.1 / 0.05, -0.3 / 0.1}));
  EXPECT_EQ(table.extra[1][2], "C");
  EXPECT_EQ(table.extra_heads.front(), "chromosome");
  EXPECT_EQ(read_summary("z\nrs1 1\nrs2 2\n", "z").names, (std::vector<std::string>{"rs1", "rs2"}));
  EXPECT_NE(refusal_of([] { (void)read_summary("SNP Z N\na 1 -5\n", "z"); }).find("line 2: found a sample size of -5"),
            std::string::npos);
  EXPECT_EQ(read_summary("SNP Z N\na 1 100\nb 2 102\nc 3 101\n", "z").n, 101.0);
  EXPECT_NE(refusal_of([] { (void)read_summary("rsid p\nrs1 0.5\n", "z"); }).find("expected one named z"),
            std::string::npos);
}

TEST(SelectionInput, CorrelationsThatAreNone) {
  const auto make = [](std::vector<double> r, double n = 100.0) {
    return refusal_of([&] {
      SummaryTable table;
      table.names = {"a", "b"};
      table.z = {1.0, 2.0};
      table.n = n;
      SymmetricMatrix matrix;
      matrix.dense = std::move(r);
      (void)summary_problem(table, matrix, {});
    });
  };
  EXPECT_EQ(make({1, 0.5, 0.5, 1}), "(accepted)");
  EXPECT_NE(make({1, 0.5, 0.4, 1}).find("expected a symmetric matrix"), std::string::npos);
  EXPECT_NE(make({1, 1.5, 1.5, 1}).find("expected a correlation"), std::string::npos);
  EXPECT_NE(make({2, 0.5, 0.5, 1}).find("expected a correlation"), std::string::npos);
  EXPECT_NE(make({0.5, 0.5, 0.5, 1}).find("on the diagonal for a, expected 1"), std::string::npos);
  EXPECT_NE(make({1, std::nan(""), 0.5, 1}).find("found nan for a and b"), std::string::npos);
  EXPECT_NE(make({1, 0.5, 0.5, 1, 0}).find("columns, expected 2"), std::string::npos);
  EXPECT_NE(make({1, 0.5, 0.5, 1}, 1.0).find("sample size"), std::string::npos);
  EXPECT_NE(refusal_of([] { (void)read_correlations("1 0.5\n0.5\n", "R"); }).find("line 2"), std::string::npos);
}

TEST(SelectionInput, SparseCorrelationsHaveBothTriangles) {
  const auto make = [](std::vector<std::size_t> starts, std::vector<std::uint32_t> rows, std::vector<float> values) {
    return refusal_of([&] {
      SummaryTable table;
      table.names = {"a", "b", "c"};
      table.z = {1.0, 2.0, 0.5};
      table.n = 100;
      SymmetricMatrix matrix;
      matrix.column_start = std::move(starts);
      matrix.rows = std::move(rows);
      matrix.values = std::move(values);
      (void)summary_problem(table, matrix, {});
    });
  };
  EXPECT_EQ(make({0, 2, 4, 5}, {0, 1, 0, 1, 2}, {1, 0.5, 0.5, 1, 1}), "(accepted)");
  EXPECT_EQ(make({0, 2, 3, 4}, {0, 1, 1, 2}, {1, 0.0, 1, 1}), "(accepted)");
  EXPECT_NE(make({0, 1, 3, 4}, {0, 0, 1, 2}, {1, 0.5, 1, 1}).find("both of its triangles"), std::string::npos);
  EXPECT_NE(make({0, 2, 3, 4}, {0, 1, 1, 2}, {1, 0.5, 1, 1}).find("both of its triangles"), std::string::npos);
  EXPECT_NE(make({0, 2, 4, 5}, {0, 1, 0, 1, 2}, {1, 0.5, 0.4, 1, 1}).find("the other way round"), std::string::npos);
  EXPECT_NE(make({0, 2, 4, 5}, {1, 0, 0, 1, 2}, {0.5, 1, 0.5, 1, 1}).find("increasing order"), std::string::npos);
  EXPECT_NE(make({0, 2, 4, 4}, {0, 1, 0, 1}, {1, 0.5, 0.5, 1}).find("no 1 on the diagonal for c"), std::string::npos);
}

TEST(SelectionInput, MatricesThatNoDataHaveAreShrunk) {
  SummaryTable table;
  table.names = {"a", "b", "c"};
  table.z = {1.0, 2.0, 1.0};
  table.n = 50;
  SymmetricMatrix matrix;
  matrix.dense = {1, 0.6, -0.6, 0.6, 1, 0.6, -0.6, 0.6, 1};
  const auto problem = summary_problem(table, matrix, {});
  ASSERT_EQ(problem->doubts.size(), 1U);
  EXPECT_NE(problem->doubts[0].find("not positive semidefinite"), std::string::npos);
}

TEST(SelectionInput, ColumnsThatCannotBeTold) {
  RegressionTable table = drawn_table(30, 4, 1);
  std::fill_n(table.x.begin(), 30, 7.0);
  for (std::size_t i = 0; i < 30; ++i) table.x[90 + i] = -2.0 * table.x[60 + i];
  const auto problem = regression_problem(table, Scaling::standard, {});
  ASSERT_EQ(problem->notes.size(), 2U);
  EXPECT_NE(problem->notes[0].find("v2 and v3"), std::string::npos) << problem->notes[0];
  EXPECT_NE(problem->notes[1].find("constant"), std::string::npos);
  EXPECT_TRUE(problem->law->is_fixed(0));
  SelectionPrior prior;
  prior.always = {"v0"};
  EXPECT_NE(refusal_of([&] { (void)regression_problem(table, Scaling::standard, prior); }).find("constant"),
            std::string::npos);
  prior.always = {"w2"};
  prior.inclusion = 2.0;
  const std::string both =
      refusal_of([&] { (void)regression_problem(drawn_table(30, 4, 1), Scaling::standard, prior); });
  EXPECT_NE(both.find("is no variable"), std::string::npos);
  EXPECT_NE(both.find("expected a probability"), std::string::npos);
}

TEST(SelectionInput, TheResponseIsNoColumnThatExplainsIt) {
  EXPECT_NE(refusal_of([] {
              (void)read_regression(std::string_view("y,a,y\n1,2,1\n3,5,3\n"), "t", "y");
            }).find("found 2 columns 'y'"),
            std::string::npos);
  RegressionTable table = drawn_table(30, 4, 1);
  std::copy(table.y.begin(), table.y.end(), table.x.begin() + 30);
  const auto problem = regression_problem(table, Scaling::standard, {});
  ASSERT_EQ(problem->notes.size(), 1U);
  EXPECT_NE(problem->notes[0].find("v1 is the response but for units"), std::string::npos);
  table.names[1] = table.response;
  EXPECT_NE(refusal_of([&] { (void)regression_problem(table, Scaling::standard, {}); }).find("found the response 'y'"),
            std::string::npos);
}

TEST(SelectionInput, ConstantColumnsGoWithEveryPrior) {
  RegressionTable table = drawn_table(30, 4, 1);
  std::fill_n(table.x.begin(), 30, 7.0);
  SelectionPrior prior;
  prior.beta_a = 1.0;
  prior.beta_b = 3.0;
  const auto problem = regression_problem(table, Scaling::standard, prior);
  EXPECT_TRUE(problem->law->is_fixed(0));
  EXPECT_EQ(problem->law->num_free(), 3U);
  EXPECT_EQ(problem->law->prior_inclusion(1), 0.25);
  SelectionPrior both;
  both.inclusion = 0.1;
  both.inclusions = {0.1, 0.1, 0.1, 0.1};
  EXPECT_NE(refusal_of([&] { (void)regression_problem(table, Scaling::standard, both); }).find("one for each"),
            std::string::npos);
}

TEST(SelectionInput, ScoresWithoutAHead) {
  const SummaryTable table = read_summary("1.5\n\n-2\n3e0\n", "z.txt");
  EXPECT_EQ(table.z, (std::vector<double>{1.5, -2, 3}));
  EXPECT_EQ(table.names[2], "x[2]");
  EXPECT_NE(refusal_of([] { (void)read_summary("1.5\nx\n", "z.txt"); }).find("line 2: found 'x'"), std::string::npos);
  std::string array("\x93NUMPY\x01\x00\x3c\x00", 10);
  array += "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }  \n";
  for (const double z : {4.0, -1.0}) array.append(reinterpret_cast<const char*>(&z), 8);
  EXPECT_EQ(read_summary(array, "z.npy").z, (std::vector<double>{4, -1}));
}

TEST(SelectionInput, GzipFilesOfSeveralMembers) {
  const std::string packed =
      bytes_of({0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0xe2, 0x32, 0xd4, 0x33, 0xe5, 0x02,
                0x00, 0x23, 0x48, 0x6b, 0x69, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                0x02, 0x03, 0xd3, 0x35, 0xe2, 0x02, 0x00, 0xce, 0xb1, 0x71, 0xc2, 0x03, 0x00, 0x00, 0x00});
  EXPECT_EQ(unzip(packed, "z.gz", 100), "z\n1.5\n-2\n");
  EXPECT_NE(refusal_of([&] { (void)unzip(packed, "z.gz", 7); }).find("too long"), std::string::npos);
  EXPECT_NE(refusal_of([&] { (void)unzip(packed.substr(0, packed.size() - 3), "z.gz", 100); }).find("z.gz"),
            std::string::npos);
}

TEST(SelectionInput, NamesOfVariantsAreFollowed) {
  const auto make = [](const std::string& ld, std::vector<std::string> names) {
    SummaryTable table;
    table.is_numbered = names.empty();
    table.names = names.empty() ? std::vector<std::string>{"x[0]", "x[1]", "x[2]"} : std::move(names);
    table.z = {5.0, 1.0, 2.0};
    table.n = 100;
    return summary_problem(table, read_correlations(ld, "R"), {});
  };
  const std::string ld = "\"b\" \"c\" \"a\"\n\"b\" 1 0.2 0.1\n\"c\" 0.2 1 0.3\n\"a\" 0.1 0.3 1\n";
  const auto ordered = make(ld, {"a", "b", "c"});
  EXPECT_NEAR(ordered->correlation(0, 1), 0.1, 1e-12);
  EXPECT_NEAR(ordered->correlation(0, 2), 0.3, 1e-12);
  ASSERT_EQ(ordered->notes.size(), 1U);
  EXPECT_NE(ordered->notes[0].find("another order"), std::string::npos);
  EXPECT_EQ(make(ld, {"b", "c", "a"})->notes.size(), 0U);
  EXPECT_EQ(make(ld, {})->names, (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_NE(refusal_of([&] { (void)make(ld, {"a", "b", "d"}); }).find("found no variant 'd'"), std::string::npos);
  EXPECT_NE(refusal_of([&] { (void)make(ld, {"a", "a", "c"}); }).find("more than once"), std::string::npos);
  EXPECT_NE(refusal_of([] { (void)read_correlations("a b\na 1 0\nc 0 1\n", "R"); }).find("not those of columns"),
            std::string::npos);
  const auto repeated = make("1 0.2 0.1\n0.2 1 0.3\n0.1 0.3 1\n", {"a", "b", "a"});
  EXPECT_EQ(repeated->names, (std::vector<std::string>{"a", "b", "a_2"}));
  ASSERT_EQ(repeated->notes.size(), 1U);
}

TEST(SelectionInput, HalvesOfSparseCorrelationsAreAddedUp) {
  for (const bool lower : {false, true}) {
    SummaryTable table;
    table.names = {"a", "b", "c"};
    table.z = {1.0, 2.0, 0.5};
    table.n = 100;
    SymmetricMatrix matrix;
    matrix.column_start = lower ? std::vector<std::size_t>{0, 3, 4, 5} : std::vector<std::size_t>{0, 1, 3, 5};
    matrix.rows = lower ? std::vector<std::uint32_t>{0, 1, 2, 1, 2} : std::vector<std::uint32_t>{0, 0, 1, 0, 2};
    matrix.values =
        lower ? std::vector<float>{0.5, 0.25, 0.125, 0.5, 0.5} : std::vector<float>{0.5, 0.25, 0.5, 0.125, 0.5};
    const auto problem = summary_problem(table, matrix, {});
    EXPECT_EQ(problem->correlation(0, 1), 0.25);
    EXPECT_EQ(problem->correlation(2, 0), 0.125);
    EXPECT_EQ(problem->correlation(1, 2), 0.0);
  }
}

TEST(SelectionInput, ProductsThatNoDataHaveAreShrunk) {
  CrossProductTable table;
  table.names = {"a", "b", "c"};
  table.xtx.dense = {100, 60, -60, 60, 100, 60, -60, 60, 100};
  table.xtx.source = "X'X";
  table.xty = {10.0, 20.0, 10.0};
  table.yty = 50.0;
  table.n = 60;
  const auto problem = cross_product_problem(table, {});
  ASSERT_EQ(problem->doubts.size(), 1U);
  EXPECT_NE(problem->doubts[0].find("X'X is not positive semidefinite"), std::string::npos);
  EXPECT_LT(problem->correlation(0, 1), 0.6);
}

TEST(SelectionInput, UnitsThatSquaresDoNotFitIn) {
  for (const double unit : {1e160, 1e-160}) {
    RegressionTable table = drawn_table(30, 4, 1);
    for (std::size_t i = 0; i < 30; ++i) table.x[30 + i] *= unit;
    EXPECT_NE(refusal_of([&] { (void)regression_problem(table, Scaling::standard, {}); }).find("in column 'v1'"),
              std::string::npos);
    table = drawn_table(30, 4, 1);
    for (double& value : table.y) value *= unit;
    EXPECT_NE(refusal_of([&] { (void)regression_problem(table, Scaling::standard, {}); }).find("in column 'y'"),
              std::string::npos);
  }
}

}  // namespace poise::selection_input_test
