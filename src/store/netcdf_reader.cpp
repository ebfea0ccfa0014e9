/// Reading of run files through the NetCDF library, with no more trust in it than a child process needs.
#include "store/netcdf_reader.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <new>
#include <vector>

#include <fmt/format.h>

#include <poise/types.hpp>

#include "store/netcdf_plan.hpp"

namespace poise::netcdf {

namespace {

constexpr std::size_t kPieceBytes = 16 * 1'000'000;
constexpr std::size_t kCacheBytes = 64 * 1'000'000;  // of chunks that a piece cuts through

/// Moves some columns of a table to its front; gives their entries.
template <typename Number>
std::size_t pick(std::vector<Number>& table, std::size_t width, Range columns) {
  if (columns.count == width) return table.size();
  const std::size_t rows = table.size() / width;
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(table.data() + row * width + columns.first, columns.count, table.data() + row * columns.count);
  }
  return rows * columns.count;
}
}  // namespace
class Reader {
 public:
  Reader(const RunPath& file, FrameSender& out) : file_(file), out_(out) { open(); }
  // The process ends with the file open: to close it would be to trust the library once more.

  void send(const ReadOptions& options) {
    posterior_ = group("posterior");
    sample_stats_ = group("sample_stats");
    if (posterior_.chains != sample_stats_.chains) fail("has different numbers of chains in its groups");
    chains_ = posterior_.chains;
    draws_ = std::min(complete_draws(posterior_), complete_draws(sample_stats_));
    const int lp = variable(sample_stats_, "lp", NC_DOUBLE);
    const int acceptance_rate = variable(sample_stats_, "acceptance_rate", NC_DOUBLE);
    const int n_steps = variable(sample_stats_, "n_steps", NC_INT64);
    range_ = range_of(options.first_draw, options.most_draws, draws_);
    out_.number(chains_);
    out_.number(draws_);
    for (const char* name : {"layout", "settings", "results"}) out_.text(text(id_, NC_GLOBAL, name));
    const X x = find_x();
    out_.number(static_cast<std::uint64_t>(x.dimensions));
    for (int i = 0; i < x.dimensions; ++i) out_.number(x.count[static_cast<std::size_t>(2 + i)]);
    out_.text(names(x));
    const std::vector<int> others = other_monitors();
    out_.number(others.size());
    for (const int monitor : others) {
      std::array<char, NC_MAX_NAME + 1> name{};
      call(nc_inq_varname(posterior_.id, monitor, name.data()));
      const std::string long_name = text(posterior_.id, monitor, "long_name");
      out_.text(long_name.empty() ? name.data() : long_name);
    }
    if (options.series) {
      send_series(sample_stats_, acceptance_rate, nc_get_vara_double);
      send_series(sample_stats_, n_steps, nc_get_vara_longlong);
      send_series(sample_stats_, lp, nc_get_vara_double);
      for (const int monitor : others) send_series(posterior_, monitor, nc_get_vara_double);
    }
    if (options.draws && x.dimensions > 0) {
      send_x(x, range_of(options.first_variable, options.most_variables, x.width()));
    }
  }

 private:
  struct Group {
    const char* name = "";
    int id = -1;
    std::vector<int> dimensions = {-1, -1};
    std::size_t chains = 0;
    std::size_t draws = 0;
  };
  /// What is declared of a variable.
  struct Variable {
    nc_type type = NC_NAT;
    std::vector<int> dimensions = {};

    Variable(int group, int id) {
      int count = 0;
      call(nc_inq_vartype(group, id, &type));
      call(nc_inq_varndims(group, id, &count));
      dimensions.resize(static_cast<std::size_t>(count));
      call(nc_inq_vardimid(group, id, dimensions.data()));
    }
  };
  /// The draws, as far as their shape goes.
  struct X {
    int id = -1;
    int dimensions = 0;
    std::array<std::size_t, 4> count{};  // of chains, draws, and what is behind them
    int names = -1;                      // dimension that x_variable must have
    [[nodiscard]] std::size_t width() const { return count[2] * count[3]; }
  };

