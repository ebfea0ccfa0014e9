/// One sweep of a few chains, for any kind of vectors: included once for each, in a namespace that has them as `Eight`.
// NOLINT(llvm-header-guard): meant to be included more than once

using Words = Eight::Words;
using Doubles = Eight::Doubles;
using Mask = Eight::Mask;

/// The digits that some words have of one of sixteen chains, as a number below 16^count.
template <unsigned count>
POISE_INLINE Doubles digits_of_chain(const Words* words, unsigned chain) {
  Words fields = Eight::fields(words[0], chain);  // digit d of every word is in field d of sixteen bits
  for (unsigned r = 1; r < count; ++r) fields = fields << static_cast<int>(kKeyDigits) | Eight::fields(words[r], chain);
  const Words together = (fields << 3) | (fields >> 14) | (fields >> 31) | (fields >> 48);
  return Eight::to_doubles(together & ((std::uint64_t{1} << (kKeyDigits * count)) - 1));
}

/// Up is where the random number, of which some digits are known, is below odds / (1 + odds); `open` is where more
/// digits are needed.
template <unsigned count>
POISE_INLINE Mask decide(const Words* words, unsigned chain, const Doubles& odds, Mask& open) {
  constexpr double kScale = std::uint64_t{1} << (kKeyDigits * count);
  constexpr double kError = kScale * BitTables::kOddsError;  // a quarter of it would do: that is how far p is off
  const Doubles digits = digits_of_chain<count>(words, chain);
  const Doubles scale = odds + 1.0;
  const Doubles threshold = odds * kScale;
  const Mask up = Eight::is_less((digits + (1.0 + kError)) * scale, threshold);
  open = up ^ Eight::is_less((digits - kError) * scale, threshold);
  return up;
}

/// Eight digits decide all but one in 256, eight more nearly all of the rest.
template <unsigned size>
POISE_INLINE void sweep_all(const FewSweep& sweep) {
  const BitTables::Run& run = *sweep.run;
  const double* const odds_of = run.odds.base.data();
  const double* const factors = run.odds.factors.data();
  const std::size_t next_factor = run.odds.factors.size() == 1 ? 0 : run.variable.size();
  const Index* const variables = run.variable.data();
  const Index* const blankets = run.blanket.data();
  const Index* const together = run.side_by_side.data();
  const std::size_t count = run.count;
  std::uint64_t* const state = sweep.state;
  for (std::size_t start = 0; start < count; start += 8) {
    // The last vector goes back to variables of the one before: they come out the same.
    const std::size_t k = std::min(start, count - std::min<std::size_t>(8, count));
    Words x[size];
    Doubles factor[size];
    for (unsigned j = 0; j < size; ++j) {
      const Index side = together[start / 8 * size + j];
      x[j] =
          side != BitTables::kApart ? Eight::load(state + side) : Eight::gather(state, blankets + k * size + j, size);
      factor[j] = next_factor == 0 ? Eight::all(factors[0]) : Eight::load(factors + j * next_factor + k);
    }
    const Doubles odds_of_none = Eight::load(odds_of + k);
    const Words scattered = ((Eight::widen(variables + k) + sweep.first_update) << kWordsOfUpdate) * kWordStep;
    Words after = {};
    for (unsigned some = 0; some < 4; ++some) {
      const std::uint64_t mine = sweep.chains >> (kKeyChains * some) & 0xffff;
      if (mine == 0) continue;
      const Words first = Eight::all(sweep.first_keys[some]);
      const Words second = Eight::all(sweep.second_keys[some]);
      Words random[4];
      make_keyed_word(first, second, scattered, random[0]);
      make_keyed_word(first, second, scattered + kWordStep, random[1]);
      for (std::uint64_t chains = mine; chains != 0; chains &= chains - 1) {
        const auto bit = static_cast<unsigned>(__builtin_ctzll(chains));
        const unsigned own = kKeyChains * some + bit;
        Doubles odds = odds_of_none;
        for (unsigned j = 0; j < size; ++j) odds = Eight::times_where(Eight::is_set(x[j], own), odds, factor[j]);
        Mask open;
        Mask up = decide<2>(random, bit, odds, open);
        if (Eight::any(open)) {
          make_keyed_word(first, second, scattered + 2 * kWordStep, random[2]);
          make_keyed_word(first, second, scattered + 3 * kWordStep, random[3]);
          up = decide<4>(random, bit, odds, open);
        }
        after = after | Eight::bits(up, own);
        if (!Eight::any(open)) continue;
        for (unsigned lane = 0; lane < 8; ++lane) {
          if (!Eight::has(open, lane)) continue;
          after = after | Eight::only(lane, sweep.decide(sweep, k + lane, std::uint64_t{1} << own));
        }
      }
    }
    if (count >= 8) {
      Eight::store(state + run.first + k, after);
    } else {
      for (std::size_t lane = 0; lane < count; ++lane) state[run.first + lane] = Eight::at(after, lane);
    }
  }
}

/// The same for runs of any number of variables in a blanket.
inline void sweep_any(const FewSweep& sweep) {
  switch (sweep.run->size) {
    case 4: sweep_all<4>(sweep); break;
    case 5: sweep_all<5>(sweep); break;
    default: sweep_all<6>(sweep); break;
  }
}
