/// Tiles of the product go through shared memory, the next parts of them while the present one is multiplied.
#include "engines/cuda/rbm/rbm_kernels.hpp"

#include <cuda_pipeline.h>

#include "engines/cuda/common/kernel.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kSkew = 8;         // halves between rows, so that eight of them lie in different banks
constexpr float kLargest = 60000.0F;  // that is stored

/// A block has kRows x kColumns entries, divided among kDown x kAcross warps; kInner products a turn, of which kSlots
/// are in shared memory.
template <unsigned kRows, unsigned kColumns, unsigned kDown, unsigned kAcross, unsigned kInner, unsigned kSlots>
struct Tile {
  static constexpr unsigned rows = kRows, columns = kColumns, inner = kInner, slots = kSlots, across = kAcross;
  static constexpr unsigned warp_rows = kRows / kDown, warp_columns = kColumns / kAcross;
  static constexpr unsigned threads = kDown * kAcross * 32;
  static constexpr unsigned pitch = inner + kSkew;
  static constexpr unsigned bytes = slots * (rows + columns) * pitch * sizeof(__half);
  // A block whose sums leave room for it has at most 128 registers a thread: then a multiprocessor has it beside eight
  // blocks of steps of 48, so that it fetches the right factor while these run, and the next ones wait beside it.
  static constexpr unsigned sums = warp_rows * warp_columns / 32;
  static constexpr unsigned blocks = sums <= 64 ? 512 / threads : 1;
  static_assert(warp_rows % 16 == 0 && warp_columns % 8 == 0);
};

/// Squares of eight by eight halves, from rows of shared memory to registers of a warp. Lanes 0 to 7 give the rows of
/// the first square, and so on.
__device__ inline void load_squares(std::uint32_t (&to)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
}
__device__ inline void load_squares(std::uint32_t (&to)[2], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
}

/// Sixteen by eight sums of sixteen products each.
__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t* b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (unsigned half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#endif
}

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks) multiply(HalfProduct product) {
  constexpr unsigned kRows = Shape::rows, kColumns = Shape::columns, kInner = Shape::inner, kPitch = Shape::pitch;
  constexpr unsigned kDown = Shape::warp_rows / 16, kAcross = Shape::warp_columns / 8;
  extern __shared__ __align__(16) __half shared[];
  __half* const left = shared;
  __half* const right = shared + Shape::slots * kRows * kPitch;

  const std::size_t first_row = std::size_t{blockIdx.y} * kRows, first_column = std::size_t{blockIdx.x} * kColumns;
  const unsigned turns = product.inner / kInner;
  const auto fetch = [&](unsigned turn, __half* to, const __half* from, unsigned count) {
    constexpr unsigned kPieces = kInner / 8;  // of sixteen bytes, in a row
    if (turn >= turns) return;
    for (unsigned piece = threadIdx.x; piece < count * kPieces; piece += Shape::threads) {
      const unsigned row = piece / kPieces, column = piece % kPieces * 8;
      __pipeline_memcpy_async(to + (turn % Shape::slots * count + row) * kPitch + column,
                              from + static_cast<std::size_t>(row) * product.inner + turn * kInner + column, 16);
    }
  };
  const auto fetch_left = [&](unsigned turn) { fetch(turn, left, product.left + first_row * product.inner, kRows); };
  const auto fetch_right = [&](unsigned turn) {
    fetch(turn, right, product.right + first_column * product.inner, kColumns);
  };

  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned warp_row = warp / Shape::across * Shape::warp_rows;
  const unsigned warp_column = warp % Shape::across * Shape::warp_columns;
  float sums[kDown][kAcross][4] = {};

  // The right factor is always the same; the left one is what the launch before has made. Where there is a slot for
  // every turn none is used twice, and all of them are fetched ahead.
  const bool all_ahead = turns <= Shape::slots;
  const unsigned ahead = all_ahead ? Shape::slots : Shape::slots - 1;
  for (unsigned turn = 0; turn < ahead; ++turn) fetch_right(turn);
  // In this order: when the next launch begins, all that the one before has written is there.
  wait_for_the_end_of_the_one_before();
  let_the_next_begin();
  for (unsigned turn = 0; turn < ahead; ++turn) {
    fetch_left(turn);
    __pipeline_commit();
  }
  for (unsigned turn = 0; turn < turns; ++turn) {
    if (all_ahead) {
      __pipeline_wait_prior(Shape::slots - 1);
    } else {
      __pipeline_wait_prior(Shape::slots - 2);
    }
    __syncthreads();  // also, no thread reads any more where the next part goes
    fetch_right(turn + ahead);
    fetch_left(turn + ahead);
    __pipeline_commit();
    // Where a lane's rows begin: of two squares below each other and two beside them; of two side by side, twice.
    const __half* const rows = left + (turn % Shape::slots * kRows + warp_row + lane % 16) * kPitch + lane / 16 * 8;
    const __half* const columns =
        right + (turn % Shape::slots * kColumns + warp_column + lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8;
#pragma unroll
    for (unsigned k = 0; k < kInner; k += 16) {
      std::uint32_t a[kDown][4], b[kAcross][2];
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) load_squares(a[i], rows + i * 16 * kPitch + k);
#pragma unroll
      for (unsigned j = 0; j + 1 < kAcross; j += 2) {
        std::uint32_t two[4];
        load_squares(two, columns + j * 8 * kPitch + k);
        b[j][0] = two[0], b[j][1] = two[1], b[j + 1][0] = two[2], b[j + 1][1] = two[3];
      }
      if constexpr (kAcross % 2 == 1) {
        // Lanes 16 to 31 are not asked; theirs would be rows that there may not be.
        const __half* const last = lane < 16 ? columns : right;
        load_squares(b[kAcross - 1], last + (kAcross - 1) * 8 * kPitch + k);
      }
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) {
#pragma unroll
        for (unsigned j = 0; j < kAcross; ++j) multiply_add(sums[i][j], a[i], b[j]);
      }
    }
  }
  // A lane has two entries side by side of row lane / 4, and two of the row eight below.
  const auto limit = [](float value) { return fminf(fmaxf(value, -kLargest), kLargest); };
