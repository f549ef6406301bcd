// The loops over stored values: products f_j'v and the moments of a column.
//
// The order of every sum is fixed by the column alone: stored positions are cut into chunks of
// kChunk, within a chunk position i adds to lane i mod kLanes, the lanes are added in a fixed
// tree, the chunks in order. Of a sparse column, what is left over after whole rounds of the lanes
// is added last, one by one, and so are all of a few. Dense multiply-adds are fused, sparse ones are
// not. So f_j'v has the same bits whatever the block of columns, the number of threads, the number
// of right-hand sides and the instruction set, and skipping rows with v = 0 changes nothing.
#pragma once
#include "views.hpp"

namespace sieve {

constexpr int64_t kLanes = 8;        // dense: a group of rows, one to each lane
constexpr int64_t kSparseLanes = 4;
constexpr int64_t kFew = 32;         // entries of a sparse column; fewer are not worth lanes
constexpr int64_t kChunk = 2048;     // stored positions summed in lanes before they join the total
constexpr int64_t kPiece = 512;      // rows; a part of a chunk

// Right-hand sides. Sparse columns want those of a row together: (i, k) is at i * count + k.
// Dense columns want eight rows together: (i, k) is at (i / 8 * count + k) * 8 + i % 8.
struct Vectors {
  const double* data;
  int64_t count;
};

// Groups of kLanes rows in which some right-hand side is not zero.
struct ActiveGroups {
  const int32_t* groups;   // nullptr: all rows
  const int64_t* offsets;  // piece p of the rows has the groups [offsets[p], offsets[p + 1])
};

// Columns first..last of a list (or of the matrix, where list is nullptr).
struct ColumnRange {
  const int64_t* list;
  int64_t first, last;
  int64_t operator[](int64_t position) const { return list ? list[position] : position; }
};

struct Moments {
  double norm1;    // sum |e_i f_i|
  double squares;  // sum (e_i f_i)^2
  int64_t nonzeros;
};

// Of a p - b q - c r: the sum of squares, the largest entry, and that of its three parts.
struct Rest {
  double squares, largest, size;
};

// out[position * V.count + k] = f_column'v_k
// eliminate: x -= s a, then a += t x
#define SIEVE_DECLARE_KERNELS                                                                \
  template <class View>                                                                      \
  void dots(const View& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out);  \
  template <class View>                                                                      \
  Moments moments(const View& X, int64_t j, const double* e); /* e = nullptr: all ones */    \
  double dot(const double* a, const double* b, int64_t n);                                   \
  void axpy(double t, const double* x, double* y, int64_t n);              /* y += t x */    \
  void eliminate(double s, double t, double* a, double* x, int64_t n);                       \
  Rest rest_of(double a, const double* p, double b, const double* q, double c, const double* r, \
               int64_t n);

namespace base { SIEVE_DECLARE_KERNELS }
namespace avx2 { SIEVE_DECLARE_KERNELS }
namespace avx512 { SIEVE_DECLARE_KERNELS }

}  // namespace sieve
