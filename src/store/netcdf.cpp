/// Writing a run as NetCDF-4: the layout of the file, and what keeps it readable when the run is killed.
#include "store/netcdf.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/file.hpp"

#include "store/chunk_writer.hpp"
#include "store/netcdf_plan.hpp"

namespace poise {

using namespace netcdf;

namespace {

constexpr std::size_t kPendingBytes = 16 * kMegabyte;  // held in memory at most before they are written
constexpr std::size_t kDirectBytes = 4 * kMegabyte;    // of a block that need not wait for others
constexpr std::size_t kCacheBytes = 64 * kMegabyte;    // of the chunks of x being filled

/// NetCDF names hold neither '/' nor control characters, and each is used once in a group.
std::string variable_name(const std::string& monitor, std::set<std::string>& used) {
  std::string name;
  for (const char c : monitor) name += c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
  while (!name.empty() && name.back() == ' ') name.back() = '_';
  const auto first = static_cast<unsigned char>(name.empty() ? ' ' : name.front());
  if (!std::isalnum(first) && first != '_' && first < 0x80) name = '_' + name;
  while (!used.insert(name).second) name += '_';
  return name;
}

/// As a string, not as characters: only then is the text known to be UTF-8.
void put_text(int id, int variable, const char* name, const std::string& text) {
  const char* first = text.c_str();
  call(nc_put_att_string(id, variable, name, 1, &first));
}

}  // namespace

NetcdfSink::NetcdfSink(std::string path, NetcdfOptions options) : path_(std::move(path)), options_(options) {
  check_writable(path_);
  check_space(path_, options_, expected_netcdf_bytes(options_));
}

/// Runs calls to the library under its lock; a failure closes the file and becomes a sentence.
template <typename Body>
void NetcdfSink::guarded(Body&& body) {
  const std::scoped_lock lock(library_lock());
  errno = 0;
  try {
    body();
  } catch (const Failure& failure) {
    const int cause = errno;
    close();
    const bool from_system = cause == ENOSPC || cause == EDQUOT || cause == EFBIG || cause == EIO || cause == EROFS;
    const std::string kept = written_ == 0 ? "" : fmt::format("; {} draws of each chain are in the file", written_);
    throw std::runtime_error(fmt::format("Cannot write {}: {}{}.", path_,
                                         from_system ? std::generic_category().message(cause) : failure.what(), kept));
  }
}

NetcdfSink::~NetcdfSink() {
  if (phase_ != Phase::open) return;
  try {
    guarded([&] { flush(pending_.draws()); });
  } catch (const std::exception&) {
    // No caller is left to be told; what was synced before is in the file.
  }
  const std::scoped_lock lock(library_lock());
  close();
}

std::string NetcdfSink::absolute_path() const { return std::filesystem::absolute(path_).string(); }

/// Closes the file and gives back what was reserved behind its end.
int NetcdfSink::close() noexcept {
  writer_.reset();
  const int result = phase_ == Phase::open ? nc_close(id_) : NC_NOERR;
  phase_ = Phase::closed;
  pending_.clear();
  struct stat status {};
  if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0) {
    static_cast<void>(!::ftruncate(descriptor_, status.st_size));  // a failure only leaves the disk a little fuller
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  return result;
}

/// A write that fails for want of space leaves the library with a file that it can neither complete nor close; so
/// the space is taken beforehand, while to stop is still harmless.
void NetcdfSink::reserve(std::size_t bytes) const {
  struct stat status {};
  struct rlimit limit {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) return;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<rlim_t>(status.st_size) + bytes > limit.rlim_cur) {
    throw Failure(EFBIG);
  }
  if (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, status.st_size, static_cast<off_t>(bytes)) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) throw Failure(errno);
  // File systems that cannot reserve.
  std::error_code error;
  const auto space = std::filesystem::space(directory_of(path_), error);
  if (!error && space.available < bytes) throw Failure(ENOSPC);
}

