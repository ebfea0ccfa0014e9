/// Blocks of draws that wait to be written, taken out again in blocks of another size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <poise/trace.hpp>

namespace poise {

/// All blocks have the same chains, monitors and variables; either all hold x or none does.
class DrawQueue {
 public:
  explicit DrawQueue(std::size_t chains = 0) : chains_(chains) {}

  [[nodiscard]] std::size_t draws() const { return draws_; }  ///< per chain
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  [[nodiscard]] static std::size_t size_of(const DrawBatch& block) {
    return block.x.size() + (block.monitors.size() + 2) * sizeof(double) * block.acceptance_rate.size();
  }

  void push(DrawBatch block) {
    draws_ += block.count;
    bytes_ += size_of(block);
    blocks_.push_back(std::move(block));
  }

  void clear() { *this = DrawQueue(chains_); }

  /// The first of the draws as one block; there must be so many.
  [[nodiscard]] DrawBatch take(std::size_t draws) {
    std::vector<DrawBatch> waiting = std::exchange(blocks_, {});
    draws_ = bytes_ = 0;
    if (waiting.size() == 1 && waiting.front().count == draws) return std::move(waiting.front());
    DrawBatch taken = sized_like(waiting.front(), draws);
    std::size_t at = 0;
    for (DrawBatch& block : waiting) {
      const std::size_t used = std::min(block.count, draws - at);
      copy(block, 0, taken, at, used);
      at += used;
      if (used == block.count) continue;
      if (used == 0) {
        push(std::move(block));
      } else {
        DrawBatch rest = sized_like(block, block.count - used);
        copy(block, used, rest, 0, rest.count);
        push(std::move(rest));
      }
    }
    return taken;
  }

 private:
  [[nodiscard]] DrawBatch sized_like(const DrawBatch& other, std::size_t draws) const {
    DrawBatch block;
    block.count = draws;
    block.x.resize(other.x.size() / other.count * draws);
    block.monitors.assign(other.monitors.size(), std::vector<double>(chains_ * draws));
    block.acceptance_rate.resize(chains_ * draws);
    block.n_steps.resize(chains_ * draws);
    return block;
  }

  void copy(const DrawBatch& from, std::size_t from_at, DrawBatch& to, std::size_t to_at, std::size_t draws) const {
    const auto copy_array = [&](const auto& source, auto& sink) {
      const std::size_t width = source.size() / (chains_ * from.count);
      for (std::size_t chain = 0; chain < chains_; ++chain) {
        std::copy_n(source.data() + (chain * from.count + from_at) * width, draws * width,
                    sink.data() + (chain * to.count + to_at) * width);
      }
    };
    copy_array(from.x, to.x);
    for (std::size_t i = 0; i < from.monitors.size(); ++i) copy_array(from.monitors[i], to.monitors[i]);
    copy_array(from.acceptance_rate, to.acceptance_rate);
    copy_array(from.n_steps, to.n_steps);
  }

  std::size_t chains_;
  std::vector<DrawBatch> blocks_;
  std::size_t draws_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace poise
