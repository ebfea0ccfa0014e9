/// `poise train rbm`: learns the weights of a restricted Boltzmann machine from images.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/archive.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/spec.hpp>
#include <poise/report.hpp>
#include "base/image/idx.hpp"
#include "base/file.hpp"
#include "inference/train/rbm_trainer.hpp"
#include "report/text.hpp"

#include "checkpoint_flags.hpp"
#include "commands.hpp"
#include "exit_codes.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"
#include "train.hpp"
#include "train_checkpoints.hpp"

namespace poise::app {

namespace {

constexpr std::int64_t kMostHidden = 100'000;
constexpr std::int64_t kMostRows = 100'000;  // in a batch

struct TrainFlags {
  std::string kind;
  std::string data;
  std::string images;
  std::string hidden;
  std::string method = "cd";
  std::string k;
  std::string epochs;
  std::string batch;
  std::string rate;
  std::string optimizer = "adam";
  std::string binarise = "0.5";
  std::string seed;
  std::string threads;
  std::string device;
  std::string out;
  std::string json;
  CheckpointFlags checkpoints;
  bool quiet = false;
};

/// The words of a command that a checkpoint keeps: with their names, empty where they were not given.
template <class Flags, class Visit>
void for_each_train_word(Flags& flags, Visit&& visit) {
  visit("kind", flags.kind);
  visit("data", flags.data);
  visit("images", flags.images);
  visit("hidden", flags.hidden);
  visit("method", flags.method);
  visit("k", flags.k);
  visit("epochs", flags.epochs);
  visit("batch", flags.batch);
  visit("rate", flags.rate);
  visit("optimizer", flags.optimizer);
  visit("binarise", flags.binarise);
  visit("seed", flags.seed);
  visit("threads", flags.threads);
  visit("device", flags.device);
  visit("json", flags.json);
  visit("checkpoint_every", flags.checkpoints.every);
}

struct TrainSettings {
  CheckpointOptions checkpoints;
  RbmTrainerOptions trainer;
  std::uint64_t images = 20'000;
  std::uint64_t hidden = 250;
  std::uint64_t epochs = 1;
  std::optional<double> threshold;  // none: pixels are drawn anew for each epoch
};

bool is_rbm_file(std::string path) {
  std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) { return std::tolower(c); });
  return path.ends_with(".safetensors") || path.ends_with(".npz");
}

void check_words(const TrainFlags& flags, Problems& problems) {
  if (flags.kind.empty()) {
    problems.add("the kind of model is missing, expected rbm");
  } else if (flags.kind != "rbm") {
    problems.add(fmt::format("found {}, expected the kind of model, which is rbm", quote(flags.kind)));
  }
  if (flags.data.empty()) problems.add("--data is missing, expected an IDX file, a directory with one, or digits");
  if (!flags.images.empty() && flags.data != "digits") {
    problems.add("--images: it says how many digits to draw, expected --data digits with it");
  }
  if (flags.method != "cd" && flags.method != "pcd") {
    problems.add(fmt::format("--method: found {}, expected cd or pcd", quote(flags.method)));
  }
  if (flags.optimizer != "adam") {
    problems.add(fmt::format("--optimizer: found {}, expected adam", quote(flags.optimizer)));
  }
  if (flags.out.empty()) {
    problems.add("--out is missing, expected a file for the weights, for example rbm.safetensors");
  } else if (!is_rbm_file(flags.out)) {
    problems.add(fmt::format("--out: found {}, expected a name that ends in .safetensors or .npz", quote(flags.out)));
  }
}

