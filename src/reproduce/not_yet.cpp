/// Experiments that are still to come.
#include <poise/types.hpp>

#include "experiment.hpp"

namespace poise::reproduction {

std::unique_ptr<ExperimentRun> make_rbm_experiment(const ReproduceOptions&) {
  throw InputError("the experiment rbm is not there yet, expected ising or uai");
}

}  // namespace poise::reproduction
