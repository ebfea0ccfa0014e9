/// Bad input on the command line: one sentence, exit code 2, and nothing written.
#include <algorithm>

#include "support/program.hpp"

namespace poise::testing_program::program_input_test {

class ProgramInputTest : public ProgramTest {
 protected:
  void expect_refused(const Arguments& arguments, const std::string& part) {
    const std::set<std::string> before = files();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(arguments);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("poise: ")) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with(".\n")) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
    EXPECT_EQ(files(), before) << testing::PrintToString(arguments);
  }
};

TEST_F(ProgramInputTest, BadUsageGetsASentence) {
  expect_refused({"sampel", "ising:case=4"}, "did you mean 'sample'?");
  expect_refused(
      {"frobnicate"},
      "commands are sample, resume, marginals, exact, info, compare, scan, summary, report, export, mmd, train, logz");
  expect_refused({"sample", "ising:case=4", "--drwas", "3"}, "did you mean '--draws'?");
  expect_refused({"sample", "ising:case=4", "--drwas=3"}, "did you mean '--draws'?");
  expect_refused({"--verson"}, "did you mean '--version'?");
  expect_refused({"sample"}, "model is missing");
  expect_refused({"sample", "ising:case=4", "again"}, "'again'");
  expect_refused({"sample", "ising:case=4", "--chains"}, "--chains: found nothing");
  expect_refused({"sample", "ising:case=4", "--chains", "2", "--chains", "3"}, "more than once");
  expect_refused({"summary"}, "run is missing");
}