/// Bytes by which the file grows with so many draws, before compression; chunks are taken whole.
std::size_t NetcdfSink::growth(std::size_t draws) const {
  const auto rounded = [&](std::size_t chunk) {
    return ((written_ + draws + chunk - 1) / chunk - (written_ + chunk - 1) / chunk) * chunk;
  };
  const std::size_t x = keeps_x_ ? rounded(chunk_draws(layout_.variables, options_.draws)) * layout_.variables : 0;
  const std::size_t series = rounded(series_chunk_draws(options_.draws)) * (monitors_.size() + 2) * sizeof(double);
  return chains_ * (x + series) + kMegabyte;
}

void NetcdfSink::begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
                       const std::string& settings) {
  if (phase_ != Phase::before) throw std::logic_error("NetcdfSink: begin() was called before");
  if (chains == 0) throw std::invalid_argument("NetcdfSink: a run has at least one chain");
  if (monitor_names.empty() || monitor_names.front() != "log_prob") {
    throw std::invalid_argument("NetcdfSink: the first monitor must be log_prob");
  }
  if (layout.is_lattice() && std::uint64_t{layout.rows} * layout.columns != layout.variables) {
    throw std::invalid_argument("NetcdfSink: rows times columns is not the number of variables");
  }
  if (!layout.names.empty() && layout.names.size() != layout.variables) {
    throw std::invalid_argument("NetcdfSink: there must be as many names as variables, or none");
  }
  layout_ = layout;
  chains_ = chains;
  pending_ = DrawQueue(chains);
  check_writable(path_);
  guarded([&] { create(monitor_names, settings); });
}

void NetcdfSink::create(const std::vector<std::string>& monitor_names, const std::string& settings) {
  // The library reads meaning (drive letters, URLs) into relative paths; an absolute one is taken as it is.
  call(nc_create(absolute_path().c_str(), NC_NETCDF4 | NC_CLOBBER, &id_));
  phase_ = Phase::open;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  put_text(id_, NC_GLOBAL, "inference_library", "poise");
  put_text(id_, NC_GLOBAL, "inference_library_version", POISE_VERSION);
  put_text(id_, NC_GLOBAL, "created_at", fmt::format("{:%Y-%m-%dT%H:%M:%S+00:00}", fmt::gmtime(std::time(nullptr))));
  std::array<const char*, 2> sample_dims{"chain", "draw"};
  call(nc_put_att_string(id_, NC_GLOBAL, "sample_dims", sample_dims.size(), sample_dims.data()));
  put_text(id_, NC_GLOBAL, "layout", layout_text(layout_));
  put_text(id_, NC_GLOBAL, "settings", settings);

  posterior_ = define_group("posterior");
  sample_stats_ = define_group("sample_stats");
  std::set<std::string> used{"x", "chain", "draw", "variable", "x_variable", "row", "column"};
  for (std::size_t i = 0; i < monitor_names.size(); ++i) {
    if (i == 0) {
      monitors_.emplace_back(sample_stats_.id, define_series(sample_stats_, "lp", NC_DOUBLE));
      continue;
    }
    const std::string name = variable_name(monitor_names[i], used);
    const int variable = define_series(posterior_, name, NC_DOUBLE);
    if (name != monitor_names[i]) put_text(posterior_.id, variable, "long_name", monitor_names[i]);
    monitors_.emplace_back(posterior_.id, variable);
  }
  acceptance_rate_ = define_series(sample_stats_, "acceptance_rate", NC_DOUBLE);
  n_steps_ = define_series(sample_stats_, "n_steps", NC_INT64);
  call(nc_sync(id_));
}

NetcdfSink::Group NetcdfSink::define_group(const char* name) const {
  Group group;
  call(nc_def_grp(id_, name, &group.id));
  call(nc_def_dim(group.id, "chain", chains_, &group.dimensions[0]));
  call(nc_def_dim(group.id, "draw", NC_UNLIMITED, &group.dimensions[1]));
  int chain = -1;
  call(nc_def_var(group.id, "chain", NC_INT64, 1, &group.dimensions[0], &chain));
  call(nc_def_var(group.id, "draw", NC_INT64, 1, &group.dimensions[1], &group.draw));
  const std::size_t chunk = series_chunk_draws(options_.draws);
  call(nc_def_var_chunking(group.id, group.draw, NC_CHUNKED, &chunk));
  std::vector<long long> numbers(chains_);
  std::iota(numbers.begin(), numbers.end(), 0);
  call(nc_put_var_longlong(group.id, chain, numbers.data()));
  return group;
}

