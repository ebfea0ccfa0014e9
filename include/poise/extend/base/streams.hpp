/// Every use of random numbers has streams of its own, named here and nowhere else.
///
/// With the same seed no two uses can meet, and what one of them takes never shifts what another gets. The streams of a
/// purpose are numbered (by chain, row, image) from its value on; purposes lie at least 2^56 apart, but for the last
/// two, which have one stream each.
#pragma once

#include <cstdint>

#include <poise/extend/base/rng.hpp>

namespace poise {

enum class Stream : std::uint64_t {
  chain = 0,                                          ///< the steps of a chain, by its number
  digit = std::uint64_t{0x01} << 56,                  ///< a drawn digit, by its number
  binarise = std::uint64_t{0x02} << 56,               ///< grey levels to black and white
  training_weights = std::uint64_t{0x03} << 56,       ///< the first weights of an RBM
  training_order = std::uint64_t{0x04} << 56,         ///< the order of its training images
  training_row = std::uint64_t{0x05} << 56,           ///< contrastive divergence, by the row of a batch
  training_particles = std::uint64_t{0x06} << 56,     ///< the first states of persistent chains
  training_evaluation = std::uint64_t{0x07} << 56,    ///< metrics after an epoch, by row
  annealing = std::uint64_t{0x08} << 56,              ///< annealed importance sampling, by the group of chains
  bits = std::uint64_t{0x09} << 56,                   ///< chains that are bits of a word, by sixteen
  lanes = std::uint64_t{0x0a} << 56,                  ///< chains across lanes, by two
  further_digits = std::uint64_t{0x0b} << 56,         ///< of random words of a chain whose first digits do not decide
  swaps = std::uint64_t{0x0c} << 56,                  ///< of replicas of neighbouring temperatures, by ladder
  components = std::uint64_t{0x0d} << 56,             ///< parts of states that two ladders exchange, by pair
  backward = std::uint64_t{0x0e} << 56,               ///< variables that were summed out, drawn anew, by chain
  device = std::uint64_t{0x0f} << 56,                 ///< single flips on a GPU, by chain
  permutation = std::uint64_t{0x10} << 56,            ///< permutation tests of the discrepancy of two runs
  learned_function = std::uint64_t{0x11} << 56,       ///< first weights of a learned balancing function, by its kind
  elimination_order = std::uint64_t{0x12} << 56,      ///< ties in an elimination order, by the trial
  elimination_prefix = std::uint64_t{0x13} << 56,     ///< how far a trial follows the best order so far
  collapse_order = std::uint64_t{0x14} << 56,         ///< ties in an order of summing out, by the trial
  collapse_prefix = std::uint64_t{0x15} << 56,        ///< how far a trial follows the best such order so far
  elimination_annealing = std::uint64_t{0x16} << 56,  ///< rotations of an elimination tree
  training_digits = std::uint64_t{0x17} << 56,        ///< further digits of contrastive divergence on a GPU, by row
  experiment_start = std::uint64_t{0x20} << 56,       ///< starting states of `poise reproduce`, by chain
  experiment_choice = std::uint64_t{0x21} << 56,      ///< images at which its reference chains start, by part
  experiment_network = std::uint64_t{0x22} << 56,     ///< networks that are generated for it
  drawn_parameters = std::uint64_t{0x30} << 56,       ///< parameters of models that are drawn, by their kind
  start = std::uint64_t{0x40} << 56,                  ///< the starting state of a chain
  retry = std::uint64_t{0x50} << 56,                  ///< further starting states, where the first has no probability
  repair = std::uint64_t{0x60} << 56,                 ///< moving a starting state into the support
  learning = std::uint64_t{0x80} << 56,               ///< what learning draws beside a chain
  field = ~std::uint64_t{0} - 1,                      ///< the noisy field of an Ising model
  reference = ~std::uint64_t{0},                      ///< the state that Hamming distances are measured from
};

[[nodiscard]] inline Rng make_rng(std::uint64_t seed, Stream purpose, std::uint64_t number = 0) {
  return {seed, static_cast<std::uint64_t>(purpose) + number};
}

}  // namespace poise
