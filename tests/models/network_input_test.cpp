/// Networks, evidence and marginals from UAI files: what is accepted means what it says, what is refused says why.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>
#include "support/input.hpp"

namespace poise::network_input_test {

using testing::refusal;
using testing::TemporaryFile;
using testing::uai_text;

std::string uai_refusal(const std::string& content) {
  return refusal([&] { (void)parse_uai(content, "n"); });
}

std::vector<Index> scope_of(const Network& network, std::size_t factor) {
  return {network.scope(factor).begin(), network.scope(factor).end()};
}

std::vector<double> table_of(const Network& network, std::size_t factor) {
  return {network.table(factor).begin(), network.table(factor).end()};
}

// ---- UAI networks

/// Three variables with 2, 1 and 3 levels; a table over a pair, a single one, a constant.
constexpr const char* kMarkov = "MARKOV\n3\n2 1 3\n3\n2 0 2\n1\t1\n0\n\n6\n 1 2 3\n 4 5 6\n\n1\n 0.25\n\n1\n 7\n";

void expect_markov(const Network& network) {
  EXPECT_EQ(network.cardinalities, (std::vector<Index>{2, 1, 3}));
  ASSERT_EQ(network.num_factors(), 3U);
  EXPECT_EQ(scope_of(network, 0), (std::vector<Index>{0, 2}));
  EXPECT_EQ(scope_of(network, 1), std::vector<Index>{1});
  EXPECT_TRUE(scope_of(network, 2).empty());
  EXPECT_EQ(table_of(network, 0), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(table_of(network, 1), std::vector<double>{0.25});
  EXPECT_EQ(table_of(network, 2), std::vector<double>{7});
}

TEST(UaiTest, ReadsANetwork) {
  const Network network = parse_uai(kMarkov, "n");
  expect_markov(network);
  EXPECT_EQ(network.name, "n");
  EXPECT_TRUE(network.names.empty());
  EXPECT_TRUE(network.observed.empty());
}

TEST(UaiTest, LayoutMeansNothing) {
  expect_markov(parse_uai("MARKOV 3 2 1 3 3 2 0 2 1 1 0 6 1 2 3 4 5 6 1 0.25 1 7", "n"));
  expect_markov(
      parse_uai("\xEF\xBB\xBF"
                "markov\r\n3\r\n2\r\n1 3 3 2\t0 2 1 1 0\v\f6 1 2 +3 4. 5e0 .6e1 1 25E-2 1 7.0",
                "n"));
  expect_markov(
      parse_uai("c a comment\nc\nMARKOV # and another\n3 2 1 3#4\n3 2 0 2 1 1 0\n c one more c 9\n6 1 2 3 "
                "4 5 6\n1 0.25 1 7 # the end",
                "n"));
}

TEST(UaiTest, FilesAreReadInPiecesToTheSameNetwork) {
  Network network;  // more than a few chunks of text
  network.cardinalities = {40, 50, 60};
  Rng rng(3, 1);
  std::vector<double> table(std::size_t{40} * 50 * 60);
  for (double& value : table) value = rng.uniform();
  network.add_factor(std::vector<Index>{2, 0, 1}, table);
  const std::string text = "# " + std::string(3'000'000, 'x') + "\n" + uai_text(network) + std::string(2'000'000, ' ');
  const TemporaryFile file(text, ".uai");
  const Network read = read_network(file.path());
  EXPECT_EQ(read.values, table);
  EXPECT_EQ(read.values, parse_uai(text, "n").values);
  EXPECT_EQ(read.scopes, network.scopes);
  EXPECT_EQ(read.name, file.path());
}

TEST(UaiTest, AWordMayLieAcrossTwoPieces) {
  const std::string text = "MARKOV 1 12 # twelve levels\n1 1 0 12 0.125 1e-7 3 4 5 6 7 8 9 10 11 12.5 # end\n";
  const Network network = parse_uai(text, "n");
  for (std::size_t before = 0; before <= text.size(); ++before) {
    const TemporaryFile file(std::string((1 << 20) - before, '\n') + text);
    EXPECT_EQ(read_uai(file.path()).values, network.values) << before;
  }
}

TEST(UaiTest, WhatIsWrittenIsReadBack) {
  Rng rng(7, 1);
  for (int trial = 0; trial < 200; ++trial) {
    Network network;
    const auto below = [&](Index n) { return static_cast<Index>(rng.uniform() * n); };
    const Index n = 1 + below(6);
    for (Index i = 0; i < n; ++i) network.cardinalities.push_back(1 + below(4));
    for (Index f = below(8); f > 0; --f) {
      std::vector<Index> scope;
      std::size_t size = 1;
      for (Index i = 0; i < n; ++i) {
        if (rng.uniform() < 0.4) scope.insert(scope.begin() + below(static_cast<Index>(scope.size()) + 1), i);
      }
      for (const Index i : scope) size *= network.cardinalities[i];
      std::vector<double> table(size);
      for (double& value : table) value = rng.uniform() < 0.2 ? 0.0 : std::exp(100 * rng.normal());
      table[below(static_cast<Index>(size))] = 0.1;
      network.add_factor(scope, table);
    }
    const Network read = parse_uai(uai_text(network), "n");
    EXPECT_EQ(read.cardinalities, network.cardinalities);
    EXPECT_EQ(read.scopes, network.scopes);
    EXPECT_EQ(read.scope_start, network.scope_start);
    EXPECT_EQ(read.values, network.values);
    EXPECT_EQ(read.table_start, network.table_start);
  }
}

TEST(UaiTest, NoFactorsAreAUniformNetwork) { EXPECT_EQ(parse_uai("MARKOV 2 3 4 0", "n").num_factors(), 0U); }

TEST(UaiTest, RefusesAPreambleThatIsNone) {
  EXPECT_EQ(uai_refusal(""), "n, line 1: the file ends, expected MARKOV or BAYES");
  EXPECT_EQ(uai_refusal("\nMRKOV 1"), "n, line 2: found 'MRKOV', expected MARKOV or BAYES");
  EXPECT_EQ(uai_refusal("MARKOV\n0"), "n, line 2: found '0', expected the number of variables, from 1 to 268435456");
  EXPECT_EQ(uai_refusal("MARKOV\nx"), "n, line 2: found 'x', expected the number of variables, from 1 to 268435456");
  EXPECT_EQ(uai_refusal("MARKOV\n2\n2 0\n"),
            "n, line 3: found '0', expected the number of levels of x[1], from 1 to 268435454");
  EXPECT_EQ(uai_refusal("MARKOV\n2\n2 -2"),
            "n, line 3: found '-2', expected the number of levels of x[1], from 1 to 268435454");
  EXPECT_EQ(uai_refusal("MARKOV\n2\n2 2\n\n"), "n, line 3: the file ends, expected the number of factors");
  EXPECT_EQ(uai_refusal("MARKOV\n1\n2\n1.5"),
            "n, line 4: found '1.5', expected the number of factors, from 0 to 4294967295");
}

TEST(UaiTest, RefusesScopesThatAreNone) {
  const std::string start = "MARKOV\n2\n2 2\n2\n1 0\n";
  const std::string end = "\n2 1 1 1 1 1 1 1 1 1 1";
  EXPECT_EQ(uai_refusal(start + "3 0 1 0" + end),
            "n, line 6: found '3', expected the number of variables in the scope of factor 1, from 0 to 2");
  EXPECT_EQ(uai_refusal(start + "1 2" + end),
            "n, line 6: found '2', expected the number of a variable in the scope of factor 1, from 0 to 1");
  EXPECT_EQ(uai_refusal(start + "2 1\n1" + end),
            "n, line 7: found variable 1 twice in the scope of factor 1, expected it once");
  EXPECT_EQ(uai_refusal(start + "2 1              \n"),
            "n, line 6: the file ends, expected the number of a variable in the scope of factor 1");
}

TEST(UaiTest, RefusesTablesThatAreNone) {
  const std::string start = "MARKOV\n2\n2 2\n1\n2 0 1\n";
  const std::string noun = ", expected number 2 of 4 of factor 0 (x[0], x[1]), a finite number of at least 0";
  EXPECT_EQ(uai_refusal(start + "5\n1 1 1 1 1"),
            "n, line 6: found '5', expected 4, the size of the table of factor 0 (x[0], x[1])");
  for (const std::string word : {"-1", "nan", "inf", "-inf", "x", "1,5", "0x1", "--1", "1e", "1.5.2"}) {
    EXPECT_EQ(uai_refusal(start + "4\n1\n" + word + " 1 1"), "n, line 8: found '" + word + "'" + noun);
  }
  for (const std::string word : {"1e999", "1e-999"}) {
    EXPECT_EQ(uai_refusal(start + "4\n1 " + word + " 1 1"),
              "n, line 7: found '" + word + "'" + noun + ", not beyond what double precision can hold");
  }
  EXPECT_EQ(
      uai_refusal(start + "4\n0 0 -0\n0.00e-999"),
      "n, line 8: found only zeros in the table of factor 0 (x[0], x[1]), expected one that does not sum to zero");
  EXPECT_EQ(uai_refusal(start + "4\n1 1 1          \n"),
            "n, line 7: the file ends, expected number 4 of 4 of factor 0 (x[0], x[1])");
  EXPECT_EQ(uai_refusal(start + "4\n1 1 1 1\n\n1"), "n, line 9: found '1', expected nothing after the last table");
  EXPECT_EQ(uai_refusal(start + "4\n1 " + std::string(70000, '7')),
            "n, line 7: found '" + std::string(60, '7') + "...', expected words of at most 65536 characters");
}

TEST(UaiTest, BelievesNoSizeThatTheFileCannotHold) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(uai_refusal("MARKOV 1 1000000000 1 1 0 1000000000 0.5"),
            "n, line 1: found '1000000000', expected the number of levels of x[0], from 1 to 268435456");
  EXPECT_EQ(uai_refusal("MARKOV 1 100000000 1 1 0 100000000 0.5"),
            "n, line 1: found only 14 more bytes, expected 100000000 numbers in tables");
  EXPECT_EQ(uai_refusal("MARKOV 2 3 200000000 1 1 0 3 1 1 1"),
            "n, line 1: found 200000000 levels of variables that are in no scope, expected at most 1000000");
  EXPECT_EQ(uai_refusal("MARKOV 100000000 2 2 2"),
            "n, line 1: found only 6 more bytes, expected 100000000 numbers of levels");
  EXPECT_EQ(uai_refusal("MARKOV 1 2 4000000000 1 0"),
            "n, line 1: found only 4 more bytes, expected 12000000000 numbers for 4000000000 factors");
  std::string wide = "MARKOV 64";
  std::string scope = " 64";
  for (int i = 0; i < 64; ++i) wide += " 2";
  for (int i = 0; i < 64; ++i) scope += " " + std::to_string(i);
  EXPECT_EQ(uai_refusal(wide + " 2" + scope + scope + " 1 1 1"),
            "n, line 1: found only 6 more bytes, expected 18446744073709551615 numbers in tables");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

// ---- UAI networks of type BAYES

TEST(UaiTest, BayesHasTheChildLast) {
  const Network network = parse_uai("BAYES 2 2 3 2 1 0 2 0 1 2 0.4 0.6 6 0.33 0.33 0.33 0 0 0", "n");
  EXPECT_EQ(scope_of(network, 1), (std::vector<Index>{0, 1}));  // rounded to two decimals; impossible parents
  EXPECT_EQ(table_of(network, 1), (std::vector<double>{0.33, 0.33, 0.33, 0, 0, 0}));
}

TEST(UaiTest, RefusesWhatIsNoBayesianNetwork) {
  const std::string rule = "; type MARKOV has no such rule";
  EXPECT_EQ(uai_refusal("BAYES 2 2 2 2 1 0\n1 0 2 0.5 0.5 2 0.5 0.5"),
            "n, line 2: found x[0] as the last variable of the scopes of factors 0 and 1, expected each variable to be "
            "the child of one factor in a network of type BAYES" +
                rule);
  EXPECT_EQ(uai_refusal("BAYES 2 2 2 1 1 0 2 0.5 0.5"),
            "n, line 1: found no scope that ends with x[1], expected each variable to be the child of one factor in a "
            "network of type BAYES" +
                rule);
  EXPECT_EQ(uai_refusal("BAYES 1 2 1 0\n1 0.5"),
            "n, line 1: found no variable in the scope of factor 0, expected a child");
  EXPECT_EQ(uai_refusal("BAYES 2 2 2 2 1 0 2 0 1 2 0.5 0.5\n4 0.5 0.5\n0.5 0.6 "),
            "n, line 3: found 1.1 as the sum of row 2 of factor 1 (x[0], x[1]), expected probabilities that add up to "
            "1 in a network of type BAYES" +
                rule);
  EXPECT_EQ(uai_refusal("BAYES 3 2 2 2 3 2 1 0 2 0 1 2 1 2 4 1 0 1 0 4 1 0 1 0 4 1 0 1 0"),
            "n, line 1: found x[0] among its own ancestors, expected no cycle in a network of type BAYES");
}

TEST(UaiTest, RefusesFilesThatAreNone) {
  EXPECT_EQ(refusal([] { (void)read_network("no/such/file.uai"); }),
            "no/such/file.uai: cannot be opened, expected a file that can be read");
  EXPECT_EQ(refusal([] { (void)read_network("model.txt"); }),
            "model.txt: found a name that ends in neither, expected .uai or .bif");
  EXPECT_EQ(refusal([] { (void)read_uai(::testing::TempDir()); }),
            ::testing::TempDir() + ": found a directory, expected a file");
  const TemporaryFile empty("", ".UAI");
  EXPECT_EQ(refusal([&] { (void)read_network(empty.path()); }),
            empty.path() + ", line 1: the file ends, expected MARKOV or BAYES");
}

// ---- evidence

Network four_variables() { return parse_uai("MARKOV 4 2 3 2 4 0", "n"); }

Network with_names() {
  Network network = four_variables();
  network.names = {"rain", "sky is", "c", "x=y"};
  network.level_names = {{"no", "yes"}, {"blue", "grey", "no#7"}, {"1", "0"}, {"<1", "<=2", ">2", "?"}};
  return network;
}

using Pairs = std::vector<std::pair<Index, Index>>;

Pairs evidence(const std::string& content, const Network& network = four_variables()) {
  Pairs pairs;
  for (const auto [variable, level] : parse_evidence(content, "e", network)) pairs.emplace_back(variable, level);
  return pairs;
}

std::string evidence_refusal(const std::string& content, const Network& network = four_variables()) {
  return refusal([&] { (void)parse_evidence(content, "e", network); });
}

TEST(EvidenceTest, PresentFormOnAnyNumberOfLines) {
  EXPECT_EQ(evidence("2 1 2 3 0"), (Pairs{{1, 2}, {3, 0}}));
  EXPECT_EQ(evidence("\xEF\xBB\xBF"
                     "2\r\n1 2\r\n3 0\r\n"),
            (Pairs{{1, 2}, {3, 0}}));
  EXPECT_EQ(evidence("1\n3 0"), (Pairs{{3, 0}}));  // not one sample of three
  EXPECT_EQ(evidence("c a comment = 1\n1 3 # two\n0"), (Pairs{{3, 0}}));
  EXPECT_EQ(evidence("2 1 2 1 2"), (Pairs{{1, 2}}));  // the same again says nothing new
  for (const char* none : {"0", "0\n", "", "\n", "# nothing"}) EXPECT_EQ(evidence(none), Pairs{}) << none;
}

TEST(EvidenceTest, OlderFormWithOneSample) {
  EXPECT_EQ(evidence("1\n2 1 2 3 0\n"), (Pairs{{1, 2}, {3, 0}}));
  EXPECT_EQ(evidence("1 1 3 0"), (Pairs{{3, 0}}));
  EXPECT_EQ(evidence("1\n0"), Pairs{});
  EXPECT_EQ(evidence_refusal("\n2\n1 3 0\n2 3 0 1 1\n"), "e, line 2: found 2 samples of evidence, expected 1");
}

TEST(EvidenceTest, RefusesNumbersThatMeanNothing) {
  EXPECT_EQ(evidence_refusal("x"),
            "e, line 1: found 'x', expected the number of observed variables, or 'variable = level'");
  EXPECT_EQ(evidence_refusal("2 1\n9 3 0"), "e, line 2: found '9', expected a level of x[1], from 0 to 2");
  EXPECT_EQ(evidence_refusal("1 4 0"),
            "e, line 1: found '4', expected the number of a variable, observation 1 of 1, from 0 to 3");
  EXPECT_EQ(evidence_refusal("1 0 -1"), "e, line 1: found '-1', expected a level of x[0], from 0 to 1");
  EXPECT_EQ(evidence_refusal("2 0 1 3\n"), "e, line 1: the file ends, expected a level of x[3]");
  EXPECT_EQ(evidence_refusal("4000000000 0 1\n"),
            "e, line 1: the file ends, expected the number of a variable, observation 2 of 4000000000");
  EXPECT_EQ(evidence_refusal("1 0 1 3 2"), "e, line 1: found '3', expected nothing after 1 observed variables");
  EXPECT_EQ(evidence_refusal("2 0 1\n0 0"), "e, line 2: found x[0] at level 0, expected level 1 as in line 1");
}

TEST(EvidenceTest, LinesWithNames) {
  const Network network = with_names();
  EXPECT_EQ(evidence("rain = yes\n\n  sky is=grey # so far\r\nc = 0\n", network), (Pairs{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(evidence("# all\nx=y = <=2\nsky is = no#7", network), (Pairs{{3, 1}, {1, 2}}));
  EXPECT_EQ(evidence("c = 1", network), (Pairs{{2, 0}}));  // the name of the level, not its number
  EXPECT_EQ(evidence("0 = 1\n3=2", network), (Pairs{{0, 1}, {3, 2}}));
  EXPECT_EQ(evidence("x[1] = 2\n0 = 1"), (Pairs{{1, 2}, {0, 1}}));
  EXPECT_EQ(evidence("1 3 2", network), (Pairs{{3, 2}}));
}

TEST(EvidenceTest, RefusesNamesThatMeanNothing) {
  const Network network = with_names();
  EXPECT_EQ(
      evidence_refusal("rain = yes\nrian = no", network),
      "e, line 2: found 'rian', expected the name of a variable or its number, from 0 to 3 (did you mean 'rain'?)");
  EXPECT_EQ(evidence_refusal("4 = 0", network),
            "e, line 1: found '4', expected the name of a variable or its number, from 0 to 3");
  EXPECT_EQ(evidence_refusal("rain = yse", network),
            "e, line 1: found 'yse', expected a level of rain or its number, from 0 to 1 (did you mean 'yes'?)");
  EXPECT_EQ(evidence_refusal("x[0] = 2"), "e, line 1: found '2', expected a level of x[0], from 0 to 1");
  EXPECT_EQ(evidence_refusal("rain =", network),
            "e, line 1: found '', expected a level of rain or its number, from 0 to 1");
  EXPECT_EQ(evidence_refusal("rain = no\nsky is grey", network),
            "e, line 2: found 'sky is grey', expected 'variable = level'");
  EXPECT_EQ(evidence_refusal("rain yes", network),
            "e, line 1: found 'rain', expected the number of observed variables, or 'variable = level'");
  EXPECT_EQ(evidence_refusal("rain = no\nc = 0\n0 = yes", network),
            "e, line 3: found rain at level yes, expected level no as in line 1");
}

TEST(EvidenceTest, ReadsFiles) {
  const TemporaryFile file("1 1 2");
  EXPECT_EQ(read_evidence(file.path(), four_variables()).size(), 1U);
}

// ---- marginals

TEST(MarTest, WrittenAndReadBack) {
  Marginals marginals(std::vector<Index>{2, 1, 3});
  marginals.values = {0.25, 0.75, 1, 1.0 / 3, 1.0 / 3, 1.0 / 3};
  EXPECT_EQ(mar_text(marginals), "MAR\n3 2 0.25 0.75 1 1 3 0.333333333333 0.333333333333 0.333333333333\n");
  const TemporaryFile file(mar_text(marginals));
  const Marginals read = read_mar(file.path());
  EXPECT_EQ(read.start, marginals.start);
  EXPECT_NEAR(mean_absolute_error(read, marginals), 0, 1e-12);
}

TEST(MarTest, OlderFormsAndSeveralSolutions) {
  const std::vector<double> two = {0.5, 0.5, 1};
  EXPECT_EQ(parse_mar("mar 2 2 .5 .5 1 1", "m").values, two);
  EXPECT_EQ(parse_mar("MAR\n1\n2 2 0.5 0.5 1 1", "m").values, two);  // one sample of evidence
  EXPECT_EQ(parse_mar("MAR 1 2 0 1", "m").values, (std::vector<double>{0, 1}));
  EXPECT_EQ(parse_mar("MAR 1 1 1", "m").values, std::vector<double>{1});
  EXPECT_EQ(parse_mar("MAR 1 1 2 0 1", "m").values, (std::vector<double>{0, 1}));
  EXPECT_EQ(parse_mar("MAR\n2 2 0 1\n-BEGIN-\n1\n2 2 0.5 0.5 1 1\n", "m").values, two);
}

TEST(MarTest, RefusesWhatAreNoMarginals) {
  const auto reject = [](const std::string& content) { return refusal([&] { (void)parse_mar(content, "m"); }); };
  EXPECT_EQ(reject(""), "m, line 1: the file ends, expected MAR");
  EXPECT_EQ(reject("PR\n-3.5"), "m, line 1: found 'PR', expected MAR");
  EXPECT_EQ(reject("MAR\n"), "m, line 1: the file ends, expected the number of variables");
  EXPECT_EQ(reject("MAR\n2 2 0.5 0.5"), "m, line 2: the file ends, expected the number of levels of x[1]");
  EXPECT_EQ(reject("MAR\n2 2 0.5 -0.5 1 1"),
            "m, line 2: found '-0.5', expected the probability of level 1 of x[0], a finite number of at least 0");
  EXPECT_EQ(reject("MAR\n2 2 0 1.5 1 1"),
            "m, line 2: found 1.5, expected the probability of level 1 of x[0], at most 1");
  EXPECT_EQ(reject("MAR\n2 2 0 0.5 1 1"),
            "m, line 2: found probabilities of x[0] that do not add up to 1, expected marginals");
  EXPECT_EQ(reject("MAR\n2 2 0 1 1 1\n7"), "m, line 3: found '7', expected nothing after 2 variables");
  EXPECT_EQ(reject("MAR\n900 2 0 1"), "m, line 2: found '900', expected the number of variables, from 1 to 13");
}

}  // namespace poise::network_input_test
