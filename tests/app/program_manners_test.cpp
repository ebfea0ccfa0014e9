/// Help, pages of the manual, completions, and small things that users expect.
#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include <poise/image.hpp>
#include "support/program.hpp"

namespace poise::testing_program::program_manners_test {

using nlohmann::json;

class MannersProgram : public ProgramTest {
 protected:
  [[nodiscard]] static std::size_t longest_line(const std::string& text) {
    std::size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const bool is_command = line.find("  poise ") == 0 || line.find("  mpirun ") == 0;  // these are not broken
      if (!is_command) longest = std::max(longest, line.size());
    }
    return longest;
  }
};

TEST_F(MannersProgram, HelpAndVersionAreCommandsToo) {
  EXPECT_EQ(run({"help", "sample"}).out, run({"sample", "--help"}).out);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  const Outcome unknown = run({"help", "smaple"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'sample'?"), std::string::npos) << unknown.err;
}

TEST_F(MannersProgram, ExplainsEveryKindOfWarning) {
  const Outcome all = run({"explain"});
  EXPECT_EQ(all.code, 0);
  EXPECT_NE(all.out.find("\nrhat: chains disagree\n"), std::string::npos) << all.out;
  const Outcome one = run({"explain", "rhat"});
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(one.out.starts_with("rhat: chains disagree\n")) << one.out;
  const Outcome unknown = run({"explain", "nothing"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("unknown warning 'nothing'; codes are "), std::string::npos) << unknown.err;
}

TEST_F(MannersProgram, HelpIsAsWideAsTheTerminal) {
  launcher_ = {"env", "COLUMNS=70"};
  for (const char* command : {"sample", "marginals", "optimize", "train", "reproduce", "resume"}) {
    const Outcome narrow = run({"help", command});
    EXPECT_EQ(narrow.code, 0);
    EXPECT_LE(longest_line(narrow.out), 70U) << narrow.out;
  }
}

TEST_F(MannersProgram, CountsMayHaveAnExponent) {
  const Outcome outcome =
      run({"sample", "ising:size=4,coupling=0.1", "--draws", "1e2", "--chains", "2", "--json", "-", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("draws"), 100);
  EXPECT_EQ(run({"sample", "ising:size=4", "--draws", "1.5e0"}).code, 2);
  EXPECT_EQ(run({"sample", "ising:size=4", "--draws", "1e30"}).code, 2);
}

TEST_F(MannersProgram, PagesOfTheManual) {
  const Outcome page = run({"man", "marginals"});
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* words : {".TH POISE\\-MARGINALS 1", ".SH SYNOPSIS", "\\-\\-query", ".SH DETAILS"}) {
    EXPECT_NE(page.out.find(words), std::string::npos) << words << "\n" << page.out;
  }
  ASSERT_EQ(run({"man", "--out", "share"}).code, 0);
  EXPECT_EQ(read_text(work() / "share/man1/poise-marginals.1"), page.out);
  EXPECT_NE(read_text(work() / "share/man1/poise.1").find("poise\\-optimize"), std::string::npos);
  EXPECT_EQ(run({"man", "magic"}).code, 2);
}

TEST_F(MannersProgram, ShellsCompleteCommandsOptionsAndValues) {
  const Outcome bash = run({"completions", "bash"});
  ASSERT_EQ(bash.code, 0) << bash.err;
  write_text(work() / "poise.bash", bash.out);
  write_text(work() / "try.bash", R"(compopt() { :; }
source poise.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _poise; echo "${COMPREPLY[@]}"; }
try poise samp
try poise sample --dra
try poise marginals net.uai --method e
try poise sample --sampler wol
try poise help opti
)");
  program_ = "/bin/bash";
  const Outcome tried = run({"try.bash"});
  EXPECT_EQ(tried.out, "sample\n--draws\nexact\nwolff\noptimize\n") << tried.err;
  program_ = POISE_PROGRAM;
  for (const char* shell : {"zsh", "fish"}) {
    const Outcome script = run({"completions", shell});
    EXPECT_EQ(script.code, 0);
    EXPECT_NE(script.out.find("query"), std::string::npos);
  }
  EXPECT_EQ(run({"completions", "csh"}).code, 2);
  EXPECT_EQ(run({"completions"}).code, 2);
}

TEST_F(MannersProgram, PicturesAreOfTheKindThatTheirNameSays) {
  const Arguments arguments = {"sample", "ising:size=6,coupling=0.3", "--sampler", "gibbs", "--draws", "20", "--quiet"};
  const auto picture = [&](const std::string& option, const std::string& name) {
    Arguments all = arguments;
    all.insert(all.end(), {option, name});
    return run(all);
  };
  for (const char* name : {"x.png", "x.PNG", "x.ppm", "x.pgm"}) {
    ASSERT_EQ(picture("--images", name).code, 0) << name;
  }
  EXPECT_EQ(read_text(work() / "x.ppm").substr(0, 2), "P6");
  EXPECT_EQ(read_text(work() / "x.pgm").substr(0, 2), "P5");
  EXPECT_EQ(to_rgb(read_image(in_work("x.png"))), to_rgb(read_image(in_work("x.ppm"))));
  const Outcome refused = picture("--images", "x.jpg");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find(".png, .ppm or .pgm"), std::string::npos) << refused.err;
  EXPECT_EQ(run({"sample", "ising:size=6", "--sampler", "lsb", "--plot", "x.png"}).code, 2);
  EXPECT_FALSE(files().contains("x.jpg"));
}

TEST_F(MannersProgram, PhasesOfLearningAreNamedOnce) {
  const Outcome outcome =
      run({"sample", "ising:size=6,coupling=0.3", "--sampler", "lsb", "--warmup", "2000", "--draws", "20"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = outcome.err.find("initial", at)) != std::string::npos; ++at) ++count;
  EXPECT_LE(count, 1U) << outcome.err;
}

TEST_F(MannersProgram, TheBestDrawIsReportedAndWritten) {
  const Outcome outcome =
      run({"sample", "ising:size=4x5,coupling=0.4", "--sampler", "gibbs", "--keep", "monitors", "--draws", "50",
           "--best", "best.txt", "--json", "run.json", "--out", "run.zarr", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json best = json::parse(read_text(work() / "run.json")).at("best");
  ASSERT_EQ(best.at("state").size(), 20U);
  const json summary = json::parse(run({"summary", "run.zarr", "--json", "-"}).out);
  EXPECT_EQ(summary.at("best"), best);
  std::istringstream text(read_text(work() / "best.txt"));
  std::vector<int> state{std::istream_iterator<int>(text), {}};
  EXPECT_EQ(json(state), best.at("state"));
  const Outcome again = run({"sample", "ising:size=4x5,coupling=0.4", "--sampler", "gibbs", "--init", "best.txt",
                             "--warmup", "0", "--draws", "1", "--quiet"});
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(MannersProgram, DrawsAsCsvHaveNames) {
  write_text(work() / "two.bif",
             "network two { }\nvariable A { type discrete [ 2 ] { yes, no }; }\nvariable B { type discrete [ 2 ] { on, "
             "off }; }\n"
             "probability ( A ) { table 0.5, 0.5; }\nprobability ( B | A ) { (yes) 0.9, 0.1; (no) 0.2, 0.8; }\n");
  const Outcome outcome = run({"sample", "two.bif", "--chains", "2", "--draws", "5", "--csv", "-", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n')), "chain,draw,log_prob,A,B");
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 11);
  EXPECT_TRUE(outcome.out.find(",yes,") != std::string::npos || outcome.out.find(",no,") != std::string::npos);
  EXPECT_EQ(run({"sample", "two.bif", "--keep", "monitors", "--csv", "x.csv"}).code, 2);
}

}  // namespace poise::testing_program::program_manners_test
