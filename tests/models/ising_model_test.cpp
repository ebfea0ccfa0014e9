/// Ising models and their files: what is accepted means what it says, what is refused says why.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "models/ising/ising_model.hpp"
#include "support/input.hpp"

namespace poise::ising_model_test {

using testing::holds;
using testing::refusal;
using testing::TemporaryFile;

IsingModel ising(const std::string& text, const std::string& field_path = "") {
  return make_ising(parse_spec(text), {field_path});
}

std::string ising_refusal(const std::string& text, const std::string& field_path = "") {
  return refusal([&] { ising(text, field_path); });
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// ---- lattices

TEST(IsingModelTest, DefaultIsAPlainTorus) {
  const IsingModel model = ising("ising");
  EXPECT_EQ(model.rows, 30U);
  EXPECT_EQ(model.columns, 30U);
  EXPECT_EQ(model.variables, 900U);
  EXPECT_TRUE(model.torus);
  EXPECT_TRUE(model.is_lattice());
  EXPECT_EQ(model.coupling, 1.0);
  EXPECT_EQ(model.field, std::vector<double>(900, 0.0));
  EXPECT_EQ(model.observed, model.field);
  EXPECT_TRUE(model.truth.empty());
  EXPECT_TRUE(model.edges.empty());
  EXPECT_EQ(model.name, "ising:size=30,coupling=1");
}

TEST(IsingModelTest, SizeIsOneNumberOrTwo) {
  const IsingModel oblong = ising("ising:size=3x7,boundary=open,lambda=-0.5");
  EXPECT_EQ(oblong.rows, 3U);
  EXPECT_EQ(oblong.columns, 7U);
  EXPECT_EQ(oblong.field.size(), 21U);
  EXPECT_FALSE(oblong.torus);
  EXPECT_EQ(oblong.coupling, -0.5);
  EXPECT_EQ(oblong.name, "ising:size=3x7,coupling=-0.5,boundary=open");
  EXPECT_EQ(ising("ising:size=1x65535").variables, 65535U);
}

TEST(IsingModelTest, RefusesSizesThatAreNone) {
  for (const char* size :
       {"0", "-3", "x", "3x", "x3", "3x0", "3x4x0", "3.5", "1e3", "65536", "2x65536", "99999999999999999999"}) {
    EXPECT_EQ(ising_refusal(std::string("ising:size=") + size),
              "key 'size' in model 'ising': found '" + std::string(size) +
                  "', expected N, ROWSxCOLUMNS or up to 8 sides such as 8x8x8, each an integer from 1 to 65535");
  }
  EXPECT_EQ(ising_refusal("ising:size=65535x65535"),
            "key 'size' in model 'ising': found '65535x65535', expected at most 268435456 sites");
}

TEST(IsingModelTest, RefusesSettingsOutOfRange) {
  EXPECT_TRUE(holds(ising_refusal("ising:sigma=-1"), "'sigma' in model 'ising': found '-1'"));
  EXPECT_TRUE(holds(ising_refusal("ising:lambda=inf"), "'lambda' in model 'ising': found 'inf'"));
  EXPECT_TRUE(holds(ising_refusal("ising:mu=1e200"), "expected a finite number from -1e+100 to 1e+100"));
  EXPECT_EQ(ising_refusal("ising:case=5"), "key 'case' in model 'ising': found '5', expected an integer from 1 to 4");
  EXPECT_EQ(ising_refusal("ising:image=ring"),
            "key 'image' in model 'ising': found 'ring', expected square or shapes or disc");
  EXPECT_EQ(ising_refusal("ising:field=gauss"),
            "key 'field' in model 'ising': found 'gauss', expected uniform or gaussian (did you mean 'gaussian'?)");
}

TEST(IsingModelTest, SquareIsRowsAndColumnsSevenToTwentyTwo) {
  const IsingModel model = ising("ising:mu=1");
  ASSERT_EQ(model.truth.size(), 900U);
  for (Index r = 0; r < 30; ++r) {
    for (Index c = 0; c < 30; ++c) {
      const bool inside = r >= 7 && r <= 22 && c >= 7 && c <= 22;
      EXPECT_EQ(model.truth[r * 30 + c], inside ? 1 : -1) << r << " " << c;
      EXPECT_EQ(model.field[r * 30 + c], inside ? 1.0 : -1.0);  // sigma = 0: no noise
    }
  }
}

TEST(IsingModelTest, SquareScalesWithTheLattice) {
  const IsingModel model = ising("ising:size=60x15,mu=1");
  for (Index r = 0; r < 60; ++r) {
    for (Index c = 0; c < 15; ++c) {
      const bool inside =
          r >= 14 && r <= 45 && c >= 3 && c <= 11;  // centres 14.5/60 and 3.5/15 are the first over 7/30
      EXPECT_EQ(model.truth[r * 15 + c], inside ? 1 : -1) << r << " " << c;
    }
  }
}

TEST(IsingModelTest, ShapesAreTheSamePictureAtAnyResolution) {
  const IsingModel coarse = ising("ising:size=100,mu=1,image=shapes");
  const IsingModel fine = ising("ising:size=300,mu=1,image=shapes");
  int inside = 0;
  for (Index r = 0; r < 100; ++r) {
    for (Index c = 0; c < 100; ++c) {
      const auto pixel = coarse.truth[r * 100 + c];
      EXPECT_EQ(pixel, fine.truth[(3 * r + 1) * 300 + 3 * c + 1]);  // the centres of these two pixels coincide
      inside += pixel > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(inside, 2500);
  EXPECT_LT(inside, 5000);
  EXPECT_EQ(coarse.truth[27 * 100 + 27], 1);   // the disc
  EXPECT_EQ(coarse.truth[27 * 100 + 73], -1);  // the hole of the ring
  EXPECT_EQ(coarse.truth[13 * 100 + 73], 1);   // the ring
  EXPECT_EQ(coarse.truth[80 * 100 + 27], 1);   // the triangle
  EXPECT_EQ(coarse.truth[73 * 100 + 73], 1);   // the bar
  EXPECT_EQ(coarse.truth[50 * 100 + 50], -1);
}

TEST(IsingModelTest, ShapesKeepTheirProportions) {
  const IsingModel square = ising("ising:size=40,mu=1,image=shapes");
  const IsingModel wide = ising("ising:size=40x100,mu=1,image=shapes");
  for (Index r = 0; r < 40; ++r) {
    for (Index c = 0; c < 100; ++c) {
      const int expected = c >= 30 && c < 70 ? square.truth[r * 40 + c - 30] : -1;
      EXPECT_EQ(wide.truth[r * 100 + c], expected);
    }
  }
}

TEST(IsingModelTest, CasesAreThoseOfThePaper) {
  const double expected[4][3] = {{0, 1, 3}, {0, 3, 3}, {1, 1, 3}, {1, 3, 3}};
  for (int k = 0; k < 4; ++k) {
    const auto [lambda, mu, sigma] = expected[k];
    const IsingModel model = ising("ising:case=" + std::to_string(k + 1));
    const auto number = [](double x) { return std::to_string(static_cast<int>(x)); };
    const std::string full =
        "ising:size=30,coupling=" + number(lambda) + ",mu=" + number(mu) + ",sigma=" + number(sigma);
    EXPECT_EQ(model.name, full + ",seed=1");
    EXPECT_EQ(model.field, ising(full).field);
  }
  EXPECT_EQ(ising("ising:case=4,lambda=2,size=20,seed=9").name, "ising:size=20,coupling=2,mu=3,sigma=3,seed=9");
}

/// Moments against their law; six standard errors.
TEST(IsingModelTest, UniformFieldFollowsItsLaw) {
  const IsingModel model = ising("ising:size=300,mu=3,sigma=2,seed=5");
  std::vector<double> noise(model.field.size());
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = model.field[i] - 3 * model.truth[i];
    EXPECT_LE(std::abs(noise[i]), 2.0);
  }
  const double n = static_cast<double>(noise.size());
  const double variance = 4.0 / 3;  // of U(-2, 2); its fourth central moment is 16/5
  EXPECT_NEAR(mean(noise), 0, 6 * std::sqrt(variance / n));
  for (double& x : noise) x *= x;
  EXPECT_NEAR(mean(noise), variance, 6 * std::sqrt((16.0 / 5 - variance * variance) / n));
  EXPECT_EQ(model.observed, model.field);
}

TEST(IsingModelTest, GaussianFieldFollowsItsLaw) {
  const IsingModel model = ising("ising:size=300,mu=3,sigma=2,seed=5,field=gaussian");
  std::vector<double> noise(model.field.size());
  for (std::size_t i = 0; i < noise.size(); ++i) {
    EXPECT_DOUBLE_EQ(model.field[i], model.observed[i] * 3 / 4);
    noise[i] = (model.observed[i] - 3 * model.truth[i]) / 2;
  }
  const double n = static_cast<double>(noise.size());
  EXPECT_NEAR(mean(noise), 0, 6 / std::sqrt(n));
  for (double& x : noise) x *= x;
  EXPECT_NEAR(mean(noise), 1, 6 * std::sqrt(2 / n));
}

TEST(IsingModelTest, GaussianFieldNeedsNoise) {
  EXPECT_EQ(ising_refusal("ising:field=gaussian,mu=1"),
            "key 'field' in model 'ising': 'gaussian' with sigma=0, expected a sigma greater than 0");
  EXPECT_TRUE(holds(ising_refusal("ising:field=gaussian,mu=1,sigma=1e-200"), "expected at most 1e+100 in size"));
}

TEST(IsingModelTest, FieldDependsOnTheSeedAlone) {
  const IsingModel model = ising("ising:case=4,seed=7");
  EXPECT_EQ(model.field, ising("ising:case=4,seed=7").field);
  EXPECT_EQ(model.field, ising("ising:case=4,seed=7,lambda=0,boundary=open").field);
  EXPECT_NE(model.field, ising("ising:case=4,seed=8").field);
}

TEST(IsingModelTest, NoiseWithoutAnImageHasNoTruth) {
  const IsingModel model = ising("ising:sigma=1");
  EXPECT_TRUE(model.truth.empty());
  EXPECT_NE(model.field, std::vector<double>(900, 0.0));
}

TEST(IsingModelTest, NameGivesTheModelAgain) {
  for (const char* text :
       {"ising", "ising:case=3", "ising:size=4x6,mu=0.1,sigma=1e-3,seed=77,lambda=0.44068679350977147",
        "ising:image=shapes,mu=1,sigma=0.5,field=gaussian,boundary=open", "ising:sigma=2,image=shapes",
        "ising:lambda=-0"}) {
    const IsingModel model = ising(text);
    const IsingModel again = ising(model.name);
    EXPECT_EQ(again.name, model.name);
    EXPECT_EQ(again.rows, model.rows);
    EXPECT_EQ(again.columns, model.columns);
    EXPECT_EQ(again.torus, model.torus);
    EXPECT_EQ(again.coupling, model.coupling);
    EXPECT_EQ(again.field, model.field);
    EXPECT_EQ(again.observed, model.observed);
    EXPECT_EQ(again.truth, model.truth);
  }
}

// ---- field files

TEST(IsingModelTest, MatrixReaderTakesBlanksCommasAndComments) {
  const Matrix matrix = parse_matrix("# a field\n1 2,3\n\n -4.5\t+5 , 6e0 # the last\r\n", "f");
  EXPECT_EQ(matrix.rows, 2U);
  EXPECT_EQ(matrix.columns, 3U);
  EXPECT_EQ(matrix.values, (std::vector<double>{1, 2, 3, -4.5, 5, 6}));
  EXPECT_EQ(parse_matrix("\xEF\xBB\xBF"
                         "7",
                         "f")
                .values,
            std::vector<double>{7});
  EXPECT_EQ(parse_numbers("1 2\n3\n", "f"), (std::vector<double>{1, 2, 3}));
}

TEST(IsingModelTest, MatrixReaderNamesFileLineAndWord) {
  const auto reject = [](const std::string& content) { return refusal([&] { parse_matrix(content, "f.txt"); }); };
  EXPECT_EQ(reject("1 2\n3 nan\n"), "f.txt, line 2: found 'nan', expected a finite number");
  EXPECT_EQ(reject("inf"), "f.txt, line 1: found 'inf', expected a finite number");
  EXPECT_EQ(reject("# x\n\n1 2x\n"), "f.txt, line 3: found '2x', expected a finite number");
  EXPECT_EQ(reject("1e300"), "f.txt, line 1: found '1e300', expected a number from -1e+100 to 1e+100");
  EXPECT_EQ(reject("1e400"), "f.txt, line 1: found '1e400', expected a finite number");
  EXPECT_EQ(reject("1,,2"), "f.txt, line 1: found '', expected a finite number");
  EXPECT_EQ(reject("1,2,"), "f.txt, line 1: found '', expected a finite number");
  EXPECT_EQ(reject(std::string("1 \0", 3)), "f.txt, line 1: found '\\x00', expected a finite number");
  EXPECT_EQ(reject("# none\n1 2 3\n4 5\n"), "f.txt, line 3: found 2 numbers, expected 3 as in line 2");
  EXPECT_EQ(reject("# none\n"), "f.txt: found no numbers, expected rows of numbers");
  EXPECT_EQ(reject(""), "f.txt: found no numbers, expected rows of numbers");
}

TEST(IsingModelTest, MatrixFileIsTheField) {
  const TemporaryFile file("0.5 -1 2\n3 4 5\n");
  const IsingModel model = ising("ising:lambda=0.3", file.path());
  EXPECT_EQ(model.rows, 2U);
  EXPECT_EQ(model.columns, 3U);
  EXPECT_EQ(model.variables, 6U);
  EXPECT_EQ(model.field, (std::vector<double>{0.5, -1, 2, 3, 4, 5}));
  EXPECT_EQ(model.observed, model.field);
  EXPECT_TRUE(model.truth.empty());
  EXPECT_EQ(model.name, "ising:size=2x3,coupling=0.3");
  EXPECT_EQ(ising(model.name, file.path()).field, model.field);
}

TEST(IsingModelTest, MatrixFileGoesWithNothingThatItWouldOverrule) {
  const TemporaryFile file("1 2\n3 4\n");
  EXPECT_EQ(ising_refusal("ising:size=3", file.path()),
            file.path() + ": found 2 rows of 2, expected 3 rows of 3 as key 'size' in model 'ising' says");
  EXPECT_EQ(ising_refusal("ising:mu=1", file.path()),
            "key 'mu' in model 'ising' does not go with " + file.path() + ", which holds the field itself");
  const std::string message = ising_refusal("ising:seed=1,image=square,field=uniform", file.path());
  for (const char* key : {"'seed'", "'image'", "'field'"}) EXPECT_TRUE(holds(message, key)) << message;
  EXPECT_TRUE(holds(message, "does not go with the field file " + file.path())) << message;
}

TEST(IsingModelTest, MatrixFileHasTheLimitsOfALattice) {
  std::string row = "0";
  for (int i = 1; i < 65536; ++i) row += " 0";
  const TemporaryFile file(row);
  EXPECT_EQ(ising_refusal("ising", file.path()),
            file.path() + ": found 1 rows of 65536, expected 1 to 65535 of each and at most 268435456 sites");
}

TEST(IsingModelTest, FilesThatCannotBeReadAreNamed) {
  EXPECT_EQ(ising_refusal("ising", "/no/such/file"),
            "/no/such/file: cannot be opened, expected a file that can be read");
  EXPECT_EQ(ising_refusal("ising:graph=/no/such/file"),
            "/no/such/file: cannot be opened, expected a file that can be read");
  EXPECT_TRUE(holds(ising_refusal("ising", ::testing::TempDir()), "found a directory, expected a file"));
}

TEST(IsingModelTest, ImageFileIsSeenThroughNoise) {
  const TemporaryFile file(std::string("P5\n3 2\n255\n\x00\xff\x33\x66\x99\xcc", 17));
  const IsingModel model = ising("ising:sigma=2,mu=3", file.path());
  EXPECT_EQ(model.rows, 2U);
  EXPECT_EQ(model.columns, 3U);
  const std::vector<double> y = {-1, 1, -0.6, -0.2, 0.2, 0.6};
  ASSERT_EQ(model.observed.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(model.observed[i], y[i], 1e-15);
    EXPECT_NEAR(model.field[i], y[i] * 3 / 4, 1e-15);
  }
  EXPECT_TRUE(model.truth.empty());
  EXPECT_EQ(model.name, "ising:size=2x3,coupling=1,mu=3,sigma=2");
  EXPECT_EQ(ising(model.name, file.path()).field, model.field);
  EXPECT_EQ(ising("ising", file.path()).name, "ising:size=2x3,coupling=1,mu=1,sigma=1");
  EXPECT_EQ(ising("ising:case=2", file.path()).name, "ising:size=2x3,coupling=0,mu=3,sigma=3");
}

TEST(IsingModelTest, ColourImagesGiveTheirLuminance) {
  const TemporaryFile file(std::string("P6\n4 1\n255\n\xff\x00\x00\x00\xff\x00\x00\x00\xff\xff\xff\xff", 23));
  const IsingModel model = ising("ising", file.path());
  ASSERT_EQ(model.observed.size(), 4U);
  EXPECT_NEAR(model.observed[0], 2 * 0.299 - 1, 1e-15);
  EXPECT_NEAR(model.observed[1], 2 * 0.587 - 1, 1e-15);
  EXPECT_NEAR(model.observed[2], 2 * 0.114 - 1, 1e-15);
  EXPECT_EQ(model.observed[3], 1.0);
}

TEST(IsingModelTest, BrokenImagesAreNamed) {
  const TemporaryFile file("P5\n3 2\n255\n");
  EXPECT_TRUE(holds(ising_refusal("ising", file.path()), file.path()));
}

TEST(IsingModelTest, ImageFileRefusesWhatContradictsIt) {
  const TemporaryFile file(std::string("P5\n3 2\n255\n\x00\xff\x33\x66\x99\xcc", 17));
  EXPECT_EQ(ising_refusal("ising:size=3x2", file.path()),
            file.path() + ": found 2 rows of 3, expected 3 rows of 2 as key 'size' in model 'ising' says");
  EXPECT_EQ(ising_refusal("ising:sigma=0", file.path()),
            "key 'sigma' in model 'ising': found 0, expected more than 0 with image " + file.path());
  const TemporaryFile graph("2 1\n1 2\n");
  EXPECT_EQ(ising_refusal("ising:graph=" + graph.path(), file.path()),
            file.path() + ": found an image, expected 2 numbers as text, one for each variable of " + graph.path());
}

// ---- graphs

TEST(IsingModelTest, EdgeListReaderCountsFromOne) {
  const EdgeList graph = parse_edges("c a graph\nc\n# of four\n4 3\n1 2\n4 3 -1.5 # strong\n\n2 4 0\n", "g", 0.7);
  EXPECT_EQ(graph.variables, 4U);
  ASSERT_EQ(graph.edges.size(), 3U);
  EXPECT_EQ(graph.edges[0].i, 0U);
  EXPECT_EQ(graph.edges[0].j, 1U);
  EXPECT_EQ(graph.edges[0].coupling, 0.7);
  EXPECT_EQ(graph.edges[1].i, 3U);
  EXPECT_EQ(graph.edges[1].j, 2U);
  EXPECT_EQ(graph.edges[1].coupling, -1.5);
  EXPECT_EQ(graph.edges[2].coupling, 0.0);
  EXPECT_EQ(parse_edges("5 0", "g", 1).variables, 5U);  // variables without edges are legal
}

TEST(IsingModelTest, EdgeListReaderNamesFileLineAndWord) {
  const auto reject = [](const std::string& content) { return refusal([&] { parse_edges(content, "g", 1); }); };
  EXPECT_EQ(reject(""), "g: found no numbers, expected a line 'variables edges'");
  EXPECT_EQ(reject("3\n"), "g, line 1: found 1 words, expected a line 'variables edges'");
  EXPECT_EQ(reject("3 3 3\n"), "g, line 1: found 3 words, expected a line 'variables edges'");
  EXPECT_EQ(reject("0 0\n"), "g, line 1: found '0', expected a number of variables from 1 to 1000004");
  EXPECT_EQ(reject("100000000 1\n1 2\n"),
            "g, line 1: found '100000000', expected a number of variables from 1 to 1000016, as a file may have a "
            "million more variables than bytes");
  EXPECT_EQ(parse_edges("1000000 1\n1 1000000\n", "g", 1).variables, 1000000U);
  EXPECT_EQ(reject("3 -1\n"), "g, line 1: found '-1', expected a number of edges from 0 to 2147483647");
  EXPECT_EQ(reject("3 2\n1 2\n"), "g: found 1 edges, expected 2 as line 1 declares");
  EXPECT_EQ(reject("3 2147483647\n1 2\n"), "g: found 1 edges, expected 2147483647 as line 1 declares");
  EXPECT_EQ(reject("3 1\n1 2\n\n2 3\n"),
            "g, line 4: found a line after the last edge, expected 1 edges as line 1 declares");
  EXPECT_EQ(reject("3 3\n1 2\n2 3\n2 1\n"),
            "g, line 4: found the edge 2 1 of line 2 again, expected each edge once, in either direction");
  EXPECT_EQ(reject("9 4\n8 9\n1 2\n9 8\n1 2\n"),
            "g, line 4: found the edge 9 8 of line 2 again, expected each edge once, in either direction");
  EXPECT_EQ(reject("3 1\n2 2\n"), "g, line 2: found an edge from 2 to itself, expected two variables");
  EXPECT_EQ(reject("3 1\n1 4\n"), "g, line 2: found '4', expected the number of a variable, from 1 to 3");
  EXPECT_EQ(reject("3 1\n0 1\n"), "g, line 2: found '0', expected the number of a variable, from 1 to 3");
  EXPECT_EQ(reject("3 1\n1 2.5\n"), "g, line 2: found '2.5', expected the number of a variable, from 1 to 3");
  EXPECT_EQ(reject("3 1\n1 2 nan\n"), "g, line 2: found 'nan', expected a finite number");
  EXPECT_EQ(reject("3 1\n1 2 1e101\n"), "g, line 2: found '1e101', expected a number from -1e+100 to 1e+100");
  EXPECT_EQ(reject("3 1\n1\n"), "g, line 2: found 1 words, expected 'i j' or 'i j coupling'");
  EXPECT_EQ(reject("3 1\n1 2 3 4\n"), "g, line 2: found 4 words, expected 'i j' or 'i j coupling'");
}

TEST(IsingModelTest, GraphHasVariablesEdgesAndNoLattice) {
  const TemporaryFile file("3 2\n1 2\n2 3 -1\n");
  const IsingModel model = ising("ising:graph=" + file.path() + ",lambda=0.5");
  EXPECT_FALSE(model.is_lattice());
  EXPECT_FALSE(model.torus);
  EXPECT_EQ(model.rows, 0U);
  EXPECT_EQ(model.variables, 3U);
  ASSERT_EQ(model.edges.size(), 2U);
  EXPECT_EQ(model.edges[0].coupling, 0.5);
  EXPECT_EQ(model.edges[1].coupling, -1.0);
  EXPECT_EQ(model.field, std::vector<double>(3, 0.0));
  EXPECT_EQ(model.name, "ising:graph=" + file.path() + ",coupling=0.5");
  EXPECT_EQ(ising("ising:mu=0.25,graph=" + file.path()).field, std::vector<double>(3, 0.25));
}

TEST(IsingModelTest, GraphTakesOneNumberPerVariable) {
  const TemporaryFile graph("3 1\n1 2\n");
  const TemporaryFile field("1 2\n3\n");
  EXPECT_EQ(ising("ising:graph=" + graph.path(), field.path()).field, (std::vector<double>{1, 2, 3}));
  const TemporaryFile shorter("1 2\n");
  EXPECT_EQ(ising_refusal("ising:graph=" + graph.path(), shorter.path()),
            shorter.path() + ": found 2 numbers, expected 3, one for each variable of " + graph.path());
}

TEST(IsingModelTest, GraphExcludesTheLattice) {
  const TemporaryFile file("3 1\n1 2\n");
  const std::string message = ising_refusal("ising:size=3,boundary=open,image=square,case=1,graph=" + file.path());
  EXPECT_TRUE(holds(message, "4 problems")) << message;
  for (const char* key : {"size", "boundary", "image", "case"}) {
    const std::string part = std::string("key '") + key + "' in model 'ising' does not go with 'graph'";
    EXPECT_TRUE(holds(message, part)) << message;
  }
}

}  // namespace poise::ising_model_test
