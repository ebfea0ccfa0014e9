/// Run files whose bytes were changed, and the child process that reads them: whatever they hold, a sentence.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "store/isolated_reader.hpp"
#include "store/netcdf.hpp"
#include "support/output.hpp"

namespace poise::damaged_run_test {

using namespace poise::testing;

class DamagedRunTest : public OutputTest {};
class IsolatedReaderTest : public OutputTest {};

DrawBatch make_block(Index variables, std::size_t monitors, std::size_t count) {
  DrawBatch block;
  block.count = count;
  block.x.assign(2 * count * variables, 1);
  block.monitors.assign(monitors, std::vector<double>(2 * count, -1.5));
  block.acceptance_rate.assign(2 * count, 0.5);
  block.n_steps.assign(2 * count, 10);
  return block;
}

/// A small run with all that a file can hold: names, monitors that need a long name, attributes.
std::string run_bytes(const std::string& path) {
  VariableLayout layout;
  layout.variables = 6;
  layout.names = {"smokes", "a b", "Ünï/é", "x[3]", "cough", "fever"};
  layout.cardinalities = {2, 3, 2, 4, 2, 2};
  NetcdfSink sink(path, {.chains = 2, .draws = 40, .variables = 6, .levels = 4, .monitors = 3});
  sink.begin(layout, 2, {"log_prob", "energy", "a/b"}, R"({"model":"network","seed":1})");
  sink.write(make_block(6, 3, 40));
  sink.finish(R"({"updates":10})");
  return read_file(path);
}

/// Changes a few bytes, zeroes some, swaps two ranges or cuts the end off; half of the time behind the beginning of one
/// of the structures by which HDF5 finds its way, for the rest of the file is mostly padding.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::vector<std::size_t> marks;
  for (const char* mark : {"GCOL", "TREE", "OHDR", "FRHP", "FHDB"}) {
    for (auto at = bytes.find(mark); at != std::string::npos; at = bytes.find(mark, at + 1)) marks.push_back(at);
  }
  const auto place = [&] {
    if (below(2) == 0) return below(bytes.size());
    return std::min(marks[below(marks.size())] + below(96), bytes.size() - 1);
  };
  const std::size_t kind = below(8);
  if (kind == 0) return bytes.substr(0, below(bytes.size()));
  const std::size_t from = place();
  const std::size_t to = place();
  const std::size_t length = std::min(1 + below(256), bytes.size() - std::max(from, to));
  if (kind == 1) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), length, '\0');
  } else if (kind == 2) {
    for (std::size_t i = 0; i < length; ++i) std::swap(bytes[from + i], bytes[to + i]);
  } else {
    for (std::size_t i = 0; i <= below(8); ++i) bytes[place()] = static_cast<char>(random());
  }
  return bytes;
}

TEST_F(DamagedRunTest, EveryCopyIsReadOrRefusedWithASentence) {
  const std::string whole = run_bytes(path("run.nc"));
  std::mt19937_64 random(7);
  int refused = 0;
  for (int copy = 0; copy < 300; ++copy) {
    write_file(path("damaged.nc"), damaged(whole, random));
    try {
      const StoredRun run = read_netcdf(path("damaged.nc"));
      EXPECT_EQ(run.trace.monitors.front().size(), run.trace.chains * run.trace.draws);
    } catch (const InputError& error) {
      expect_sentence(error.what(), {"damaged.nc"});
      ++refused;
    }
  }
  EXPECT_GT(refused, 150);
  EXPECT_EQ(read_netcdf(path("run.nc")).layout.names[2], "Ünï/é");
}

TEST_F(DamagedRunTest, ThreadsOfTheReadingProcessDoNoHarm) {
#ifdef POISE_SANITIZED
  GTEST_SKIP() << "the allocators of the sanitizers keep their locks in a child";
#endif
  static_cast<void>(run_bytes(path("run.nc")));
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) std::string(100'000, 'x').shrink_to_fit();  // the lock of the allocator is taken all the time
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read_netcdf(path("run.nc")).trace.draws, 40U);
  over = true;
}

constexpr IsolationLimits kLimits{.memory_bytes = std::uint64_t{1} << 28};
constexpr IsolationLimits kShort{std::uint64_t{1} << 28, std::chrono::milliseconds(200),
                                 std::chrono::milliseconds(500)};

