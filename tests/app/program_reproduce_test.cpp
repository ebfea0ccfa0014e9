/// `poise reproduce` from outside: words, exit codes, Ctrl-C, and its report in a real browser.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "support/program.hpp"

namespace poise::testing_program::program_reproduce_test {

using ProgramReproduce = ProgramTest;

/// What a command prints, errors included.
std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen((command + " 2>&1").c_str(), "r"), &::pclose);
  std::string out;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe.get())) out.append(buffer, count);
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(ProgramReproduce, BadInputGetsOneSentence) {
  struct Case {
    Arguments arguments;
    std::string says;
  };
  for (const Case& wrong :
       {Case{{}, "the experiment is missing"}, Case{{"isng"}, "'isng'"},
        Case{{"ising", "--protocol", "honest"}, "--protocol: found 'honest'"}, Case{{"ising", "--seed", "x"}, "--seed"},
        Case{{"ising", "--data", "."}, "--data"}, Case{{"uai", "--data", "nowhere"}, "BN_1.uai"},
        Case{{"rbm", "--data", "nowhere"}, "nowhere"}, Case{{"discs", "--data", "nowhere"}, "nowhere"},
        Case{{"discs", "--protocol", "published"}, "--protocol"}, Case{{"select", "--data", "nowhere"}, "nowhere"},
        Case{{"select", "--protocol", "published"}, "--protocol"}, Case{{"ising", "--out", "file"}, "is a file"}}) {
    write_text(work() / "file", "");
    Arguments arguments = {"reproduce"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(wrong.says), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(files(), std::set<std::string>{"file"});
  }
}

TEST_F(ProgramReproduce, CtrlCKeepsFinishedParts) {
  start({"reproduce", "ising", "--threads", "1"});
  for (int attempt = 0; attempt < 3000; ++attempt) {
    if (read_text(root_ / "err").find("2 of 36 parts") != std::string::npos) break;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(work() / "reproduce-ising" / "parts" / "case1-barker.json"));
  EXPECT_FALSE(std::filesystem::exists(work() / "reproduce-ising" / "report.html"));
}

TEST_F(ProgramReproduce, TheReportOpensInABrowserWithoutErrors) {
  const Outcome outcome = run({"reproduce", "ising", "--quick", "--out", "report"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("report/report.html"), std::string::npos) << outcome.out;
  ASSERT_EQ(std::system("command -v chromium >/dev/null 2>&1"), 0)
      << "chromium is not installed: tools/install-packages report";
  const std::string browser =
      "chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir=" + in_work("profile") +
      " --enable-logging=stderr --log-level=0 ";
  const std::string page = "file://" + in_work("report/report.html");
  const std::string shown = output_of(browser + "--dump-dom " + page);
  // What a page does wrong (markup, styles, missing files) the browser says on its console.
  EXPECT_EQ(count(shown, "CONSOLE"), 0U) << shown.substr(0, 2000);
  EXPECT_EQ(count(shown, "ERR_"), 0U);
  const std::string report = read_text(work() / "report" / "report.html");
  EXPECT_EQ(count(shown, "<figure>"), count(report, "<figure>"));
  EXPECT_EQ(count(shown, "<polyline") + count(shown, "<path"), count(report, "<polyline") + count(report, "<path"));
  EXPECT_GT(count(shown, "<td"), 100U);
  EXPECT_NE(shown.find("</html>"), std::string::npos);
  output_of(browser + "--screenshot=" + in_work("page.png") + " --window-size=1200,3000 " + page);
  EXPECT_GT(std::filesystem::file_size(work() / "page.png"), 50'000U);
}

}  // namespace poise::testing_program::program_reproduce_test
