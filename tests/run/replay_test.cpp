/// Power cuts: whatever a Zarr store had not synced is dropped or kept at random, and what is left is resumed.
///
/// SIGKILL says nothing of this, for the system writes what a killed program has left. So all calls of a run that
/// change its store are recorded (tests/shim/fail_write.c), and folders are built as a disk might hold them after any
/// of them: with all that was synced, and with any part of what was not, writes of files and changes of folders each by
/// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "base/file.hpp"
#include "run/checkpoint.hpp"
#include "store/run_file.hpp"
#include "support/mpi_program.hpp"

namespace poise::replay_test {

namespace fs = std::filesystem;
using testing_program::MostFiles;
using testing_program::MpiProgramTest;
using testing_program::Outcome;

struct Call {
  char kind = 0;  // c(reate empty), o(pen), w(rite at the end), s(ync), r(ename), u(nlink), m(kdir)
  std::string path;
  std::string bytes;  // that were written; the new name
};

std::vector<Call> read_record(const std::string& path) {
  const std::string all = read_file(path);
  std::vector<Call> calls;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t line = all.find('\n', at);
    Call call;
    call.kind = all[at];
    char* end = nullptr;
    const std::size_t path_size = std::strtoull(all.data() + at + 2, &end, 10);
    const std::size_t size = std::strtoull(end, &end, 10);
    call.path = all.substr(line + 1, path_size);
    call.bytes = all.substr(line + 1 + path_size, size);
    at = line + 1 + path_size + size;
    calls.push_back(std::move(call));
  }
  return calls;
}

/// What a disk has of a store, and what is on its way there.
class Disk {
 public:
  explicit Disk(std::string store) : store_(std::move(store)) {}

  void make(const Call& call) {
    const std::string name = inside(call.path);
    switch (call.kind) {
      case 'm': change(name, {true, name, "", nullptr}); break;
      case 'c':
      case 'o': {
        auto& file = seen_[name];
        if (!file) {
          file = std::make_shared<File>();
          change(name, {false, name, "", file});
        } else if (call.kind == 'c') {
          file->writes.push_back({true, ""});
        }
        break;
      }
      case 'w': seen_[name]->writes.push_back({false, call.bytes}); break;
      case 's': {
        const auto file = seen_.find(name);
        if (file != seen_.end()) {
          file->second->synced = file->second->writes.size();
        } else {
          for (Change& made : changes_[name]) made.synced = true;
        }
        break;
      }
      case 'r': {
        const std::string to = inside(call.bytes);
        const auto file = std::exchange(seen_[name], nullptr);
        seen_.erase(name);
        seen_[to] = file;
        change(to, {false, to, name, file});
        break;
      }
      case 'u':
        seen_.erase(name);
        change(name, {false, "", name, nullptr});
        break;
      default: FAIL() << "unknown call " << call.kind;
    }
  }

  /// Builds the folder as it may be after a power cut: with everything that was synced, and of all else what chance
  /// says.
  void build(const std::string& target, std::mt19937& random, double kept) const {
    std::bernoulli_distribution keeps(kept);
    fs::remove_all(target);
    fs::create_directories(target);
    build(target, "", random, keeps);
  }

 private:
  struct Write {
    bool truncates = false;
    std::string bytes;
  };
  struct File {
    std::vector<Write> writes;
    std::size_t synced = 0;
  };
  /// Of a folder: `to` appears, `from` goes.
  struct Change {
    bool is_folder = false;
    std::string to;
    std::string from;
    std::shared_ptr<File> file;
    bool synced = false;
  };

  [[nodiscard]] std::string inside(const std::string& path) const {
    const std::size_t at = path.find(store_);
    const std::size_t end = at + store_.size();
    return end >= path.size() ? "" : path.substr(end + 1);
  }
  static std::string folder_of(const std::string& name) { return fs::path(name).parent_path().string(); }
  void change(const std::string& name, Change made) {
    if (name.empty()) return;  // the store itself
    changes_[folder_of(name)].push_back(std::move(made));
  }