TrainSettings read_settings(const TrainFlags& flags) {
  Problems problems;
  TrainSettings settings;
  RbmTrainerOptions& trainer = settings.trainer;
  check_words(flags, problems);
  settings.checkpoints = read_checkpoint_options(flags.checkpoints, flags.out, problems);
  trainer.method = flags.method == "pcd" ? Divergence::pcd : Divergence::cd;
  constexpr std::int64_t many = 1'000'000;
  read_integer(flags.images, "--images", 1, many, settings.images, problems);
  read_integer(flags.hidden, "--hidden", 1, kMostHidden, settings.hidden, problems);
  read_integer(flags.k, "--k", 1, many, trainer.gibbs_steps, problems);
  read_integer(flags.epochs, "--epochs", 1, many, settings.epochs, problems);
  read_integer(flags.batch, "--batch", 1, kMostRows, trainer.batch, problems);
  read_integer(flags.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max(), trainer.seed, problems);
  std::uint64_t threads = trainer.threads;
  read_integer(flags.threads, "--threads", 0, many, threads, problems);
  trainer.threads = static_cast<unsigned>(threads);
  read_device(flags.device, trainer.device, problems);
  const auto rate = flags.rate.empty() ? trainer.rate : parse_real(flags.rate);
  if (rate && *rate > 0.0 && *rate <= 1.0) {
    trainer.rate = *rate;
  } else {
    problems.add(fmt::format("--rate: found {}, expected a number above 0, at most 1", quote(flags.rate)));
  }
  if (flags.binarise != "sample") {
    settings.threshold = parse_real(flags.binarise);
    if (!settings.threshold || *settings.threshold < 0.0 || *settings.threshold >= 1.0) {
      problems.add(fmt::format("--binarise: found {}, expected a threshold from 0 to below 1, or sample",
                               quote(flags.binarise)));
    }
  }
  problems.throw_if_any();
  return settings;
}

IdxImages read_images(const TrainFlags& flags, const TrainSettings& settings) {
  if (flags.data == "digits") return draw_digits(settings.images, settings.trainer.seed);
  IdxImages images = read_idx(flags.data);
  constexpr std::size_t most = 1'000'000;  // pixels of one image
  if (images.rows * images.columns > most) {
    throw InputError(fmt::format("{}: found images of {} x {} pixels, expected at most {} pixels", flags.data,
                                 images.rows, images.columns, most));
  }
  return images;
}

class TrainDisplay {
 public:
  TrainDisplay(ProgressStyle style, std::uint64_t epochs, std::uint64_t images)
      : line_(style), epochs_(epochs), images_(images), begun_(Clock::now()) {}

  void update(std::uint64_t epoch, const RbmProgress& progress) {
    smooth(progress.metrics);
    const bool over = epoch == epochs_ && progress.batch == progress.batches;
    if (!over && !line_.is_due()) return;
    line_.show(text(epoch, progress, std::chrono::duration<double>(Clock::now() - begun_).count()));
  }

