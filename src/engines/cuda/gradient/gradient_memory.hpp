/// Memory of chains whose proposals are made from gradients: states, the proposals under way, and what is counted.
#pragma once

#include <cstdint>

#include "engines/cuda/gradient/gradient_chains.hpp"
#include <poise/extend/base/rng.hpp>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/gradient/gradient_view.hpp"

namespace poise::cuda {

class GradientMemory {
 public:
  explicit GradientMemory(const CudaGradientOptions& options)
      : phi(kPhiPoints),
        reference((options.variables + std::size_t{31}) / 32),
        state(options.chains, reference.size()),
        flips(options.chains * reference.size()),
        level(options.chains),
        largest(options.chains),
        whole(options.chains),
        forth(options.chains),
        steps(options.chains),
        accepted(options.chains),
        variables_(options.variables),
        seed_(options.seed),
        first_chain_(static_cast<std::uint64_t>(Stream::device) + options.first_chain) {
    law.form = static_cast<GradientForm>(options.form);
    flips.clear();
    steps.clear();
    accepted.clear();
    reference.clear();
  }

  [[nodiscard]] GradientChainsView view() const {
    return {static_cast<std::uint32_t>(level.size()),
            variables_,
            static_cast<std::uint32_t>(reference.size()),
            first_chain_,
            seed_,
            state.on_device(),
            flips.data(),
            level.data(),
            largest.data(),
            whole.data(),
            forth.data(),
            steps.data(),
            accepted.data(),
            up.data(),
            counted_from};
  }

  GradientLaw law{};
  std::uint64_t counted_from = 0;
  Array<float> phi;
  Array<std::uint32_t> reference;
  MirroredWords state;
  Array<std::uint32_t> flips;
  Array<std::uint64_t> level;
  Array<float> largest;
  Array<std::uint64_t> whole;
  Array<double> forth;
  Array<std::uint64_t> steps;
  Array<double> accepted;
  Array<std::int64_t> up;

 private:
  std::uint32_t variables_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
};

}  // namespace poise::cuda