TEST_F(ProgramInputTest, BadNumbersGetASentence) {
  const auto refused = [&](const Arguments& more, const std::string& part) {
    Arguments arguments{"sample", "ising:case=4", "--out", "run.zarr", "--json", "run.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, part);
  };
  refused({"--chains", "0"}, "--chains: found '0'");
  refused({"--chains", "-4"}, "--chains: found '-4'");
  refused({"--draws", "0"}, "--draws: found '0'");
  refused({"--draws", "ten"}, "--draws: found 'ten'");
  refused({"--draws", "99999999999999999999"}, "--draws");
  refused({"--warmup", "-1"}, "--warmup");
  refused({"--thin", "0"}, "--thin");
  refused({"--seed", "1.5"}, "--seed");
  refused({"--threads", "-1"}, "--threads");
  refused({"--seconds", "0"}, "--seconds");
  refused({"--seconds", "nan"}, "--seconds");
  refused({"--keep", "all"}, "draws or monitors");
  refused({"--chains", "0", "--draws", "0", "--thin", "x"}, "; --thin: found 'x'");
}

TEST_F(ProgramInputTest, BadModelsAndSamplersGetASentence) {
  write_text(work() / "missing.txt", "3 3\n1 2\n2 3\n");
  write_text(work() / "repeated.txt", "3 3\n1 2\n2 3\n2 1\n");
  write_text(work() / "range.txt", "3 2\n1 2\n2 4\n");
  write_text(work() / "nan.txt", "0.5 nan\n1 2\n");
  write_text(work() / "inf.txt", "0.5 inf\n1 2\n");
  write_text(work() / "broken.png", "\x89PNG\r\n\x1a\nno more");
  write_text(work() / "words.txt", "this is no image\n");
  const auto refused = [&](const Arguments& more, const std::string& part) {
    Arguments arguments{"sample", "--out", "run.zarr", "--json", "run.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, part);
  };
  refused({"isng:case=4"}, "did you mean 'ising'?");
  refused({"ising:cse=4"}, "did you mean 'case'?");
  refused({"ising:case=9"}, "from 1 to 4");
  refused({"ising:boundary=tours"}, "did you mean 'torus'?");
  refused({"ising:size=0"}, "'0'");
  refused({"ising:size=-3"}, "'-3'");
  refused({"ising:size=3x0"}, "'3x0'");
  refused({"ising:mu=nan"}, "'nan'");
  refused({"ising:lambda=inf"}, "'inf'");
  refused({"ising:size=x,lamda=1,mu=y"}, "did you mean 'lambda'?");
  refused({"ising:graph=nowhere.txt"}, "nowhere.txt");
  refused({"ising:graph=missing.txt"}, "missing.txt: found 2 edges");
  refused({"ising:graph=repeated.txt"}, "repeated.txt, line 4");
  refused({"ising:graph=range.txt"}, "range.txt, line 3");
  refused({"ising", "--field", "nan.txt"}, "nan.txt, line 1");
  refused({"ising", "--field", "inf.txt"}, "inf.txt, line 1");
  refused({"ising", "--field", "broken.png"}, "broken.png");
  refused({"ising", "--field", "words.txt"}, "words.txt");
  refused({"ising", "--field", "nowhere.png"}, "nowhere.png");
  refused({"ising:case=4", "--sampler", "lsb9"}, "did you mean 'lsb'?");
  refused({"ising:case=4", "--sampler", "lb:h=sqrt"}, "'h'");
  refused({"ising:case=4", "--sampler", "lb:g=sqr"}, "did you mean 'sqrt'?");
  refused({"ising:case=4", "--sampler", "lsb:rate=-1"}, "'-1'");
  refused({"ising:size=40", "--sampler", "hb:block=1000,radius=10"}, "expected at most 1048576");
  refused({"potts:size=6,levels=3", "--sampler", "gibbs:block=20"}, "found 3486784401 configurations");
  expect_refused({"compare", "ising:case=4", "--samplers", "lsb,gibs", "--json", "c.json"}, "did you mean 'gibbs'?");
}

TEST_F(ProgramInputTest, BadInitialStatesGetASentence) {
  write_text(work() / "three.txt", "1 -1 1\n");
  write_text(work() / "mixed.txt", "1 0 -1 2\n");
  write_text(work() / "empty.txt", "");
  expect_refused({"sample", "ising:size=2", "--init", "unifrom"}, "did you mean 'uniform'?");
  expect_refused({"sample", "ising:size=2", "--init", "three.txt"}, "three.txt has 3 values");
  expect_refused({"sample", "ising:size=2", "--init", "mixed.txt"}, "value 2 of mixed.txt is 0");
  expect_refused({"sample", "ising:size=2", "--init", "empty.txt"}, "empty.txt is empty");
}

TEST_F(ProgramInputTest, OutputsAreCheckedBeforeSampling) {
  write_text(work() / "file", "x");
  write_text(work() / "edges.txt", "2 1\n1 2\n");
  const auto refused = [&](const Arguments& more, const std::string& part) {
    // Would take hours: a check that came after sampling would not go unnoticed.
    Arguments arguments{"sample", "ising:size=100", "--draws", "1000000", "--keep", "monitors"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, part);
  };
  refused({"--out", "nowhere/run.zarr"}, "the directory nowhere does not exist");
  refused({"--out", "."}, "the folder holds other things than a run of poise");
  refused({"--out", "run.nc"}, "give it a name like run.zarr; 'poise export run.zarr run.nc' then makes a .nc file");
  refused({"--out", "run.png"}, "is the name of a file; run.zarr would do");
  refused({"--out", "file/run.zarr"}, "file is not a directory");
  refused({"--out", "-"}, "standard output");
  refused({"--json", "nowhere/run.json"}, "--json: cannot write nowhere/run.json");
  refused({"--json", "."}, "is a directory");
  refused({"--sampler", "lsb", "--plot", "nowhere/b.svg"}, "--plot: cannot write");
  refused({"--report", "nowhere/r.html"}, "--report: cannot write");
  refused({"--out", "same", "--json", "./same"}, "both write to");
  refused({"--out", "same.zarr", "--json", "./same.zarr"}, "both write to");
  refused({"--images", "a.png"}, "--keep monitors");
  expect_refused({"sample", "ising:size=100", "--draws", "9000", "--images", "nowhere/a.png"},
                 "--images: cannot write");
  expect_refused({"sample", "ising:graph=edges.txt", "--images", "a.png"}, "lattice");
  expect_refused({"compare", "ising:size=100", "--json", "nowhere/c.json"}, "--json: cannot write");
  expect_refused({"compare", "ising:size=100", "--plot", "nowhere/c.svg"}, "--plot: cannot write");
  expect_refused({"marginals", "ising:size=4", "--plot", "nowhere/c.svg"}, "--plot: cannot write");
  expect_refused({"report", "none.zarr"}, "none.zarr");
  expect_refused({"report"}, "the run is missing");
}

TEST_F(ProgramInputTest, SummaryRefusesWhatIsNotARun) {
  write_text(work() / "words.txt", "no run\n");
  expect_refused({"summary", "nowhere.zarr"}, "nowhere.zarr");
  expect_refused({"summary", "words.txt", "--json", "s.json"}, "words.txt");
  expect_refused({"summary", "."}, ".");
}

}  // namespace poise::testing_program::program_input_test
