/// From sampler names to settings.
#include <poise/run/sampler.hpp>

#include <fmt/format.h>

#include <poise/adapt/fit.hpp>

namespace poise {

const std::vector<NameHelp>& sampler_help() {
  static const std::vector<NameHelp> help = {
      {"lsb", "locally balanced, balancing function learned in warm-up (a monotone spline); the default"},
      {"lb", "locally balanced with a fixed function: lb:g=sqrt (or barker, min, max)"},
      {"lsb1", "learned mixture of sqrt, barker, min and max"},
      {"lsb2", "learned network: lsb2:hidden=10, or lsb2:net=monotone,blocks=20,units=20"},
      {"gwg",
       "Gibbs With Gradients: ratios to first order, from one gradient; gwg:g=barker (min, max) for other functions"},
      {"flsb", "the same, balancing function learned (a spline); flsb1 a mixture, flsb2 a network"},
      {"flsb1", "learned mixture with first-order ratios"},
      {"flsb2", "learned network with first-order ratios"},
      {"gibbs", "single-site Gibbs, all variables in turn, colour by colour; gibbs:block=2 for random blocks"},
      {"hb", "Hamming ball on random blocks: hb:block=10,radius=1"},
      {"rbm-gibbs", "a restricted Boltzmann machine's own Gibbs: hidden units, then visible ones"},
      {"exact", "independent draws by a junction tree, for networks of small width: exact:memory=4 (GiB)"},
  };
  return help;
}

Sampler parse_sampler(const std::string& text) {
  const Spec spec = parse_spec(text);
  std::vector<std::string> names;
  for (const NameHelp& row : sampler_help()) names.push_back(row.name);
  if (std::find(names.begin(), names.end(), spec.name) == names.end()) {
    const std::string nearest = nearest_name(spec.name, names);
    throw InputError(fmt::format("unknown sampler '{}'{}; samplers are {}", spec.name,
                                 nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                                 fmt::join(names, ", ")));
  }

  Sampler sampler;
  sampler.name = spec.text();
  SpecReader reader(spec, "sampler");
  std::vector<std::string> keys;
  const auto function = [&](const char* key, const char* otherwise) {
    const std::string name = reader.choice(key, otherwise, {kFunctionNames.begin(), kFunctionNames.end()});
    const auto found = std::find(kFunctionNames.begin(), kFunctionNames.end(), name);
    return static_cast<BalancingFunction::Kind>(found - kFunctionNames.begin());
  };
  if (spec.name == "gibbs") {
    sampler.block = static_cast<Index>(reader.integer("block", 1, 1, 20));
    sampler.kind = sampler.block > 1 ? Sampler::Kind::block_gibbs : Sampler::Kind::gibbs;
    sampler.family = Sampler::Family::fixed;
    keys = {"block"};
  } else if (spec.name == "hb") {
    sampler.kind = Sampler::Kind::hamming_ball;
    sampler.family = Sampler::Family::fixed;
    sampler.block = static_cast<Index>(reader.integer("block", 10, 1, 1000));
    sampler.radius = static_cast<unsigned>(reader.integer("radius", 1, 1, 10));
    keys = {"block", "radius"};
  } else if (spec.name == "rbm-gibbs") {
    sampler.kind = Sampler::Kind::rbm_gibbs;
    sampler.family = Sampler::Family::fixed;
  } else if (spec.name == "gwg") {
    sampler.family = Sampler::Family::fixed;
    sampler.first_order = true;
    sampler.function = function("g", "sqrt");
    keys = {"g"};
  } else if (spec.name == "exact") {
    sampler.kind = Sampler::Kind::exact;
    sampler.family = Sampler::Family::fixed;
    sampler.memory = reader.real("memory", sampler.memory, 1e-6, 1e6);
    keys = {"memory"};
  } else if (spec.name == "lb") {
    sampler.family = Sampler::Family::fixed;
    sampler.function = function("g", "sqrt");
    keys = {"g"};
  } else {
    keys = {"objective", "optimizer", "rate", "ridge", "schedule"};
    const std::string objective = reader.choice("objective", "variance", {"variance", "entropy", "mi", "mi-bound"});
    sampler.learn.objective = objective == "variance"  ? LearningObjectiveKind::variance
                              : objective == "entropy" ? LearningObjectiveKind::entropy
                              : objective == "mi"      ? LearningObjectiveKind::mi
                                                       : LearningObjectiveKind::mi_bound;
    sampler.learn.optimizer =
        reader.choice("optimizer", "adam", {"adam", "sgd"}) == "adam" ? OptimizerKind::adam : OptimizerKind::sgd;
    sampler.learn.rate = reader.real("rate", 0.01, 1e-8, 10.0);
    sampler.learn.ridge = reader.real("ridge", 0.02, 0.0, 1e6);
    sampler.schedule = reader.choice("schedule", "two-phase", {"two-phase", "paper"}) == "paper"
                           ? Sampler::Schedule::paper
                           : Sampler::Schedule::two_phase;
    sampler.first_order = spec.name.starts_with('f');
    if (spec.name == "lsb" || spec.name == "flsb") {
      sampler.family = Sampler::Family::spline;
    } else if (spec.name == "lsb1" || spec.name == "flsb1") {
      sampler.family = Sampler::Family::mixture;
    } else {
      const bool monotone = reader.choice("net", "mlp", {"mlp", "monotone"}) == "monotone";
      sampler.family = monotone ? Sampler::Family::monotone : Sampler::Family::mlp;
      keys.insert(keys.end(), {"net", "init"});
      if (monotone) {
        sampler.blocks = static_cast<int>(reader.integer("blocks", 20, 1, 1000));
        sampler.units = static_cast<int>(reader.integer("units", 20, 1, 1000));
        keys.insert(keys.end(), {"blocks", "units"});
      } else {
        sampler.hidden = static_cast<int>(reader.integer("hidden", 10, 1, 10000));
        keys.emplace_back("hidden");
      }
      sampler.function = function("init", "sqrt");
    }
  }
  reader.finish(keys);
  return sampler;
}

std::unique_ptr<LearnedFunction> Sampler::make_function() const {
  std::unique_ptr<LearnedFunction> made;
  switch (family) {
    case Family::fixed: return nullptr;
    case Family::mixture: return std::make_unique<MixtureFunction>();
    case Family::spline: return std::make_unique<SplineFunction>();
    case Family::mlp: made = std::make_unique<MlpFunction>(hidden); break;
    case Family::monotone: made = std::make_unique<MonotoneFunction>(blocks, units); break;
  }
  fit(*made, function, 2000);
  return made;
}

}  // namespace poise
