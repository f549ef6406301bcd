// The two shapes a column can have in memory: n values in a row, or (row, value) pairs.
// Everything else in the core is a template over these views.
#pragma once
#include <cstdint>

namespace sieve {

template <class T>
struct Dense {
  using value_type = T;
  const T* data;
  int64_t n, m;
  int64_t stride;  // elements from one column to the next; may be negative

  const T* column(int64_t j) const { return data + j * stride; }
  int64_t entries(int64_t) const { return n; }
  int64_t all_entries() const { return n * m; }
};

// Invariant (Columns::order_fault checks it): in every column the row numbers
// are strictly increasing and lie in [0, n).
template <class T, class I>
struct Csc {
  using value_type = T;
  const T* data;
  const I* indices;
  const I* indptr;  // m + 1 offsets
  int64_t n, m;

  int64_t entries(int64_t j) const { return indptr[j + 1] - indptr[j]; }
  int64_t all_entries() const { return indptr[m]; }
};

// Calls visit(row, value) for every stored entry of column j, in storage order.
template <class T, class Visit>
inline void for_each_entry(const Dense<T>& X, int64_t j, Visit visit) {
  const T* x = X.column(j);
  for (int64_t i = 0; i < X.n; ++i) visit(i, static_cast<double>(x[i]));
}

template <class T, class I, class Visit>
inline void for_each_entry(const Csc<T, I>& X, int64_t j, Visit visit) {
  for (int64_t p = X.indptr[j]; p < X.indptr[j + 1]; ++p)
    visit(static_cast<int64_t>(X.indices[p]), static_cast<double>(X.data[p]));
}

#define SIEVE_FOR_EACH_VALUE_TYPE(DO) \
  DO(double) DO(float) DO(int8_t) DO(uint8_t) DO(int16_t) DO(uint16_t) DO(int32_t) DO(int64_t)

#define SIEVE_FOR_EACH_VIEW_OF(T, DO) DO(Dense<T>) DO(SIEVE_ARG(Csc<T, int32_t>)) DO(SIEVE_ARG(Csc<T, int64_t>))
#define SIEVE_ARG(...) __VA_ARGS__

}  // namespace sieve
