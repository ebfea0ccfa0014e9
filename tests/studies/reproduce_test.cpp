/// The paper's experiments in their quick form: the same numbers for a seed, parts that are not computed twice, files
/// that can be read.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>
#include "base/image/inflate.hpp"
#include "base/npz.hpp"
#include "studies/images/idx.hpp"
#include "studies/reproduce.hpp"

#include "support/idx_file.hpp"

namespace poise::reproduce_test {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

class Reproduce : public ::testing::Test {
 protected:
  Reproduce() {
    std::string name = (fs::temp_directory_path() / "poise-reproduce-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Reproduce() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  [[nodiscard]] ReproduceOptions quick(Experiment experiment, const std::string& out) const {
    ReproduceOptions options;
    options.experiment = experiment;
    options.effort = Effort::quick;
    options.threads = 2;
    options.out = (root_ / out).string();
    return options;
  }

  [[nodiscard]] std::string numbers(const std::string& out) const { return read_text(root_ / out / "results.json"); }

  [[nodiscard]] std::size_t count_parts(const std::string& out) const {
    const fs::directory_iterator files(root_ / out / "parts");
    return static_cast<std::size_t>(
        std::count_if(fs::begin(files), fs::end(files),
                      [](const fs::directory_entry& file) { return file.path().extension() == ".json"; }));
  }

  /// Every file is there and can be read by what reads such files; the report needs no other.
  void expect_readable(const std::string& out, const std::set<std::string>& tables) const {
    const fs::path directory = root_ / out;
    for (const char* name : {"results.json", "times.json", "verdicts.json"}) {
      EXPECT_TRUE(nlohmann::json::accept(read_text(directory / name))) << name;
    }
    std::set<std::string> found;
    for (const auto& file : fs::directory_iterator(directory / "tables")) {
      found.insert(file.path().filename());
      std::istringstream lines(read_text(file.path()));
      std::size_t cells = 0;
      std::size_t rows = 0;
      for (std::string line; std::getline(lines, line); ++rows) {
        bool quoted = false;
        std::size_t commas = 0;
        for (const char c : line) {
          quoted = quoted != (c == '"');
          commas += c == ',' && !quoted ? 1 : 0;
        }
        if (rows == 0) cells = commas;
        EXPECT_EQ(commas, cells) << file.path() << ": " << line;
      }
      EXPECT_GT(rows, 1U) << file.path();
    }
    EXPECT_EQ(found, tables);
    const std::string report = read_text(directory / "report.html");
    std::size_t figures = 0;
    for (const auto& file : fs::directory_iterator(directory / "figures")) {
      const std::string svg = read_text(file.path());
      EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << file.path();
      EXPECT_EQ(svg.find("nan"), std::string::npos) << file.path();
      EXPECT_NE(report.find(svg), std::string::npos) << file.path() << " is not in the report";
      ++figures;
    }
    EXPECT_GT(figures, 4U);
    for (const char* outside : {"src=\"http", "href=\"http", "url(", "<script", "@import"}) {
      EXPECT_EQ(report.find(outside), std::string::npos) << outside;
    }
    EXPECT_TRUE(report.ends_with("</html>\n"));
  }

  fs::path root_;
};

TEST_F(Reproduce, IsingGivesTheSameNumbersForTheSameSeedOnAnyNumberOfThreads) {
  const ReproduceOutcome first = reproduce(quick(Experiment::ising, "a"));
  EXPECT_FALSE(first.interrupted);
  EXPECT_EQ(first.reused, 0U);
  EXPECT_EQ(first.parts, count_parts("a"));
  EXPECT_FALSE(first.verdicts.empty());
  expect_readable("a", {"table2-window-ess.csv", "ess-sum-per-evaluation.csv", "ess-log-prob-per-evaluation.csv",
                        "arrival-iterations.csv", "arrival-evaluations.csv"});
  ReproduceOptions again = quick(Experiment::ising, "b");
  again.threads = 1;
  reproduce(again);
  EXPECT_EQ(numbers("a"), numbers("b"));
  again.seed = 2;  // what another seed has left there must not be taken
  EXPECT_EQ(reproduce(again).reused, 0U);
  EXPECT_NE(numbers("a"), numbers("b"));
}

TEST_F(Reproduce, AnInterruptedRunGoesOnWhereItWas) {
  std::atomic<bool> stop = false;
  ReproduceHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&](const ReproduceProgress& progress) {
    if (progress.done == 5) stop = true;
  };
  const ReproduceOutcome broken = reproduce(quick(Experiment::ising, "a"), hooks);
  EXPECT_TRUE(broken.interrupted);
  EXPECT_FALSE(fs::exists(root_ / "a" / "report.html"));
  const std::size_t kept = count_parts("a");
  EXPECT_GE(kept, 5U);
  EXPECT_LT(kept, broken.parts);

