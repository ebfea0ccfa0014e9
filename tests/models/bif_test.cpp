/// Networks in the Bayesian Interchange Format: what is accepted means what it says, what is refused says why.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <poise/network.hpp>
#include "support/input.hpp"

namespace poise::bif_test {

using testing::refusal;
using testing::TemporaryFile;

std::string bif_refusal(const std::string& content) {
  return refusal([&] { (void)parse_bif(content, "b"); });
}

std::vector<Index> scope_of(const Network& network, std::size_t factor) {
  return {network.scope(factor).begin(), network.scope(factor).end()};
}

std::vector<double> table_of(const Network& network, std::size_t factor) {
  return {network.table(factor).begin(), network.table(factor).end()};
}

/// Lines 1 to 3 of the files below.
const std::string kVariables =
    "variable rain { type discrete [ 2 ] { no, yes }; }\n"
    "variable sprinkler { type discrete [ 2 ] { off, on }; }\n"
    "variable grass { type discrete [ 3 ] { dry, damp, wet }; }\n";
const std::string kRoots =
    "probability ( rain ) { table 0.8, 0.2; }\n"
    "probability ( sprinkler | rain ) { (no) 0.6, 0.4; (yes) 0.99, 0.01; }\n";

std::string grass(const std::string& rows) {
  return kVariables + kRoots + "probability ( grass | rain, sprinkler ) {\n" + rows;
}

const std::vector<double> kGrass = {0.9, 0.1, 0, 0, 0.25, 0.75, 0.2, 0.5, 0.3, 0, 0.01, 0.99};

TEST(BifTest, ReadsANetworkWithItsNames) {
  const TemporaryFile file(
      "network unknown {\n}\n" + grass("  (no, off) 0.9, 0.1, 0.0;\n  (yes, off) 0.2, 0.5, 0.3;\n"
                                       "  (no, on) 0.0, 0.25, 0.75;\n  (yes, on) 0, 0.01, .99;\n}\n"),
      ".bif");
  const Network network = read_network(file.path());
  EXPECT_EQ(network.name, file.path());
  EXPECT_EQ(network.cardinalities, (std::vector<Index>{2, 2, 3}));
  EXPECT_EQ(network.names, (std::vector<std::string>{"rain", "sprinkler", "grass"}));
  ASSERT_EQ(network.level_names.size(), 3U);
  EXPECT_EQ(network.level_names[2], (std::vector<std::string>{"dry", "damp", "wet"}));
  ASSERT_EQ(network.num_factors(), 3U);
  EXPECT_EQ(scope_of(network, 0), std::vector<Index>{0});
  EXPECT_EQ(scope_of(network, 1), (std::vector<Index>{0, 1}));
  EXPECT_EQ(scope_of(network, 2), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(table_of(network, 0), (std::vector<double>{0.8, 0.2}));
  EXPECT_EQ(table_of(network, 1), (std::vector<double>{0.6, 0.4, 0.99, 0.01}));
  EXPECT_EQ(table_of(network, 2), kGrass);
  EXPECT_EQ(network.factor_name(2), "factor 2 (rain, sprinkler, grass)");
}

/// As the first programs wrote it: quotes, no commas, no bar, properties, the table of all numbers with the child
/// first.
TEST(BifTest, ReadsOlderDialects) {
  const Network network = parse_bif(
      "\xEF\xBB\xBF// a garden\r\n"
      "network \"a; {garden}\" { property \"position = (1, 2); {\" ; property it's open ; }\r\n"
      "probability(\"grass\" \"rain\" \"sprinkler\"){ /* all\n at once */\n"
      "  property note;\n"
      "  table 0.9 0 0.2 0  0.1 0.25 0.5 0.01  0 0.75 0.3 0.99;\n}\n"
      "variable \"rain\" { //2 values\n property \"x\"; type discrete[2] { \"no\" \"yes\" }; property last ;}\n"
      "variable sprinkler{type discrete[2]{off on}}variable grass { type discrete [3] {dry damp wet};}\n"
      "probability(sprinkler rain){default 0.6 0.4;(yes)0.99 1e-2;}probability(rain){table 0.8 0.2;}",
      "b");
  EXPECT_EQ(network.names, (std::vector<std::string>{"rain", "sprinkler", "grass"}));
  EXPECT_EQ(scope_of(network, 0), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(table_of(network, 0), kGrass);
  EXPECT_EQ(table_of(network, 1), (std::vector<double>{0.6, 0.4, 0.99, 0.01}));
}

TEST(BifTest, NamesMayBeAnything) {
  const Network network = parse_bif(
      "variable table { type discrete [3] { property, <=5, -1.5 }; }\n"
      "variable \"two words\" { type discrete [2] { default, \"(a; b]\" }; }\n"
      "probability ( \"two words\" | table ) { (property) 1, 0; (<=5) 0, 1; (-1.5) 0.5, 0.5; }\n"
      "probability ( table ) { default 0.33, 0.33, 0.33; }\n",
      "b");
  EXPECT_EQ(network.names, (std::vector<std::string>{"table", "two words"}));
  EXPECT_EQ(network.level_names[1][1], "(a; b]");
  EXPECT_EQ(table_of(network, 0), (std::vector<double>{1, 0, 0, 1, 0.5, 0.5}));
}

TEST(BifTest, DefaultFillsWhatIsNotGiven) {
  const Network network = parse_bif(grass("(yes, on) 0, 0, 1; default 0.5, 0.25, 0.25; (no, off) 1, 0, 0; }"), "b");
  EXPECT_EQ(table_of(network, 2), (std::vector<double>{1, 0, 0, 0.5, 0.25, 0.25, 0.5, 0.25, 0.25, 0, 0, 1}));
}

TEST(BifTest, RefusesBlocksThatAreNone) {
  EXPECT_EQ(bif_refusal(""), "b, line 1: the file ends, expected 'variable'");
  EXPECT_EQ(bif_refusal("network x {}\n\n"), "b, line 1: the file ends, expected 'variable'");
  EXPECT_EQ(bif_refusal("\nMARKOV 3"), "b, line 2: found 'MARKOV', expected 'network', 'variable' or 'probability'");
  EXPECT_EQ(bif_refusal("network x {"), "b, line 1: the file ends, expected '}' at the end of 'network'");
  EXPECT_EQ(bif_refusal("network x }"), "b, line 1: found '}', expected '{' after 'network'");
  EXPECT_EQ(bif_refusal("/* x\n"), "b, line 1: found '/*' without an end, expected '*/' after it");
  EXPECT_EQ(bif_refusal("variable \"x\n"), "b, line 1: found '\"x', expected a closing quote in the same line");
  EXPECT_EQ(bif_refusal("network x { property y }\n"), "b, line 1: the file ends, expected ';' after a property");
}

TEST(BifTest, RefusesVariablesThatAreNone) {
  EXPECT_EQ(bif_refusal("variable {"), "b, line 1: found '{', expected the name of a variable");
  EXPECT_EQ(bif_refusal("variable \"\" {"), "b, line 1: found '', expected the name of a variable");
  EXPECT_EQ(bif_refusal("variable x\n}"), "b, line 2: found '}', expected '{' after variable 'x'");
  EXPECT_EQ(bif_refusal("variable x { }"),
            "b, line 1: found variable 'x' without levels, expected 'type discrete [ 2 ] { a, b };'");
  EXPECT_EQ(bif_refusal("variable x {\ntype continuous"),
            "b, line 2: found 'continuous', expected 'discrete' after 'type'");
  EXPECT_EQ(bif_refusal("variable x { type discrete [\n3 ] { a, b }; }"),
            "b, line 2: found '3', expected 2, the number of levels of 'x' that follow");
  EXPECT_EQ(bif_refusal("variable x { type discrete [2 { a, b }; }"),
            "b, line 1: found '{', expected ']' after the number of levels");
  EXPECT_EQ(bif_refusal("variable x { type discrete [0] { }; }"), "b, line 1: found '}', expected a level of 'x'");
  EXPECT_EQ(bif_refusal("variable x { type discrete [2] { a,\na }; }"),
            "b, line 2: found level 'a' of 'x' twice, expected each once");
  EXPECT_EQ(bif_refusal("variable x { type discrete [2] { a, b ( }; }"),
            "b, line 1: found '(', expected a level of 'x' or '}'");
  EXPECT_EQ(bif_refusal("variable x { type discrete [1] { a }; type discrete [1] { b }; }"),
            "b, line 1: found 'type', expected one 'type', 'property' or '}' in variable 'x'");
  EXPECT_EQ(bif_refusal("variable x { type discrete [1] { a };\n"),
            "b, line 1: the file ends, expected one 'type', 'property' or '}' in variable 'x'");
  EXPECT_EQ(bif_refusal(kVariables + "variable rain {"),
            "b, line 4: found variable 'rain' of line 1 again, expected each variable once");
}

TEST(BifTest, RefusesListsOfVariablesThatAreNone) {
  const std::string start = kVariables + kRoots;
  EXPECT_EQ(bif_refusal(start + "probability rain { }"), "b, line 6: found 'rain', expected '(' after 'probability'");
  EXPECT_EQ(bif_refusal(start + "probability ( gras ) { }"),
            "b, line 6: found 'gras', expected the name of a variable (did you mean 'grass'?)");
  EXPECT_EQ(bif_refusal(start + "probability ( grass |\nsnow ) { }"),
            "b, line 7: found 'snow', expected the name of a variable");
  EXPECT_EQ(bif_refusal(start + "probability ( grass, rain | sprinkler ) { }"),
            "b, line 6: found '|', expected a parent of 'grass' or ')'");
  EXPECT_EQ(bif_refusal(start + "probability ( grass | rain, rain ) { }"),
            "b, line 6: found 'rain' twice in the distribution of 'grass', expected different variables");
  EXPECT_EQ(bif_refusal(start + "probability ( grass | grass ) { }"),
            "b, line 6: found 'grass' twice in the distribution of 'grass', expected different variables");
  EXPECT_EQ(bif_refusal(start + "probability ( rain ) { table 1, 0; }"),
            "b, line 6: found a second distribution of 'rain', expected only the one of line 4");
  EXPECT_EQ(bif_refusal(start), "b, line 3: found no distribution of 'grass', expected a block 'probability' for it");
  EXPECT_EQ(bif_refusal("variable a { type discrete [1] { x }; } variable b { type discrete [1] { x }; }\n"
                        "probability ( a | b ) { (x) 1; }\nprobability ( b | a ) { (x) 1; }"),
            "b, line 2: found 'a' among its own ancestors, expected no cycle");
}

TEST(BifTest, RefusesRowsThatAreNone) {
  const std::string each = "one for each level of 'grass'";
  EXPECT_EQ(
      bif_refusal(grass("(no, off) 1, 0, 0; (no, on) 1, 0, 0;\n(yes, on) 1, 0, 0; }")),
      "b, line 8: found no row '(yes, off)' of 'grass', expected one for each combination of its parents' levels");
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0, 0;\n\n(no, off) 1, 0, 0; }")),
            "b, line 9: found row '(no, off)' of line 7 again, expected each row once");
  EXPECT_EQ(bif_refusal(grass("(no, of) 1, 0, 0; }")), "b, line 7: found 'of', expected a level of 'sprinkler'");
  EXPECT_EQ(bif_refusal(grass("(no) 1, 0, 0; }")),
            "b, line 7: found 1 levels, expected 2, one for each parent of 'grass'");
  EXPECT_EQ(bif_refusal(grass("(no, off, dry) 1, 0, 0; }")),
            "b, line 7: found 'dry', expected ')' after 2 levels, one for each parent of 'grass'");
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0; }")), "b, line 7: found 2 numbers, expected 3, " + each);
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0, 0, 0; }")),
            "b, line 7: found '0', expected ';' after 3 numbers, " + each);
  for (const std::string word : {"-1", "nan", "x", "1/2", "("}) {
    EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0,\n" + word + " }")),
              "b, line 8: found '" + word + "', expected ';' or a finite number of at least 0");
  }
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0, 0 }")),
            "b, line 7: found '}', expected ';' or a finite number of at least 0");
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0, 1e-999; }")),
            "b, line 7: found '1e-999', expected ';' or a finite number of at least 0, not beyond what double "
            "precision can hold");
  EXPECT_EQ(bif_refusal(grass("(no, off) 0.5, 0.25, 0.2; }")),
            "b, line 7: found 0.95 as the sum of row '(no, off)' of 'grass', expected probabilities that add up to 1");
  EXPECT_EQ(bif_refusal(grass("default 0, 0, 0; }")),
            "b, line 7: found 0 as the sum of row 'default' of 'grass', expected probabilities that add up to 1");
  EXPECT_EQ(bif_refusal(grass("default 1, 0, 0; default 1, 0, 0; }")),
            "b, line 7: found 'default', expected 'table', '(', one 'default' or '}' in the distribution of 'grass'");
  EXPECT_EQ(bif_refusal(grass("(no, off) 1, 0, 0;\ntable 1 1 1 1 0 0 0 0 0 0 0 0; }")),
            "b, line 8: found 'table' after the numbers of line 7, expected one or the other");
  EXPECT_EQ(bif_refusal(grass("table 1 0 0 0 1 0 1 0 0 1 0 0; }")),
            "b, line 7: found 2 as the sum of row '(no, off)' of 'grass', expected probabilities that add up to 1");
  EXPECT_EQ(bif_refusal(grass("table 1 0 0; }")),
            "b, line 7: found 3 numbers, expected 12, the size of the table of 'grass'");
  EXPECT_EQ(bif_refusal(grass("")), "b, line 6: the file ends, expected '}' at the end of 'probability'");
}

TEST(BifTest, ADefaultMakesNoTableOfAnySize) {
  std::string content;
  std::string parents;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "x" + std::to_string(i);
    content += "variable " + name + " { type discrete [ 2 ] { a, b }; }\n";
    if (i > 0) content += "probability ( " + name + " ) { table 0.5, 0.5; }\n";
    if (i > 0) parents += " " + name;
  }
  EXPECT_EQ(bif_refusal(content + "probability ( x0 |" + parents + " ) { default 0.5, 0.5; }"),
            "b, line 80: found 39 parents of 'x0', expected no more than 16777216 numbers in all tables");
}

}  // namespace poise::bif_test
