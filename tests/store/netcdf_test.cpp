/// The file of draws: round trips, what ArviZ expects, kills, full disks, forgeries.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <sys/resource.h>
#include <sys/wait.h>

#include <netcdf.h>

#include "store/netcdf.hpp"
#include "support/output.hpp"

namespace poise::netcdf_test {

using namespace poise::testing;

class NetcdfTest : public OutputTest {};

VariableLayout lattice() {
  VariableLayout layout;
  layout.variables = 12;
  layout.rows = 3;
  layout.columns = 4;
  layout.labels = {-1, 1};
  return layout;
}

const std::vector<std::string> kMonitors{"log_prob", "magnetization"};

/// Values that tell where they belong: draw numbers `first` and up of every chain.
DrawBatch make_block(const VariableLayout& layout, std::size_t chains, std::size_t first, std::size_t count) {
  DrawBatch block;
  block.count = count;
  block.monitors.resize(kMonitors.size());
  for (std::size_t chain = 0; chain < chains; ++chain) {
    for (std::size_t draw = first; draw < first + count; ++draw) {
      for (Index i = 0; i < layout.variables; ++i) {
        const auto levels = layout.cardinalities.empty() ? 2 : layout.cardinalities[i];
        block.x.push_back(layout.label(static_cast<Value>((chain * 7 + draw * 3 + i * i) / 2 % levels)));
      }
      block.monitors[0].push_back(-static_cast<double>(chain) - 1e-3 * static_cast<double>(draw));
      block.monitors[1].push_back(std::sin(static_cast<double>(chain * 1000 + draw)));
      block.acceptance_rate.push_back(1.0 / static_cast<double>(1 + draw));
      block.n_steps.push_back(static_cast<std::int64_t>(chain * 100 + draw));
    }
  }
  return block;
}

void write_run(NetcdfSink& sink, const VariableLayout& layout, std::size_t chains, std::size_t draws,
               std::size_t step) {
  for (std::size_t at = 0; at < draws; at += step) {
    sink.write(make_block(layout, chains, at, std::min(step, draws - at)));
  }
}

void expect_run(const StoredRun& run, const VariableLayout& layout, std::size_t chains, std::size_t draws) {
  const DrawBatch all = make_block(layout, chains, 0, draws);
  EXPECT_EQ(run.trace.chains, chains);
  ASSERT_EQ(run.trace.draws, draws);
  EXPECT_EQ(run.trace.monitor_names, kMonitors);
  EXPECT_EQ(run.trace.monitors, all.monitors);
  EXPECT_EQ(run.trace.acceptance_rate, all.acceptance_rate);
  EXPECT_EQ(run.trace.n_steps, all.n_steps);
  EXPECT_EQ(run.trace.x, all.x);
  EXPECT_EQ(run.layout.variables, layout.variables);
  EXPECT_EQ(run.layout.rows, layout.rows);
  EXPECT_EQ(run.layout.columns, layout.columns);
  EXPECT_EQ(run.layout.labels, layout.labels);
  EXPECT_EQ(run.layout.names, layout.names);
  EXPECT_EQ(run.layout.cardinalities, layout.cardinalities);
}

TEST_F(NetcdfTest, LatticeRoundTrip) {
  NetcdfSink sink(path("run.nc"));
  sink.begin(lattice(), 3, kMonitors, R"({"model":"ising:size=3","text":"Ω"})");
  write_run(sink, lattice(), 3, 100, 7);
  sink.finish(R"({"acceptance_rate":null,"long":")" + std::string(300'000, 'y') + "\"}");
  const StoredRun run = read_netcdf(path("run.nc"));
  expect_run(run, lattice(), 3, 100);
  EXPECT_EQ(run.settings.at("text"), "Ω");
  EXPECT_EQ(run.results.at("long").get<std::string>().size(), 300'000U);
  EXPECT_TRUE(read_netcdf(path("run.nc"), {.draws = false}).trace.x.empty());
}

TEST_F(NetcdfTest, ListRoundTrip) {
  VariableLayout layout;
  layout.variables = 4;
  layout.names = {"smokes", "a b", "Ünï/é", "x[3]"};
  layout.cardinalities = {2, 3, 2, 120};
  NetcdfSink sink(path("run.nc"), {.chains = 2, .draws = 50, .variables = 4, .levels = 120, .monitors = 2});
  sink.begin(layout, 2, kMonitors, "{}");
  write_run(sink, layout, 2, 50, 50);
  sink.finish("{}");
  expect_run(read_netcdf(path("run.nc")), layout, 2, 50);
}

TEST_F(NetcdfTest, LayoutIsWhatArvizExpects) {
  NetcdfSink sink(path("run.nc"));
  sink.begin(lattice(), 3, kMonitors, "{}");
  write_run(sink, lattice(), 3, 10, 10);
  sink.finish("{}");
  int file = -1;
  int group = -1;
  int variable = -1;
  int count = -1;
  nc_type type = NC_NAT;
  ASSERT_EQ(nc_open(path("run.nc").c_str(), NC_NOWRITE, &file), NC_NOERR);
  EXPECT_EQ(nc_inq_ndims(file, &count), NC_NOERR);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(nc_inq_nvars(file, &count), NC_NOERR);
  EXPECT_EQ(count, 0);
  ASSERT_EQ(nc_inq_grp_ncid(file, "posterior", &group), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(group, "x", &variable), NC_NOERR);
  EXPECT_EQ(nc_inq_vartype(group, variable, &type), NC_NOERR);
  EXPECT_EQ(type, NC_BYTE);
  EXPECT_EQ(nc_inq_varndims(group, variable, &count), NC_NOERR);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(nc_inq_varnatts(group, variable, &count), NC_NOERR);
  EXPECT_EQ(count, 0) << "a _FillValue would turn x into floating point";
  ASSERT_EQ(nc_inq_varid(group, "draw", &variable), NC_NOERR);
  EXPECT_EQ(nc_inq_vartype(group, variable, &type), NC_NOERR);
  EXPECT_EQ(type, NC_INT64);
  EXPECT_NE(nc_inq_varid(group, "log_prob", &variable), NC_NOERR);
  ASSERT_EQ(nc_inq_grp_ncid(file, "sample_stats", &group), NC_NOERR);
  for (const char* name : {"chain", "draw", "lp", "acceptance_rate", "n_steps"}) {
    EXPECT_EQ(nc_inq_varid(group, name, &variable), NC_NOERR) << name;
  }
  nc_close(file);
}

TEST_F(NetcdfTest, MonitorsAloneAndAnyNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  NetcdfSink sink(path("run.nc"));
  sink.begin(lattice(), 2, {"log_prob", "x", "a/b", "a_b"}, "");
  DrawBatch block = make_block(lattice(), 2, 0, 2);
  block.x.clear();
  block.monitors = {{-inf, inf, NAN, -0.0}, {NAN, NAN, NAN, NAN}, {1, 2, 3, 4}, {5, 6, 7, 8}};
  block.acceptance_rate[1] = NAN;
  sink.write(block);
  sink.finish("");
  const StoredRun run = read_netcdf(path("run.nc"));
  EXPECT_TRUE(run.trace.x.empty());
  EXPECT_EQ(run.layout.rows, 3U);
  EXPECT_EQ(run.trace.monitor_names, (std::vector<std::string>{"log_prob", "x", "a/b", "a_b"}));
  EXPECT_EQ(run.trace.monitors[0][0], -inf);
  EXPECT_EQ(run.trace.monitors[0][1], inf);
  EXPECT_TRUE(std::isnan(run.trace.monitors[0][2]));
  EXPECT_TRUE(std::signbit(run.trace.monitors[0][3]));
  EXPECT_TRUE(std::isnan(run.trace.monitors[1][3]));
  EXPECT_EQ(run.trace.monitors[2], block.monitors[2]);
  EXPECT_EQ(run.trace.monitors[3], block.monitors[3]);
  EXPECT_TRUE(std::isnan(run.trace.acceptance_rate[1]));
  EXPECT_TRUE(run.settings.is_null());
}

TEST_F(NetcdfTest, CompressedFilesTakeWholeChunks) {
  // Announced large enough to be compressed; 256 draws make a chunk.
  NetcdfOptions options{.chains = 3, .draws = 10'000'000, .variables = 12, .monitors = 2};
  options.sync_interval = std::chrono::milliseconds(0);
  NetcdfSink sink(path("run.nc"), options);
  sink.begin(lattice(), 3, kMonitors, "{}");
  write_run(sink, lattice(), 3, 700, 45);
  EXPECT_EQ(sink.synced_draws(), 512U);
  sink.finish("{}");
  EXPECT_EQ(sink.synced_draws(), 700U);
  expect_run(read_netcdf(path("run.nc")), lattice(), 3, 700);
}

TEST_F(NetcdfTest, GrowingFileCanBeRead) {
  NetcdfOptions options;
  options.sync_interval = std::chrono::milliseconds(0);
  NetcdfSink sink(path("run.nc"), options);
  sink.begin(lattice(), 2, kMonitors, R"({"seed":1})");
  EXPECT_EQ(read_netcdf(path("run.nc")).trace.draws, 0U);
  write_run(sink, lattice(), 2, 60, 6);
  const StoredRun run = read_netcdf(path("run.nc"));
  expect_run(run, lattice(), 2, 60);
  EXPECT_EQ(run.settings.at("seed"), 1);
  EXPECT_TRUE(run.results.is_null());
  expect_sentence(sentence([&] { NetcdfSink other(path("run.nc")); }), {"run.nc", "another program"});
  sink.finish("{}");
  expect_run(read_netcdf(path("run.nc")), lattice(), 2, 60);
}

TEST_F(NetcdfTest, AbandonedRunKeepsItsDraws) {
  {
    NetcdfSink sink(path("run.nc"));
    sink.begin(lattice(), 2, kMonitors, "{}");
    write_run(sink, lattice(), 2, 60, 6);
  }
  expect_run(read_netcdf(path("run.nc")), lattice(), 2, 60);
}

/// Runs a body in a process of its own; what it returns is the exit status.
template <typename Body>
pid_t in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception&) {
    }
    ::_exit(status);
  }
  return child;
}

