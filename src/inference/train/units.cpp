/// Loops over the units of an RBM in training, eight at a time.
#include "inference/train/rbm_trainer.hpp"

#include <cmath>

#include <poise/extend/base/lanes16.hpp>
#include <poise/extend/base/math.hpp>

namespace poise {

void to_probabilities(float* activations, std::size_t count) {
  hot([=] {
    for (std::size_t i = 0; i < count; i += 8) {
      store_floats8(activations + i, 1.0 / (1.0 + exp8(-1.0 * load_floats8(activations + i))));
    }
  });
}

/// u < sigmoid(a) without a division.
void sample_units(const float* activations, std::size_t count, Rng& rng, float* units) {
  hot([=, &rng] {
    for (std::size_t i = 0; i < count; i += 8) {
      const Doubles8 odds_off = exp8(-1.0 * load_floats8(activations + i));
      const Ints8 on = less8(rng.uniform8() * (1.0 + odds_off), broadcast8(1.0));
      store_floats8(units + i, select8(on, broadcast8(1.0), Doubles8{}));
    }
  });
}

/// (1 + e^(a + d)) / (1 + e^a) has no cancellation. Eight of them make a product that stays in the range of doubles for
/// all weights that an RBM may have, up to 75 in size.
double softplus_change(const float* activations, const float* change, std::size_t count) {
  return hot([=] {
    double sum = 0.0;
    for (std::size_t j = 0; j < count; j += 8) {
      const Doubles8 a = load_floats8(activations + j);
      const Doubles8 factors = (1.0 + exp8(a + load_floats8(change + j))) / (1.0 + exp8(a));
      const auto half = factors.low * factors.high;
      sum += std::log((half[0] * half[1]) * (half[2] * half[3]));
    }
    return sum;
  });
}

double squared_distance(const float* data, const float* probabilities, std::size_t count) {
  return hot([=] {
    Doubles8 sum{};
    const std::size_t whole = count / 8 * 8;
    for (std::size_t i = 0; i < whole; i += 8) {
      const Doubles8 d = load_floats8(data + i) - load_floats8(probabilities + i);
      sum += d * d;
    }
    double rest = 0.0;
    for (std::size_t i = whole; i < count; ++i) {
      const double d = static_cast<double>(data[i]) - static_cast<double>(probabilities[i]);
      rest += d * d;
    }
    return sum8(sum) + rest;
  });
}

}  // namespace poise
