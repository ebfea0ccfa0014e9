/// Many words of Philox at once.
#include <poise/extend/base/rng.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poise {

POISE_INLINE void Rng::fill_lanes(Rng& rng, std::span<std::uint64_t> out) {
  for (std::size_t first = 0; first < out.size(); first += kBatch, rng.next_block_ += kBlocks) {
    for (unsigned half = 0; half < 2; ++half) {
      const Words8x4 words = rng.blocks8(rng.next_block_ + 8 * half);
      store8(out.data() + first + 8 * half, words.c1 << 32 | words.c0);
      store8(out.data() + first + kBlocks + 8 * half, words.c3 << 32 | words.c2);
    }
  }
}

#if defined(__x86_64__) && !defined(POISE_SANITIZED)

/// The same with one instruction for a product. Compilers do not see that all factors have 32 bits, and make products
/// of 64 by three instructions or a slow one. What is above these bits is left there, for products do not look at it.
__attribute__((target("avx2"))) void Rng::fill_avx2(Rng& rng, std::span<std::uint64_t> out) {
  constexpr unsigned parts = kBlocks / 4;
  const __m256i first_factor = _mm256_set1_epi64x(0xD2511F53);
  const __m256i second_factor = _mm256_set1_epi64x(0xCD9E8D57);
  const __m256i low = _mm256_set1_epi64x(kLow);
  for (std::size_t first = 0; first < out.size(); first += kBatch, rng.next_block_ += kBlocks) {
    __m256i c0[parts], c1[parts], c2[parts], c3[parts];
    for (unsigned k = 0; k < parts; ++k) {
      const auto block = static_cast<long long>(rng.next_block_ + 4 * k);
      c0[k] = _mm256_add_epi64(_mm256_set1_epi64x(block), _mm256_set_epi64x(3, 2, 1, 0));
      c1[k] = _mm256_srli_epi64(c0[k], 32);
      c2[k] = _mm256_set1_epi64x(static_cast<long long>(rng.stream_));
      c3[k] = _mm256_srli_epi64(c2[k], 32);
    }
    auto k0 = static_cast<std::uint32_t>(rng.seed_);
    auto k1 = static_cast<std::uint32_t>(rng.seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
      for (unsigned k = 0; k < parts; ++k) {
        const __m256i a = _mm256_mul_epu32(c0[k], first_factor);
        const __m256i b = _mm256_mul_epu32(c2[k], second_factor);
        c0[k] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), c1[k]), key0);
        c1[k] = b;
        c2[k] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), c3[k]), key1);
        c3[k] = a;
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (unsigned k = 0; k < parts; ++k) {
      auto* to = reinterpret_cast<__m256i*>(out.data() + first + 4 * k);
      const __m256i one = _mm256_or_si256(_mm256_slli_epi64(c1[k], 32), _mm256_and_si256(c0[k], low));
      const __m256i other = _mm256_or_si256(_mm256_slli_epi64(c3[k], 32), _mm256_and_si256(c2[k], low));
      _mm256_storeu_si256(to, one);
      _mm256_storeu_si256(to + kBlocks / 4, other);
    }
  }
}

void Rng::fill(std::span<std::uint64_t> out) {
  position_ = kBatch;
  if (kInstructionSet == InstructionSet::baseline) return fill_lanes(*this, out);
  fill_avx2(*this, out);
}

#else

void Rng::fill(std::span<std::uint64_t> out) {
  position_ = kBatch;
  hot([&, out] { fill_lanes(*this, out); });
}

#endif

}  // namespace poise