  void end() const { line_.end(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// About the mean over the last hundred batches; one alone says little.
  void smooth(const RbmMetrics& metrics) {
    batches_ = std::min(batches_ + 1, 100.0);
    recent_.reconstruction_error += (metrics.reconstruction_error - recent_.reconstruction_error) / batches_;
    recent_.pseudo_log_likelihood += (metrics.pseudo_log_likelihood - recent_.pseudo_log_likelihood) / batches_;
  }

  [[nodiscard]] std::string text(std::uint64_t epoch, const RbmProgress& progress, double seconds) const {
    const auto done = static_cast<double>((epoch - 1) * images_ + progress.rows);
    const double rate = done / std::max(seconds, 1e-9);
    const double left = (static_cast<double>(epochs_ * images_) - done) / rate;
    return fmt::format("epoch {}/{}  batch {}/{}  {}  error {:.4f}  pseudo-likelihood {:.1f}  {} images/s", epoch,
                       epochs_, progress.batch, progress.batches, left > 0 ? text::duration(left) + " left" : "done",
                       recent_.reconstruction_error, recent_.pseudo_log_likelihood, text::rate(rate));
  }

  ProgressLine line_;
  std::uint64_t epochs_;
  std::uint64_t images_;
  Clock::time_point begun_;
  double batches_ = 0;
  RbmMetrics recent_;
};

struct Training {
  RbmWeights weights;
  Device device = Device::cpu;
  std::vector<RbmEpoch> epochs;
  RbmMetrics last;  // of the weights on all images
  std::size_t images = 0;
  double seconds = 0.0;
  bool interrupted = false;
};

/// Trains and saves the weights. `state` is what it goes on from, empty where it begins.
Training learn(const TrainFlags& flags, const TrainSettings& settings, const IdxImages& images,
               TrainCheckpoints& checkpoints, const std::string& state) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  const auto begun = std::chrono::steady_clock::now();
  Rng rng = make_rng(settings.trainer.seed, Stream::binarise);
  Position position{1, {}, rng, 0.0};
  const auto black_and_white = [&] {
    position.pixels = rng;
    return settings.threshold ? binarise(images, *settings.threshold) : binarise_sampled(images, rng);
  };
  std::vector<Value> data = black_and_white();
  const auto visible = static_cast<Index>(images.rows * images.columns);
  RbmTrainer trainer(initial_rbm(visible, static_cast<Index>(settings.hidden), data, settings.trainer.seed),
                     settings.trainer);
  if (!state.empty()) {
    Loader in(state);
    std::string of_trainer;
    in(position, of_trainer);
    trainer.load(of_trainer);
    rng = position.pixels;
    data = black_and_white();
  }
  const double seconds_before = position.seconds;
  const auto save = [&] {
    position.seconds = seconds_before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    Saver out;
    out(position, trainer.save());
    checkpoints.save(out.take());
  };
  TrainDisplay display(progress_style(flags.quiet), settings.epochs, images.count);
  Training training;
  training.epochs = position.epochs;
  for (;;) {
    const auto after_batch = [&](const RbmProgress& progress) {
      display.update(position.epoch, progress);
      if (checkpoints.is_due()) save();
    };
    training.epochs.push_back(trainer.epoch(data, {.progress = after_batch, .stop = &stop}));
    training.interrupted = training.epochs.back().interrupted;
    if (training.interrupted || position.epoch == settings.epochs) break;
    ++position.epoch;
    position.epochs = training.epochs;
    if (!settings.threshold) data = black_and_white();
  }
  display.end();
  if (training.interrupted && !flags.quiet) fmt::print(stderr, "interrupted, saving what was learned\n");
  training.weights = trainer.weights();
  training.device = trainer.device();
  training.weights.rows = static_cast<Index>(images.rows);
  training.weights.columns = static_cast<Index>(images.columns);
  write_rbm(flags.out, training.weights);  // before anything else: a second Ctrl-C must not lose it
  if (training.interrupted) {
    save();
  } else {
    checkpoints.remove();
  }
  training.last = trainer.evaluate(data);
  training.images = images.count;
  training.seconds = seconds_before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return training;
}

nlohmann::json metrics_json(const RbmMetrics& metrics) {
  return {{"reconstruction_error", metrics.reconstruction_error},
          {"pseudo_log_likelihood", metrics.pseudo_log_likelihood}};
}

nlohmann::json training_json(const TrainFlags& flags, const TrainSettings& settings, const Training& training) {
  nlohmann::json epochs = nlohmann::json::array();
  for (const RbmEpoch& epoch : training.epochs) {
    nlohmann::json row = metrics_json(epoch.metrics);
    row["images"] = epoch.rows;
    row["seconds"] = epoch.seconds;
    epochs.push_back(row);
  }
  const nlohmann::json threshold = settings.threshold ? nlohmann::json(*settings.threshold) : nlohmann::json("sample");
  return {{"version", POISE_VERSION},
          {"model", "rbm"},
          {"out", flags.out},
          {"settings",
           {{"data", flags.data},
            {"images", training.images},
            {"rows", training.weights.rows},
            {"columns", training.weights.columns},
            {"hidden", settings.hidden},
            {"method", flags.method},
            {"k", settings.trainer.gibbs_steps},
            {"epochs", settings.epochs},
            {"batch", settings.trainer.batch},
            {"rate", settings.trainer.rate},
            {"optimizer", flags.optimizer},
            {"binarise", threshold},
            {"seed", settings.trainer.seed},
            {"threads", settings.trainer.threads},
            {"device", training.device == Device::cuda ? "cuda" : "cpu"}}},
          {"epochs", epochs},
          {"final", metrics_json(training.last)},
          {"seconds", training.seconds},
          {"interrupted", training.interrupted}};
}

std::string training_text(const TrainFlags& flags, const Training& training) {
  const RbmWeights& rbm = training.weights;
  std::uint64_t seen = 0;
  for (const RbmEpoch& epoch : training.epochs) seen += epoch.rows;
  return fmt::format(
      "{}: {} visible and {} hidden units, learned from {} in {}{}\n"
      "reconstruction error {:.4f} a pixel, pseudo-likelihood {:.1f} an image\n",
      flags.out, rbm.visible, rbm.hidden, text::plural(seen, "image"), text::duration(training.seconds),
      training.interrupted ? ", interrupted" : "", training.last.reconstruction_error,
      training.last.pseudo_log_likelihood);
}

std::string checksum_of(const IdxImages& images) {
  return fmt::format("{:016x}", checksum({reinterpret_cast<const char*>(images.pixels.data()), images.pixels.size()}));
}

nlohmann::json command_of(const TrainFlags& flags, const IdxImages& images) {
  nlohmann::json words = nlohmann::json::object();
  for_each_train_word(flags, [&](const char* name, const std::string& word) { words[name] = word; });
  std::error_code ignored;
  return {{"program", kTrainProgram},
          {"words", words},
          {"images", checksum_of(images)},
          {"folder", std::filesystem::current_path(ignored).string()}};
}

int train(const TrainFlags& flags, const std::optional<Checkpoint>& resumed = std::nullopt) {
  const TrainSettings settings = read_settings(flags);
  check_outputs({{"--out", flags.out}, {"--json", flags.json}});
  const IdxImages images = read_images(flags, settings);
  if (resumed && resumed->command.at("images") != checksum_of(images)) {
    throw InputError(fmt::format("{} has changed since the training began, so it cannot go on with it", flags.data));
  }
  TrainCheckpoints checkpoints(flags.out, settings.checkpoints, command_of(flags, images), resumed.has_value());
  const Training training = learn(flags, settings, images, checkpoints, resumed ? resumed->state : "");
  if (!flags.json.empty()) write_output(flags.json, json_text(training_json(flags, settings, training)));
  if (flags.json != "-") {
    fmt::print("{}", training_text(flags, training));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", training_text(flags, training));
  }
  if (training.interrupted && checkpoints.is_saved() && !flags.quiet) {
    fmt::print(stderr, "'poise resume {}' goes on with it\n", flags.out);
  }
  return training.interrupted ? kInterrupted : kSuccess;
}

void declare(CLI::App& command, TrainFlags& flags) {
  const TrainSettings defaults;
  const auto add = [&](const char* name, std::string& value, const std::string& help, const char* type) {
    command.add_option(name, value, help)->type_name(type);
  };
  add("kind", flags.kind, "Kind of model: rbm", "rbm");
  add("--data", flags.data,
      "Images: an IDX file (plain or gzip), a directory with MNIST's files, or digits: drawn here", "WHAT");
  add("--images", flags.images, fmt::format("How many digits to draw [{}]", defaults.images), "N");
  add("--hidden", flags.hidden, fmt::format("Hidden units [{}]", defaults.hidden), "N");
  add("--method", flags.method, "cd, or pcd: chains are kept from batch to batch [cd]", "HOW");
  add("--k", flags.k, fmt::format("Steps of block Gibbs per update [{}]", defaults.trainer.gibbs_steps), "K");
  add("--epochs", flags.epochs, fmt::format("Passes over the images [{}]", defaults.epochs), "N");
  add("--batch", flags.batch, fmt::format("Images per update [{}]", defaults.trainer.batch), "N");
  add("--rate", flags.rate, fmt::format("Rate of learning [{}]", defaults.trainer.rate), "R");
  add("--optimizer", flags.optimizer, "adam [adam]", "NAME");
  add("--binarise", flags.binarise,
      "A pixel is on above this threshold, or sample: on with its gray level as probability [0.5]", "HOW");
  add("--seed", flags.seed, fmt::format("Seed of all random numbers [{}]", defaults.trainer.seed), "S");
  add("--threads", flags.threads, "Threads; the weights do not depend on it [0: all cores]", "T");
  add("--device", flags.device,
      "Where it runs: cpu, cuda (a GPU; 'poise devices' lists them), or auto: a GPU where it is faster [cpu]",
      "DEVICE");
  add("--out", flags.out, "Where the weights go: .safetensors or .npz", "FILE");
  add("--json", flags.json, "Write settings and metrics as JSON; - is standard output", "FILE");
  declare(command, flags.checkpoints);
}

}  // namespace

int go_on_training(const TrainAgain& words, Checkpoint checkpoint) {
  TrainFlags flags;
  flags.out = std::filesystem::absolute(words.path).lexically_normal().string();
  try {
    const nlohmann::json& before = checkpoint.command.at("words");
    for_each_train_word(flags, [&](const char* name, std::string& word) { word = before.value(name, word); });
    // Files are named as they were when it began, from the folder of that time where it is still there.
    std::error_code ignored;
    std::filesystem::current_path(checkpoint.command.at("folder").get<std::string>(), ignored);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", checkpoint_path(words.path)));
  }
  flags.checkpoints.always = true;
  flags.quiet = words.quiet;
  if (!words.threads.empty()) flags.threads = words.threads;
  return train(flags, checkpoint);
}

Command add_train(CLI::App& program) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = program.add_subcommand("train", "Learn a restricted Boltzmann machine from images");
  declare(*command, *flags);
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(train_footer());
  return {command, [flags] { return train(*flags); }};
}

}  // namespace poise::app