  std::size_t computed = 0;
  hooks.stop = nullptr;
  hooks.progress = [&](const ReproduceProgress& progress) { computed += progress.part.empty() ? 0 : 1; };
  const ReproduceOutcome whole = reproduce(quick(Experiment::ising, "a"), hooks);
  EXPECT_FALSE(whole.interrupted);
  EXPECT_EQ(whole.reused, kept);
  EXPECT_EQ(computed, whole.parts - kept);
  reproduce(quick(Experiment::ising, "b"));
  EXPECT_EQ(numbers("a"), numbers("b"));
}

TEST_F(Reproduce, ADamagedPartIsComputedAgain) {
  reproduce(quick(Experiment::ising, "a"));
  const std::string before = numbers("a");
  std::ofstream(root_ / "a" / "parts" / "case1-sqrt.json") << "{\"settings\": ";
  const ReproduceOutcome again = reproduce(quick(Experiment::ising, "a"));
  EXPECT_EQ(again.reused, again.parts - 1);
  EXPECT_EQ(numbers("a"), before);
}

TEST_F(Reproduce, APartWithAnotherNumberIsComputedAgain) {
  reproduce(quick(Experiment::ising, "a"));
  const std::string before = numbers("a");
  const auto part = root_ / "a" / "parts" / "case1-sqrt.json";
  std::ifstream stream(part);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t digit = text.find_first_of("123456789", text.find("\"result\"") + 10);
  text[digit] = text[digit] == '9' ? '8' : '9';
  std::ofstream(part) << text;
  const ReproduceOutcome again = reproduce(quick(Experiment::ising, "a"));
  EXPECT_EQ(again.reused, again.parts - 1);
  EXPECT_EQ(numbers("a"), before);
}

TEST_F(Reproduce, TwoProgramsDoNotShareADirectory) {
  ReproduceHooks hooks;
  std::string refusal;
  hooks.progress = [&](const ReproduceProgress&) {
    if (!refusal.empty()) return;
    try {
      reproduce(quick(Experiment::ising, "a"));
      refusal = "none";
    } catch (const InputError& error) {
      refusal = error.what();
    }
  };
  reproduce(quick(Experiment::ising, "a"), hooks);
  EXPECT_NE(refusal.find("another program is writing it just now"), std::string::npos) << refusal;
  EXPECT_FALSE(std::filesystem::exists(root_ / "a" / "parts" / "lock"));
}

TEST_F(Reproduce, PublishedIsingHasThePapersNumbersBesideItsOwn) {
  ReproduceOptions options = quick(Experiment::ising, "a");
  options.protocol = Protocol::published;
  reproduce(options);
  const std::string table = read_text(root_ / "a" / "tables" / "table2-window-ess.csv");
  EXPECT_NE(table.find(",20.11,15.58,"), std::string::npos);
  EXPECT_NE(read_text(root_ / "a" / "report.html").find("LSB 2 makes two steps"), std::string::npos);
  // In burn-in LSB 2 is plotted every second step, so its last look is at the same iteration as that of sqrt.
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  EXPECT_EQ(results["case4-lsb2"]["curve"]["step"], results["case4-sqrt"]["curve"]["step"]);
}

TEST_F(Reproduce, NetworksAreGeneratedWhereNoneAreGiven) {
  const ReproduceOutcome outcome = reproduce(quick(Experiment::uai, "a"));
  EXPECT_EQ(outcome.parts, count_parts("a"));
  expect_readable("a", {"table3-window-ess.csv", "arrival-iterations.csv", "marginal-error.csv"});
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  for (const char* key : {"network1-lsb", "network2-gibbs"}) {
    const auto& errors = results[key]["marginal_error"]["error"];
    EXPECT_LT(errors.back().get<double>(), 0.5 * errors.front().get<double>()) << key;
  }
  const auto& fit = results["fit-to-max"]["error"];
  EXPECT_LT(fit.back().get<double>(), 0.05);
}

TEST_F(Reproduce, AnRbmIsTrainedAndSampled) {
  fs::create_directory(root_ / "images");
  write_idx(root_ / "images" / "train-images-idx3-ubyte", draw_digits(600, 1));
  ReproduceOptions options = quick(Experiment::rbm, "a");
  options.data = (root_ / "images").string();
  reproduce(options);
  expect_readable("a", {"table4-evaluations.csv", "burn-in-discrepancy.csv", "effective-sample-size.csv"});
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  EXPECT_DOUBLE_EQ(results["hb-10-1"]["evals_per_step"].get<double>(), 11.0);
  EXPECT_DOUBLE_EQ(results["hb-10-3"]["evals_per_step"].get<double>(), 176.0);
  EXPECT_DOUBLE_EQ(results["gibbs-10"]["evals_per_step"].get<double>(), 1024.0);
  EXPECT_DOUBLE_EQ(results["flsb2"]["evals_per_step"].get<double>(), 2.0);
  for (const char* key : {"gwg", "flsb", "gibbs-2"}) {
    const auto& discrepancy = results[key]["mmd"]["mmd2"];
    EXPECT_LT(discrepancy.back().get<double>(), discrepancy.front().get<double>()) << key;
  }
  // Parts from one thread go into a run with two.
  fs::remove(root_ / "a" / "parts" / "gwg.json");
  const std::string before = numbers("a");
  options.threads = 1;
  const ReproduceOutcome again = reproduce(options);
  EXPECT_EQ(again.reused, again.parts - 1);
  EXPECT_EQ(numbers("a"), before);
}

TEST_F(Reproduce, DiscsComparesAllSamplersOnAllModels) {
  const ReproduceOutcome outcome = reproduce(quick(Experiment::discs, "a"));
  EXPECT_EQ(outcome.parts, count_parts("a"));
  EXPECT_FALSE(outcome.verdicts.empty());
  expect_readable("a", {"ess-per-step.csv", "ess-per-evaluation.csv", "ess-per-second.csv", "acceptance.csv",
                        "couplings.csv", "published-code.csv"});
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  // Independent variables, each drawn anew from its conditional: relaxation is never refused, and a sweep of Gibbs
  // gives an independent draw.
  EXPECT_NEAR(results["bernoulli-dlmc-sqrt"]["acceptance_rate"].get<double>(), 1.0, 1e-12);
  EXPECT_GT(results["bernoulli-gibbs"]["ess_per_step"]["mean"].get<double>(), 0.3);
  for (const char* key : {"ising-half-gibbs", "potts-4-gibbs", "fhmm-wide-gibbs", "rbm-25-rbm-gibbs"}) {
    EXPECT_NEAR(results[key]["evaluations_per_step"].get<double>(), 1.0, 0.01) << key;
  }
  // The best of a grid is one of its lengths, and the final run is made with it.
  const auto& grid = results["ising-half-dlmc-sqrt-grid"];
  EXPECT_NE(std::find(grid["length"].begin(), grid["length"].end(), grid["best"]), grid["length"].end());
  EXPECT_EQ(results["ising-half-dlmc-sqrt"]["sampler"].get<std::string>(), "dlmc:g=sqrt,tau=" + grid["best"].dump());
  EXPECT_FALSE(results["ising-half-auto"]["chosen"].get<std::string>().starts_with("auto"));

  // Parts from two threads go into a run with one.
  fs::remove(root_ / "a" / "parts" / "potts-4-gwg-sqrt.json");
  fs::remove(root_ / "a" / "parts" / "ising-half-dlmc-sqrt-grid.json");
  const std::string before = numbers("a");
  ReproduceOptions again = quick(Experiment::discs, "a");
  again.threads = 1;
  EXPECT_EQ(reproduce(again).reused, outcome.parts - 2);
  EXPECT_EQ(numbers("a"), before);

  again.protocol = Protocol::published;
  EXPECT_THROW(reproduce(again), InputError);
}

TEST_F(Reproduce, SelectComparesSamplersOfInclusion) {
  const ReproduceOutcome outcome = reproduce(quick(Experiment::select, "a"));
  EXPECT_EQ(outcome.parts, count_parts("a"));
  EXPECT_FALSE(outcome.verdicts.empty());
  expect_readable("a", {"ess-per-second.csv", "ess-per-second-of-sampling.csv", "settings.csv"});
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  for (const char* name : {"masked", "locus", "regression"}) {
    const auto& pip = results[std::string(name) + "-reference"]["pip"];
    for (const auto& one : pip) {
      EXPECT_GE(one.get<double>(), 0.0) << name;
      EXPECT_LE(one.get<double>(), 1.0 + 1e-9) << name;
    }
    const auto& error = results[std::string(name) + "-wtgs-2"]["curve"]["error"];
    EXPECT_LT(error.back().get<double>(), error.front().get<double>()) << name;
  }
  EXPECT_FALSE(results["locus-reference"]["sets"].empty());
  EXPECT_FALSE(results["locus-lsb-1"]["log_phi"].empty());

  // Parts from two threads go into a run with one.
  fs::remove(root_ / "a" / "parts" / "locus-lsb-1.json");
  fs::remove(root_ / "a" / "parts" / "masked-reference.json");
  const std::string before = numbers("a");
  ReproduceOptions again = quick(Experiment::select, "a");
  again.threads = 1;
  EXPECT_EQ(reproduce(again).reused, outcome.parts - 2);
  EXPECT_EQ(numbers("a"), before);

  again.protocol = Protocol::published;
  EXPECT_THROW(reproduce(again), InputError);
}

/// An npz file of arrays of doubles by rows, not compressed.
std::string npz_of(const std::vector<std::pair<std::string, std::pair<std::string, std::vector<double>>>>& arrays) {
  std::string content;
  std::string directory;
  for (const auto& [name, array] : arrays) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + array.first + ", }";
    header.resize(117, ' ');
    header += '\n';
    const std::string numbers(reinterpret_cast<const char*>(array.second.data()), array.second.size() * sizeof(double));
    const std::string bytes = "\x93NUMPY" + little_endian(1, 2) + little_endian(header.size(), 2) + header + numbers;
    const std::span<const std::uint8_t> seen(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    const std::string entry = name + ".npy";
    const std::string common = little_endian(20, 2) + little_endian(0, 4) + little_endian(0, 4) +
                               little_endian(crc32_of(seen), 4) + little_endian(bytes.size(), 4) +
                               little_endian(bytes.size(), 4) + little_endian(entry.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 6) + little_endian(0, 4) +
                 little_endian(content.size(), 4) + entry;
    content += "PK\x03\x04" + common + entry + bytes;
  }
  return content + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(arrays.size(), 2) +
         little_endian(arrays.size(), 2) + little_endian(directory.size(), 4) + little_endian(content.size(), 4) +
         little_endian(0, 2);
}

TEST_F(Reproduce, SelectReadsRegressionsFromFiles) {
  fs::create_directory(root_ / "data");
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(root_ / "data" / name, std::ios::binary) << bytes;
  };
  Rng rng(3, 1);
  std::vector<double> x(40 * 5);
  for (double& value : x) value = rng.normal();
  std::vector<double> y(40 * 2);
  for (std::size_t i = 0; i < 40; ++i) {
    y[2 * i] = x[5 * i + 1] + 0.5 * rng.normal();
    y[2 * i + 1] = x[5 * i + 3] + 0.5 * rng.normal();
  }
  write("table.npz", npz_of({{"X", {"(40, 5)", x}}, {"Y", {"(40, 2)", y}}}));
  write("scores.npz",
        npz_of({{"z", {"(2,)", {5.0, 4.0}}}, {"R", {"(2, 2)", {1.0, 0.8, 0.8, 1.0}}}, {"n", {"()", {100.0}}}}));
  ReproduceOptions options = quick(Experiment::select, "a");
  options.data = (root_ / "data").string();
  reproduce(options);
  const auto results = nlohmann::json::parse(numbers("a"))["parts"];
  EXPECT_GT(results["table-1-reference"]["pip"][1].get<double>(), 0.9);
  EXPECT_GT(results["table-2-reference"]["pip"][3].get<double>(), 0.9);
  EXPECT_EQ(results["scores-reference"]["pip"].size(), 2U);

  write("table.npz", npz_of({{"X", {"(40, 5)", x}}, {"Y", {"(39,)", std::vector<double>(39, 1.0)}}}));
  EXPECT_THROW(reproduce(options), InputError);
  write("table.npz", npz_of({{"weights", {"(40, 5)", x}}}));
  EXPECT_THROW(reproduce(options), InputError);
}

TEST_F(Reproduce, MissingDataIsAnInputError) {
  ReproduceOptions options = quick(Experiment::uai, "a");
  options.data = (root_ / "nowhere").string();
  EXPECT_THROW(reproduce(options), InputError);
  options.experiment = Experiment::rbm;
  EXPECT_THROW(reproduce(options), InputError);
  options.experiment = Experiment::discs;
  EXPECT_THROW(reproduce(options), InputError);
  options.experiment = Experiment::select;
  EXPECT_THROW(reproduce(options), InputError);
  options.experiment = Experiment::ising;
  EXPECT_THROW(reproduce(options), InputError);
}

}  // namespace poise::reproduce_test
