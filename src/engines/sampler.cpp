/// From sampler names to settings: parsing, what several rows of the registry read, and the functions they learn.
#include <poise/extend/engines/samplers.hpp>
#include <poise/extend/learning/learned_function.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engines/rows.hpp"

namespace poise {

namespace {

using Read = SpecKeys (*)(SpecReader&, SamplerSettings&);

/// The readers of all rows, in their order.
template <class... Rows>
std::vector<Read> readers(std::tuple<Rows...>*) {
  return {&Rows::read...};
}

template <class... Rows>
std::vector<NameHelp> help_of(std::tuple<Rows...>*) {
  return {{Rows::name, Rows::help}...};
}

SpecKeys joined(SpecKeys keys, const SpecKeys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

}  // namespace

void check_learned_block(const std::vector<Index>& cardinalities, Index block) {
  const std::size_t most = most_configurations(cardinalities, block);
  if (most <= kMostLearnedConfigurations) return;
  throw InputError(
      fmt::format("sampler 'lsb': found {} configurations of a block of {} variables, expected at most {} to learn "
                  "from; 'lb' takes "
                  "larger blocks",
                  most, block, kMostLearnedConfigurations));
}

BalancingFunction::Kind read_function(SpecReader& reader, const char* key) {
  const std::string name = reader.choice(key, "sqrt", {kFunctionNames.begin(), kFunctionNames.end()});
  const auto found = std::find(kFunctionNames.begin(), kFunctionNames.end(), name);
  return static_cast<BalancingFunction::Kind>(found - kFunctionNames.begin());
}

SpecKeys read_learning(SpecReader& reader, SamplerSettings& settings) {
  const std::string objective = reader.choice("objective", "variance", {"variance", "entropy", "mi", "mi-bound"});
  settings.learn.objective = objective == "variance"  ? LearningObjectiveKind::variance
                             : objective == "entropy" ? LearningObjectiveKind::entropy
                             : objective == "mi"      ? LearningObjectiveKind::mi
                                                      : LearningObjectiveKind::mi_bound;
  settings.learn.optimizer =
      reader.choice("optimizer", "adam", {"adam", "sgd"}) == "adam" ? OptimizerKind::adam : OptimizerKind::sgd;
  settings.learn.rate = reader.real("rate", settings.learn.rate, 1e-8, 10.0);
  settings.learn.ridge = reader.real("ridge", settings.learn.ridge, 0.0, 1e6);
  settings.paper_schedule = reader.choice("schedule", "two-phase", {"two-phase", "paper"}) == "paper";
  return {"objective", "optimizer", "rate", "ridge", "schedule"};
}

SpecKeys read_network_family(SpecReader& reader, SamplerSettings& settings) {
  SpecKeys keys = joined(read_learning(reader, settings), {"net", "init"});
  settings.function = read_function(reader, "init");
  if (reader.choice("net", "mlp", {"mlp", "monotone"}) == "monotone") {
    settings.family = FunctionFamily::monotone;
    settings.blocks = static_cast<int>(reader.integer("blocks", settings.blocks, 1, 1000));
    settings.units = static_cast<int>(reader.integer("units", settings.units, 1, 1000));
    return joined(std::move(keys), {"blocks", "units"});
  }
  settings.family = FunctionFamily::mlp;
  settings.hidden = static_cast<int>(reader.integer("hidden", settings.hidden, 1, 10000));
  return joined(std::move(keys), {"hidden"});
}

Index read_block(SpecReader& reader) { return static_cast<Index>(reader.integer("block", 1, 1, 20)); }

SpecKeys read_tuning(SpecReader& reader, SamplerSettings& settings, const char* key) {
  settings.many = true;
  if (reader.has(key)) return {"g", key};
  const std::string tune = reader.choice("tune", "variance", {"variance", "entropy", "acceptance"});
  settings.tuning = tune == "acceptance" ? StepTuning::acceptance : StepTuning::objective;
  if (tune == "entropy") settings.learn.objective = LearningObjectiveKind::entropy;
  if (settings.tuning == StepTuning::objective) return {"g", key, "tune"};
  settings.acceptance = reader.real("target", settings.acceptance, 0.01, 0.99);
  return {"g", key, "tune", "target"};
}

const std::vector<NameHelp>& sampler_help() {
  static const std::vector<NameHelp> help = help_of(static_cast<SamplerRows*>(nullptr));
  return help;
}

namespace {

/// Splits `temper:of=lb,g=min,collapse=10` in what is its own and `lb:g=min`.
std::shared_ptr<const Sampler> take_inner(Spec& spec) {
  Spec inner;
  Spec own{spec.name, {}};
  for (const auto& [key, value] : spec.settings) {
    if (key == "of") inner.name = value;
    (key == "of" || key == "collapse" ? own : inner).settings.emplace_back(key, value);
  }
  if (inner.name.empty()) return nullptr;
  spec = std::move(own);
  auto sampler = std::make_shared<Sampler>(parse_sampler(inner.text()));
  if (is_row<AutoRow>(*sampler) || is_row<ExactRow>(*sampler) || is_row<TemperRow>(*sampler)) {
    throw InputError(fmt::format(
        "sampler 'temper': found of={}, expected a sampler that makes steps, such as gibbs or lb", quote(inner.name)));
  }
  return sampler;
}

}  // namespace

std::shared_ptr<const AnyTarget> target_of(const Model& model) {
  // A model gives your own kernel its target.
  struct Taker final : OwnKernel {
    [[nodiscard]] TunableEngine make_engine(std::shared_ptr<const AnyTarget> target,
                                            const EngineOptions&) const override {
      taken = std::move(target);
      return {};
    }
    mutable std::shared_ptr<const AnyTarget> taken;
  };
  const auto taker = std::make_shared<const Taker>();
  Sampler sampler;
  sampler.row = kOwnRow;
  sampler.own = taker;
  static_cast<void>(make_engine(model, sampler, {}));
  return taker->taken;
}

void check_own_name(const std::string& name) {
  const bool is_spec = name.empty() || name.find_first_of(":=,") != std::string::npos;
  for (const NameHelp& row : sampler_help()) {
    if (!is_spec && row.name != name) continue;
    throw InputError(fmt::format(
        "found {} as the name of your own kernel, expected one that no sampler has, without ':', '=' and ','",
        quote(name)));
  }
}

Sampler parse_sampler(const std::string& text) {
  Spec spec = parse_spec(text);
  const std::string full = spec.text();
  std::vector<std::string> names;
  for (const NameHelp& row : sampler_help()) names.push_back(row.name);
  const auto found = std::find(names.begin(), names.end(), spec.name);
  if (found == names.end()) {
    const std::string nearest = nearest_name(spec.name, names);
    throw InputError(fmt::format("unknown sampler '{}'{}; samplers are {}", spec.name,
                                 nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                 fmt::join(names, ", ")));
  }
  Sampler sampler;
  sampler.name = full;
  if (spec.name == TemperRow::name) sampler.of = take_inner(spec);
  if (sampler.of) sampler.settings = sampler.of->settings;
  sampler.row = static_cast<std::size_t>(found - names.begin());
  SpecReader reader(spec, "sampler");
  reader.finish(readers(static_cast<SamplerRows*>(nullptr))[sampler.row](reader, sampler.settings));
  return sampler;
}

bool Sampler::tempers() const { return is_row<TemperRow>(*this); }

namespace {

std::unique_ptr<LearnedFunction> make_family(const SamplerSettings& settings) {
  std::unique_ptr<LearnedFunction> made;
  switch (settings.family) {
    case FunctionFamily::fixed: return nullptr;
    case FunctionFamily::mixture: return std::make_unique<MixtureFunction>();
    case FunctionFamily::spline: return std::make_unique<SplineFunction>();
    case FunctionFamily::mlp: made = std::make_unique<MlpFunction>(settings.hidden); break;
    case FunctionFamily::monotone: made = std::make_unique<MonotoneFunction>(settings.blocks, settings.units); break;
  }
  fit(*made, settings.function, 2000);
  return made;
}

}  // namespace

std::unique_ptr<LearnedFunction> Sampler::make_function(double level) const {
  std::unique_ptr<LearnedFunction> family = make_family(settings);
  if (!settings.many) return family;
  auto made = family ? std::make_unique<LevelledFunction>(std::move(family))
                     : std::make_unique<LevelledFunction>(settings.function);
  made->level() = level;
  made->set_most_level(settings.most_level);
  return made;
}

}  // namespace poise