  void build(const std::string& target, const std::string& folder, std::mt19937& random,
             std::bernoulli_distribution& keeps) const {
    const auto found = changes_.find(folder);
    if (found == changes_.end()) return;
    std::map<std::string, std::shared_ptr<File>> files;
    std::vector<std::string> folders;
    for (const Change& made : found->second) {
      if (!made.synced && !keeps(random)) continue;
      if (!made.from.empty()) files.erase(made.from);
      if (made.is_folder) {
        folders.push_back(made.to);
      } else if (!made.to.empty()) {
        files[made.to] = made.file;
      }
    }
    for (const auto& [name, file] : files) write(target + '/' + name, *file, random, keeps);
    for (const std::string& name : folders) {
      fs::create_directories(target + '/' + name);
      build(target, name, random, keeps);
    }
  }

  static void write(const std::string& path, const File& file, std::mt19937& random,
                    std::bernoulli_distribution& keeps) {
    std::string content;
    std::size_t end = 0;
    for (std::size_t k = 0; k < file.writes.size(); ++k) {
      const Write& one = file.writes[k];
      const bool is_there = k < file.synced || keeps(random);
      if (one.truncates) {
        if (is_there) content.clear();
        end = 0;
        continue;
      }
      if (is_there) {
        content.resize(std::max(content.size(), end + one.bytes.size()));  // zeros where a write before is not there
        content.replace(end, one.bytes.size(), one.bytes);
        if (k >= file.synced && random() % 2 == 0) content.resize(end + random() % (one.bytes.size() + 1));  // torn
      }
      end += one.bytes.size();
    }
    std::ofstream(path, std::ios::binary) << content;
  }

  std::string store_;
  std::map<std::string, std::shared_ptr<File>> seen_;   // as the program sees it
  std::map<std::string, std::vector<Change>> changes_;  // by folder
};

class Replay : public MpiProgramTest {
 protected:
  [[nodiscard]] testing_program::Arguments sample(const std::string& out) const {
    return {"sample",    "ising:size=5x7,lambda=0.3",
            "--sampler", "lb",
            "--draws",   std::to_string(draws_),
            "--warmup",  "30",
            "--chains",  "2",
            "--seed",    "3",
            "--quiet",   "--out",
            out,         "--checkpoint-every",
            "0.002"};
  }

  /// Draws that are a beginning of those of the whole run.
  static void expect_beginning(const StoredRun& found, const StoredRun& whole) {
    const std::size_t draws = found.trace.draws;
    ASSERT_LE(draws, whole.trace.draws);
    for (std::size_t chain = 0; chain < 2; ++chain) {
      const auto same = [&](const auto& a, const auto& b, std::size_t width) {
        return std::equal(a.begin() + static_cast<std::ptrdiff_t>(chain * draws * width),
                          a.begin() + static_cast<std::ptrdiff_t>((chain + 1) * draws * width),
                          b.begin() + static_cast<std::ptrdiff_t>(chain * whole.trace.draws * width));
      };
      EXPECT_TRUE(same(found.trace.x, whole.trace.x, 35));
      EXPECT_TRUE(same(found.trace.n_steps, whole.trace.n_steps, 1));
      for (std::size_t k = 0; k < whole.trace.monitors.size(); ++k) {
        EXPECT_TRUE(same(found.trace.monitors[k], whole.trace.monitors[k], 1));
      }
    }
  }

  /// Of a run on so many ranks; resumed by one process.
  void drop_what_was_not_synced(int ranks);

  std::size_t draws_ = 400;
};

#ifndef POISE_SANITIZED
TEST_F(Replay, WhateverWasNotSyncedMayBeLost) { drop_what_was_not_synced(1); }

/// Each of which writes the states of a chain.
TEST_F(Replay, WhateverTwoRanksHadNotSyncedMayBeLost) {
  if (!has_launcher()) GTEST_SKIP() << "there is no mpirun";
  drop_what_was_not_synced(2);
}

