/// `poise train rbm`: learns the weights of a restricted Boltzmann machine from images or rows of an array.
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
#include "base/file.hpp"
#include "base/state_file.hpp"
#include "inference/train/rbm_trainer.hpp"
#include "report/text.hpp"
#include "studies/images/idx.hpp"

#include "commands.hpp"
#include "help.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"
#include "terminal.hpp"
#include "train.hpp"
#include "train_checkpoints.hpp"
#include "train_data.hpp"
#include "work_checkpoints.hpp"

namespace poise::app {

namespace {

constexpr std::int64_t kMostHidden = 100'000;
constexpr std::int64_t kMostRows = 100'000;  // in a batch

/// What is learned from what, and how.
struct TrainSettings {
  std::string data;
  std::uint64_t images = 20'000;
  std::uint64_t hidden = 250;
  std::uint64_t epochs = 1;
  std::string optimizer = "adam";
  std::string binarise = "0.5";
  std::string json;
  RbmTrainerOptions trainer;
  CheckpointOptions checkpoints;

  void describe(OptionVisitor& visit) {
    constexpr std::uint64_t many = 1'000'000;
    visit({"data", "WHAT",
           "An array of rows or images (.npy, .npz, .csv), an IDX file of images (plain or gzip), a directory with "
           "MNIST's "
           "files, or digits: drawn here"},
          data);
    visit({.name = "images", .value = "N", .help = "How many digits to draw", .least = 1, .most = many}, images);
    visit({.name = "hidden", .value = "N", .help = "Hidden units", .least = 1, .most = kMostHidden}, hidden);
    visit({.name = "method",
           .value = "HOW",
           .help = "cd, or pcd: chains are kept from batch to batch",
           .choices = {"cd", "pcd"}},
          trainer.method);
    visit({.name = "k", .value = "K", .help = "Steps of block Gibbs per update", .least = 1, .most = many},
          trainer.gibbs_steps);
    visit({.name = "epochs", .value = "N", .help = "Passes over the images", .least = 1, .most = many}, epochs);
    visit({.name = "batch", .value = "N", .help = "Images per update", .least = 1, .most = kMostRows}, trainer.batch);
    visit({"rate", "R", "Rate of learning, at most 1"}, trainer.rate);
    visit({"optimizer", "NAME", "adam"}, optimizer);
    visit({"binarise", "HOW", "A pixel is on above this threshold, or sample: on with its gray level as probability"},
          binarise);
    visit({"seed", "S", "Seed of all random numbers"}, trainer.seed);
    visit({.name = "threads",
           .value = "T",
           .help = "Threads; the weights do not depend on it",
           .unset = "0: all cores",
           .most = 1 << 16},
          trainer.threads);
    visit({.name = "device",
           .value = "DEVICE",
           .help = "Where it runs: cpu, cuda (a GPU; 'poise devices' lists them), or auto: a GPU where it is faster",
           .choices = {"cpu", "cuda", "auto"}},
          trainer.device);
    visit({"json", "FILE", "Write settings and metrics as JSON; - is standard output"}, json);
  }
  /// None: pixels are drawn anew for each epoch.
  [[nodiscard]] std::optional<double> threshold() const {
    return binarise == "sample" ? std::nullopt : parse_real(binarise);
  }
};

struct TrainFlags {
  std::string kind;
  OptionFlags options;
  CheckpointFlags checkpoints;
  std::string out;
  bool quiet = false;
};

bool is_rbm_file(std::string path) {
  std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) { return std::tolower(c); });
  return path.ends_with(".safetensors") || path.ends_with(".npz");
}

