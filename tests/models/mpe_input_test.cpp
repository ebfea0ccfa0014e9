/// Files of most probable states.
#include <gtest/gtest.h>

#include <poise/network.hpp>
#include "support/input.hpp"

namespace poise::mpe_input_test {

using testing::refusal;
using testing::TemporaryFile;
using Levels = std::vector<Value>;

TEST(MpeTest, WrittenAndReadBack) {
  const Levels state{0, 1, 255, 3};
  EXPECT_EQ(mpe_text(state), "MPE\n4 0 1 255 3\n");
  const TemporaryFile file(mpe_text(state));
  EXPECT_EQ(read_mpe(file.path()), state);
}

TEST(MpeTest, OlderFormsAndSeveralSolutions) {
  EXPECT_EQ(parse_mpe("MAP 2 0 1", "m"), (Levels{0, 1}));
  EXPECT_EQ(parse_mpe("mpe\n1\n2 0 1", "m"), (Levels{0, 1}));  // one sample of evidence
  EXPECT_EQ(parse_mpe("MPE 1 1", "m"), Levels{1});
  EXPECT_EQ(parse_mpe("MPE 1 1 0", "m"), Levels{0});
  EXPECT_EQ(parse_mpe("MPE\n2 0 0\n-BEGIN-\n1\n2 1 1\n", "m"), (Levels{1, 1}));
}

TEST(MpeTest, RefusesWhatAreNoStates) {
  const auto reject = [](const std::string& content) { return refusal([&] { (void)parse_mpe(content, "m"); }); };
  EXPECT_EQ(reject(""), "m, line 1: the file ends, expected MPE or MAP");
  EXPECT_EQ(reject("PR\n-3.5"), "m, line 1: found 'PR', expected MPE or MAP");
  EXPECT_EQ(reject("MPE\n"), "m, line 1: the file ends, expected the number of variables");
  EXPECT_EQ(reject("MPE\n2 0"), "m, line 2: found only 2 more bytes, expected 2 levels");
  EXPECT_EQ(reject("MPE\n2 0 256"), "m, line 2: found '256', expected the level of x[1], from 0 to 255");
  EXPECT_EQ(reject("MPE\n2 0 1\n7"), "m, line 3: found '7', expected nothing after 2 variables");
  EXPECT_EQ(reject("MPE\n900 0"), "m, line 2: found '900', expected the number of variables, from 1 to 9");
}

}  // namespace poise::mpe_input_test
