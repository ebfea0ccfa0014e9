/// An experiment: independent parts, each computed once and kept in a file, and a report made from their results.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/state_file.hpp"
#include "studies/document.hpp"
#include "studies/reproduce.hpp"

namespace poise::reproduction {

/// Thrown by a part that was told to stop; nothing of it is kept.
struct Stopped {};

class StopFlag {
 public:
  explicit StopFlag(const std::atomic<bool>* flag) : flag_(flag) {}
  [[nodiscard]] bool is_set() const { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }
  void check() const {
    if (is_set()) throw Stopped{};
  }
  [[nodiscard]] const std::atomic<bool>* get() const { return flag_; }

 private:
  const std::atomic<bool>* flag_;
};

struct Part {
  std::string key;  ///< names the file, so letters, digits and '-' only
  std::function<nlohmann::json(const StopFlag&)> compute;
};

using Results = std::map<std::string, nlohmann::json>;

/// Finished parts on disk, of one program at a time. Each file holds the settings that it was computed with, and counts
/// only under the same, and only if its checksum is right.
class PartStore {
 public:
  PartStore(std::filesystem::path directory, nlohmann::json settings);

  [[nodiscard]] std::optional<nlohmann::json> find(const std::string& key) const;
  void keep(const std::string& key, const nlohmann::json& result) const;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const { return directory_ / (key + ".json"); }
  std::filesystem::path directory_;
  nlohmann::json settings_;
  std::optional<Lock> lock_;
};

/// Works through parts on some threads. What a part gives must not depend on which thread takes it or when.
class PartRunner {
 public:
  /// `total` is the number of parts of the whole experiment, for progress.
  PartRunner(const PartStore& store, const ReproduceHooks& hooks, unsigned threads, std::size_t total);

  /// Results of all the parts, found or computed. Throws Stopped when told to stop; what was finished then is kept.
  [[nodiscard]] Results run(const std::vector<Part>& parts);

  [[nodiscard]] unsigned threads() const { return threads_; }
  [[nodiscard]] std::size_t total() const { return progress_.total; }
  [[nodiscard]] std::size_t reused() const { return progress_.reused; }
  [[nodiscard]] const PartStore& store() const { return store_; }
  [[nodiscard]] double seconds() const;

 private:
  void report(const std::string& part);

  const PartStore& store_;
  const ReproduceHooks& hooks_;
  unsigned threads_;
  ReproduceProgress progress_;
  double begun_;
};

class ExperimentRun {
 public:
  virtual ~ExperimentRun() = default;
  /// What the results depend on besides options and version: the data.
  [[nodiscard]] virtual nlohmann::json data() const = 0;
  [[nodiscard]] virtual std::size_t num_parts() const = 0;
  /// Computes all parts, in as many rounds as depend on each other.
  [[nodiscard]] virtual Results compute(PartRunner& runner) const = 0;
  [[nodiscard]] virtual std::vector<Verdict> judge(const Results& results) const = 0;
  [[nodiscard]] virtual Document describe(const Results& results, const std::vector<Verdict>& verdicts) const = 0;
};

/// Each throws InputError where the data cannot be read.
[[nodiscard]] std::unique_ptr<ExperimentRun> make_ising_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_uai_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_rbm_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_discs_experiment(const ReproduceOptions& options);
[[nodiscard]] std::unique_ptr<ExperimentRun> make_select_experiment(const ReproduceOptions& options);

/// "published protocol, full effort, seed 1": the line below the title of a report.
[[nodiscard]] std::string subtitle(const ReproduceOptions& options);

}  // namespace poise::reproduction
