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

// Sums under way of one column and one vector: rows in groups of even and of odd number.
struct Lanes {
  Pack even, odd;
  double total() const { return sum(even, odd); }
};

// Some columns and vectors, each to be multiplied with each.
template <class T>
struct Block {
  const T* const* x;
  const double* v;
  int64_t n;           // rows; also the distance from one vector to the next
  double* out;         // the product of column c and vector k belongs to out[c * per_column + k]
  int64_t per_column;
};

// Columns and vectors whose sums the registers hold together.
#if defined(__AVX512F__)
constexpr int kColumns = 4, kVectors = 2;
#else
constexpr int kColumns = 2, kVectors = 1;
#endif
constexpr int kManyVectors = 8;

template <int C, int K, bool kOdd, class T, class Load>
inline void add_group(const T* const* x, const double* v, int64_t n, int64_t i, Load get,
                      Lanes (&lanes)[C][K]) {
  Pack vs[K];
  for (int k = 0; k < K; ++k) vs[k] = get(v + k * n + i);
  for (int c = 0; c < C; ++c) {
    const Pack xs = get(x[c] + i);
    for (int k = 0; k < K; ++k) (kOdd ? lanes[c][k].odd : lanes[c][k].even).add_product(xs, vs[k]);
  }
}

constexpr auto whole = [](const auto* x) { return load(x); };

template <int C, int K, class T>
inline void add_rows(const T* const* x, const double* v, int64_t n, int64_t begin, int64_t end,
                     Lanes (&lanes)[C][K]) {
  int64_t i = begin;
  for (; i + 2 * kGroup <= end; i += 2 * kGroup) {
    add_group<C, K, false>(x, v, n, i, whole, lanes);
    add_group<C, K, true>(x, v, n, i + kGroup, whole, lanes);
  }
  const auto rest = [&](const auto* from) { return load_some(from, end - i); };
  if (i + kGroup <= end) {
    add_group<C, K, false>(x, v, n, i, whole, lanes);
    i += kGroup;
    if (i < end) add_group<C, K, true>(x, v, n, i, rest, lanes);
  } else if (i < end) {
    add_group<C, K, false>(x, v, n, i, rest, lanes);
  }
}

template <int C, int K, bool kOdd, class T>
inline void add_listed(const T* const* x, const double* v, int64_t n, const int32_t* first,
                       const int32_t* last, Lanes (&lanes)[C][K]) {
  for (; first != last; ++first) {
    const int64_t i = static_cast<int64_t>(*first) * kGroup, left = n - i;
    if (left >= kGroup)
      add_group<C, K, kOdd>(x, v, n, i, whole, lanes);
    else
      add_group<C, K, kOdd>(x, v, n, i, [&](const auto* at) { return load_some(at, left); }, lanes);
  }
}

// Rows after which the next vectors have their turn: X and V are then still in the nearest cache.
constexpr int64_t kRows = 512;

// Adds the products over the rows of one chunk; of the listed groups only, if there is a list
// (the others have v = 0).
template <int C, int K, class T>
inline void add_chunk(const Block<T>& B, int64_t chunk, ActiveGroups rows) {
  constexpr int kTurn = K < kVectors ? K : kVectors;
  Lanes lanes[K / kTurn][C][kTurn];
  for (auto& turn : lanes)
    for (auto& column : turn)
      for (auto& lane : column) lane = {zero(), zero()};
  if (rows.groups) {
    const int64_t* at = rows.offsets + 2 * chunk;
    for (int t = 0; t < K / kTurn; ++t) {
      const double* v = B.v + t * kTurn * B.n;
      add_listed<C, kTurn, false>(B.x, v, B.n, rows.groups + at[0], rows.groups + at[1], lanes[t]);
      add_listed<C, kTurn, true>(B.x, v, B.n, rows.groups + at[1], rows.groups + at[2], lanes[t]);
    }
  } else {
    const int64_t begin = chunk * kChunk, end = begin + kChunk < B.n ? begin + kChunk : B.n;
    const int64_t step = K == kTurn ? kChunk : kRows;
    for (int64_t i = begin; i < end; i += step)
      for (int t = 0; t < K / kTurn; ++t)
        add_rows(B.x, B.v + t * kTurn * B.n, B.n, i, i + step < end ? i + step : end, lanes[t]);
  }
  for (int c = 0; c < C; ++c)
    for (int k = 0; k < K; ++k)
      B.out[c * B.per_column + k] += lanes[k / kTurn][c][k % kTurn].total();
}

template <int C, int K, class T>
inline void add_vectors(Block<T>& part, int64_t& left, int64_t chunk, ActiveGroups rows) {
  for (; left >= K; left -= K) {
    add_chunk<C, K>(part, chunk, rows);
    part.v += K * part.n;
    part.out += K;
  }
}

template <int C, class T>
inline void add_chunks(const Block<T>& B, int64_t first, int64_t last, int64_t vectors,
                       ActiveGroups rows) {
  for (int64_t chunk = first; chunk < last; ++chunk) {
    Block<T> part = B;
    int64_t left = vectors;
    add_vectors<C, kManyVectors>(part, left, chunk, rows);
    add_vectors<C, 2>(part, left, chunk, rows);
    add_vectors<C, 1>(part, left, chunk, rows);
  }
}

// A few columns go through one stretch of V after another, so that V is read from cache. The
// longer the stretch, the less the processor's prefetching is interrupted.
constexpr int64_t kTile = 32;
constexpr int64_t kStretch = 8;  // chunks, for one vector

template <class T>
void dots_of(const Dense<T>& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out) {
  const int64_t chunks = (X.n + kChunk - 1) / kChunk;
  const int64_t stretch = V.count < kStretch ? kStretch / (V.count > 0 ? V.count : 1) : 1;
  const T* x[kTile];
  for (int64_t first = columns.first; first < columns.last; first += kTile) {
    const int64_t count = first + kTile < columns.last ? kTile : columns.last - first;
    for (int64_t p = 0; p < count; ++p) x[p] = X.column(columns[first + p]);
    for (int64_t p = first * V.count; p < (first + count) * V.count; ++p) out[p] = 0.0;
    for (int64_t begin = 0; begin < chunks; begin += stretch) {
      const int64_t end = begin + stretch < chunks ? begin + stretch : chunks;
      int64_t p = 0;
      const auto block = [&] {
        return Block<T>{x + p, V.data, X.n, out + (first + p) * V.count, V.count};
      };
      for (; p + kColumns <= count; p += kColumns)
        add_chunks<kColumns>(block(), begin, end, V.count, rows);
      for (; p < count; ++p) add_chunks<1>(block(), begin, end, V.count, rows);
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
  const Block<double> block{&a, b, n, &total, 1};
  add_chunks<1>(block, 0, (n + kChunk - 1) / kChunk, 1, ActiveGroups{nullptr, nullptr});
  return total;
}

#define SIEVE_INSTANTIATE(...)                                                               \
  template void dots(const __VA_ARGS__&, ColumnRange, Vectors, ActiveGroups, double*);       \
  template Moments moments(const __VA_ARGS__&, int64_t, const double*);
#define SIEVE_INSTANTIATE_VALUE(T) SIEVE_FOR_EACH_VIEW_OF(T, SIEVE_INSTANTIATE)
SIEVE_FOR_EACH_VALUE_TYPE(SIEVE_INSTANTIATE_VALUE)

}  // namespace SIEVE_ISA
}  // namespace sieve
