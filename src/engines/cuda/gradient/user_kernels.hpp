/// Chains of user targets: what kernels work on, and how they are started.
///
/// A step is one launch and one call of user code, for all chains: the launch decides about the proposal before, by
/// what the code has said of it, and writes the next one where the code reads it. log p and the gradients of a state
/// are kept with it, so that the way back is weighed by the numbers that the way forth is drawn from.
#pragma once

#include <cuda_runtime_api.h>

#include "engines/cuda/gradient/gradient_view.hpp"
#include "engines/cuda/gradient/user_batch.hpp"

namespace poise::cuda {

struct UserChainsView : GradientChainsView {
  UserShape shape;
  std::uint32_t stride;    ///< of gradients, a multiple of four
  float* gradients;        ///< [chain][stride], of the state, from the lower level to the upper one
  double* log_prob;        ///< [chain], of the state
  std::uint64_t* failure;  ///< the least of what went wrong (user_batch.hpp)
};

/// What a launch has before it, and where its proposals go.
struct UserStep {
  GradientPhases phases;
  DeviceAnswers answers;
  DeviceRoom room;
};
void launch_user_step(const UserChainsView& chains, const GradientLaw& law, const UserStep& step, cudaStream_t stream);

/// Writes all states where the code reads them, as if they were proposed.
void launch_user_states(const UserChainsView& chains, const DeviceRoom& room, cudaStream_t stream);
/// Keeps what the code has said of them.
void launch_user_keep(const UserChainsView& chains, const DeviceAnswers& answers, cudaStream_t stream);

/// What is recorded of each chain at a draw.
struct UserRecord {
  const std::uint32_t* reference;  ///< [word]
  double* log_prob;
  double* accepted;
  std::int64_t* different;  ///< variables that are not as in the reference
  std::uint32_t* words;     ///< [chain][word], of the states
};
void launch_user_record(const UserChainsView& chains, const UserRecord& record, cudaStream_t stream);

/// What proposals are drawn from, [chain][variable]: weights of single changes, or probabilities in units of 2^-32.
void launch_user_law(const UserChainsView& chains, const GradientLaw& law, std::uint64_t* out, cudaStream_t stream);

}  // namespace poise::cuda
