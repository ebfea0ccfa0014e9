/// Keeping parts, and working through them.
#include "studies/experiment.hpp"

#include <chrono>
#include <fstream>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"
#include "base/thread_pool.hpp"

namespace poise::reproduction {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Numbers are written with as many digits as it takes, so that what is read gives the same text.
std::string checksum_of(const nlohmann::json& result) { return fmt::format("{:016x}", checksum(result.dump())); }

}  // namespace

PartStore::PartStore(std::filesystem::path directory, nlohmann::json settings)
    : directory_(std::move(directory)), settings_(std::move(settings)) {
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  if (failed) throw InputError(fmt::format("cannot make the directory {}: {}", directory_.string(), failed.message()));
  lock_.emplace((directory_ / "lock").string());
}

std::optional<nlohmann::json> PartStore::find(const std::string& key) const {
  std::ifstream stream(file_of(key), std::ios::binary);
  if (!stream) return std::nullopt;
  nlohmann::json stored = nlohmann::json::parse(stream, nullptr, false);
  if (!stored.is_object() || stored.value("settings", nlohmann::json()) != settings_ || !stored.contains("result") ||
      stored.value("checksum", nlohmann::json()) != checksum_of(stored["result"])) {
    return std::nullopt;
  }
  return stored["result"];
}

void PartStore::keep(const std::string& key, const nlohmann::json& result) const {
  write_atomically(
      file_of(key),
      nlohmann::json{{"settings", settings_}, {"result", result}, {"checksum", checksum_of(result)}}.dump());
}

PartRunner::PartRunner(const PartStore& store, const ReproduceHooks& hooks, unsigned threads, std::size_t total)
    : store_(store), hooks_(hooks), threads_(threads), begun_(now()) {
  progress_.total = total;
  report("");
}

double PartRunner::seconds() const { return now() - begun_; }

void PartRunner::report(const std::string& part) {
  progress_.part = part;
  progress_.seconds = seconds();
  if (hooks_.progress) hooks_.progress(progress_);
}

Results PartRunner::run(const std::vector<Part>& parts) {
  Results results;
  std::vector<const Part*> open;
  for (const Part& part : parts) {
    if (auto found = store_.find(part.key)) {
      results[part.key] = std::move(*found);
      ++progress_.done;
      ++progress_.reused;
    } else {
      open.push_back(&part);
    }
  }
  const StopFlag stop(hooks_.stop);
  std::mutex mutex;
  ThreadPool pool(threads_);
  pool.for_each(open.size(), [&](std::size_t index) {
    stop.check();
    // Through text, as a later run will read it: NaN becomes null, and nothing else changes.
    const nlohmann::json result = nlohmann::json::parse(open[index]->compute(stop).dump());
    const std::lock_guard lock(mutex);
    store_.keep(open[index]->key, result);
    results[open[index]->key] = result;
    ++progress_.done;
    report(open[index]->key);
  });
  return results;
}

}  // namespace poise::reproduction
