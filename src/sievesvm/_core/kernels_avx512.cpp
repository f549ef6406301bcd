// GCC 12 finds its own AVX-512 intrinsics uninitialised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define SIEVE_ISA avx512
#include "kernels.inc.hpp"
