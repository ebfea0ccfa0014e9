/// Functions that are compiled for a device and for the host alike.
#pragma once

#ifdef __CUDACC__
#define POISE_BOTH __host__ __device__ __forceinline__
#define POISE_UNROLL _Pragma("unroll")
#else
#define POISE_BOTH inline
#define POISE_UNROLL
#endif
