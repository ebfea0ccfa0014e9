/// What ladders have in the memory of the device, beside the replicas, and copies of it to and from there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/tempering/ladder.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"

namespace poise::cuda {

// Numbers of ladders, or of two that exchange components, to and from one array, [ladder][width]: `member` is a vector,
// of which each has `count`, or a number.

template <class T, class Of, class Member>
void get_numbers(const Array<T>& from, std::vector<Of>& to, Member Of::*member, std::size_t count) {
  const std::vector<T> all = from.download();
  auto first = all.begin();
  for (Of& of : to) {
    if constexpr (std::is_same_v<Member, T>) {
      of.*member = *first;
    } else {
      (of.*member).assign(first, first + static_cast<std::ptrdiff_t>(count));
    }
    first += static_cast<std::ptrdiff_t>(all.size() / to.size());
  }
}

template <class T, class Of, class Member>
void set_numbers(Array<T>& to, std::span<const Of> from, Member Of::*member) {
  std::vector<T> all;
  for (const Of& of : from) {
    const std::size_t end = all.size() + to.size() / from.size();
    if constexpr (std::is_same_v<Member, T>) {
      all.push_back(of.*member);
    } else {
      all.insert(all.end(), (of.*member).begin(), (of.*member).end());
    }
    all.resize(end);
  }
  to.upload(all);
}

/// Where replicas are, and what swaps tell.
class LaddersOnDevice {
 public:
  /// All replicas are at the rungs of their numbers.
  LaddersOnDevice(std::size_t ladders, const std::vector<double>& guesses)
      : ladders_(ladders),
        rungs_(guesses.size() + 1),
        guesses_(guesses),
        replica_at_(ladders * rungs_),
        rung_of_(ladders * rungs_),
        came_from_cold_(ladders * rungs_),
        accepted_(ladders * rungs_),
        tried_(ladders * rungs_),
        below_(ladders * rungs_),
        above_(ladders * rungs_),
        bridged_(ladders),
        round_trips_(ladders),
        taken_(ladders) {
    CudaLadder one;
    for (std::size_t k = 0; k < rungs_; ++k) one.replica_at.push_back(static_cast<std::uint8_t>(k));
    set(std::vector<CudaLadder>(ladders, one));
  }
  [[nodiscard]] LadderView view(std::uint64_t seed, std::uint64_t first_stream) const {
    return {.ladders = static_cast<std::uint32_t>(ladders_),
            .rungs = static_cast<std::uint32_t>(rungs_),
            .replica_at = replica_at_.data(),
            .rung_of = rung_of_.data(),
            .came_from_cold = came_from_cold_.data(),
            .accepted = accepted_.data(),
            .tried = tried_.data(),
            .below = below_.data(),
            .above = above_.data(),
            .bridged = bridged_.data(),
            .round_trips = round_trips_.data(),
            .taken = taken_.data(),
            .guesses = guesses_.data(),
            .seed = seed,
            .first_stream = first_stream};
  }
  [[nodiscard]] const std::uint8_t* replica_at() const { return replica_at_.data(); }
  [[nodiscard]] const std::uint8_t* rung_of() const { return rung_of_.data(); }

  [[nodiscard]] std::vector<CudaLadder> get() const {
    std::vector<CudaLadder> out(ladders_);
    for_each(*this, [&](const auto& array, auto member, std::size_t count) { get_numbers(array, out, member, count); });
    return out;
  }
  void set(std::span<const CudaLadder> ladders) {
    for_each(*this, [&](auto& array, auto member, std::size_t) { set_numbers(array, ladders, member); });
    std::vector<std::uint8_t> rung_of(ladders_ * rungs_);
    for (std::size_t c = 0; c < ladders_; ++c) {
      for (std::size_t k = 0; k < rungs_; ++k) {
        rung_of[c * rungs_ + ladders[c].replica_at[k]] = static_cast<std::uint8_t>(k);
      }
    }
    rung_of_.upload(rung_of);
  }
  /// [ladder][replica].
  [[nodiscard]] std::vector<std::uint8_t> rungs_of_replicas() const { return rung_of_.download(); }

  /// Keeps the rungs of all replicas on the device, after what it has been asked to do. False where there is no room
  /// for more of them before they are fetched.
  bool follow() {
    constexpr std::size_t kMostPoints = 64, kBytes = std::size_t{16} << 20;
    if (followed_.empty()) {
      followed_ =
          Array<std::uint8_t>(std::clamp<std::size_t>(kBytes / rung_of_.size(), 1, kMostPoints) * rung_of_.size());
    }
    check(cudaMemcpyAsync(followed_.data() + points_ * rung_of_.size(), rung_of_.data(), rung_of_.size(),
                          cudaMemcpyDeviceToDevice, nullptr),
          "rungs of replicas were kept");
    return (++points_ + 1) * rung_of_.size() <= followed_.size();
  }
  /// Those that were kept, [point][ladder][replica], since this was asked last.
  [[nodiscard]] std::vector<std::uint8_t> followed() {
    return followed_.download(0, std::exchange(points_, 0) * rung_of_.size());
  }

