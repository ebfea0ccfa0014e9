/// Chunks, coordinates and commits of a run that grows.
#include "store/zarr/writer.hpp"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/file.hpp"
#include "store/zarr/codec.hpp"
#include "store/zarr/reader.hpp"

namespace poise::zarr {

namespace {

constexpr std::size_t kNumbers = std::size_t{1} << 16;  // draw numbers in a chunk
constexpr std::chrono::milliseconds kFirst{100};        // until a run can be read
constexpr int kShare = 10;                              // commits take at most one part in so many of the time

/// Names of arrays are names of folders, and each is used once in a group.
std::string array_name(const std::string& monitor, std::set<std::string>& used) {
  constexpr std::size_t kLongest = 200;
  std::string name;
  for (const char c : monitor.substr(0, kLongest)) {
    name += c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '_' : c;
  }
  const bool is_reserved = name.empty() || name.front() == '.' || name.starts_with("__") || name == "zarr.json";
  if (is_reserved) name = "m" + name;
  while (!used.insert(name).second) name += '_';
  return name;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string numbers(std::size_t first, std::size_t count) {
  std::vector<std::int64_t> values(count);
  std::iota(values.begin(), values.end(), static_cast<std::int64_t>(first));
  return encode(bytes_of(values));
}

/// Texts, each behind its length.
std::string texts(const std::vector<std::string>& all) {
  std::string out;
  const auto put = [&](std::size_t number) {
    for (int k = 0; k < 4; ++k) out += static_cast<char>(number >> 8 * k);
  };
  put(all.size());
  for (const std::string& text : all) {
    put(text.size());
    out += text;
  }
  return encode(out);
}

void set_draws(Root& root, std::size_t draws) {
  for (Array& array : root.arrays) {
    const auto at = std::find(array.dimensions.begin(), array.dimensions.end(), "draw");
    if (at != array.dimensions.end()) array.shape[static_cast<std::size_t>(at - array.dimensions.begin())] = draws;
  }
}

}  // namespace

Writer::Writer(const std::string& path, const StoreOptions& options)
    : options_(options), folder_(path), pool_(std::max(1U, options.threads)) {
  check_space(folder_.path(), options_, expected_bytes(options_));
  root_.version = POISE_VERSION;
  root_.created = fmt::format("{:%Y-%m-%dT%H:%M:%S+00:00}", fmt::gmtime(std::time(nullptr)));
}

Writer::~Writer() {
  try {
    if (phase_ == Phase::open && !leaves_states_to_others_) close_draws();
    if (committing_.valid()) committing_.get();
  } catch (const std::exception&) {
    // No caller is left to be told; what was committed before is in the store.
  }
}

/// A failure closes the store.
template <typename Body>
void Writer::guarded(Body&& body) {
  try {
    body();
  } catch (const std::logic_error&) {
    throw;
  } catch (const InputError&) {
    phase_ = Phase::closed;
    throw;
  } catch (const std::exception& error) {
    phase_ = Phase::closed;
    columns_.clear();
    std::string what = error.what();
    while (!what.empty() && what.back() == '.') what.pop_back();
    const std::string kept =
        durable_ == 0 ? "" : fmt::format("; {} draws of each chain are in {}", durable_, folder_.path());
    throw std::runtime_error(fmt::format("{}{}.", what, kept));
  }
}

void Writer::resume(Root root, std::size_t draws) {
  is_resumed_ = cleared_ = true;
  resumed_draws_ = draws;
  root_ = std::move(root);
  root_.results.clear();
  // What comes behind the draws that belong to the state goes: only the root needs to say so.
  if (draws == 0) root_.arrays.clear();
  if (draws == 0) root_.monitors.clear();
  set_draws(root_, draws);
  last_state_root_ = root_text(root_);
}

void Writer::clear_earlier_run() {
  if (std::exchange(cleared_, true)) return;
  folder_.clear();
  new_folders_ = true;
}

void Writer::begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
                   const std::string& settings) {
  if (phase_ != Phase::before) throw std::logic_error("zarr::Writer: begin() was called before");
  if (chains == 0) throw std::invalid_argument("zarr::Writer: a run has at least one chain");
  if (monitor_names.empty() || monitor_names.front() != "log_prob") {
    throw std::invalid_argument("zarr::Writer: the first monitor must be log_prob");
  }
  layout_ = layout;
  chains_ = chains;
  states_ = state_shape(layout);
  guarded([&] {
    wait();
    clear_earlier_run();
    phase_ = Phase::open;
    if (is_resumed_) take_up_root();
    root_.layout = layout_text(layout_);
    root_.settings = settings;
    if (resumed_draws_ > 0) {
      take_up_draws();
    } else {
      define(monitor_names);
    }
    due_ = std::chrono::steady_clock::now() + std::min(options_.sync_interval, kFirst);
  });
}

void Writer::take_up_root() {
  folder_.remove_leftovers();
  Commit commit;
  commit.root = root_text(root_);
  folder_.make_durable(commit);
}

/// Draws in chunks that are not full wait again.
void Writer::take_up_draws() {
  draws_ = committed_ = durable_ = numbered_ = resumed_draws_;
  const auto take = [&](const std::string& path, Column::Source source, std::size_t monitor) {
    const Array* const array = root_.find(path);
    const bool of_states = source == Column::Source::states;
    if (array == nullptr || array->shape.size() < 2 || array->shape[0] != chains_ || array->chunk[1] == 0 ||
        (array->sharded > 0 && (!of_states || array->chunk[0] != 1))) {
      throw InputError(fmt::format("{} cannot be continued: it holds another run.", folder_.path()));
    }
    add_column(*array, source, monitor);
    Column& column = columns_.back();
    const std::size_t full = draws_ - draws_ % column.chunk_draws();
    column.begin_at(full);
    if (array->sharded > 0) shards_->begin_at(full);
    if (full == draws_) return;
    Trace trace =
        read_store(folder_.path(), root_, {.draws = of_states, .series = !of_states, .first_draw = full}).trace;
    column.add({trace.draws, std::move(trace.x), std::move(trace.monitors), std::move(trace.acceptance_rate),
                std::move(trace.n_steps)});
  };
  for (std::size_t k = 0; k < root_.monitors.size(); ++k) take(root_.monitors[k], Column::Source::monitor, k);
  take("sample_stats/acceptance_rate", Column::Source::acceptance_rate, 0);
  take("sample_stats/n_steps", Column::Source::n_steps, 0);
  has_blocks_ = true;
  has_states_ = root_.find("posterior/x") != nullptr;
  if (has_states_ && !leaves_states_to_others_) take("posterior/x", Column::Source::states, 0);
}

void Writer::add_column(const Array& array, Column::Source source, std::size_t monitor) {
  columns_.emplace_back(array, source, states_, monitor);
  if (array.sharded > 0) shards_.emplace(folder_.path(), array, Range{0, chains_});
}

void Writer::write_array(const Array& array) {
  folder_.make_group(array.path);
  new_folders_ = true;
  root_.arrays.push_back(array);
}

void Writer::define(const std::vector<std::string>& monitor_names) {
  for (const char* group : {"posterior", "sample_stats"}) {
    const std::string name(group);
    write_array({name + "/chain", "int64", {chains_}, {chains_}, 0, {"chain"}, ""});
    write_array({name + "/draw", "int64", {0}, {kNumbers}, 0, {"draw"}, ""});
    files_.push_back(folder_.write(name + "/chain/c.0", numbers(0, chains_)));
    files_.push_back(folder_.write(name + "/zarr.json", group_json().dump()));
  }
  const auto add_series = [&](const std::string& path, Column::Source source, std::size_t monitor = 0) {
    const bool counts = source == Column::Source::n_steps;
    Array array{path, "float64", {chains_, 0}, series_chunk(chains_), "NaN", {"chain", "draw"}, ""};
    if (counts) {
      array.type = "int64";
      array.fill = kNoCount;
    }
    const std::string name = path.substr(path.find('/') + 1);
    if (source == Column::Source::monitor && monitor > 0 && name != monitor_names[monitor]) {
      array.long_name = monitor_names[monitor];
    }
    write_array(array);
    add_column(array, source, monitor);
    if (source == Column::Source::monitor) root_.monitors.push_back(path);
  };
  std::set<std::string> used{"x", "chain", "draw", "variable", "x_variable", "row", "column"};
  add_series("sample_stats/lp", Column::Source::monitor);
  for (std::size_t k = 1; k < monitor_names.size(); ++k) {
    add_series("posterior/" + array_name(monitor_names[k], used), Column::Source::monitor, k);
  }
  add_series("sample_stats/acceptance_rate", Column::Source::acceptance_rate);
  add_series("sample_stats/n_steps", Column::Source::n_steps);
}

void Writer::define_states() {
  has_states_ = true;
  if (!layout_.is_lattice() && !layout_.names.empty()) {
    const std::size_t n = layout_.names.size();
    write_array({"posterior/x_variable", "string", {n}, {n}, "", {"x_variable"}, ""});
    files_.push_back(folder_.write("posterior/x_variable/c.0", texts(layout_.names)));
  }
  const Array x = states_array(layout_, chains_, options_);
  write_array(x);
  if (!leaves_states_to_others_) add_column(x, Column::Source::states);
}

void Writer::check(const DrawBatch& block) const {
  const std::size_t entries = chains_ * block.count;
  bool fits = block.monitors.size() == root_.monitors.size() && block.acceptance_rate.size() == entries &&
              block.n_steps.size() == entries && (block.x.empty() || block.x.size() == entries * layout_.variables);
  for (const auto& monitor : block.monitors) fits = fits && monitor.size() == entries;
  if (!fits) throw std::invalid_argument("zarr::Writer: the arrays of a block do not match its chains and draws");
  if (has_blocks_ && has_states_ == block.x.empty()) {
    throw std::invalid_argument("zarr::Writer: either all blocks hold draws or none does");
  }
}

void Writer::write(const DrawBatch& block) {
  if (phase_ == Phase::before) throw std::logic_error("zarr::Writer: write() was called before begin()");
  if (phase_ == Phase::complete) throw std::logic_error("zarr::Writer: write() was called after close_draws()");
  if (phase_ == Phase::closed || block.count == 0) return;
  check(block);
  guarded([&] {
    if (!std::exchange(has_blocks_, true) && !block.x.empty()) define_states();
    for (Column& column : columns_) column.add(block);
    draws_ += block.count;
    write_chunks(false);
  });
  if (!leaves_states_to_others_ && is_due()) commit({});
}

bool Writer::is_due() {
  if (phase_ != Phase::open || draws_ == committed_) return false;
  const bool in_flight =
      committing_.valid() && committing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (in_flight) return false;
  guarded([&] { wait(); });
  const bool after_every_batch = options_.sync_interval.count() == 0;
  return after_every_batch || std::chrono::steady_clock::now() >= due_ + kShare * spent_;
}

void Writer::commit(std::shared_future<void> others) {
  guarded([&] { start(take_commit(Metadata::of_root), std::move(others)); });
}

/// Chunks that are full or, for `all`, also those that are not.
void Writer::write_chunks(bool all) {
  struct Job {
    const Column* column;
    Column::Chunk chunk;
  };
  std::vector<Job> jobs;
  for (const Column& column : columns_) {
    if (column.is_sharded()) {
      spent_ += shards_->write(column, all, pool_, files_);
      continue;
    }
    for (const Column::Chunk& chunk : column.chunks(all)) jobs.push_back({&column, chunk});
  }
  const std::size_t first = files_.size();
  files_.resize(first + jobs.size());
  pool_.for_each(jobs.size(), [&](std::size_t k) {
    const auto& [column, chunk] = jobs[k];
    files_[first + k] = folder_.write(column->path(chunk), column->encoded(chunk));
  });
  for (Column& column : columns_) column.drop_full();
}

/// Draw numbers are known beforehand: chunks of them are full from the start.
void Writer::write_numbers(const std::string& group) {
  const Array* const array = root_.find(group + "/draw");
  const std::size_t chunk = array->chunk[0];
  for (std::size_t k = (numbered_ + chunk - 1) / chunk; k * chunk < draws_; ++k) {
    files_.push_back(folder_.write(chunk_path(*array, {k}), numbers(k * chunk, chunk)));
  }
}

Commit Writer::take_commit(Metadata metadata) {
  const auto begun = std::chrono::steady_clock::now();
  Commit commit;
  commit.is_first = std::exchange(new_folders_, false);
  if (phase_ != Phase::before) {
    if (draws_ != committed_) write_chunks(true);
    for (const char* group : {"posterior", "sample_stats"}) write_numbers(group);
    numbered_ = draws_;
    set_draws(root_, draws_);
    if (metadata == Metadata::of_all || commit.is_first) {
      for (const Array& array : root_.arrays) {
        files_.push_back(folder_.write(array.path + "/zarr.json", array_json(array).dump()));
      }
    }
  }
  commit.files = std::exchange(files_, {});
  commit.root = root_text(root_);
  committed_ = draws_;
  spent_ = {};
  prepared_ = std::chrono::steady_clock::now() - begun;
  return commit;
}

void Writer::start(Commit commit, std::shared_future<void> others) {
  commit.others = std::move(others);
  committing_ = std::async(std::launch::async, [this, made = std::move(commit)] {
    const auto begun = std::chrono::steady_clock::now();
    folder_.make_durable(made);
    took_ = std::chrono::steady_clock::now() - begun;
  });
}

/// What a commit that failed should have renamed has no name: after that there is none.
void Writer::wait() {
  if (!committing_.valid()) return;
  try {
    committing_.get();
  } catch (...) {
    phase_ = Phase::closed;
    throw;
  }
  durable_ = committed_;
  due_ = std::chrono::steady_clock::now() +
         std::max<std::chrono::steady_clock::duration>(options_.sync_interval, kShare * (prepared_ + took_));
}

void Writer::settle() {
  guarded([&] { wait(); });
}

void Writer::save(std::string state, std::shared_future<void> others) {
  if (phase_ == Phase::closed) return;
  guarded([&] {
    wait();
    clear_earlier_run();
    ++root_.state;
    root_.state_sum = checksum(state);
    Commit commit = take_commit(Metadata::of_all);
    commit.previous_root = std::exchange(last_state_root_, commit.root);
    commit.state = {root_.state, std::move(state)};
    start(std::move(commit), std::move(others));
  });
}

void Writer::close_draws() {
  if (phase_ == Phase::before) throw std::logic_error("zarr::Writer: close_draws() was called before begin()");
  if (phase_ != Phase::open) return;
  guarded([&] {
    wait();
    folder_.make_durable(take_commit(Metadata::of_all));
    durable_ = committed_;
  });
  phase_ = Phase::complete;
}

void Writer::finish(const std::string& results) {
  if (phase_ == Phase::before) throw std::logic_error("zarr::Writer: finish() was called before begin()");
  if (phase_ == Phase::closed) return;
  close_draws();
  guarded([&] {
    root_.results = results;
    if (!leaves_states_) root_.state = 0;
    folder_.make_durable(take_commit(Metadata::of_root));
    if (!leaves_states_) folder_.forget_states();
  });
  phase_ = Phase::closed;
}

std::uint64_t expected_bytes(const StoreOptions& options) {
  if (options.draws == 0 || options.chains == 0) return 0;
  constexpr std::uint64_t kFixedBytes = 200'000;  // metadata, and chunks that are not full
  const auto product = [](std::initializer_list<double> factors) {
    return std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>());
  };
  const auto chains = static_cast<double>(options.chains);
  const auto draws = static_cast<double>(options.draws);
  // A bit for each of two labels; zstd spends at most about one bit more than the plain code of a level.
  double bits = 1.01;
  for (std::size_t levels = 2; levels < options.levels; levels *= 2) bits += 1.0;
  if (options.levels > 2) bits = std::min(8.1, bits + 1.0);
  const double states = product({chains, draws, static_cast<double>(options.variables), bits / 8.0});
  const double series = product({chains, draws, static_cast<double>(options.monitors + 2), sizeof(double)});
  const double all = states + series + 2.0 * sizeof(std::int64_t) * draws + kFixedBytes;
  return static_cast<std::uint64_t>(std::min(all, 9e18));
}

}  // namespace poise::zarr