/// Where files hold three chunks, and a commit replaces the ones that are not full.
TEST_F(Replay, ShardsThatWereNotSyncedMayBeLost) {
  const MostFiles few(4);
  draws_ = 1300;
  drop_what_was_not_synced(1);
}

TEST_F(Replay, ShardsOfTwoRanksThatWereNotSyncedMayBeLost) {
  if (!has_launcher()) GTEST_SKIP() << "there is no mpirun";
  const MostFiles few(4);
  draws_ = 1300;
  drop_what_was_not_synced(2);
}

void Replay::drop_what_was_not_synced(int ranks) {
  use_ranks(ranks);
  ::setenv("LD_PRELOAD", POISE_SHIM, 1);
  ::setenv("POISE_RECORD", in_work("record").c_str(), 1);
  const Outcome recorded = run(sample("run.zarr"));
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("POISE_RECORD");
  use_ranks(1);
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const StoredRun whole = read_run(in_work("run.zarr"));
  ASSERT_EQ(whole.trace.draws, draws_);
  const std::vector<Call> calls = read_record(in_work("record"));
  const std::string store = in_work("run.zarr");
  const auto commits = std::count_if(calls.begin(), calls.end(), [&](const Call& call) {
    return call.kind == 'r' && call.bytes.ends_with("run.zarr/zarr.json");
  });
  EXPECT_GE(commits, 3);
  std::mt19937 random(1);
  Disk disk("run.zarr");
  std::size_t promised = 0;  // draws of the last commit that the program was told is on the disk
  std::size_t trees = 0;
  std::size_t resumed = 0;
  std::size_t readable = 0;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    disk.make(calls[k]);
    for (const double kept : {0.0, 0.3, 0.7, 1.0}) {
      if (kept > 0.0 && k % 3 != 0) continue;
      disk.build(in_work("cut.zarr"), random, kept);
      ++trees;
      SCOPED_TRACE(fmt::format("after call {} of {}, {} of the rest kept", k, calls.size(), kept));
      bool has_draws = false;
      try {
        const StoredRun found = read_run(in_work("cut.zarr"));
        expect_beginning(found, whole);
        has_draws = true;
        ++readable;
        promised = std::max(promised, kept == 0.0 ? found.trace.draws : 0);
        if (kept == 0.0) EXPECT_EQ(found.trace.draws, promised);  // what was on the disk stays there
      } catch (const InputError& error) {
        const std::string what = error.what();
        const bool has_begun = what.find("no draws yet") != std::string::npos;
        EXPECT_TRUE(has_begun || what.find("does not hold a run") != std::string::npos) << what;
        if (kept == 0.0) EXPECT_EQ(promised, 0U);
      }
      std::string note;
      bool has_state = false;
      try {
        const Checkpoint state = read_checkpoint(in_work("cut.zarr"), note);
        has_state = true;
        EXPECT_EQ(note, "");
        if (state.draws > 0) EXPECT_TRUE(has_draws);
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("has no checkpoint to resume from"), std::string::npos)
            << error.what();
      }
      if (HasFailure()) return;
      // A process for each tree would take minutes: one in so many is resumed.
      if (trees % 40 != 0) continue;
      ++resumed;
      const Outcome outcome =
          run(has_state ? testing_program::Arguments{"resume", "cut.zarr", "--quiet"} : sample("cut.zarr"));
      if (outcome.code == 2 && outcome.err.find("is finished") != std::string::npos) continue;
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const StoredRun again = read_run(in_work("cut.zarr"));
      ASSERT_EQ(again.trace.draws, draws_);
      expect_beginning(again, whole);
      if (HasFailure()) return;
    }
  }
  std::printf("%zu calls, %td commits, %zu folders, %zu with draws, %zu resumed\n", calls.size(), commits, trees,
              readable, resumed);
  EXPECT_GT(trees, 500U);
  EXPECT_GT(readable, 100U);
  EXPECT_GT(resumed, 10U);
}
#endif

}  // namespace poise::replay_test
