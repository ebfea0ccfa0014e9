/// What leaves a run: the NetCDF file, pictures and plots.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <netcdf.h>
#include <png.h>

#include <poise/image/png.hpp>
#include <poise/report/svg_plot.hpp>
#include <poise/trace/netcdf.hpp>

namespace poise {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test.
class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) /
              ("poise_" + std::string(info->test_suite_name()) + info->name() + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~OutputTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

void write_file(const std::string& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The sentence of the InputError that a call throws.
template <typename Call>
std::string sentence(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

void expect_sentence(const std::string& message, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
  EXPECT_EQ(message.back(), '.') << message;
}

// ---------------------------------------------------------------------------------------------------- NetCDF

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
DrawBlock make_block(const VariableLayout& layout, std::size_t chains, std::size_t first, std::size_t count) {
  DrawBlock block;
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
  const DrawBlock all = make_block(layout, chains, 0, draws);
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
  DrawBlock block = make_block(lattice(), 2, 0, 2);
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
  DrawBlock block = make_block(lattice(), 2, 1, 1);
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

// ------------------------------------------------------------------------------------------------------- PNG

class PngTest : public OutputTest {};

Image ramp(std::size_t width, std::size_t height, std::size_t channels) {
  Image image{width, height, channels, std::vector<std::uint8_t>(width * height * channels)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37 % 256);
  return image;
}

Image parse(std::string_view text) { return parse_image(std::as_bytes(std::span(text)), "input"); }

/// A 5 x 4 PNG whose samples are the low bits of a ramp.
std::string encode_png(int color, int depth, int interlace) {
  constexpr int width = 5;
  constexpr int height = 4;
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, depth, color, interlace, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  std::vector<png_color> palette(std::size_t{1} << std::min(depth, 8));
  for (std::size_t i = 0; i < palette.size(); ++i) palette[i] = {static_cast<png_byte>(i), 7, 9};
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  std::vector<std::vector<png_byte>> rows(height, std::vector<png_byte>(width * 8));
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t i = 0; i < rows[y].size(); ++i) rows[y][i] = static_cast<png_byte>(y * 50 + i * 5);
    pointers.push_back(rows[y].data());
  }
  png_set_rows(png, info, pointers.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

TEST_F(PngTest, RoundTrips) {
  for (const std::size_t channels : {1, 3}) {
    const Image image = ramp(13, 7, channels);
    write_png(path("image.png"), image);
    EXPECT_EQ(read_png(path("image.png")), image);
    EXPECT_EQ(read_image(path("image.png")), image);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path("")), {}), 1) << "a temporary file was left behind";
}

TEST_F(PngTest, EveryKindOfPng) {
  const std::vector<std::pair<int, std::vector<int>>> kinds{{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                            {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                            {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                            {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}},
                                                            {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}}};
  for (const auto& [color, depths] : kinds) {
    for (const int depth : depths) {
      const Image plain = parse(encode_png(color, depth, PNG_INTERLACE_NONE));
      EXPECT_EQ(plain.width, 5U);
      EXPECT_EQ(plain.height, 4U);
      EXPECT_EQ(plain.channels, (color & PNG_COLOR_MASK_COLOR) != 0 ? 3U : 1U);
      EXPECT_EQ(parse(encode_png(color, depth, PNG_INTERLACE_ADAM7)), plain) << color << " " << depth;
    }
  }
  const Image gray = parse(encode_png(PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE));
  EXPECT_EQ(gray.pixels[1 * 5 + 2], 60);
  const Image deep = parse(encode_png(PNG_COLOR_TYPE_GRAY, 16, PNG_INTERLACE_NONE));
  EXPECT_NEAR(deep.pixels[1 * 5 + 2], 70, 1) << "16-bit samples must be on the scale of 8-bit ones";
  const Image palette = parse(encode_png(PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE));
  EXPECT_EQ(palette.pixels[3 * (1 * 5 + 2)], 60);
  EXPECT_EQ(palette.pixels[3 * (1 * 5 + 2) + 1], 7);
}

TEST_F(PngTest, Netpbm) {
  const Image bits{5, 2, 1, {0, 255, 0, 255, 0, 255, 255, 255, 255, 0}};
  EXPECT_EQ(parse("P1\n# a comment\n5 2\n10101\n0 0 0\n0 1\n"), bits);
  EXPECT_EQ(parse(std::string_view("P4 5 2\n\xa8\x08", 9)), bits);
  const Image gray{3, 1, 1, {0, 128, 255}};
  EXPECT_EQ(parse("P2 3 1 # width, height\n255\n0 128 255"), gray);
  EXPECT_EQ(parse(std::string_view("P5\n3\n1\n255\n\0\x80\xff", 14)), gray);
  EXPECT_EQ(parse("P2 2 1 4 0 4").pixels, (std::vector<std::uint8_t>{0, 255}));
  EXPECT_EQ(parse(std::string_view("P5 1 1 65535\n\x80\x80", 15)).pixels.front(), 128);
  const Image color{1, 1, 3, {1, 2, 3}};
  EXPECT_EQ(parse("P3 1 1 255 1 2 3"), color);
  EXPECT_EQ(parse(std::string_view("P6 1 1 255\n\1\2\3", 14)), color);
}

TEST_F(PngTest, Sentences) {
  const auto error = [&](std::string_view text) { return sentence([&] { static_cast<void>(parse(text)); }); };
  expect_sentence(sentence([&] { static_cast<void>(read_image(path("none.png"))); }), {"none.png", "No such file"});
  expect_sentence(sentence([&] { static_cast<void>(read_image(path(""))); }), {"directory"});
  write_file(path("a.pgm"), "P2 1 1 9 9");
  expect_sentence(sentence([&] { static_cast<void>(read_png(path("a.pgm"))); }), {"a.pgm is not a PNG"});
  expect_sentence(error(""), {"input is empty"});
  expect_sentence(error("GIF89a"), {"neither a PNG nor a PBM"});
  expect_sentence(error("\xff\xd8\xff\xe0"), {"JPEG"});
  expect_sentence(error("P2 3 1 255 1 2"), {"cut off"});
  expect_sentence(error("P5 300 100 255\nabc"), {"cut off"});
  expect_sentence(error("P2 0 1 255"), {"empty image of 0 x 1"});
  expect_sentence(error("P2 100000 100000 255"), {"100000 x 100000", "at most"});
  expect_sentence(error("P2 4000000000 4000000000 255"), {"at most"});
  expect_sentence(error("P2 99999999999999999999 1 255"), {"too large"});
  expect_sentence(error("P2 1 1 70000 1"), {"70000", "65535"});
  expect_sentence(error("P2 1 1 7 9"), {"sample of 9", "7"});
  expect_sentence(error("P2 x 1 7 9"), {"byte 3", "width"});
  expect_sentence(error("P1 2 1 12"), {"0 or 1"});
  std::string huge = encode_png(PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE);
  expect_sentence(error(huge.substr(0, 40)), {"damaged PNG"});
  expect_sentence(sentence([&] { write_png(path("no/such.png"), ramp(2, 2, 1)); }), {"such.png", "No such file"});
  EXPECT_THROW(write_png(path("bad.png"), Image{2, 2, 1, {1}}), std::invalid_argument);
}

TEST_F(PngTest, DamageNeverCrashes) {
  for (const int color : {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE}) {
    const std::string whole = encode_png(color, 8, PNG_INTERLACE_ADAM7);
    const auto survives = [](const std::string& bytes) {
      try {
        static_cast<void>(parse(bytes));
      } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()).back(), '.');
      }
    };
    for (std::size_t size = 0; size < whole.size(); size += 10) survives(whole.substr(0, size));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int bit : {1, 8, 0x80, 0xff}) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ bit);
        survives(flipped);
      }
    }
  }
}