TrainSettings read_settings(const TrainFlags& flags) {
  Problems problems;
  TrainSettings settings;
  flags.options.read(settings, problems);
  settings.checkpoints = read_checkpoint_options(flags.checkpoints, flags.out, problems);
  if (flags.kind.empty()) {
    problems.add("the kind of model is missing, expected rbm");
  } else if (flags.kind != "rbm") {
    problems.add(fmt::format("found {}, expected the kind of model, which is rbm", quote(flags.kind)));
  }
  if (settings.data.empty())
    problems.add(
        "--data is missing, expected an array (.npy, .npz, .csv), an IDX file, a directory with one, or digits");
  if (!flags.options.word("images").empty() && settings.data != "digits") {
    problems.add("--images: it says how many digits to draw, expected --data digits with it");
  }
  if (settings.optimizer != "adam") {
    problems.add(fmt::format("--optimizer: found {}, expected adam", quote(settings.optimizer)));
  }
  if (flags.out.empty()) {
    problems.add("--out is missing, expected a file for the weights, for example rbm.safetensors");
  } else if (!is_rbm_file(flags.out)) {
    problems.add(fmt::format("--out: found {}, expected a name that ends in .safetensors or .npz", quote(flags.out)));
  }
  if (settings.trainer.rate > 1.0) {
    problems.add(
        fmt::format("--rate: found {}, expected a number above 0, at most 1", quote(flags.options.word("rate"))));
  }
  const std::optional<double> threshold = settings.threshold();
  if (settings.binarise != "sample" && !(threshold && *threshold >= 0.0 && *threshold < 1.0)) {
    problems.add(fmt::format("--binarise: found {}, expected a threshold from 0 to below 1, or sample",
                             quote(settings.binarise)));
  }
  problems.throw_if_any();
  return settings;
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

/// Trains and saves the weights. `state` is what it is resumed from, empty where it begins.
Training learn(const TrainFlags& flags, const TrainSettings& settings, const IdxImages& images,
               WorkCheckpoints& checkpoints, const std::string& state) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  const auto begun = std::chrono::steady_clock::now();
  const std::optional<double> threshold = settings.threshold();
  Rng rng = make_rng(settings.trainer.seed, Stream::binarise);
  Position position{1, {}, rng, 0.0};
  const auto black_and_white = [&] {
    position.pixels = rng;
    return threshold ? binarise(images, *threshold) : binarise_sampled(images, rng);
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
    if (!threshold) data = black_and_white();
  }
  display.end();
  if (training.interrupted && !flags.quiet) fmt::print(stderr, "interrupted, saving what was learned\n");
  training.weights = trainer.weights();
  training.device = trainer.device();
  if (images.rows > 1) {  // a row of an array is no picture
    training.weights.rows = static_cast<Index>(images.rows);
    training.weights.columns = static_cast<Index>(images.columns);
  }
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
  nlohmann::json used = options_json(settings);
  used.erase("json");
  used.update({{"images", training.images},
               {"rows", training.weights.rows},
               {"columns", training.weights.columns},
               {"binarise", settings.threshold() ? nlohmann::json(*settings.threshold()) : nlohmann::json("sample")},
               {"device", training.device == Device::cuda ? "cuda" : "cpu"}});
  return {{"version", POISE_VERSION},
          {"model", "rbm"},
          {"out", flags.out},
          {"settings", used},
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

nlohmann::json command_of(const TrainSettings& settings, const IdxImages& images) {
  std::error_code ignored;
  return {{"program", kTrainProgram},
          {"options", options_json(settings)},
          {"checkpoints", options_json(settings.checkpoints)},
          {"images", checksum_of(images)},
          {"folder", std::filesystem::current_path(ignored).string()}};
}

int train(const TrainFlags& flags, const TrainSettings& settings,
          const std::optional<Checkpoint>& resumed = std::nullopt) {
  check_outputs({{"--out", flags.out}, {"--json", settings.json}});
  const IdxImages images = read_train_data(settings.data, settings.images, settings.trainer.seed);
  if (resumed && resumed->command.at("images") != checksum_of(images)) {
    throw InputError(fmt::format("{} has changed since the training began, so it cannot be resumed", settings.data));
  }
  WorkCheckpoints checkpoints(flags.out, "training", settings.checkpoints, command_of(settings, images),
                              resumed.has_value());
  const Training training = learn(flags, settings, images, checkpoints, resumed ? resumed->state : "");
  if (!settings.json.empty()) write_output(settings.json, json_text(training_json(flags, settings, training)));
  if (settings.json != "-") {
    fmt::print("{}", training_text(flags, training));
  } else if (!flags.quiet) {
    fmt::print(stderr, "{}", training_text(flags, training));
  }
  if (training.interrupted && checkpoints.is_saved() && !flags.quiet) {
    fmt::print(stderr, "'poise resume {}' continues it\n", flags.out);
  }
  return training.interrupted ? kInterrupted : kSuccess;
}

}  // namespace

int continue_training(const TrainAgain& words, Checkpoint checkpoint) {
  TrainFlags flags;
  TrainSettings settings;
  flags.out = std::filesystem::absolute(words.path).lexically_normal().string();
  flags.quiet = words.quiet;
  try {
    read_options_json(checkpoint.command.at("options"), settings);
    read_options_json(checkpoint.command.at("checkpoints"), settings.checkpoints);
    // Files are named as they were when it began, from the folder of that time where it is still there.
    std::error_code ignored;
    std::filesystem::current_path(checkpoint.command.at("folder").get<std::string>(), ignored);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is damaged", checkpoint_path(words.path)));
  }
  settings.checkpoints.always = true;
  if (words.threads) settings.trainer.threads = *words.threads;
  return train(flags, settings, checkpoint);
}

Command add_train(CLI::App& program) {
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command =
      program.add_subcommand("train", "Learn a restricted Boltzmann machine from rows of an array, or from images");
  note_choices(command->add_option("kind", flags->kind, "Kind of model: rbm")->type_name("rbm"), {"rbm"});
  flags->options.declare(*command, TrainSettings());
  command->add_option("--out", flags->out, "Where the weights go: .safetensors or .npz")->type_name("FILE");
  declare(*command, flags->checkpoints);
  command->add_flag("--quiet", flags->quiet, "Show no progress");
  command->footer(train_footer());
  return {command, [flags] { return train(*flags, read_settings(*flags)); }};
}

}  // namespace poise::app