TEST_F(NetcdfTest, KilledRunKeepsWhatWasSynced) {
  for (const std::size_t announced : {std::size_t{0}, std::size_t{10'000'000}}) {  // plain and compressed
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = in_child([&] {
      NetcdfOptions options{.chains = 2, .draws = announced, .variables = 12, .monitors = 2};
      options.sync_interval = std::chrono::milliseconds(0);
      NetcdfSink sink(path("run.nc"), options);
      sink.begin(lattice(), 2, kMonitors, "{}");
      write_run(sink, lattice(), 2, 600, 50);
      const std::size_t synced = sink.synced_draws();
      if (::write(ends[1], &synced, sizeof synced) != sizeof synced) return 1;
      for (;;) ::pause();
      return 0;
    });
    std::size_t synced = 0;
    ASSERT_EQ(::read(ends[0], &synced, sizeof synced), static_cast<ssize_t>(sizeof synced));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(synced, announced == 0 ? 600U : 512U);
    expect_run(read_netcdf(path("run.nc")), lattice(), 2, synced);
  }
}

TEST_F(NetcdfTest, FullDiskLeavesAReadableFile) {
  const pid_t child = in_child([&] {
    const rlimit limit{3'000'000, 3'000'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    NetcdfOptions options;
    options.sync_interval = std::chrono::milliseconds(0);
    NetcdfSink sink(path("run.nc"), options);
    sink.begin(lattice(), 2, kMonitors, "{}");
    try {
      write_run(sink, lattice(), 2, 1'000'000, 1000);
    } catch (const std::runtime_error& error) {
      sink.write(make_block(lattice(), 2, 0, 1));  // closed: both are ignored
      sink.finish("{}");
      return std::string(error.what()).find("run.nc: File too large") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const std::size_t draws = read_netcdf(path("run.nc")).trace.draws;
  EXPECT_GE(draws, 1000U);
  expect_run(read_netcdf(path("run.nc")), lattice(), 2, draws);
}

TEST_F(NetcdfTest, OldFileStaysUntilTheRunBegins) {
  write_file(path("run.nc"), "precious");
  NetcdfSink sink(path("run.nc"));
  EXPECT_EQ(read_file(path("run.nc")), "precious");
  sink.begin(lattice(), 1, kMonitors, "{}");
  sink.finish("{}");
  EXPECT_EQ(read_netcdf(path("run.nc")).trace.draws, 0U);
  NetcdfSink fresh(path("new.nc"));
  EXPECT_FALSE(fs::exists(path("new.nc")));
}

TEST_F(NetcdfTest, PathsThatCannotBeWritten) {
  expect_sentence(sentence([&] { NetcdfSink sink(path("no/such/run.nc")); }), {"run.nc", "no/such", "does not exist"});
  expect_sentence(sentence([&] { NetcdfSink sink(path("")); }), {"it is a directory"});
  expect_sentence(sentence([&] { NetcdfSink sink(""); }), {"empty"});
  expect_sentence(sentence([&] { NetcdfSink sink(path("a\\b.nc")); }), {"backslash"});
  write_file(path("file"), "");
  expect_sentence(sentence([&] { NetcdfSink sink(path("file/run.nc")); }), {"not a directory"});
  expect_sentence(sentence([&] { NetcdfSink sink("/dev/null"); }), {"not a regular file"});
  const NetcdfOptions huge{.chains = 1000, .draws = 1'000'000'000, .variables = 1'000'000};
  expect_sentence(sentence([&] { NetcdfSink sink(path("run.nc"), huge); }),
                  {"run.nc", "1000000000 draws of 1000 chains", "free", "--keep monitors", "--thin"});
  EXPECT_FALSE(fs::exists(path("run.nc")));
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  const NetcdfOptions absurd{.chains = most, .draws = most, .variables = most, .levels = 256, .monitors = 1};
  expect_sentence(sentence([&] { NetcdfSink sink(path("run.nc"), absurd); }), {"EB", "free"});
}

TEST_F(NetcdfTest, ExpectedSizeBoundsTheFile) {
  const NetcdfOptions options{.chains = 2, .draws = 1000, .variables = 12, .monitors = 2};
  NetcdfSink sink(path("run.nc"), options);
  sink.begin(lattice(), 2, kMonitors, "{}");
  write_run(sink, lattice(), 2, 1000, 100);
  sink.finish("{}");
  EXPECT_LE(fs::file_size(path("run.nc")), expected_netcdf_bytes(options));
  EXPECT_EQ(expected_netcdf_bytes({.chains = 2, .variables = 12}), 0U);
}

TEST_F(NetcdfTest, MisuseIsRefused) {
  NetcdfSink sink(path("run.nc"));
  EXPECT_THROW(sink.write(make_block(lattice(), 2, 0, 1)), std::logic_error);
  EXPECT_THROW(sink.finish(""), std::logic_error);
  EXPECT_THROW(sink.begin(lattice(), 0, kMonitors, ""), std::invalid_argument);
  EXPECT_THROW(sink.begin(lattice(), 2, {"energy"}, ""), std::invalid_argument);
  sink.begin(lattice(), 2, kMonitors, "");
  EXPECT_THROW(sink.write(make_block(lattice(), 3, 0, 1)), std::invalid_argument);
  sink.write(make_block(lattice(), 2, 0, 1));
  DrawBatch block = make_block(lattice(), 2, 1, 1);
  block.x.clear();
  EXPECT_THROW(sink.write(block), std::invalid_argument);
}

TEST_F(NetcdfTest, FilesThatAreNoRun) {
  const auto read = [&](const std::string& name) {
    return sentence([&] { static_cast<void>(read_netcdf(path(name))); });
  };
  expect_sentence(read("missing.nc"), {"missing.nc", "No such file"});
  expect_sentence(read(""), {"is not a file"});
  write_file(path("empty.nc"), "");
  expect_sentence(read("empty.nc"), {"empty.nc is not a NetCDF file"});
  write_file(path("text.nc"), "not NetCDF at all, but long enough to be something else");
  expect_sentence(read("text.nc"), {"text.nc is not a NetCDF file"});
  int file = -1;
  ASSERT_EQ(nc_create(path("classic.nc").c_str(), NC_CLOBBER, &file), NC_NOERR);
  nc_close(file);
  expect_sentence(read("classic.nc"), {"no group 'posterior'", "poise"});
}

/// Files like ours but for one thing.
struct Forgery {
  nc_type x = NC_BYTE;
  nc_type lp = NC_DOUBLE;
  bool swapped = false;
  const char* n_steps = "n_steps";
  const char* layout = R"({"variables":2})";
};

void forge(const std::string& path, const Forgery& forgery) {
  int file = -1;
  ASSERT_EQ(nc_create(path.c_str(), NC_NETCDF4 | NC_CLOBBER, &file), NC_NOERR);
  nc_put_att_text(file, NC_GLOBAL, "layout", std::string_view(forgery.layout).size(), forgery.layout);
  for (const char* name : {"posterior", "sample_stats"}) {
    int group = -1;
    int variable = -1;
    int dimensions[3];
    nc_def_grp(file, name, &group);
    nc_def_dim(group, "chain", 1, &dimensions[0]);
    nc_def_dim(group, "draw", 3, &dimensions[1]);
    nc_def_dim(group, "x_variable", 2, &dimensions[2]);
    if (forgery.swapped) std::swap(dimensions[0], dimensions[1]);
    if (std::string_view(name) == "posterior") {
      nc_def_var(group, "x", forgery.x, 3, dimensions, &variable);
    } else {
      nc_def_var(group, "lp", forgery.lp, 2, dimensions, &variable);
      nc_def_var(group, "acceptance_rate", NC_DOUBLE, 2, dimensions, &variable);
      nc_def_var(group, forgery.n_steps, NC_INT64, 2, dimensions, &variable);
    }
  }
  nc_close(file);
}

TEST_F(NetcdfTest, ForgedFilesAreNamed) {
  const auto read = [&](const Forgery& forgery) {
    forge(path("run.nc"), forgery);
    return sentence([&] { static_cast<void>(read_netcdf(path("run.nc"))); });
  };
  EXPECT_EQ(read({}), "(no error)");
  expect_sentence(read({.x = NC_FLOAT}), {"'x'", "not of type byte"});
  expect_sentence(read({.lp = NC_FLOAT}), {"'lp'", "not of type double"});
  expect_sentence(read({.swapped = true}), {"dimensions are not (chain, draw)"});
  expect_sentence(read({.n_steps = "steps"}), {"no variable 'n_steps'"});
  expect_sentence(read({.layout = "{"}), {"'layout'", "not JSON"});
  expect_sentence(read({.layout = "[]"}), {"'layout'"});
  expect_sentence(read({.layout = R"({"variables":3})"}), {"shape"});
  expect_sentence(read({.layout = R"({"variables":4294967295,"cardinalities":2})"}), {"layout"});
}

TEST_F(NetcdfTest, TruncatedFilesAreRefused) {
  {
    NetcdfSink sink(path("run.nc"));
    sink.begin(lattice(), 2, kMonitors, "{}");
    write_run(sink, lattice(), 2, 60, 6);
    sink.finish("{}");
  }
  const std::string whole = read_file(path("run.nc"));
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    write_file(path("cut.nc"), whole.substr(0, size));
    EXPECT_THROW(static_cast<void>(read_netcdf(path("cut.nc"))), InputError) << size;
  }
}

}  // namespace poise::netcdf_test
