#define SIEVE_ISA avx512
#include "kernels.inc.hpp"
