/// A program with a target of its own, whose run has checkpoints and goes on after a kill: what `poise sample` and
/// `poise resume` are for built-in models. Takes the words of these two that tests use.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/ranks/ranks.hpp"
#include "models/user/batch_target.hpp"
#include "run/checkpoint.hpp"

namespace poise {
namespace {

constexpr std::size_t kVariables = 20;

/// A ring of coins that like to be different from the next one.
class Ring final : public BatchFunction {
 public:
  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    for (std::size_t r = 0; r < out.size(); ++r) {
      out[r] = 0.0;
      for (std::size_t i = 0; i < kVariables; ++i) {
        const int here = rows[r * kVariables + i];
        const int next = rows[r * kVariables + (i + 1) % kVariables];
        out[r] += 0.7 * (here ^ next) + 0.1 * static_cast<double>(i % 3) * here;
      }
    }
  }
  [[nodiscard]] bool has_gradient() const override { return true; }
  void gradient(std::span<const Value> rows, std::span<double> log_p, std::span<double> out) override {
    log_prob(rows, log_p);
    for (std::size_t r = 0; r < log_p.size(); ++r) {
      const Value* x = rows.data() + r * kVariables;
      for (std::size_t i = 0; i < kVariables; ++i) {
        const int beside = x[(i + 1) % kVariables] + x[(i + kVariables - 1) % kVariables];
        out[r * kVariables + i] = 0.7 * (2 - 2 * beside) + 0.1 * static_cast<double>(i % 3);
      }
    }
  }
};

using Words = std::map<std::string, std::string>;

/// `--name value` pairs; a word without dashes before it is the model, or the file to resume.
Words read_words(int count, char** words) {
  Words found;
  for (int k = 2; k < count; ++k) {
    const std::string word = words[k];
    if (!word.starts_with("--")) {
      found["what"] = word;
    } else if (word != "--quiet" && k + 1 < count) {
      found[word.substr(2)] = words[++k];
    }
  }
  return found;
}

void run(Words words, std::optional<Checkpoint> resumed, Collective* ranks) {
  RunOptions options;
  options.chains = std::stoul(words.at("chains"));
  options.draws = std::stoul(words.at("draws"));
  options.seed = std::stoul(words.at("seed"));
  const Model model = callback_model("ring", {std::vector<Index>(kVariables, 2), {}}, std::make_shared<Ring>(), {});
  CheckpointOptions checkpoints;
  if (words.contains("checkpoint-every")) {
    checkpoints.always = true;
    checkpoints.first = checkpoints.interval = std::chrono::duration<double>(std::stod(words["checkpoint-every"]));
  }
  const bool resumes = words.contains("resumed");
  words["resumed"] = "";
  CheckpointedSink sink(words.at("out"), model, options, checkpoints, nlohmann::json(words), std::move(resumed), 0,
                        ranks);
  RunHooks hooks{.sink = &sink, .collective = ranks};
  hooks.after_round = [&](const Run& now) { sink.after_round(now); };
  Run made(model, parse_sampler(words.at("sampler")), options, hooks);
  if (resumes) sink.load(made);
  made.warm_up();
  made.sample(options.draws - made.draws());
  sink.after_last_round(made, true);
  const RunResult result = made.finish();
  if (ranks == nullptr || ranks->is_root()) sink.finish("{}");
}

/// The words of the checkpoint, told to all ranks.
void resume(const std::string& path, Collective* ranks) {
  const bool is_root = ranks == nullptr || ranks->is_root();
  std::optional<Checkpoint> found;
  std::string note;
  if (is_root) found = read_checkpoint(path, note);
  if (found && found->finished && is_complete(path)) throw InputError("the run is finished");
  std::string command = found ? found->command.dump() : "";
  if (ranks != nullptr) {
    command = ranks->of_root(command);
    const std::size_t draws = ranks->of_root(found ? found->draws : 0);
    if (!found) found = {nullptr, draws, false, ""};
  }
  run(nlohmann::json::parse(command).get<Words>(), std::move(found), ranks);
}

int go(int count, char** words) {
  try {
    const std::shared_ptr<Collective> ranks = start_ranks();
    const auto work = [&] {
      Words found = read_words(count, words);
      if (std::string(words[1]) == "resume") return resume(found.at("what"), ranks.get());
      run(std::move(found), std::nullopt, ranks.get());
    };
    if (ranks) {
      ranks->together(work);
      ranks->leave();
    } else {
      work();
    }
    return 0;
  } catch (const InputError& error) {
    std::fprintf(stderr, "poise: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "poise: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace poise

int main(int count, char** words) { return count > 1 ? poise::go(count, words) : 2; }
