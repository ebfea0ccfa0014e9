/// `poise select` and `poise finemap` on the command line: files in, tables and JSON out, and sentences for bad input.
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/base/rng.hpp>
#include "support/program.hpp"

namespace poise::testing_program::program_select_test {

using nlohmann::json;

/// A hundred rows in which height depends on two columns.
std::string heights() {
  Rng rng(4, 1);
  std::string text = "height,shoe,\"age, years\",noise\n";
  for (int row = 0; row < 100; ++row) {
    const double shoe = rng.normal();
    const double age = rng.normal();
    text += fmt::format("{},{},{},{}\n", 170.0 + 5.0 * shoe + 3.0 * age + rng.normal(), shoe, age, rng.normal());
  }
  return text;
}

class SelectProgram : public ProgramTest {
 protected:
  SelectProgram() {
    write_text(work() / "data.csv", heights());
    write_text(work() / "locus.z",
               "rsid chromosome position allele1 allele2 maf beta se\nrs1 1 10 A G 0.2 0.9 0.1\n"
               "rs2 1 20 C T 0.3 0.72 0.1\nrs3 1 30 G A 0.1 0.05 0.1\n");
    write_text(work() / "locus.ld", "1 0.8 0\n0.8 1 0\n0 0 1\n");
  }
};

TEST_F(SelectProgram, FindsTheColumnsThatMatter) {
  const Outcome done = run({"select", "data.csv", "--response", "height", "--quiet", "--json", "a.json", "--out",
                            "a.tsv", "--predict", "data.csv", "--predictions", "p.csv"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.out.find("age, years"), std::string::npos);
  const json answer = json::parse(read_text(work() / "a.json"));
  EXPECT_EQ(answer["variables"][1]["name"], "age, years");
  EXPECT_GT(answer["variables"][0]["pip"].get<double>(), 0.99);
  EXPECT_NEAR(answer["variables"][0]["mean"].get<double>(), 5.0, 0.5);
  EXPECT_LT(answer["variables"][2]["pip"].get<double>(), 0.5);
  EXPECT_EQ(answer["sets"].size(), 2U);
  EXPECT_EQ(read_text(work() / "a.tsv").substr(0, 13), "variable\tPIP\t");
  EXPECT_EQ(read_text(work() / "p.csv").substr(0, 7), "height\n");
  // The same seed and other threads: the same answer.
  ASSERT_EQ(run({"select", "data.csv", "--response", "height", "--quiet", "--threads", "1", "--out", "b.tsv"}).code, 0);
  EXPECT_EQ(read_text(work() / "a.tsv"), read_text(work() / "b.tsv"));
}

TEST_F(SelectProgram, FineMapsAndKeepsAlleles) {
  const Outcome done =
      run({"finemap", "--z", "locus.z", "--ld", "locus.ld", "--n", "1000", "--quiet", "--out", "a.tsv"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string table = read_text(work() / "a.tsv");
  EXPECT_NE(table.find("SNP\tchromosome\tposition\tallele1\tallele2\tmaf\tbeta\tse\tZ\tPIP\t"), std::string::npos);
  EXPECT_NE(table.find("rs2\t1\t20\tC\tT\t"), std::string::npos);
  write_text(work() / "all.master", "z;ld;snp;config;cred;n_samples\nlocus.z;locus.ld;l.snp;l.config;l.cred;1000\n");
  ASSERT_EQ(run({"finemap", "--master", "all.master", "--quiet"}).code, 0);
  EXPECT_TRUE(read_text(work() / "l.snp")
                  .starts_with("index rsid chromosome position allele1 allele2 maf beta se z prob log10bf mean sd "
                               "mean_incl sd_incl prob_se\n"));
  EXPECT_TRUE(read_text(work() / "l.config").starts_with("rank config prob log10bf k log_posterior\n1 rs1"));
  EXPECT_EQ(read_text(work() / "l.cred").substr(0, 11), "index cred1");
}

TEST_F(SelectProgram, TakesNumbersAloneAndPriorsOfTheirOwn) {
  write_text(work() / "z.txt", "9\n7.2\n0.5\n");
  write_text(work() / "named.ld", "rs1 rs2 rs3\n1 0.8 0\n0.8 1 0\n0 0 1\n");
  write_text(work() / "prior.txt", "rsid prob\nrs3 0.1\nrs2 0\nrs1 0.5\n");
  const Outcome plain = run({"finemap", "--z", "z.txt", "--ld", "locus.ld", "--n", "1000", "--quiet", "--json", "-"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(json::parse(plain.out)["variables"][0]["name"], "x[0]");
  const Outcome done = run({"finemap", "--z", "locus.z", "--ld", "named.ld", "--n", "1000", "--inclusions", "prior.txt",
                            "--quiet", "--json", "-"});
  ASSERT_EQ(done.code, 0) << done.err;
  const json answer = json::parse(done.out);
  EXPECT_GT(answer["variables"][0]["pip"], 0.99);
  EXPECT_EQ(answer["variables"][1]["pip"], 0.0);
  EXPECT_TRUE(answer["warnings"].empty()) << answer["warnings"];
  write_text(work() / "short.txt", "rsid prob\nrs3 0.1\n");
  const Outcome refused = run({"finemap", "--z", "locus.z", "--ld", "named.ld", "--inclusions", "short.txt"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("found no row for 'rs1'"), std::string::npos) << refused.err;
}

TEST_F(SelectProgram, TakesProductsOfColumns) {
  write_text(work() / "xtx.txt", "a b c\n99 60 0\n60 99 0\n0 0 99\n");
  write_text(work() / "xty.txt", "60\n36\n5\n");
  const Arguments all = {"finemap", "--xtx", "xtx.txt", "--xty", "xty.txt", "--yty", "99", "--n", "100", "--quiet"};
  Arguments with = all;
  with.insert(with.end(), {"--json", "-"});
  const Outcome done = run(with);
  ASSERT_EQ(done.code, 0) << done.err;
  const json answer = json::parse(done.out);
  EXPECT_EQ(answer["variables"][0]["name"], "a");
  EXPECT_GT(answer["variables"][0]["pip"], 0.99);
  with = all;
  with.insert(with.end(), {"--z", "locus.z"});
  const Outcome both = run(with);
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("expected all of them, and no --z"), std::string::npos) << both.err;
  EXPECT_EQ(run({"finemap", "--xtx", "xtx.txt", "--xty", "xty.txt"}).code, 2);
}

TEST_F(SelectProgram, DrawsAPicture) {
  const Outcome done =
      run({"finemap", "--z", "locus.z", "--ld", "locus.ld", "--n", "1000", "--quiet", "--plot", "a.svg"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string picture = read_text(work() / "a.svg");
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
  EXPECT_NE(picture.find("<desc>Inclusion probabilities of 3 variables"), std::string::npos);
  EXPECT_NE(picture.find(">position<"), std::string::npos);
  const Outcome screen = run({"select", "data.csv", "--response", "height", "--quiet", "--plot", "-"});
  ASSERT_EQ(screen.code, 0) << screen.err;
  EXPECT_TRUE(screen.out.starts_with("<svg ") && screen.out.ends_with("</svg>\n"));
  EXPECT_NE(screen.out.find(">age, years<"), std::string::npos);
  EXPECT_EQ(run({"select", "data.csv", "--response", "height", "--plot", "nowhere/a.svg"}).code, 2);
}

TEST_F(SelectProgram, IsAModelLikeOthers) {
  const Outcome done = run({"sample", "selection:data=data.csv,response=height", "--draws", "50", "--quiet"});
  EXPECT_EQ(done.code, 0) << done.err;
  const Outcome refused = run({"sample", "selection:data=data.csv,response=height", "--sampler", "gwg", "--quiet"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("gradient"), std::string::npos);
}

TEST_F(SelectProgram, RefusesBadInputInASentence) {
  const auto refusal = [&](const Arguments& arguments) {
    const Outcome done = run(arguments);
    EXPECT_EQ(done.code, 2) << done.out;
    return done.err;
  };
  EXPECT_NE(refusal({"select", "data.csv", "--response", "heigt"}).find("did you mean 'height'"), std::string::npos);
  EXPECT_NE(refusal({"select", "data.csv"}).find("--response is missing"), std::string::npos);
  EXPECT_NE(refusal({"finemap", "--z", "locus.z"}).find("--ld"), std::string::npos);
  write_text(work() / "short.ld", "1 0.8\n0.8 1\n");
  EXPECT_NE(refusal({"finemap", "--z", "locus.z", "--ld", "short.ld"}).find("found 2 columns, expected 3"),
            std::string::npos);
  write_text(work() / "gap.csv", "y,a\n1,2\n2,\n3,4\n");
  EXPECT_NE(refusal({"select", "gap.csv", "--response", "y"}).find("line 3: found no value in column 'a'"),
            std::string::npos);
}

}  // namespace poise::testing_program::program_select_test
