/// One sweep, for any kind of lanes: included once for each instruction set, below the pragma that names it, in a
/// namespace that has these lanes as `Lanes`.
// NOLINT(llvm-header-guard): meant to be included more than once

using Floats = Lanes::Floats;
using Ints = Lanes::Ints;

/// e^x for x from -87 to 87, to within 2^-21.
POISE_INLINE Floats exp_lanes(const Floats& x) {
  // x = n log 2 + r, |r| < 0.35; adding and taking away a large number rounds to an integer.
  constexpr float kRound = 12582912.0F;
  const Floats n = (x * 1.44269504F + kRound) - kRound;
  const Floats r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  // In Estrin's order, for short latency.
  const Floats r2 = r * r;
  const Floats low = r * 1.6666665459e-1F + 5.0000001201e-1F;
  const Floats middle = r * 8.3334519073e-3F + 4.1665795894e-2F;
  const Floats high = r * 1.9875691500e-4F + 1.3981999507e-3F;
  const Floats p = ((low + r2 * (middle + r2 * high)) * r2 + r) + 1.0F;
  return Lanes::scale(p, n);
}

/// V vectors side by side are all lanes of the tile; in a heated one each lane has a temperature of its own.
template <unsigned V, bool kHeated>
struct Sweep {
  static constexpr unsigned N = Lanes::kCount;
  static constexpr unsigned kWidth = N * V;

  const LaneSweep& sweep;

  /// The configuration of a term's other variables.
  POISE_INLINE void find_places(const LaneModel::Term& term, Ints* places) const {
    for (unsigned v = 0; v < V; ++v) places[v] = Ints{};
    unsigned shift = 0;
    for (const LaneModel::Other* other = sweep.others + term.first_other;
         other != sweep.others + (&term + 1)->first_other; ++other) {
      const Value* row = sweep.levels + std::size_t{other->position} * kWidth;
      for (unsigned v = 0; v < V; ++v) places[v] = places[v] | Lanes::load(row + v * N) << static_cast<int>(shift);
      shift += other->bits;
    }
  }

  POISE_INLINE Floats of_pair(const LaneModel::Pair& pair, unsigned v) const {
    return Lanes::choose(sweep.levels + std::size_t{pair.position} * kWidth + v * N, pair.log_odds);
  }

