/// `poise train`: weights in a file, metrics as JSON, and what is said when something is wrong.
#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/rbm/rbm_weights.hpp"
#include "support/program.hpp"

namespace poise::testing_program::program_train_test {

class TrainProgramTest : public ProgramTest {
 protected:
  void wait_for(const std::string& part) {
    for (int attempt = 0; attempt < 3000; ++attempt) {
      if (read_text(root_ / "err").find(part) != std::string::npos) return;
      std::this_thread::sleep_for(10ms);
    }
    FAIL() << "no progress: " << read_text(root_ / "err");
  }
};

TEST_F(TrainProgramTest, LearnsFromDigits) {
  const Arguments arguments{"train",    "rbm", "--data",   "digits", "--images", "500",
                            "--hidden", "16",  "--epochs", "1",      "--json",   "-"};
  const auto with = [&](const Arguments& more) {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const Outcome first = with({"--out", "x.safetensors", "--threads", "1"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("epoch 1/1  batch 18/18"), std::string::npos) << first.err;
  const nlohmann::json json = nlohmann::json::parse(first.out);
  EXPECT_EQ(json["settings"]["k"], 10);
  EXPECT_EQ(json["epochs"].size(), 1U);
  EXPECT_EQ(json["epochs"][0]["images"], 500);
  EXPECT_LT(json["final"]["pseudo_log_likelihood"].get<double>(), 0.0);
  EXPECT_LT(json["final"]["reconstruction_error"].get<double>(), 0.25);
  const RbmWeights rbm = read_rbm(in_work("x.safetensors"));
  EXPECT_EQ(rbm.visible, 784U);
  EXPECT_EQ(rbm.hidden, 16U);
  EXPECT_EQ(rbm.rows, 28U);
  EXPECT_EQ(rbm.columns, 28U);

  const Outcome second = with({"--out", "y.npz", "--threads", "2", "--quiet"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(read_rbm(in_work("y.npz")), rbm);
  const Outcome sampled = with({"--out", "z.npz", "--binarise", "sample", "--method", "pcd", "--epochs=2", "--k", "1"});
  EXPECT_EQ(sampled.code, 2) << "--epochs was given twice";
  EXPECT_EQ(files(), (std::set<std::string>{"x.safetensors", "y.npz"}));
}

/// An npy file of bytes.
std::string npy(const std::string& shape, bool fortran, const std::string& bytes) {
  std::string head =
      std::string("{'descr': '|u1', 'fortran_order': ") + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  head.resize(117, ' ');
  head += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(head.size()) + '\0' + head + bytes;
}

TEST_F(TrainProgramTest, LearnsFromArrays) {
  std::string rows;
  std::string columns(60, '\0');
  std::string csv = "a,b,c,d,e\n";
  for (std::size_t r = 0; r < 12; ++r) {
    for (std::size_t c = 0; c < 5; ++c) {
      const char bit = (r * 7 + c * c) % 3 == 0 ? '\1' : '\0';
      rows += bit;
      columns[c * 12 + r] = bit;
      csv += std::string(1, bit == 0 ? '0' : '1') + (c < 4 ? "," : "\n");
    }
  }
  write_text(work() / "rows.npy", npy("(12, 5)", false, rows));
  write_text(work() / "columns.npy", npy("(12, 5)", true, columns));
  write_text(work() / "names.csv", csv);
  const auto learn = [&](const std::string& data) {
    return run({"train", "rbm", "--data", data, "--hidden", "3", "--out", data + ".npz", "--quiet"});
  };
  for (const char* data : {"rows.npy", "columns.npy", "names.csv"}) {
    const Outcome outcome = learn(data);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const RbmWeights rbm = read_rbm(in_work(std::string(data) + ".npz"));
    EXPECT_EQ(rbm, read_rbm(in_work("rows.npy.npz"))) << data;
    EXPECT_EQ(rbm.visible, 5U);
    EXPECT_EQ(rbm.rows, 0U) << "a row is no picture";
  }
  write_text(work() / "images.npy", npy("(3, 4, 5)", false, rows));
  ASSERT_EQ(learn("images.npy").code, 0);
  EXPECT_EQ(read_rbm(in_work("images.npy.npz")).rows, 4U);
  write_text(work() / "line.npy", npy("(60,)", false, rows));
  write_text(work() / "short.npy", npy("(12, 6)", false, rows));
  write_text(work() / "large.csv", "1,2\n3,300\n");
  write_text(work() / "mixed.csv", "1,0.5\n3,0\n");
  for (const auto& [data, words] :
       std::vector<std::pair<std::string, std::string>>{{"line.npy", "found an array of shape (60)"},
                                                        {"short.npy", "found 60 bytes"},
                                                        {"large.csv", "found 300"},
                                                        {"mixed.csv", "found 0.5 beside 3"},
                                                        {"missing.npy", "missing.npy"}}) {
    const Outcome outcome = learn(data);
    EXPECT_EQ(outcome.code, 2) << data;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  }
}

TEST_F(TrainProgramTest, LearnsFromAFileInSeveralEpochs) {
  // Two images of 2 x 3 pixels.
  std::string idx("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16);
  idx += std::string("\xff\x80\0\0\xff\x90\0\0\xff\xff\x10\0", 12);
  write_text(work() / "images.idx", idx);
  const Outcome outcome = run({"train", "rbm", "--data", "images.idx", "--hidden", "2", "--epochs", "3", "--method",
                               "pcd", "--binarise", "sample", "--out", "m.npz", "--json", "m.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("m.npz: 6 visible and 2 hidden units"), std::string::npos) << outcome.out;
  EXPECT_EQ(nlohmann::json::parse(read_text(work() / "m.json"))["epochs"].size(), 3U);
  EXPECT_EQ(read_rbm(in_work("m.npz")).columns, 3U);
}

TEST_F(TrainProgramTest, AnInterruptSavesWhatWasLearned) {
  start({"train", "rbm", "--data", "digits", "--images", "200", "--hidden", "4", "--k", "1", "--epochs", "1000000",
         "--out", "x.npz", "--json", "x.json"});
  wait_for("epoch 1/1000000");
  ::kill(child_, SIGINT);
  const Outcome outcome = wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.out.find("interrupted"), std::string::npos) << outcome.out;
  EXPECT_EQ(read_rbm(in_work("x.npz")).hidden, 4U);
  EXPECT_EQ(nlohmann::json::parse(read_text(work() / "x.json"))["interrupted"], true);
  EXPECT_NE(outcome.err.find("'poise resume x.npz' continues it"), std::string::npos) << outcome.err;
  const Outcome draws = run({"resume", "x.npz", "--draws", "3"});
  EXPECT_EQ(draws.code, 2);
  EXPECT_NE(draws.err.find("is a training"), std::string::npos) << draws.err;
}

/// Killed again and again, also between two epochs and with pixels that are drawn anew.
TEST_F(TrainProgramTest, AKilledTrainingGoesOnBitByBit) {
  for (const char* binarise : {"0.5", "sample"}) {
    const auto words = [&](const std::string& out) {
      return Arguments{"train",    "rbm",      "--data", "digits",     "--images", "300", "--hidden",           "32",
                       "--epochs", "12",       "--k",    "2",          "--out",    out,   "--checkpoint-every", "0.01",
                       "--quiet",  "--method", "pcd",    "--binarise", binarise};
    };
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_EQ(run(words("whole.npz")).code, 0);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begun;
    EXPECT_FALSE(std::filesystem::exists(in_work("whole.npz.checkpoint")));
    start(words("x.npz"));
    for (int kill = 0; kill < 4; ++kill) {
      for (int look = 0; look < 2000 && !std::filesystem::exists(in_work("x.npz.checkpoint")); ++look) {
        std::this_thread::sleep_for(2ms);
      }
      std::this_thread::sleep_for(whole * (kill == 0 ? 0.05 : 0.2));
      ::kill(child_, SIGKILL);
      if (wait().code == 0) break;  // it was faster
      if (kill == 0) {
        const Outcome anew = run(words("x.npz"));
        EXPECT_EQ(anew.code, 2);
        EXPECT_NE(anew.err.find("has an unfinished training: 'poise resume x.npz' continues it"), std::string::npos);
      }
      start({"resume", "x.npz", "--quiet"});
    }
    if (child_ > 0) {
      const Outcome outcome = wait();
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
    EXPECT_EQ(read_rbm(in_work("x.npz")), read_rbm(in_work("whole.npz")));
    EXPECT_EQ(files(), (std::set<std::string>{"whole.npz", "x.npz"}));
    for (const char* name : {"whole.npz", "x.npz"}) std::filesystem::remove(in_work(name));
  }
}

TEST_F(TrainProgramTest, BadOptionsGetOneSentence) {
  write_text(work() / "words.txt", "no images\n");
  const auto refused = [&](const Arguments& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("poise: ")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "'" << part << "' is not in: " << outcome.err;
    }
    EXPECT_EQ(files(), std::set<std::string>{"words.txt"});
  };
  refused({"train"}, {"the kind of model is missing", "--data is missing", "--out is missing"});
  refused({"train", "rmb", "--data", "digits", "--out", "x.npz"}, {"'rmb'", "which is rbm"});
  refused({"train",      "rbm", "--data",   "digits", "--out",  "x.txt", "--hidden",  "0",   "--k",         "-1",
           "--epochs",   "x",   "--batch",  "0",      "--rate", "2",     "--method",  "sgd", "--optimizer", "sgd",
           "--binarise", "1",   "--images", "0",      "--seed", "a",     "--threads", "-1"},
          {"--out: found 'x.txt'", "--hidden: found '0'", "--k: found '-1'", "--epochs: found 'x'",
           "--batch: found '0'", "--rate: found '2'", "--method: found 'sgd'", "--optimizer: found 'sgd'",
           "--binarise: found '1'", "--images: found '0'", "--seed: found 'a'", "--threads: found '-1'"});
  refused({"train", "rbm", "--data", "words.txt", "--images", "3", "--out", "x.npz"}, {"--images"});
  refused({"train", "rbm", "--data", "words.txt", "--out", "x.npz"}, {"words.txt"});
  refused({"train", "rbm", "--data", "nowhere", "--out", "x.npz"}, {"nowhere"});
  refused({"train", "rbm", "--data", "digits", "--out", "nowhere/x.npz"}, {"the directory nowhere does not exist"});
  refused({"train", "rbm", "--data", "digits", "--out", "x.npz", "--json", "x.npz"}, {"both write to"});
  refused({"train", "rbm", "--dta", "digits"}, {"did you mean '--data'?"});
}

TEST_F(TrainProgramTest, HelpShowsExamples) {
  const Outcome outcome = run({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("Usage: poise train rbm [OPTIONS]"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("poise train rbm --data digits --out rbm.safetensors"), std::string::npos);
}

}  // namespace poise::testing_program::program_train_test