#pragma unroll
  for (unsigned i = 0; i < kDown; ++i) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      __half* const to = product.out + (first_row + warp_row + 16 * i + 8 * half + lane / 4) * product.columns +
                         first_column + warp_column + lane % 4 * 2;
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) {
        *reinterpret_cast<__half2*>(to + 8 * j) =
            __floats2half2_rn(limit(sums[i][j][2 * half]), limit(sums[i][j][2 * half + 1]));
      }
    }
  }
}

/// Whether a device has the shared memory that a block wants.
template <class Shape>
bool fits() {
  static const bool is_allowed = [] {
    int device = 0, most = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
           Shape::bytes <= static_cast<unsigned>(most);
  }();
  return is_allowed;
}

template <class Shape>
void launch(const HalfProduct& product, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(multiply<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          static_cast<int>(Shape::bytes));
  static_cast<void>(allowed);  // a launch that is not allowed fails by itself
  const dim3 blocks(product.columns / Shape::columns, (product.rows + Shape::rows - 1) / Shape::rows);
  launch_after(multiply<Shape>, {blocks, dim3(Shape::threads), Shape::bytes, stream}, product);
}

/// By the first of two shapes, where the device has room for it. Entries are summed in one order in all of them.
template <class Shape, class Smaller>
void launch_fitting(const HalfProduct& product, cudaStream_t stream) {
  if (fits<Shape>()) {
    launch<Shape>(product, stream);
  } else {
    launch<Smaller>(product, stream);
  }
}

}  // namespace

void launch_product(const HalfProduct& product, cudaStream_t stream) {
  // The smaller the tiles, the more of the device has something to do, and the more is read twice.
  const bool wide = product.columns % kProductTile == 0;
  // These fit every device.
  using SmallWide = Tile<64, 64, 2, 2, 64, 3>;
  using SmallNarrow = Tile<64, 112, 2, 2, 64, 2>;
  static_assert(SmallWide::bytes <= 65536 && SmallNarrow::bytes <= 65536);
  if (product.rows <= 64) {
    launch<Tile<16, 16, 1, 1, 128, 4>>(product, stream);
  } else if (product.rows <= 2048) {
    if (wide) {
      launch_fitting<Tile<64, 64, 2, 2, 128, 4>, SmallWide>(product, stream);
    } else {
      launch_fitting<Tile<64, 112, 2, 2, 128, 4>, SmallNarrow>(product, stream);
    }
  } else if (wide) {
    launch_fitting<Tile<128, 128, 2, 2, 32, 3>, SmallWide>(product, stream);
  } else {
    launch_fitting<Tile<128, 112, 2, 2, 64, 2>, SmallNarrow>(product, stream);
  }
}

}  // namespace poise::cuda