  /// One level or the other: q is the probability of level 0, and level 1 it is where the random number is not below.
  POISE_INLINE void update_two(std::size_t position) const {
    const LaneModel::Variable& variable = sweep.variables[position];
    Floats sum[V];
    for (unsigned v = 0; v < V; ++v) sum[v] = Floats{} + variable.base;
    Floats zeros[kHeated ? V : 1];
    if constexpr (kHeated) {
      for (unsigned v = 0; v < V; ++v) zeros[v] = Floats{} + variable.zeros;
    }
    const LaneModel::Pair* pair = sweep.pairs + variable.first_pair;
    const LaneModel::Pair* const end = sweep.pairs + (&variable + 1)->first_pair;
    // Four at a time, so that no addition waits for the one before.
    for (; end - pair >= 4; pair += 4) {
      for (unsigned v = 0; v < V; ++v) {
        sum[v] = sum[v] + ((of_pair(pair[0], v) + of_pair(pair[1], v)) + (of_pair(pair[2], v) + of_pair(pair[3], v)));
      }
    }
    for (; pair != end; ++pair) {
      for (unsigned v = 0; v < V; ++v) sum[v] = sum[v] + of_pair(*pair, v);
    }
    for (Index k = variable.first_term; k < (&variable + 1)->first_term; ++k) {
      const LaneModel::Term& term = sweep.terms[k];
      Ints places[V];
      find_places(term, places);
      for (unsigned v = 0; v < V; ++v) {
        sum[v] = sum[v] + Lanes::look_up(sweep.tables + term.table, term.bits, places[v]);
      }
      if constexpr (kHeated) {
        if (term.zeros == 0) continue;
        for (unsigned v = 0; v < V; ++v) {
          zeros[v] = zeros[v] + Lanes::look_up(sweep.tables + term.zeros, term.bits, places[v]);
        }
      }
    }
    if constexpr (kHeated) {
      for (unsigned v = 0; v < V; ++v) sum[v] = heat(sum[v], zeros[v], v);
    }
    Value* row = sweep.levels + position * kWidth;
    const std::uint64_t word = sweep.first_word + std::uint64_t{variable.variable} * kWordsPerUpdate;
    std::uint64_t unsure = 0;
    for (unsigned v = 0; v < V; ++v) {
      if constexpr (N == 1) {
        // One level has all but e^-29: without vectors a look saves the exponential.
        constexpr float kCertain = 30.0F;
        if (sweep.sums == nullptr && (sum[v] > kCertain || sum[v] < -kCertain)) {
          const Floats drawn = Lanes::uniform(sweep, v, word);
          row[v] = sum[v] > 0.0F ? 1 : 0;
          const Floats distance = sum[v] > 0.0F ? drawn : 1.0F - drawn;
          unsure |= std::uint64_t{Lanes::within(distance, Floats{} + variable.margin)} << v;
          continue;
        }
      }
      const Floats odds = exp_lanes(Lanes::limit(sum[v]));
      const Floats q = 1.0F / (odds + 1.0F);
      const Floats beyond = Lanes::uniform(sweep, v, word) - q;
      Lanes::store(row + v * N, Lanes::not_negative(beyond));
      const Floats error = Lanes::least(q, 1.0F - q) * variable.spread + variable.margin;
      unsure |= std::uint64_t{Lanes::within(beyond, error)} << (v * N);
      if (sweep.sums == nullptr) continue;
      Lanes::add(sweep.sums + std::size_t{variable.entry} * kWidth + v * N, weigh(odds * q, v));
    }
    if (unsure != 0) sweep.settle(sweep, position, unsure);
    if (sweep.counts == nullptr) return;
    std::uint8_t* counts = sweep.counts + std::size_t{variable.entry} * kWidth;
    for (unsigned lane = 0; lane < kWidth; ++lane) counts[lane] = static_cast<std::uint8_t>(counts[lane] + row[lane]);
  }

  /// The log weight at the temperature of each lane.
  POISE_INLINE Floats heat(const Floats& sum, const Floats& zeros, unsigned v) const {
    return sum * Lanes::read(sweep.betas + v * N) + zeros * Lanes::read(sweep.log_zeros + v * N);
  }
  /// What a lane adds to sums: nothing, unless it is at the temperature that counts.
  POISE_INLINE Floats weigh(const Floats& value, unsigned v) const {
    if constexpr (!kHeated) return value;
    return value * Lanes::read(sweep.weights + v * N);
  }

