// Included once per instruction set (SIEVE_ISA names it). Nothing from the standard library with
// external linkage may be used here: the linker would be free to take one copy, compiled for a
// newer processor, for all.
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels.hpp"

namespace sieve {
namespace SIEVE_ISA {
namespace {

#include "load.inc.hpp"

// ---- dense ------------------------------------------------------------------------------------

// total[k] += sum of x_i v_k,i over the rows [begin, end) of one chunk.
template <int K, class T>
inline void add_chunk(const T* x, int64_t begin, int64_t end, const double* v, int64_t next,
                      double* total) {
  Pack even[K], odd[K];
  for (int k = 0; k < K; ++k) even[k] = odd[k] = zero();
  int64_t i = begin;
  for (; i + 2 * kGroup <= end; i += 2 * kGroup) {
    Pack x0 = load(x + i), x1 = load(x + i + kGroup);
    for (int k = 0; k < K; ++k) {
      even[k].add_product(x0, load(v + k * next + i));
      odd[k].add_product(x1, load(v + k * next + i + kGroup));
    }
  }
  if (i + kGroup <= end) {
    Pack x0 = load(x + i);
    for (int k = 0; k < K; ++k) even[k].add_product(x0, load(v + k * next + i));
    i += kGroup;
    if (i < end) {
      Pack x1 = load_some(x + i, end - i);
      for (int k = 0; k < K; ++k) odd[k].add_product(x1, load_some(v + k * next + i, end - i));
    }
  } else if (i < end) {
    Pack x0 = load_some(x + i, end - i);
    for (int k = 0; k < K; ++k) even[k].add_product(x0, load_some(v + k * next + i, end - i));
  }
  for (int k = 0; k < K; ++k) total[k] += sum(even[k], odd[k]);
}

template <int K, class T>
inline void add_groups(const T* x, int64_t n, const int32_t* first, const int32_t* last,
                       const double* v, int64_t next, Pack* lanes) {
  for (; first != last; ++first) {
    int64_t i = static_cast<int64_t>(*first) * kGroup;
    int64_t count = n - i;
    Pack xs = count >= kGroup ? load(x + i) : load_some(x + i, count);
    for (int k = 0; k < K; ++k) {
      const double* vk = v + k * next + i;
      lanes[k].add_product(xs, count >= kGroup ? load(vk) : load_some(vk, count));
    }
  }
}

// The same sum as add_chunk over the listed groups only; the others have v = 0.
template <int K, class T>
inline void add_active(const T* x, int64_t n, int64_t chunk, ActiveGroups rows, const double* v,
                       int64_t next, double* total) {
  Pack even[K], odd[K];
  for (int k = 0; k < K; ++k) even[k] = odd[k] = zero();
  const int64_t* at = rows.offsets + 2 * chunk;
  add_groups<K>(x, n, rows.groups + at[0], rows.groups + at[1], v, next, even);
  add_groups<K>(x, n, rows.groups + at[1], rows.groups + at[2], v, next, odd);
  for (int k = 0; k < K; ++k) total[k] += sum(even[k], odd[k]);
}

// Vectors handled together: as many as the registers hold.
#if defined(__AVX512F__)
constexpr int kTogether = 8;
#else
constexpr int kTogether = 2;
#endif

template <int K, class T>
inline void chunk_dots(const T* x, int64_t n, int64_t chunk, Vectors V, int64_t& k,
                       ActiveGroups rows, double* total) {
  int64_t begin = chunk * kChunk, end = begin + kChunk < n ? begin + kChunk : n;
  for (; k + K <= V.count; k += K) {
    const double* v = V.data + k * V.vector;
    if (rows.groups)
      add_active<K>(x, n, chunk, rows, v, V.vector, total + k);
    else
      add_chunk<K>(x, begin, end, v, V.vector, total + k);
  }
}

// A few columns go through one stretch of V after another, so that V is read from cache. The
// longer the stretch, the less the processor's prefetching is interrupted.
constexpr int64_t kTile = 8;
constexpr int64_t kStretch = 8;  // chunks, for one vector

template <class T>
void dots_of(const Dense<T>& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out) {
  const int64_t chunks = (X.n + kChunk - 1) / kChunk;
  const int64_t stretch = V.count < kStretch ? kStretch / (V.count > 0 ? V.count : 1) : 1;
  for (int64_t first = columns.first; first < columns.last; first += kTile) {
    const int64_t last = first + kTile < columns.last ? first + kTile : columns.last;
    for (int64_t p = first * V.count; p < last * V.count; ++p) out[p] = 0.0;
    for (int64_t begin = 0; begin < chunks; begin += stretch)
      for (int64_t p = first; p < last; ++p) {
        const T* x = X.column(columns[p]);
        double* total = out + p * V.count;
        for (int64_t chunk = begin; chunk < begin + stretch && chunk < chunks; ++chunk) {
          int64_t k = 0;
          chunk_dots<kTogether>(x, X.n, chunk, V, k, rows, total);
          chunk_dots<2>(x, X.n, chunk, V, k, rows, total);
          chunk_dots<1>(x, X.n, chunk, V, k, rows, total);
        }
      }
  }
}

template <class T>
Moments moments_of(const Dense<T>& X, int64_t j, const double* e) {
  const T* x = X.column(j);
  Moments result{0.0, 0.0, 0};
  for (int64_t begin = 0; begin < X.n; begin += kChunk) {
    const int64_t end = begin + kChunk < X.n ? begin + kChunk : X.n;
    Pack one[2] = {zero(), zero()}, two[2] = {zero(), zero()};
    PartMask stored = {};
    for (int64_t i = begin, odd = 0; i < end; i += kGroup, odd ^= 1) {
      const int64_t count = end - i;
      Pack f = count >= kGroup ? load(x + i) : load_some(x + i, count);
      Pack weight = zero();
      if (e) weight = count >= kGroup ? load(e + i) : load_some(e + i, count);
      for (int p = 0; p < kParts; ++p) {
        Part& a = f.part[p];
        stored -= a != 0;
        if (e) a *= weight.part[p];
        one[odd].part[p] += a < 0 ? -a : a;
        two[odd].part[p] += a * a;
      }
    }
    result.norm1 += sum(one[0], one[1]);
    result.squares += sum(two[0], two[1]);
    for (int l = 0; l < kWidth; ++l) result.nonzeros += stored[l];
  }
  return result;
}

// ---- sparse -----------------------------------------------------------------------------------

template <int K, class T, class I>
inline void add_entry(const T* x, const I* row, const double* v, int64_t next, double* lane) {
  const double* vi = v + static_cast<int64_t>(*row) * next;
  const double f = static_cast<double>(*x);
  for (int k = 0; k < K; ++k) lane[k] += f * vi[k];
}

template <int K, class T, class I>
inline void add_entries(const T* x, const I* row, int64_t count, const double* v, int64_t next,
                        double* total) {
  double a[K] = {}, b[K] = {}, c[K] = {}, d[K] = {};
  int64_t p = 0;
  for (; p + kSparseLanes <= count; p += kSparseLanes) {
    add_entry<K>(x + p, row + p, v, next, a);
    add_entry<K>(x + p + 1, row + p + 1, v, next, b);
    add_entry<K>(x + p + 2, row + p + 2, v, next, c);
    add_entry<K>(x + p + 3, row + p + 3, v, next, d);
  }
  if (p < count) add_entry<K>(x + p, row + p, v, next, a);
  if (p + 1 < count) add_entry<K>(x + p + 1, row + p + 1, v, next, b);
  if (p + 2 < count) add_entry<K>(x + p + 2, row + p + 2, v, next, c);
  for (int k = 0; k < K; ++k) total[k] += (a[k] + c[k]) + (b[k] + d[k]);
}

template <int K, class T, class I>
inline void column_dots(const T* x, const I* row, int64_t count, Vectors V, int64_t& k,
                        double* total) {
  for (; k + K <= V.count; k += K)
    for (int64_t p = 0; p < count; p += kChunk)
      add_entries<K>(x + p, row + p, count - p < kChunk ? count - p : kChunk, V.data + k, V.row,
                     total + k);
}

// Rows with v = 0 cost no more than the look at them, so `rows` is not used.
template <class T, class I>
void dots_of(const Csc<T, I>& X, ColumnRange columns, Vectors V, ActiveGroups, double* out) {
  for (int64_t p = columns.first; p < columns.last; ++p) {
    const int64_t j = columns[p], at = X.indptr[j], count = X.indptr[j + 1] - at;
    double* total = out + p * V.count;
    for (int64_t k = 0; k < V.count; ++k) total[k] = 0.0;
    if (V.count == 1 && count <= kChunk) {  // the commonest case, without the loops around it
      add_entries<1>(X.data + at, X.indices + at, count, V.data, 1, total);
      continue;
    }
    int64_t k = 0;
    column_dots<8>(X.data + at, X.indices + at, count, V, k, total);
    column_dots<2>(X.data + at, X.indices + at, count, V, k, total);
    column_dots<1>(X.data + at, X.indices + at, count, V, k, total);
  }
}

template <class T, class I>
Moments moments_of(const Csc<T, I>& X, int64_t j, const double* e) {
  Moments result{0.0, 0.0, 0};
  for (int64_t p = X.indptr[j]; p < X.indptr[j + 1]; p += kChunk) {
    const int64_t end = p + kChunk < X.indptr[j + 1] ? p + kChunk : X.indptr[j + 1];
    double one[kSparseLanes] = {}, two[kSparseLanes] = {};
    for (int64_t q = p; q < end; ++q) {
      double f = static_cast<double>(X.data[q]);
      result.nonzeros += f != 0;
      if (e) f *= e[X.indices[q]];
      one[(q - p) % kSparseLanes] += f < 0 ? -f : f;
      two[(q - p) % kSparseLanes] += f * f;
    }
    result.norm1 += (one[0] + one[2]) + (one[1] + one[3]);
    result.squares += (two[0] + two[2]) + (two[1] + two[3]);
  }
  return result;
}

}  // namespace

template <class View>
void dots(const View& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out) {
  dots_of(X, columns, V, rows, out);
}

template <class View>
Moments moments(const View& X, int64_t j, const double* e) {
  return moments_of(X, j, e);
}

double dot(const double* a, const double* b, int64_t n) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk)
    add_chunk<1>(a, begin, begin + kChunk < n ? begin + kChunk : n, b, 0, &total);
  return total;
}

#define SIEVE_INSTANTIATE(...)                                                               \
  template void dots(const __VA_ARGS__&, ColumnRange, Vectors, ActiveGroups, double*);       \
  template Moments moments(const __VA_ARGS__&, int64_t, const double*);
#define SIEVE_INSTANTIATE_VALUE(T) SIEVE_FOR_EACH_VIEW_OF(T, SIEVE_INSTANTIATE)
SIEVE_FOR_EACH_VALUE_TYPE(SIEVE_INSTANTIATE_VALUE)

}  // namespace SIEVE_ISA
}  // namespace sieve