  void open() {
    const int result = file_.growing ? open_copy() : nc_open(file_.absolute.c_str(), NC_NOWRITE, &id_);
    if (result == NC_NOERR) return;
    if (file_.growing) fail("is being written by another program just now and cannot be read; try again in a moment");
    std::ifstream stream(file_.absolute, std::ios::binary);
    std::array<char, 4> magic{};
    stream.read(magic.data(), magic.size());
    if (result == NC_ENOTNC || std::string(magic.data(), magic.size()) != "\x89HDF") fail("is not a NetCDF file");
    fail(fmt::format("is a damaged or cut off NetCDF file ({})", nc_strerror(result)));
  }

  /// A copy in memory needs no lock.
  [[nodiscard]] int open_copy() {
    std::ifstream stream(file_.absolute, std::ios::binary);
    image_.resize(file_.file_bytes);
    stream.read(image_.data(), static_cast<std::streamsize>(image_.size()));
    image_.resize(static_cast<std::size_t>(stream.gcount()));
    return nc_open_mem(file_.absolute.c_str(), NC_NOWRITE, image_.size(), image_.data(), &id_);
  }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{} {}.", file_.path, what)); }

  [[nodiscard]] Group group(const char* name) const {
    Group group;
    group.name = name;
    // A classic file has no groups, and the library gives the file itself for any.
    if (nc_inq_grp_ncid(id_, name, &group.id) != NC_NOERR || group.id == id_) {
      fail(fmt::format("has no group '{}': it does not hold a run of poise", name));
    }
    const std::array<const char*, 2> names{"chain", "draw"};
    std::array<std::size_t, 2> lengths{};
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (nc_inq_dimid(group.id, names[i], &group.dimensions[i]) != NC_NOERR) {
        fail(fmt::format("has no dimension '{}' in group '{}': it does not hold a run of poise", names[i], name));
      }
      call(nc_inq_dimlen(group.id, group.dimensions[i], &lengths[i]));
    }
    group.chains = lengths[0];
    group.draws = lengths[1];
    return group;
  }

  /// Draws whose numbers were written; the writer puts these last, so a torn end is left out.
  [[nodiscard]] std::size_t complete_draws(const Group& group) const {
    int draw = -1;
    if (nc_inq_varid(group.id, "draw", &draw) != NC_NOERR) return group.draws;
    if (Variable(group.id, draw).dimensions != std::vector{group.dimensions[1]} ||
        group.draws / kMostDeflation > file_.file_bytes) {
      fail(fmt::format("has draw numbers of a wrong shape in group '{}'", group.name));
    }
    std::vector<long long> numbers(std::min(group.draws, kPieceBytes / sizeof(long long)));
    for (std::size_t at = 0; at < group.draws; at += numbers.size()) {
      numbers.resize(std::min(numbers.size(), group.draws - at));
      const std::size_t count = numbers.size();
      call(nc_get_vara_longlong(group.id, draw, &at, &count, numbers.data()));
      const auto missing = std::find(numbers.begin(), numbers.end(), NC_FILL_INT64);
      if (missing != numbers.end()) return at + static_cast<std::size_t>(missing - numbers.begin());
    }
    return group.draws;
  }

  /// Empty where there is none.
  [[nodiscard]] std::string text(int group, int variable, const char* name) const {
    nc_type type = NC_NAT;
    std::size_t length = 0;
    if (nc_inq_att(group, variable, name, &type, &length) != NC_NOERR) return "";
    if (type == NC_CHAR) {
      if (length > file_.file_bytes) fail(fmt::format("has an attribute '{}' longer than the file", name));
      std::string value(length, '\0');
      if (length > 0) call(nc_get_att_text(group, variable, name, value.data()));
      while (!value.empty() && value.back() == '\0') value.pop_back();
      return value;
    }
    if (type != NC_STRING || length != 1) fail(fmt::format("has an attribute '{}' that is not text", name));
    char* stored = nullptr;
    call(nc_get_att_string(group, variable, name, &stored));
    return stored == nullptr ? "" : stored;
  }

  /// A variable of sample_stats that every run has.
  [[nodiscard]] int variable(const Group& group, const char* name, nc_type type) const {
    int found = -1;
    if (nc_inq_varid(group.id, name, &found) != NC_NOERR) {
      fail(fmt::format("has no variable '{}' in group '{}': it does not hold a run of poise", name, group.name));
    }
    const Variable stored(group.id, found);
    if (stored.type != type) {
      fail(fmt::format("has a variable '{}' in group '{}' that is not of type {}", name, group.name,
                       type == NC_DOUBLE ? "double" : "int64"));
    }
    if (stored.dimensions != group.dimensions) {
      fail(fmt::format("has a variable '{}' in group '{}' whose dimensions are not (chain, draw)", name, group.name));
    }
    return found;
  }

  [[nodiscard]] std::vector<int> other_monitors() const {
    int variables = 0;
    call(nc_inq_varids(posterior_.id, &variables, nullptr));
    std::vector<int> ids(static_cast<std::size_t>(variables));
    call(nc_inq_varids(posterior_.id, &variables, ids.data()));
    std::erase_if(ids, [&](int id) {
      const Variable stored(posterior_.id, id);
      return stored.type != NC_DOUBLE || stored.dimensions != posterior_.dimensions;
    });
    return ids;
  }

  [[nodiscard]] X find_x() const {
    X x;
    if (nc_inq_varid(posterior_.id, "x", &x.id) != NC_NOERR) return {};
    const auto [type, ids] = Variable(posterior_.id, x.id);
    if (type != NC_BYTE) fail("has a variable 'x' in group 'posterior' that is not of type byte");
    const auto wrong_dimensions = [&] {
      fail(
          "has a variable 'x' in group 'posterior' whose dimensions are neither (chain, draw, x_variable) nor "
          "(chain, draw, row, column)");
    };
    if (ids.size() != 3 && ids.size() != 4) wrong_dimensions();
    if (ids[0] != posterior_.dimensions[0] || ids[1] != posterior_.dimensions[1]) wrong_dimensions();
    x.dimensions = static_cast<int>(ids.size()) - 2;
    x.count = {chains_, draws_, 1, 1};
    for (std::size_t i = 2; i < ids.size(); ++i) {
      call(nc_inq_dimlen(posterior_.id, ids[i], &x.count[i]));
      if (x.count[i] == 0 || x.count[i] > std::numeric_limits<Index>::max()) wrong_dimensions();
    }
    if (x.width() / kMostDeflation > file_.file_bytes || !entries_in(file_.file_bytes, chains_, draws_, x.width(), 1)) {
      fail("declares more data than it can hold: it is damaged");
    }
    x.names = ids[2];
    return x;
  }

  /// Those of the variables, a NUL behind each; empty where they have none.
  [[nodiscard]] std::string names(const X& x) const {
    int variable = -1;
    if (x.dimensions != 1 || nc_inq_varid(posterior_.id, "x_variable", &variable) != NC_NOERR) return "";
    const auto [type, dimensions] = Variable(posterior_.id, variable);
    if (type != NC_STRING || dimensions != std::vector{x.names}) return "";
    std::vector<char*> stored(x.width(), nullptr);
    call(nc_get_var_string(posterior_.id, variable, stored.data()));
    std::string joined;
    for (const char* name : stored) {
      joined += name == nullptr ? "" : name;
      joined += '\0';
    }
    return joined;
  }

  /// Sends an array (chain, draw, ...) in pieces that follow each other in memory, each of whole chains or, where a
  /// chain is too long for that, of whole chunks of one. Of the `width` entries of a draw some columns are sent.
  template <typename Number, typename Get>
  void send_array(std::size_t width, Range columns, std::size_t chunk, Get&& get) {
    if (!entries_in(file_.file_bytes, chains_, draws_, width, sizeof(Number))) {
      fail("declares more data than it can hold: it is damaged");
    }
    if (chains_ == 0 || range_.count == 0) return;
    const std::size_t fitting = std::max<std::size_t>(kPieceBytes / (width * sizeof(Number)), 1);
    const std::size_t most_chains = std::clamp<std::size_t>(fitting / range_.count, 1, chains_);
    const std::size_t most_draws =
        std::min(range_.count, std::max(fitting / chunk * chunk, std::min(chunk, 16 * fitting)));
    std::vector<Number> piece;
    for (std::size_t chain = 0; chain < chains_; chain += most_chains) {
      const std::size_t chains = std::min(most_chains, chains_ - chain);
      for (std::size_t draw = 0; draw < range_.count; draw += most_draws) {
        const std::size_t draws = std::min(most_draws, range_.count - draw);
        piece.resize(chains * draws * width);
        const std::array<std::size_t, 4> start{chain, range_.first + draw, 0, 0};
        const std::array<std::size_t, 2> count{chains, draws};
        call(get(start.data(), count, piece.data()));
        const std::size_t size = pick(piece, width, columns);
        out_.bytes(piece.data(), size * sizeof(Number));
      }
    }
  }

  template <typename Number>
  void send_series(const Group& group, int variable,
                   int (*get)(int, int, const std::size_t*, const std::size_t*, Number*)) {
    send_array<Number>(1, {0, 1}, 1, [&](const std::size_t* start, const auto& count, Number* to) {
      return get(group.id, variable, start, count.data(), to);
    });
  }

  void send_x(const X& x, Range variables) {
    int storage = NC_CONTIGUOUS;
    std::array<std::size_t, 4> chunk{1, 1, 1, 1};
    call(nc_inq_var_chunking(posterior_.id, x.id, &storage, chunk.data()));
    if (storage != NC_CHUNKED || chunk[1] == 0) chunk[1] = 1;
    call(nc_set_var_chunk_cache(posterior_.id, x.id, kCacheBytes, 10007, 0.75F));
    const auto get = [&](const std::size_t* start, const auto& count, signed char* to) {
      const std::array<std::size_t, 4> all{count[0], count[1], x.count[2], x.count[3]};
      return nc_get_vara_schar(posterior_.id, x.id, start, all.data(), to);
    };
    send_array<signed char>(x.width(), variables, chunk[1], get);
  }

  RunPath file_;
  FrameSender& out_;
  std::vector<char> image_;  // of a file that another program is writing
  int id_ = -1;
  Group posterior_;
  Group sample_stats_;
  std::size_t chains_ = 0;
  std::size_t draws_ = 0;  // in the file
  Range range_;            // of draws that are sent
};

// namespace

std::optional<std::size_t> entries_in(std::uint64_t file_bytes, std::uint64_t chains, std::uint64_t draws,
                                      std::uint64_t width, std::uint64_t bytes) {
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  const bool overflow = __builtin_mul_overflow(chains, draws, &count) || __builtin_mul_overflow(count, width, &count) ||
                        __builtin_mul_overflow(count, bytes, &size);
  if (overflow || size / kMostDeflation > file_bytes) return std::nullopt;
  return static_cast<std::size_t>(count);
}

void send_run(const RunPath& file, const ReadOptions& options, FrameSender& out) {
  try {
    Reader(file, out).send(options);
  } catch (const Failure& failure) {
    throw InputError(fmt::format("{} is damaged: {}.", file.path, failure.what()));
  } catch (const std::bad_alloc&) {
    throw InputError(fmt::format("{} asks for more memory than a run of its length needs: it is damaged.", file.path));
  }
}

}  // namespace poise::netcdf