  [[gnu::noinline]] void update_many(std::size_t position) const {
    const LaneModel::Variable& variable = sweep.variables[position];
    const Index levels = variable.levels;
    Floats weights[LaneModel::kMostLevels][V];
    Floats zeros[kHeated ? LaneModel::kMostLevels : 1][V];
    for (Index level = 0; level < levels; ++level) {
      for (unsigned v = 0; v < V; ++v) weights[level][v] = Floats{};
      if constexpr (kHeated) {
        for (unsigned v = 0; v < V; ++v) zeros[level][v] = Floats{};
      }
    }
    for (Index k = variable.first_term; k < (&variable + 1)->first_term; ++k) {
      const LaneModel::Term& term = sweep.terms[k];
      Ints places[V];
      find_places(term, places);
      const float* table = sweep.tables + term.table;
      const std::size_t size = term.bits < 4 ? 16 : std::size_t{1} << term.bits;
      for (Index level = 0; level < levels; ++level, table += size) {
        for (unsigned v = 0; v < V; ++v) {
          weights[level][v] = weights[level][v] + Lanes::look_up(table, term.bits, places[v]);
        }
      }
      if constexpr (kHeated) {
        if (term.zeros == 0) continue;
        table = sweep.tables + term.zeros;
        for (Index level = 0; level < levels; ++level, table += size) {
          for (unsigned v = 0; v < V; ++v) {
            zeros[level][v] = zeros[level][v] + Lanes::look_up(table, term.bits, places[v]);
          }
        }
      }
    }
    if constexpr (kHeated) {
      for (Index level = 0; level < levels; ++level) {
        for (unsigned v = 0; v < V; ++v) weights[level][v] = heat(weights[level][v], zeros[level][v], v);
      }
    }
    Value* row = sweep.levels + position * kWidth;
    const std::uint64_t word = sweep.first_word + std::uint64_t{variable.variable} * kWordsPerUpdate;
    std::uint64_t unsure = 0;
    for (unsigned v = 0; v < V; ++v) {
      Floats largest = weights[0][v];
      for (Index level = 1; level < levels; ++level) largest = Lanes::most(largest, weights[level][v]);
      Floats total{};
      for (Index level = 0; level < levels; ++level) {
        weights[level][v] = exp_lanes(Lanes::limit(weights[level][v] - largest));
        total = total + weights[level][v];
      }
      const Floats drawn = Lanes::uniform(sweep, v, word) * total;
      Ints chosen{};
      Floats below{};
      for (Index level = 0; level + 1 < levels; ++level) {
        below = below + weights[level][v];
        const Floats beyond = drawn - below;
        chosen = chosen + Lanes::not_negative(beyond);
        const Floats error = Lanes::least(below, total - below) * variable.spread + total * variable.margin;
        unsure |= std::uint64_t{Lanes::within(beyond, error)} << (v * N);
      }
      Lanes::store(row + v * N, chosen);
      if (sweep.sums == nullptr) continue;
      const Floats scale = 1.0F / total;
      float* sums = sweep.sums + std::size_t{variable.entry} * kWidth + v * N;
      for (Index level = 1; level < levels; ++level, sums += kWidth)
        Lanes::add(sums, weigh(weights[level][v] * scale, v));
    }
    if (unsure != 0) sweep.settle(sweep, position, unsure);
    if (sweep.counts == nullptr) return;
    std::uint8_t* counts = sweep.counts + std::size_t{variable.entry} * kWidth;
    for (Index level = 1; level < levels; ++level, counts += kWidth) {
      for (unsigned lane = 0; lane < kWidth; ++lane) {
        counts[lane] = static_cast<std::uint8_t>(counts[lane] + (row[lane] == level ? 1 : 0));
      }
    }
  }

  void all() const {
    for (std::size_t position = 0; position < sweep.count; ++position) {
      if (sweep.variables[position].levels == 2) {
        update_two(position);
      } else {
        update_many(position);
      }
    }
  }
};

/// One sweep of a tile of so many lanes. Only tiles of sixteen or more are heated.
template <unsigned lanes, bool kHeated = false>
POISE_INLINE void sweep_tile(const LaneSweep& sweep) {
  if constexpr (lanes % Lanes::kCount == 0) Sweep<lanes / Lanes::kCount, kHeated>{sweep}.all();
}

inline void sweep_any(const LaneSweep& sweep) {
  const bool heated = sweep.betas != nullptr;
  switch (sweep.lanes) {
    case 1: return sweep_tile<1>(sweep);
    case 2: return sweep_tile<2>(sweep);
    case 8: return sweep_tile<8>(sweep);
    case 16: return heated ? sweep_tile<16, true>(sweep) : sweep_tile<16>(sweep);
    case 32: return heated ? sweep_tile<32, true>(sweep) : sweep_tile<32>(sweep);
    case 48: return heated ? sweep_tile<48, true>(sweep) : sweep_tile<48>(sweep);
    default: return heated ? sweep_tile<64, true>(sweep) : sweep_tile<64>(sweep);
  }
}