TEST_F(PngTest, ScalingAndColors) {
  const Image small{2, 1, 1, {3, 9}};
  EXPECT_EQ(enlarge(small, 2), (Image{4, 2, 1, {3, 3, 9, 9, 3, 3, 9, 9}}));
  EXPECT_EQ(to_gray(to_rgb(small)), small);
  const Grid grid{2, 3, {1, 2, 3, 5, 6, 9}};
  EXPECT_EQ(reduce(grid, 2).values, (std::vector<double>{3.5, 6}));
  EXPECT_EQ(reduce(grid, 1).values, grid.values);
  EXPECT_EQ(gray_color(-5, 0, 1), (Color{0, 0, 0}));
  EXPECT_EQ(gray_color(1, 0, 1), (Color{255, 255, 255}));
  EXPECT_EQ(gray_color(1, 1, 1), gray_color(NAN, 0, 1));
  const Color middle = diverging_color(0, -1, 1);
  EXPECT_GT(middle.red, 240);
  EXPECT_GT(diverging_color(-1, -1, 1).blue, diverging_color(-1, -1, 1).red);
  EXPECT_GT(diverging_color(1, -1, 1).red, diverging_color(1, -1, 1).blue);
  EXPECT_EQ(diverging_color(INFINITY, -1, 1), diverging_color(1, -1, 1));
}