 private:
  /// Calls use(array, member, count) for all numbers; pairs of rungs are one fewer than these.
  template <class Use>
  static void for_each(auto& self, Use&& use) {
    use(self.replica_at_, &CudaLadder::replica_at, self.rungs_);
    use(self.came_from_cold_, &CudaLadder::came_from_cold, self.rungs_);
    use(self.accepted_, &CudaLadder::accepted, self.rungs_ - 1);
    use(self.tried_, &CudaLadder::tried, self.rungs_ - 1);
    use(self.below_, &CudaLadder::below, self.rungs_ - 1);
    use(self.above_, &CudaLadder::above, self.rungs_ - 1);
    use(self.bridged_, &CudaLadder::bridged, 1);
    use(self.round_trips_, &CudaLadder::round_trips, 1);
    use(self.taken_, &CudaLadder::taken, 1);
  }

  std::size_t ladders_;
  std::size_t rungs_;
  Array<double> guesses_;
  Array<std::uint8_t> replica_at_;
  Array<std::uint8_t> rung_of_;
  Array<std::uint8_t> came_from_cold_;
  Array<std::uint8_t> followed_;
  std::size_t points_ = 0;  // that were kept
  Array<double> accepted_;
  Array<std::uint64_t> tried_;
  Array<double> below_;
  Array<double> above_;
  Array<std::uint64_t> bridged_;
  Array<std::uint64_t> round_trips_;
  Array<std::uint64_t> taken_;
};

/// What each two ladders exchange.
class ComponentsOnDevice {
 public:
  /// `first_neighbour` has one more than there are positions.
  ComponentsOnDevice(const std::vector<std::uint32_t>& first_neighbour, const std::vector<std::uint32_t>& neighbours,
                     std::size_t twos)
      : twos_(twos),
        positions_(static_cast<std::uint32_t>(first_neighbour.size() - 1)),
        start_(first_neighbour),
        neighbours_(neighbours),
        labels_(twos * positions_),
        chosen_(twos * positions_),
        taken_(twos) {}
  void set_rungs(std::size_t rungs) {
    components_ = Array<std::uint64_t>(twos_ * rungs);
    tried_ = Array<std::uint64_t>(twos_ * rungs);
    is_off_ = Array<std::uint8_t>(twos_ * rungs);
    is_on_.resize(rungs);
    CudaExchange one;
    one.is_off.resize(rungs);
    set(std::vector<CudaExchange>(twos_, one));
  }
  /// Whether any two ladders exchange components at a rung.
  [[nodiscard]] bool is_on(std::uint32_t rung) const { return is_on_[rung] != 0; }

  struct Lanes {
    std::uint8_t* levels;  ///< [position][lane]
    std::uint32_t lanes;
  };
  [[nodiscard]] ComponentsView view(Lanes lanes, std::uint64_t seed, std::uint64_t first_stream) const {
    return {.start = start_.data(),
            .neighbours = neighbours_.data(),
            .positions = positions_,
            .levels = lanes.levels,
            .lanes = lanes.lanes,
            .labels = labels_.data(),
            .chosen = chosen_.data(),
            .components = components_.data(),
            .tried = tried_.data(),
            .is_off = is_off_.data(),
            .taken = taken_.data(),
            .seed = seed,
            .first_stream = first_stream};
  }
  [[nodiscard]] std::vector<CudaExchange> get() const {
    std::vector<CudaExchange> out(twos_);
    get_numbers(components_, out, &CudaExchange::components, is_on_.size());
    get_numbers(tried_, out, &CudaExchange::tried, is_on_.size());
    get_numbers(is_off_, out, &CudaExchange::is_off, is_on_.size());
    get_numbers(taken_, out, &CudaExchange::taken, 1);
    return out;
  }
  void set(std::span<const CudaExchange> exchanges) {
    set_numbers(components_, exchanges, &CudaExchange::components);
    set_numbers(tried_, exchanges, &CudaExchange::tried);
    set_numbers(is_off_, exchanges, &CudaExchange::is_off);
    set_numbers(taken_, exchanges, &CudaExchange::taken);
    for (std::size_t k = 0; k < is_on_.size(); ++k) {
      is_on_[k] = std::any_of(exchanges.begin(), exchanges.end(), [&](const auto& of) { return of.is_off[k] == 0; });
    }
  }

 private:
  std::size_t twos_;
  std::uint32_t positions_;
  Array<std::uint32_t> start_;
  Array<std::uint32_t> neighbours_;
  Array<std::uint32_t> labels_;
  Array<std::uint8_t> chosen_;
  Array<std::uint64_t> components_;
  Array<std::uint64_t> tried_;
  Array<std::uint8_t> is_off_;
  Array<std::uint64_t> taken_;
  std::vector<std::uint8_t> is_on_;  // of each rung
};

}  // namespace poise::cuda
