/// Stores whose files were changed, cut, emptied or removed: what is read of them is right, or there is a sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/run_file.hpp"
#include "support/program.hpp"

namespace poise::damaged_store_test {

namespace fs = std::filesystem;
using testing_program::MostFiles;
using testing_program::Outcome;
using testing_program::ProgramTest;
using testing_program::read_text;
using testing_program::write_text;

class DamagedStore : public ProgramTest {};

/// A file as it was, which it is again afterwards.
class Damage {
 public:
  Damage(const std::vector<std::string>& files, std::mt19937_64& random)
      : file_(files[random() % files.size()]), before_(read_text(file_)) {
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    const std::size_t size = before_.size();
    const std::size_t kind = below(8);
    std::string bytes = before_;
    if (kind == 0) {
      fs::remove(file_);
      what_ = "removed";
      return;
    }
    if (kind == 1) {
      bytes.resize(below(size));
      what_ = "cut";
    } else if (kind == 2) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(below(size)), 1, '\0');
      const std::size_t from = below(size);
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                bytes.begin() + static_cast<std::ptrdiff_t>(from + below(size - from) + 1), '\0');
      what_ = "zeroed";
    } else if (kind == 3) {
      bytes += before_.substr(below(size));
      what_ = "longer";
    } else {
      for (std::size_t k = 0; k <= below(6); ++k) bytes[below(size)] = static_cast<char>(random());
      what_ = "changed";
    }
    write_text(file_, bytes);
  }
  ~Damage() { write_text(file_, before_); }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

  [[nodiscard]] std::string text() const { return file_ + " " + what_; }

 private:
  std::string file_;
  std::string before_;
  std::string what_;
};

/// POISE_DAMAGED says how many; then all go through the program.
TEST_F(DamagedStore, IsReadRightOrRefusedWithASentence) {
  const char* asked = std::getenv("POISE_DAMAGED");
  const int copies = asked != nullptr ? std::atoi(asked) : 600;
  const int through_program = asked != nullptr ? 1 : 20;
  std::mt19937_64 random(asked != nullptr ? std::random_device()() : 11);
  write_text(in_work("net.uai"),
             "BAYES 3  2 3 2  3  1 0  2 0 1  2 1 2  2 .4 .6  6 .2 .3 .5 .1 .1 .8  6 .5 .5 .1 .9 .7 .3");
  const std::vector<std::vector<std::string>> models = {
      {"ising:size=5,lambda=0.3", "--draws", "300"},
      {"net.uai", "--draws", "40"},
      {"ising:size=9,lambda=0.3", "--draws", "600", "--keep", "monitors"},
      {"ising:size=5,lambda=0.3", "--draws", "1300"}};
  std::vector<std::string> stores, outputs;
  std::vector<Trace> traces;
  std::vector<std::vector<std::string>> files(models.size());
  for (std::size_t k = 0; k < models.size(); ++k) {
    stores.push_back(fmt::format("run{}.zarr", k));
    std::vector<std::string> words = {"sample"};
    words.insert(words.end(), models[k].begin(), models[k].end());
    words.insert(words.end(), {"--sampler", "gibbs", "--out", stores[k], "--checkpoint", "--quiet", "--chains", "3"});
    const MostFiles most(k == 3 ? 6 : 1000);  // files of three chunks in the last one
    ASSERT_EQ(run(words).code, 0);
    outputs.push_back(run({"summary", stores[k]}).out);
    traces.push_back(read_run(in_work(stores[k])).trace);
    for (const auto& entry : fs::recursive_directory_iterator(in_work(stores[k]))) {
      if (entry.is_regular_file() && entry.file_size() > 0) files[k].push_back(entry.path());
    }
    std::sort(files[k].begin(), files[k].end());
  }
  int refused = 0;
  for (int copy = 0; copy < copies; ++copy) {
    const std::size_t k = random() % stores.size();
    const Damage damage(files[k], random);
    SCOPED_TRACE(damage.text());
    if (copy % through_program == 0) {
      const Outcome outcome = run({"summary", stores[k]});
      if (outcome.code == 0) {
        EXPECT_EQ(outcome.out, outputs[k]);
      } else {
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_NE(outcome.err.find(stores[k]), std::string::npos) << outcome.err;
        ++refused;
      }
    } else {
      try {
        const Trace trace = read_run(in_work(stores[k])).trace;
        EXPECT_EQ(trace.x, traces[k].x);
        EXPECT_EQ(trace.monitors, traces[k].monitors);
        EXPECT_EQ(trace.n_steps, traces[k].n_steps);
        EXPECT_EQ(trace.acceptance_rate, traces[k].acceptance_rate);
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find(stores[k]), std::string::npos) << error.what();
        ++refused;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, copies / 10);
  fmt::print("{} of {} damaged stores were refused, the others read as they were\n", refused, copies);
}

}  // namespace poise::damaged_store_test
