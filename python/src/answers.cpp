/// Log Z, the distance between draws, what a network is made of, and the training of RBMs.
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include <poise/log_partition.hpp>
#include <poise/mmd.hpp>
#include <poise/network.hpp>
#include "exact/exact_inference.hpp"
#include "inference/train/rbm_trainer.hpp"
#include "models/rbm/rbm.hpp"
#include "models/rbm/rbm_weights.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

bool is_rbm(const Model& model) { return std::holds_alternative<std::shared_ptr<const Rbm>>(model.description); }

/// JSON of the answer and its text. `network` is none where the model is none, or an RBM.
std::pair<nb::object, std::string> logz(const Model& model, const std::shared_ptr<Network>& network,
                                        const nb::dict& settings, std::size_t width) {
  Interruptible place;
  nlohmann::json json;
  std::string text;
  if (is_rbm(model)) {
    LogPartitionOptions options;
    read_settings(settings, options);
    LogPartition answer;
    place.run(
        [&] {
          const auto& rbm = std::get<std::shared_ptr<const Rbm>>(model.description);
          answer = find_log_partition(*rbm, options, {.progress = {}, .stop = &place.stop()});
        },
        {});
    json = log_partition_json(answer, model.name);
    text = log_partition_text(answer, model.name, width);
  } else {
    NetworkLogPartitionOptions options;
    read_settings(settings, options);
    NetworkLogPartition answer;
    const NetworkLogPartitionHooks hooks{.progress = {}, .tempering = {}, .stop = &place.stop()};
    const auto find = [&] {
      answer = network ? find_log_partition(*network, options, hooks) : find_log_partition(model, options, hooks);
    };
    try {
      if (model.fibers() != nullptr) {  // the code of a target runs on this thread, and hears of signals itself
        const nb::gil_scoped_release release;
        find();
      } else {
        place.run(find, {});
      }
    } catch (const ExactStopped&) {
      answer.interrupted = true;
    }
    json = log_partition_json(answer);
    text = log_partition_text(answer, width);
  }
  return {to_python(json), text};
}

/// Draws to be compared, near independent unless they are to be taken as they are.
struct Compared {
  Thinning thinning;
  std::size_t stored = 0;
  std::vector<std::int8_t> x;
};

Compared compared(const Fit& fit, std::size_t most, bool correlated) {
  const Trace& trace = fit.stored.trace;
  if (trace.x.empty() || trace.draws == 0) throw InputError("mmd: a run has no draws in memory, expected states");
  const DrawsView draws = draws_view(trace.x, trace.chains, trace.draws);
  std::vector<ChainsView> monitors;
  for (const auto& series : trace.monitors) monitors.push_back({series.data(), trace.chains, trace.draws});
  Compared out{find_thinning(draws, monitors), trace.chains * trace.draws, {}};
  out.x = evenly_spaced(draws, std::min(correlated ? out.stored : out.thinning.draws, most));
  return out;
}

nb::dict mmd_of_runs(const Fit& a, const Fit& b, std::size_t most, bool correlated, const nb::dict& settings) {
  const Index n = a.stored.layout.variables;
  if (n != b.stored.layout.variables) {
    throw InputError("mmd: the runs have different numbers of variables, expected the same model");
  }
  MmdOptions options;
  options.permutations = nb::cast<std::size_t>(settings["permutations"]);
  options.seed = nb::cast<std::uint64_t>(settings["seed"]);
  options.threads = nb::cast<unsigned>(settings["threads"]);
  MmdResult result;
  Compared first, second;
  {
    const nb::gil_scoped_release release;
    first = compared(a, most, correlated);
    second = compared(b, most, correlated);
    result = mmd(first.x, second.x, n, options);
  }
  nb::dict out;
  out["mmd"] = result.mmd();
  out["mmd2_v"] = result.v_statistic;
  out["mmd2_u"] = result.u_statistic;
  out["p_value"] = result.p_value;
  out["permutations"] = result.permutations;
  out["as_far"] = result.as_far;
  out["used"] = std::pair(result.draws_a, result.draws_b);
  out["independent"] = std::pair(first.thinning.draws, second.thinning.draws);
  return out;
}

/// A trainer with the data that it has begun on.
class Training {
 public:
  Training(const Pixels& data, Index hidden, const nb::dict& settings)
      : trainer_(initial_rbm(static_cast<Index>(data.shape(1)), hidden, span_of(data),
                             nb::cast<std::uint64_t>(settings["seed"])),
                 options_of(settings)) {}

