/// Fuzzes the files of a Zarr store, as they are and with their checksums put right: a store with one file exchanged is
/// read or refused, and what is accepted has arrays that fit together. The first byte chooses the file: from 128 on,
/// one of a store whose chunks are in shards.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <poise/report.hpp>
#include "base/file.hpp"
#include "fuzz/require.hpp"
#include "store/run_file.hpp"
#include "store/zarr/crc32c.hpp"
#include "store/zarr/reader.hpp"
#include "store/zarr/writer.hpp"

namespace {

namespace fs = std::filesystem;
using namespace poise;

/// A store of two chains with a state, made once and removed at the end.
class Store {
 public:
  explicit Store(bool sharded)
      : path_(fs::temp_directory_path() / fmt::format("fuzz_store{}.{}.zarr", sharded ? "_shards" : "", ::getpid())) {
    VariableLayout layout;
    layout.variables = 9;
    layout.rows = layout.columns = 3;
    layout.labels = {-1, 1};
    const std::vector<std::string> monitors{"log_prob", "magnetization"};
    constexpr std::size_t chains = 2;
    const std::size_t draws = sharded ? 300 : 40;  // two chunks of a chain, or one
    DrawBatch block;
    block.count = draws;
    block.monitors.resize(monitors.size());
    block.x = States(layout);
    std::vector<std::int8_t> labels(layout.variables);
    for (std::size_t entry = 0; entry < chains * draws; ++entry) {
      for (std::size_t i = 0; i < layout.variables; ++i) labels[i] = (entry * 7 + i * i) % 3 == 0 ? 1 : -1;
      block.x.append(labels);
      for (std::vector<double>& monitor : block.monitors) monitor.push_back(static_cast<double>(entry % 5));
      block.acceptance_rate.push_back(0.5);
      block.n_steps.push_back(9);
    }
    StoreOptions known;
    if (sharded) known = {.chains = chains, .draws = draws, .variables = layout.variables, .most_files = chains};
    zarr::Writer writer(path_, known);
    writer.begin(layout, chains, monitors, R"({"model":"ising:size=3","sampler":"gibbs"})");
    writer.write(block);
    writer.save("state");
    writer.finish("{}");
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
  }
  ~Store() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& file(std::size_t number) const { return files_[number % files_.size()]; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

/// A checksum stops nearly every change at the door.
std::string sealed(std::string content, const std::string& file) {
  if (!file.ends_with(".json")) {
    if (content.size() < 4) return content;
    const std::uint32_t sum = zarr::crc32c(std::string_view(content).substr(0, content.size() - 4));
    for (std::size_t k = 0; k < 4; ++k) content[content.size() - 4 + k] = static_cast<char>(sum >> (8 * k) & 0xff);
    return content;
  }
  constexpr std::string_view key = R"("store_checksum":")";
  constexpr std::size_t digits = 16;
  const std::size_t at = content.find(key);
  if (at == std::string::npos || content.size() < at + key.size() + digits) return content;
  content.replace(at + key.size(), digits, std::string(digits, '0'));
  return content.replace(at + key.size(), digits, fmt::format("{:016x}", checksum(content)));
}

void write(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

void check(const std::string& path) {
  try {
    const StoredRun run = read_run(path);
    const std::size_t entries = run.trace.chains * run.trace.draws;
    require(run.trace.n_steps.size() == entries && run.trace.acceptance_rate.size() == entries);
    require(run.trace.monitors.size() == run.trace.monitor_names.size());
    for (const auto& monitor : run.trace.monitors) require(monitor.size() == entries);
    require(run.trace.x.empty() || run.trace.x.size() == entries * run.layout.variables);
    require(!report_text(make_report(run), 80).empty());
  } catch (const InputError& error) {
    require(std::string_view(error.what()).find("fuzz_store") != std::string_view::npos);
  }
  try {
    std::string note;
    static_cast<void>(zarr::read_last_state(path, note));
  } catch (const InputError& error) {
    require(std::string_view(error.what()).find("fuzz_store") != std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Store plain(false), sharded(true);
  if (size == 0) return 0;
  const Store& store = data[0] < 128 ? plain : sharded;
  const std::string& file = store.file(data[0] % 128);
  const std::string before = read_file(file);
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const std::string& bytes : {content, sealed(content, file)}) {
    write(file, bytes);
    check(store.path());
  }
  write(file, before);
  return 0;
}