TEST_F(PngTest, TextStaysInside) {
  Image image{20, 10, 1, std::vector<std::uint8_t>(200, 255)};
  draw_text(image, "MUCH too long a text \x01\xff", 5, 5, 3);
  EXPECT_EQ(image.pixels.size(), 200U);
  EXPECT_LT(*std::min_element(image.pixels.begin(), image.pixels.end()), 60);
  EXPECT_GT(text_width("mm", 2), text_width("ii", 2));
  EXPECT_EQ(text_width("", 2), 0U);
}

TEST_F(PngTest, SegmentationPanels) {
  for (const auto& [rows, columns] : std::vector<std::pair<std::size_t, std::size_t>>{
           {30, 30}, {1, 1}, {500, 640}, {800, 1500}, {1, 2000}, {3000, 2}}) {
    const std::size_t sites = rows * columns;
    const Image image = segmentation_panels(rows, columns, std::vector<double>(sites, NAN),
                                            std::vector<std::int8_t>(sites, -1), std::vector<double>(sites, 0.5));
    EXPECT_EQ(image.channels, 3U);
    EXPECT_LE(image.width, 2200U);
    EXPECT_LE(image.height, 1500U);
    if (rows == 30) {
      EXPECT_NEAR(static_cast<double>(image.width), 1000, 60);
    }
    EXPECT_EQ(image.pixels.size(), image.width * image.height * 3);
  }
  const std::vector<double> two(2);
  const std::vector<std::int8_t> one(1);
  EXPECT_THROW(static_cast<void>(segmentation_panels(1, 2, two, one, two)), std::invalid_argument);
}

// ------------------------------------------------------------------------------------------------------- SVG

/// Whether every tag is closed in its order and no text holds a bare '&' or '<'.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos || svg.find('<', at + 1) < end) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" />", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  for (std::size_t at = svg.find('&'); at != std::string::npos; at = svg.find('&', at + 1)) {
    const std::string entity = svg.substr(at, svg.find(';', at) - at);
    if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return false;
  }
  return open.empty() && svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(SvgTest, TextIsEscaped) {
  Plot plot;
  plot.title = "a < b & \"c\" \x01 \xff \xc3\xa9";
  plot.x_label = "<script>";
  plot.series = {{.label = "</svg>", .x = {0, 1}, .y = {0, 1}, .color = "\"><x"}};
  const std::string svg = render_svg(plot);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot; \ufffd \ufffd \u00e9"), std::string::npos);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
}

