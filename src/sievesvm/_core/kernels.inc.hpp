// Included once per instruction set (SIEVE_ISA names it). Nothing from the standard library with
// external linkage may be used here: the linker would be free to take one copy, compiled for a
// newer processor, for all.
#include <algorithm>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels.hpp"

namespace sieve {
namespace SIEVE_ISA {
namespace {

template <int N>
struct Number {
  static constexpr int value = N;
};

// Calls add(Number<K>, k) for parts of K vectors from k on that make up all `count`.
template <class Add>
inline void for_each_part(int64_t count, Add add) {
  int64_t k = 0;
  for (; k + 8 <= count; k += 8) add(Number<8>{}, k);
  if (count - k >= 4) add(Number<4>{}, k), k += 4;
  if (count - k >= 2) add(Number<2>{}, k), k += 2;
  if (count - k >= 1) add(Number<1>{}, k);
}

#include "load.inc.hpp"

// ---- dense ------------------------------------------------------------------------------------

// Columns and vectors multiplied together, each with each: as many as have their sums in registers.
#if defined(__AVX512F__)
constexpr int kColumns = 4, kTogether = 4;
#else
constexpr int kColumns = 2, kTogether = 2;
#endif

template <int C, int K, class T, class Load>
inline void add_group(const T* const* x, Vectors V, int64_t i, Load get, Pack (&lanes)[C][K]) {
  Pack v[K];
  for (int k = 0; k < K; ++k) v[k] = get(V.data + i * V.count + k * kLanes);
  for (int c = 0; c < C; ++c) {
    const Pack xs = get(x[c] + i);
    for (int k = 0; k < K; ++k) lanes[c][k].add_product(xs, v[k]);
  }
}

// Asks for the kLine rows from x on, which need not exist.
constexpr int64_t kLine = 64;  // so many values are as many cache lines as a value has bytes

template <class T>
inline void fetch(const T* x) {
  for (size_t line = 0; line < sizeof(T); ++line)
    __builtin_prefetch(reinterpret_cast<const char*>(x) + line * kLine);
}

// The processor foresees what is read next only to the end of a page. A page ahead is best for
// one column at a time, half a page for several side by side (1.1 times as fast with float32).
constexpr int64_t kPage = 4096;
template <int C>
constexpr int64_t kAhead = C == 1 ? kPage : kPage / 2;  // bytes

// Adds the rows [begin, end) to the lanes, and fetches what comes after: further rows of the same
// columns, or, of several turns over the same rows, each its part of the next columns.
template <int C, int K, class T>
inline void add_rows(const T* const* x, Vectors V, int64_t begin, int64_t end, int turn, int turns,
                     Pack (&kept)[C][K]) {
  const auto all = [](const auto* from) { return load(from); };
  Pack lanes[C][K];
  std::memcpy(lanes, kept, sizeof lanes);
  int64_t i = begin;
  for (; i + kLine <= end; i += kLine) {
    if (turns > 1)
      for (int c = turn; c < C; c += turns) fetch(x[C + c] + i);
    else
      for (int c = 0; c < C; ++c) fetch(x[c] + i + kAhead<C> / sizeof(T));
    for (int64_t g = i; g < i + kLine; g += kLanes) add_group(x, V, g, all, lanes);
  }
  for (; i + kLanes <= end; i += kLanes) add_group(x, V, i, all, lanes);
  if (i < end) add_group(x, V, i, [&](const auto* from) { return load_some(from, end - i); }, lanes);
  std::memcpy(kept, lanes, sizeof lanes);
}

// The same for the listed groups only; on the others v = 0.
template <int C, int K, class T>
inline void add_listed(const T* const* x, Vectors V, ActiveGroups rows, int64_t begin, int64_t end,
                       Pack (&lanes)[C][K]) {
  const int32_t* last = rows.groups + rows.offsets[(end + kPiece - 1) / kPiece];
  for (const int32_t* g = rows.groups + rows.offsets[begin / kPiece]; g != last; ++g) {
    const int64_t i = *g * kLanes, left = end - i;
    if (left >= kLanes)
      add_group(x, V, i, [](const auto* from) { return load(from); }, lanes);
    else
      add_group(x, V, i, [&](const auto* from) { return load_some(from, left); }, lanes);
  }
}

// Adds the rows [begin, end), a chunk, to the products of C columns with K vectors. Vectors that
// do not fit in registers take turns, piece by piece, while X and V are in the nearest cache.
template <int C, int K, class T>
inline void add_chunk(const T* const* x, Vectors V, ActiveGroups rows, int64_t begin, int64_t end,
                      double* out, int64_t per_column) {
  constexpr int kWidth = K < kTogether ? K : kTogether, kTurns = K / kWidth;
  constexpr int64_t kStep = kTurns == 1 ? kChunk : kPiece;
  Pack lanes[kTurns][C][kWidth];
  for (int k = 0; k < K; ++k)
    for (int c = 0; c < C; ++c) lanes[k / kWidth][c][k % kWidth] = zero();
  for (int64_t i = begin; i < end; i += kStep)
    for (int turn = 0; turn < kTurns; ++turn) {
      const int64_t stop = i + kStep < end ? i + kStep : end;
      const Vectors part{V.data + turn * kWidth * kLanes, V.count};
      if (rows.groups) add_listed(x, part, rows, i, stop, lanes[turn]);
      else add_rows(x, part, i, stop, turn, kTurns, lanes[turn]);
    }
  for (int c = 0; c < C; ++c)
    for (int k = 0; k < K; ++k)
      out[c * per_column + k] += sum(lanes[k / kWidth][c][k % kWidth]);
}

template <int C, int K, class T>
inline void add_chunks(const T* const* x, Vectors V, ActiveGroups rows, int64_t begin, int64_t end,
                       double* out, int64_t per_column) {
  for (int64_t i = begin; i < end; i += kChunk)
    add_chunk<C, K>(x, V, rows, i, i + kChunk < end ? i + kChunk : end, out, per_column);
}

// A few columns go through one stretch of V after another, so that V is read from cache. With one
// vector the stretch may be long, which interrupts the processor's own prefetching less; columns
// no longer than kShort bytes go one at a time, since one after the other they are one long read.
constexpr int64_t kTile = 128;
constexpr int64_t kLongStretch = 8 * kChunk;
constexpr int64_t kShort = 2 * kPage;

template <class T>
void dots_of(const Dense<T>& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out) {
  const int64_t stretch = V.count == 1 ? kLongStretch : kChunk;
  const bool one_at_a_time = X.n * static_cast<int64_t>(sizeof(T)) <= kShort;
  const T* x[kTile + kColumns];  // after the columns of the tile: where its next stretch begins
  for (int64_t first = columns.first; first < columns.last; first += kTile) {
    const int64_t count = first + kTile < columns.last ? kTile : columns.last - first;
    for (int64_t c = 0; c < count; ++c) x[c] = X.column(columns[first + c]);
    for (int64_t c = 0; c < kColumns; ++c) x[count + c] = x[c < count ? c : 0] + stretch;
    double* products = out + first * V.count;
    for (int64_t p = 0; p < count * V.count; ++p) products[p] = 0.0;
    for (int64_t begin = 0; begin < X.n; begin += stretch) {
      const int64_t end = begin + stretch < X.n ? begin + stretch : X.n;
      for_each_part(V.count, [&](auto together, int64_t k) {
        constexpr int K = decltype(together)::value;
        const Vectors part{V.data + k * kLanes, V.count};
        int64_t c = 0;
        const auto add = [&](auto columns_together) {
          constexpr int C = decltype(columns_together)::value;
          for (; c + C <= count; c += C)
            add_chunks<C, K>(x + c, part, rows, begin, end, products + c * V.count + k, V.count);
        };
        if (K > 1 || !one_at_a_time) add(Number<kColumns>{});
        add(Number<1>{});
      });
    }
  }
}

template <class T>
Moments moments_of(const Dense<T>& X, int64_t j, const double* e) {
  const T* x = X.column(j);
  Moments result{0.0, 0.0, 0};
  for (int64_t begin = 0; begin < X.n; begin += kChunk) {
    const int64_t end = begin + kChunk < X.n ? begin + kChunk : X.n;
    Pack one = zero(), two = zero();
    PartMask stored = {};
    for (int64_t i = begin; i < end; i += kLanes) {
      const int64_t left = end - i;
      Pack f = left >= kLanes ? load(x + i) : load_some(x + i, left);
      Pack weight = zero();
      if (e) weight = left >= kLanes ? load(e + i) : load_some(e + i, left);
      for (int p = 0; p < kParts; ++p) {
        Part& a = f.part[p];
        stored -= a != 0;
        if (e) a *= weight.part[p];
        one.part[p] += a < 0 ? -a : a;
        two.part[p] += a * a;
      }
    }
    result.norm1 += sum(one);
    result.squares += sum(two);
    for (int l = 0; l < kWidth; ++l) result.nonzeros += stored[l];
  }
  return result;
}

// ---- sparse -----------------------------------------------------------------------------------

template <int K, class T, class I>
inline void add_entry(const T* x, const I* row, Vectors V, double* sum) {
  const double* v = V.data + static_cast<int64_t>(*row) * V.count;
  const double f = static_cast<double>(*x);
  for (int k = 0; k < K; ++k) sum[k] += f * v[k];
}

// Adds a chunk: in lanes, and what does not fill them, or all of a few, one after the other.
template <int K, class T, class I>
inline void add_entries(const T* x, const I* row, int64_t count, Vectors V, double* total) {
  double sum[K] = {};
  int64_t p = 0;
  if (count >= kFew) {
    double a[K] = {}, b[K] = {}, c[K] = {}, d[K] = {};
    for (; p + kSparseLanes <= count; p += kSparseLanes) {
      add_entry<K>(x + p, row + p, V, a);
      add_entry<K>(x + p + 1, row + p + 1, V, b);
      add_entry<K>(x + p + 2, row + p + 2, V, c);
      add_entry<K>(x + p + 3, row + p + 3, V, d);
    }
    for (int k = 0; k < K; ++k) sum[k] = (a[k] + c[k]) + (b[k] + d[k]);
  }
  for (; p < count; ++p) add_entry<K>(x + p, row + p, V, sum);
  for (int k = 0; k < K; ++k) total[k] += sum[k];
}

template <int K, class T, class I>
inline void add_column(const Csc<T, I>& X, int64_t j, Vectors V, double* total) {
  for (int64_t p = X.indptr[j], end = X.indptr[j + 1]; p < end; p += kChunk)
    add_entries<K>(X.data + p, X.indices + p, end - p < kChunk ? end - p : kChunk, V, total);
}

// Rows with v = 0 cost no more than the look at them, so the active groups are not used.
template <class T, class I>
void dots_of(const Csc<T, I>& X, ColumnRange columns, Vectors V, ActiveGroups, double* out) {
  if (V.count == 1) {  // by itself: twice as fast on short columns
    for (int64_t position = columns.first; position < columns.last; ++position) {
      double product = 0.0;
      add_column<1>(X, columns[position], {V.data, 1}, &product);
      out[position] = product;
    }
    return;
  }
  for (int64_t position = columns.first; position < columns.last; ++position) {
    double* products = out + position * V.count;
    for (int64_t k = 0; k < V.count; ++k) products[k] = 0.0;
    for_each_part(V.count, [&](auto together, int64_t k) {
      add_column<decltype(together)::value>(X, columns[position], {V.data + k, V.count},
                                            products + k);
    });
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
  add_chunks<1, 1>(&a, {b, 1}, {nullptr, nullptr}, 0, n, &total, 1);
  return total;
}

// Element by element there is no order to keep; the multiply-adds are not fused.
void axpy(double t, const double* __restrict x, double* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += t * x[i];
}

void eliminate(double s, double t, double* __restrict a, double* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    x[i] -= s * a[i];
    a[i] += t * x[i];
  }
}

inline Part magnitude(Part x) { return x < 0 ? -x : x; }
inline Part larger(Part x, Part y) { return x > y ? x : y; }

// In lanes within chunks as a product, without fused multiply-adds: the same bits on every processor.
Rest rest_of(double a, const double* p, double b, const double* q, double c, const double* r,
             int64_t n) {
  Part squares[kParts], largest[kParts] = {}, size[kParts] = {};
  const auto add = [&](int part, Part x, Part y, Part z) {
    const Part ax = a * x, by = b * y, cz = c * z, rest = ax - by - cz;
    squares[part] += rest * rest;
    largest[part] = larger(magnitude(rest), largest[part]);
    size[part] = larger(larger(magnitude(ax), magnitude(by)), larger(magnitude(cz), size[part]));
  };
  const auto add_lanes = [&](const double* x, const double* y, const double* z) {
    for (int part = 0; part < kParts; ++part) {
      const int at = part * kWidth;
      add(part, load_part(x + at), load_part(y + at), load_part(z + at));
    }
  };
  Rest all{0.0, 0.0, 0.0};
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = std::min(n, begin + kChunk);
    std::fill(squares, squares + kParts, Part{});
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) add_lanes(p + i, q + i, r + i);
    if (i < end) {
      double last[3][kLanes] = {};  // the lanes beyond the end are zero
      std::copy(p + i, p + end, last[0]);
      std::copy(q + i, q + end, last[1]);
      std::copy(r + i, r + end, last[2]);
      add_lanes(last[0], last[1], last[2]);
    }
    double chunk = 0.0;
    for (int lane = 0; lane < kLanes; ++lane) chunk += squares[lane / kWidth][lane % kWidth];
    all.squares += chunk;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    all.largest = std::max(all.largest, largest[lane / kWidth][lane % kWidth]);
    all.size = std::max(all.size, size[lane / kWidth][lane % kWidth]);
  }
  return all;
}

#define SIEVE_INSTANTIATE(...)                                                               \
  template void dots(const __VA_ARGS__&, ColumnRange, Vectors, ActiveGroups, double*);       \
  template Moments moments(const __VA_ARGS__&, int64_t, const double*);
#define SIEVE_INSTANTIATE_VALUE(T) SIEVE_FOR_EACH_VIEW_OF(T, SIEVE_INSTANTIATE)
SIEVE_FOR_EACH_VALUE_TYPE(SIEVE_INSTANTIATE_VALUE)

}  // namespace SIEVE_ISA
}  // namespace sieve