int NetcdfSink::define_series(const Group& group, const std::string& name, int type) const {
  int variable = -1;
  call(nc_def_var(group.id, name.c_str(), type, 2, group.dimensions.data(), &variable));
  const std::size_t draws = series_chunk_draws(options_.draws);
  const std::array<std::size_t, 2> chunk{std::clamp<std::size_t>(kSeriesChunk / draws, 1, chains_), draws};
  call(nc_def_var_chunking(group.id, variable, NC_CHUNKED, chunk.data()));
  return variable;
}

void NetcdfSink::define_x() {
  std::vector<int> dimensions(posterior_.dimensions.begin(), posterior_.dimensions.end());
  const std::size_t draws = chunk_draws(layout_.variables, options_.draws);
  std::vector<std::size_t> chunk{1, draws};
  std::vector<std::size_t> inner;
  const auto add = [&](const char* name, std::size_t length, std::size_t most) {
    int dimension = -1;
    call(nc_def_dim(posterior_.id, name, length, &dimension));
    dimensions.push_back(dimension);
    inner.push_back(length);
    chunk.push_back(std::min(length, most));
  };
  if (layout_.is_lattice()) {
    add("row", layout_.rows, std::max<std::size_t>(kChunkBytes / layout_.columns, 1));
    add("column", layout_.columns, kChunkBytes);
  } else {
    // Not "variable": xarray, and with it the summary of ArviZ, uses that name for a dimension of its own.
    add("x_variable", layout_.variables, kChunkBytes);
    if (!layout_.names.empty()) define_names(dimensions.back());
  }
  call(nc_def_var(posterior_.id, "x", NC_BYTE, static_cast<int>(dimensions.size()), dimensions.data(), &x_));
  call(nc_def_var_chunking(posterior_.id, x_, NC_CHUNKED, chunk.data()));
  // A fill value would make readers take x for floating point with missing values.
  call(nc_def_var_fill(posterior_.id, x_, NC_NOFILL, nullptr));
  if (is_deflated(options_)) {
    call(nc_def_var_deflate(posterior_.id, x_, 0, 1, 1));
    whole_chunk_ = draws;
    if (std::equal(chunk.begin() + 2, chunk.end(), inner.begin(), inner.end())) {
      call(nc_sync(id_));  // makes what was defined
      const ChunkCoder coder(layout_.label(0), layout_.label(options_.levels <= 2 ? 1 : 0));
      writer_ = std::make_unique<ChunkWriter>(absolute_path(), ChunkWriter::Shape{chains_, inner, draws}, coder,
                                              options_.threads);
      return;
    }
  }
  const std::size_t cache = std::min(kCacheBytes, 2 * chains_ * draws * layout_.variables);
  call(nc_set_var_chunk_cache(posterior_.id, x_, std::max(cache, kMegabyte), 10007, 1.0F));
}

void NetcdfSink::define_names(int dimension) const {
  int variable = -1;
  call(nc_def_var(posterior_.id, "x_variable", NC_STRING, 1, &dimension, &variable));
  std::vector<const char*> names;
  for (const std::string& name : layout_.names) names.push_back(name.c_str());
  call(nc_put_var_string(posterior_.id, variable, names.data()));
}

void NetcdfSink::check(const DrawBatch& block) const {
  const std::size_t entries = chains_ * block.count;
  bool fits = block.monitors.size() == monitors_.size() && block.acceptance_rate.size() == entries &&
              block.n_steps.size() == entries && (block.x.empty() || block.x.size() == entries * layout_.variables);
  for (const auto& monitor : block.monitors) fits = fits && monitor.size() == entries;
  if (!fits) throw std::invalid_argument("NetcdfSink: the arrays of a block do not match its chains and draws");
  if (has_blocks_ && keeps_x_ == block.x.empty()) {
    throw std::invalid_argument("NetcdfSink: either all blocks hold draws or none does");
  }
}