TEST(SvgTest, EmptyAndDegenerateData) {
  EXPECT_TRUE(is_well_formed(render_svg({})));
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = 1e300;
  const std::vector<std::vector<double>> data{
      {}, {5}, {0, 0}, {NAN, inf}, {-1, 0, 1e-9}, {tiny, huge}, {1e17, 1e17 + 64}};
  for (const auto& values : data) {
    for (const bool log : {false, true}) {
      Plot plot;
      plot.x_log = plot.y_log = log;
      plot.series = {{.label = "s", .x = values, .y = values, .low = values, .high = values, .marker_radius = 2}};
      EXPECT_TRUE(is_well_formed(render_svg(plot)));
    }
  }
}

TEST(SvgTest, GapsAndClipping) {
  Plot plot;
  plot.legend = Legend::none;
  plot.series = {{.x = {0, 1, 2, 3, 4}, .y = {0, 1, NAN, 1, 0}}};
  const auto path_of = [](const std::string& svg) {
    const std::size_t at = svg.find("<path d=\"") + 9;
    return svg.substr(at, svg.find('"', at) - at);
  };
  EXPECT_EQ(count(path_of(render_svg(plot)), "M"), 2U);
  plot.series = {{.x = {0, 1, 2}, .y = {0, 1e12, 0}}};
  plot.y_max = 1;
  plot.y_min = 0;
  const std::string path = path_of(render_svg(plot));
  EXPECT_EQ(count(path, "M"), 2U);
  for (std::size_t at = path.find_first_of("ML "); at != std::string::npos; at = path.find_first_of("ML ", at + 1)) {
    EXPECT_LT(std::abs(std::strtod(path.c_str() + at + 1, nullptr)), 1000);
  }
}

TEST(SvgTest, Ticks) {
  Plot plot;
  plot.series = {{.x = {0, 1000}, .y = {-0.3, 0.3}}};
  std::string svg = render_svg(plot);
  for (const char* label : {">0<", ">200<", ">1000<", ">\u22120.2<", ">0.0<", ">0.2<"}) {
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  }
  plot.x_log = true;
  plot.series = {{.x = {1e-8, 1e8}, .y = {0, 3e6}}};
  svg = render_svg(plot);
  EXPECT_NE(svg.find("10<tspan dy=\"-5\" font-size=\"9\">\u22128</tspan>"), std::string::npos);
  EXPECT_NE(svg.find("\u00d7 10<tspan dy=\"-5\" font-size=\"9\">6</tspan>"), std::string::npos);
  plot.series = {{.x = {1, 100}, .y = {0, 1}}};
  EXPECT_NE(render_svg(plot).find(">10<"), std::string::npos);
}

TEST(SvgTest, BadPlotsAreRefused) {
  Plot plot;
  plot.series = {{.label = "s", .x = {0, 1}, .y = {0}}};
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.series = {{.label = "s", .x = {0}, .y = {0}, .low = {0}}};
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.series.clear();
  plot.x_min = 2;
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
  plot.x_min = -1;
  plot.x_log = true;
  EXPECT_THROW(static_cast<void>(render_svg(plot)), std::invalid_argument);
}

TEST(SvgTest, BalancePlot) {
  const std::vector<double> knots{0, 1, 2};
  const std::vector<double> log_phi{0.5, 0.2, -0.4};
  const std::string svg = balance_plot(knots, log_phi);
  EXPECT_TRUE(is_well_formed(svg));
  for (const char* part : {"learned", "\u221at", "t/(1 + t)", "min{1, t}", "max{1, t}", "g(t)/g(1)"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(balance_plot(knots, std::vector<double>{1.5, 1.2, 0.6}), svg) << "a constant factor of g has no meaning";
  const std::vector<double> zero{0};
  EXPECT_TRUE(is_well_formed(balance_plot(zero, zero)));
  EXPECT_THROW(static_cast<void>(balance_plot(knots, zero)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(balance_plot(std::vector<double>{1, 1}, std::vector<double>{0, 0})),
               std::invalid_argument);
}

}  // namespace
}  // namespace poise