/// Why a child that runs this body fails to send a number.
template <typename Body>
std::string failure(Body&& body, const IsolationLimits& limits = kLimits) {
  try {
    IsolatedReader reader(body, limits);
    static_cast<void>(reader.number());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(no error)";
}

TEST_F(IsolatedReaderTest, WhatIsSentArrives) {
  const std::vector<double> numbers(1'000'000, 0.25);
  IsolatedReader reader(
      [&](FrameSender& out) {
        out.number(7);
        out.text("");
        out.text(std::string(3'000'000, 'x'));
        out.bytes(numbers.data(), 3 * sizeof(double));
        out.bytes(numbers.data() + 3, (numbers.size() - 3) * sizeof(double));
        throw InputError("And no more.");
      },
      kLimits);
  EXPECT_EQ(reader.number(), 7U);
  EXPECT_EQ(reader.text(0), "");
  EXPECT_EQ(reader.text(3'000'000), std::string(3'000'000, 'x'));
  std::vector<double> received(numbers.size());
  reader.fill(received.data(), received.size() * sizeof(double));
  EXPECT_EQ(received, numbers);
  EXPECT_EQ(sentence([&] { static_cast<void>(reader.number()); }), "And no more.");
}

TEST_F(IsolatedReaderTest, NothingThatHappensInTheChildReachesTheParent) {
  EXPECT_EQ(failure([](FrameSender&) { ::raise(SIGSEGV); }),
            "it crashes the library that reads it: Segmentation fault");
  EXPECT_EQ(failure([](FrameSender&) { std::abort(); }), "it crashes the library that reads it: Aborted");
  EXPECT_EQ(failure([](FrameSender&) {}), "reading it ended too early");
  EXPECT_EQ(failure([](FrameSender&) { throw 1; }), "reading it ended too early");
  EXPECT_EQ(failure([](FrameSender&) { ::_exit(0); }), "reading it ended too early");
  const auto loop = [](FrameSender&) {
    volatile bool forever = true;
    while (forever) {
    }
  };
  const auto wait = [](FrameSender&) {
    for (;;) ::pause();
  };
  EXPECT_EQ(failure(loop, kShort), "reading it comes to no end");
  EXPECT_EQ(failure(wait, kShort), "reading it comes to no end");
  EXPECT_EQ(failure([](FrameSender&) { ::raise(SIGKILL); }),
            "the process that reads it was ended from outside (Killed)");
}

TEST_F(IsolatedReaderTest, NonsenseIsNotBelieved) {
  const std::string nonsense = "what was read of it makes no sense";
  EXPECT_EQ(failure([](FrameSender& out) { out.text("not a number"); }), nonsense);
  const auto hundred = [](FrameSender& out) { out.text(std::string(100, 'x')); };
  std::vector<char> received(99);
  EXPECT_THROW(static_cast<void>(IsolatedReader(hundred, kLimits).text(99)), IsolationFailure);
  EXPECT_THROW(IsolatedReader(hundred, kLimits).fill(received.data(), received.size()), IsolationFailure);
  EXPECT_THROW(IsolatedReader([](FrameSender& out) { out.text(""); }, kLimits).fill(received.data(), 1),
               IsolationFailure);
}

TEST_F(IsolatedReaderTest, TheChildHasNoFilesAndLittleMemory) {
  write_file(path("file"), "untouched");
  const int file = ::open(path("file").c_str(), O_RDWR | O_CLOEXEC);
  IsolatedReader reader(
      [&](FrameSender& out) {
        out.number(::write(file, "changed", 7) < 0 ? 1 : 0);
#ifdef POISE_SANITIZED
        void* volatile memory = nullptr;  // the sanitizer's allocator would end the process
#else
        void* volatile memory =
            std::malloc(std::size_t{1} << 30);  // NOLINT(cppcoreguidelines-no-malloc): as the library does
#endif
        out.number(memory == nullptr ? 1 : 0);
      },
      kLimits);
  EXPECT_EQ(reader.number(), 1U);
  EXPECT_EQ(reader.number(), 1U);
  ::close(file);
  EXPECT_EQ(read_file(path("file")), "untouched");
}

}  // namespace poise::damaged_run_test