void NetcdfSink::write(const DrawBatch& block) {
  if (phase_ == Phase::before) throw std::logic_error("NetcdfSink: write() was called before begin()");
  if (phase_ == Phase::complete) throw std::logic_error("NetcdfSink: write() was called after close_draws()");
  if (phase_ == Phase::closed || block.count == 0) return;
  check(block);
  if (!has_blocks_) {
    keeps_x_ = !block.x.empty();
    if (keeps_x_) guarded([&] { define_x(); });
    has_blocks_ = true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (pending_.draws() == 0 && block.count % whole_chunk_ == 0 && DrawQueue::size_of(block) >= kDirectBytes) {
    guarded([&] { write_now(block); });
    next_sync_ = now + options_.sync_interval;
    return;
  }
  pending_.push(block);
  const std::size_t ready = pending_.draws() - pending_.draws() % whole_chunk_;
  if (ready > 0 && (now >= next_sync_ || pending_.bytes() >= kPendingBytes)) {
    guarded([&] { flush(ready); });
    next_sync_ = now + options_.sync_interval;
  }
}

void NetcdfSink::close_draws() {
  if (phase_ == Phase::before) throw std::logic_error("NetcdfSink: close_draws() was called before begin()");
  if (phase_ != Phase::open) return;
  guarded([&] {
    flush(pending_.draws());
    call(close());
  });
  phase_ = Phase::complete;
}

void NetcdfSink::finish(const std::string& results) {
  if (phase_ == Phase::before) throw std::logic_error("NetcdfSink: finish() was called before begin()");
  if (phase_ == Phase::closed) return;
  guarded([&] {
    if (phase_ == Phase::complete) {
      call(nc_open(absolute_path().c_str(), NC_WRITE, &id_));
      phase_ = Phase::open;
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    }
    flush(pending_.draws());
    reserve(results.size() + kMegabyte);
    put_text(id_, NC_GLOBAL, "results", results);
    call(nc_sync(id_));
    call(close());
  });
}

void NetcdfSink::flush(std::size_t draws) {
  if (draws == 0) return;
  write_now(pending_.take(draws));
}

void NetcdfSink::write_now(const DrawBatch& block) {
  reserve(growth(block.count));
  const std::array<std::size_t, 4> start{0, written_, 0, 0};
  if (writer_) {
    writer_->write(block, written_);
  } else if (keeps_x_) {
    const std::size_t third = layout_.is_lattice() ? layout_.rows : layout_.variables;
    const std::array<std::size_t, 4> count{chains_, block.count, third, layout_.columns};
    call(nc_put_vara_schar(posterior_.id, x_, start.data(), count.data(),
                           reinterpret_cast<const signed char*>(block.x.data())));
  }
  const std::array<std::size_t, 2> count{chains_, block.count};
  for (std::size_t i = 0; i < monitors_.size(); ++i) {
    const auto [group, variable] = monitors_[i];
    call(nc_put_vara_double(group, variable, start.data(), count.data(), block.monitors[i].data()));
  }
  const int stats = sample_stats_.id;
  call(nc_put_vara_double(stats, acceptance_rate_, start.data(), count.data(), block.acceptance_rate.data()));
  const std::vector<long long> steps(block.n_steps.begin(), block.n_steps.end());
  call(nc_put_vara_longlong(stats, n_steps_, start.data(), count.data(), steps.data()));
  // The draw numbers come last: a draw without one is not complete, and readers leave it out.
  std::vector<long long> numbers(block.count);
  std::iota(numbers.begin(), numbers.end(), static_cast<long long>(written_));
  for (const Group* group : {&posterior_, &sample_stats_}) {
    call(nc_put_vara_longlong(group->id, group->draw, &written_, &block.count, numbers.data()));
  }
  call(nc_sync(id_));
  written_ += block.count;
}

}  // namespace poise
