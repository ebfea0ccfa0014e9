/// What an RBM is learned from: images, drawn digits, or rows of an array.
#pragma once

#include <cstdint>
#include <string>

#include "studies/images/idx.hpp"

namespace poise::app {

/// `digits` are drawn, `.npy`, `.npz`, `.csv` and `.txt` are arrays of rows, or of images, and anything else is an IDX
/// file or a directory with one. Of arrays, zeros and ones are black and white, whole numbers up to 255 gray levels,
/// and others, from 0 to 1, too. Throws InputError.
[[nodiscard]] IdxImages read_train_data(const std::string& data, std::uint64_t digits, std::uint64_t seed);

}  // namespace poise::app
