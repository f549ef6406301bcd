#define SIEVE_ISA base
#include "kernels.inc.hpp"
