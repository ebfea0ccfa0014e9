/// Trains an RBM and keeps its weights as text.
#include "studies/rbm/trained_rbm.hpp"

#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inference/train/rbm_trainer.hpp"

namespace poise::reproduction {

namespace {

std::string hex_of(const std::string& bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string from_hex(const std::string& digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  out.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(16 * value(digits[i]) + value(digits[i + 1]));
  }
  return out;
}

}  // namespace

nlohmann::json train_rbm(const TrainingPlan& plan, const StopFlag& stop) {
  const auto begun = std::chrono::steady_clock::now();
  const IdxImages& images = plan.images;
  const std::vector<Value> rows = binarise(images, 0.5);
  RbmTrainerOptions options;
  options.seed = plan.seed;
  options.threads = plan.threads;
  RbmTrainer trainer(initial_rbm(static_cast<Index>(images.rows * images.columns), plan.hidden, rows, plan.seed),
                     options);
  const RbmEpoch epoch = trainer.epoch(rows, {.progress = {}, .stop = stop.get()});
  stop.check();
  RbmWeights weights = trainer.weights();
  weights.rows = static_cast<Index>(images.rows);
  weights.columns = static_cast<Index>(images.columns);
  return {{"weights", hex_of(safetensors_bytes(weights))},
          {"reconstruction_error", epoch.metrics.reconstruction_error},
          {"pseudo_log_likelihood", epoch.metrics.pseudo_log_likelihood},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()}};
}

std::shared_ptr<const Rbm> trained_rbm(const nlohmann::json& result) {
  const std::string bytes = from_hex(result["weights"].get<std::string>());
  return std::make_shared<const Rbm>(parse_safetensors(bytes, "the stored weights"));
}

}  // namespace poise::reproduction