  nb::dict epoch(const Pixels& data, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    Interruptible place;
    std::atomic<std::uint64_t> rows{0};
    RbmTrainerHooks hooks;
    hooks.stop = &place.stop();
    hooks.progress = [&](const RbmProgress& now) { rows = now.rows; };
    RbmEpoch epoch;
    place.run(
        [&] { epoch = trainer_.epoch(span_of(data), hooks); },
        progress ? std::function<void()>([&] { progress(rows.load(), data.shape(0)); }) : std::function<void()>());
    nb::dict out = metrics(epoch.metrics);
    out["rows"] = epoch.rows;
    out["seconds"] = epoch.seconds;
    out["interrupted"] = epoch.interrupted;
    return out;
  }
  nb::dict evaluate(const Pixels& data) { return metrics(trainer_.evaluate(span_of(data))); }
  Model model(const std::string& name, std::pair<Index, Index> image) const {
    return rbm_model(name, std::make_shared<const Rbm>(with_image(image)));
  }
  void save(const std::string& path, std::pair<Index, Index> image) const { write_rbm(path, with_image(image)); }
  [[nodiscard]] const RbmWeights& weights() const { return trainer_.weights(); }

 private:
  static std::span<const Value> span_of(const Pixels& data) { return {data.data(), data.size()}; }
  static RbmTrainerOptions options_of(const nb::dict& settings) {
    RbmTrainerOptions options;
    options.method = nb::cast<std::string>(settings["method"]) == "pcd" ? Divergence::pcd : Divergence::cd;
    options.gibbs_steps = nb::cast<std::uint64_t>(settings["k"]);
    options.batch = nb::cast<std::uint64_t>(settings["batch"]);
    options.rate = nb::cast<double>(settings["rate"]);
    options.seed = nb::cast<std::uint64_t>(settings["seed"]);
    options.threads = nb::cast<unsigned>(settings["threads"]);
    options.device = nb::cast<std::string>(settings["device"]) == "cuda" ? Device::cuda : Device::cpu;
    options.check();
    return options;
  }
  static nb::dict metrics(const RbmMetrics& metrics) {
    nb::dict out;
    out["reconstruction_error"] = metrics.reconstruction_error;
    out["pseudo_log_likelihood"] = metrics.pseudo_log_likelihood;
    return out;
  }
  [[nodiscard]] RbmWeights with_image(std::pair<Index, Index> image) const {
    RbmWeights weights = trainer_.weights();
    std::tie(weights.rows, weights.columns) = image;
    return weights;
  }

  RbmTrainer trainer_;
};

}  // namespace

void bind_answers(nb::module_& module) {
  module.def("is_rbm", &is_rbm);
  module.def("logz_options", &described_options<NetworkLogPartitionOptions>);
  module.def("logz_options_of_rbm", &described_options<LogPartitionOptions>);
  module.def("logz", &logz, nb::arg("model"), nb::arg("network").none(), nb::arg("settings"), nb::arg("width"));
  module.def("mmd", &mmd_of_runs, nb::arg("first"), nb::arg("second"), nb::arg("draws"), nb::arg("correlated"),
             nb::arg("settings"));
  module.def("network_info", [](const Network& network, double memory_limit) {
    return nb::cast<nb::dict>(to_python(network_info(network, memory_limit)));
  });
  nb::class_<Training>(module, "Training")
      .def(nb::init<const Pixels&, Index, const nb::dict&>(), nb::arg("data"), nb::arg("hidden"), nb::arg("settings"))
      .def("epoch", &Training::epoch, nb::arg("data"), nb::arg("progress").none())
      .def("evaluate", &Training::evaluate, nb::arg("data"))
      .def("model", &Training::model, nb::arg("name"), nb::arg("image"))
      .def("save", &Training::save, nb::arg("path"), nb::arg("image"))
      .def_prop_ro("weights",
                   [](const Training& it) {
                     const RbmWeights& rbm = it.weights();
                     return nb::cast(array(std::vector<float>(rbm.weights), {rbm.hidden, rbm.visible}));
                   })
      .def_prop_ro("visible_bias",
                   [](const Training& it) {
                     return nb::cast(array(std::vector<float>(it.weights().visible_bias), {it.weights().visible}));
                   })
      .def_prop_ro("hidden_bias", [](const Training& it) {
        return nb::cast(array(std::vector<float>(it.weights().hidden_bias), {it.weights().hidden}));
      });
}

}  // namespace poise::python
