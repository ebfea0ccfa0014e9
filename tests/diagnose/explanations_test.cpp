/// Pages of warnings that are built in.
#include <gtest/gtest.h>

#include <poise/diagnose.hpp>
#include <poise/types.hpp>

namespace poise::explanations_test {

TEST(Explanations, EveryCodeHasAPageThatBeginsWithIt) {
  const std::vector<std::string> codes = warning_codes();
  EXPECT_GE(codes.size(), 20U);
  for (const std::string& code : codes) {
    const std::string page = explanation(code);
    EXPECT_TRUE(page.starts_with(code + ": ")) << page;
    EXPECT_TRUE(has_explanation(code));
    EXPECT_EQ(page.find("]("), std::string::npos) << page;
    EXPECT_EQ(page.find("```"), std::string::npos) << page;
    EXPECT_EQ(page.find("**"), std::string::npos) << page;
    EXPECT_TRUE(page.ends_with("\n")) << page;
  }
}

TEST(Explanations, CommandsOfAPageAreIndented) {
  EXPECT_NE(explanation("rhat").find("\n    poise sample ising:"), std::string::npos);
  EXPECT_NE(explanation("ladder").find("(rhat)"), std::string::npos);  // a link without its target
}

TEST(Explanations, AnUnknownCodeIsRefused) {
  EXPECT_FALSE(has_explanation("nothing"));
  EXPECT_THROW(static_cast<void>(explanation("nothing")), InputError);
}

}  // namespace poise::explanations_test
