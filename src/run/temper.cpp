/// Which tempered engine a model gets.
#include "temper.hpp"

#include <poise/run/samplers.hpp>

namespace poise {

namespace {

/// What is tempered where nobody says what.
Sampler usual_sampler(const Model& model) {
  const bool is_rbm = std::holds_alternative<std::shared_ptr<const Rbm>>(model.description);
  return parse_sampler(is_rbm ? "rbm-gibbs" : "gibbs");
}

}  // namespace

TunableEngine make_tempered_engine(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const Sampler inner = sampler.of ? *sampler.of : usual_sampler(model);
  return make_rung_engines(model, inner, options);
}

}  // namespace poise
