#define SIEVE_ISA avx2
#include "kernels.inc.hpp"
