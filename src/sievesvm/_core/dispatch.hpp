// Chooses the kernels for the processor at hand, once, and lays out their right-hand sides.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace sieve {

enum class Isa { base, avx2, avx512 };

inline bool supported(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return isa == Isa::base;
}

inline Isa& isa_in_use() {
  static Isa isa = supported(Isa::avx512) ? Isa::avx512
                   : supported(Isa::avx2) ? Isa::avx2
                                          : Isa::base;
  return isa;
}

template <class View>
void dots(const View& X, ColumnRange columns, Vectors V, ActiveGroups rows, double* out) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::dots(X, columns, V, rows, out);
    case Isa::avx2: return avx2::dots(X, columns, V, rows, out);
    case Isa::base: return base::dots(X, columns, V, rows, out);
  }
}

template <class View>
Moments moments(const View& X, int64_t j, const double* e) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::moments(X, j, e);
    case Isa::avx2: return avx2::moments(X, j, e);
    case Isa::base: break;
  }
  return base::moments(X, j, e);
}

inline double dot(const double* a, const double* b, int64_t n) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::dot(a, b, n);
    case Isa::avx2: return avx2::dot(a, b, n);
    case Isa::base: break;
  }
  return base::dot(a, b, n);
}

inline Rest rest_of(double a, const double* p, double b, const double* q, double c, const double* r,
                    int64_t n) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::rest_of(a, p, b, q, c, r, n);
    case Isa::avx2: return avx2::rest_of(a, p, b, q, c, r, n);
    case Isa::base: break;
  }
  return base::rest_of(a, p, b, q, c, r, n);
}

// ||a|| without overflow or underflow of the squares.
inline double norm(const double* a, int64_t n) {
  const double squares = dot(a, a, n);
  if (squares > 1e-240 && squares < 1e240) return std::sqrt(squares);
  double size = 0.0;
  for (int64_t i = 0; i < n; ++i) size = std::max(size, std::fabs(a[i]));
  if (!(size > 0) || std::isinf(size) || std::isnan(squares)) return std::sqrt(squares);
  std::vector<double> scaled(a, a + n);
  const double unit = std::ldexp(1.0, std::ilogb(size));
  for (double& x : scaled) x /= unit;
  return std::sqrt(dot(scaled.data(), scaled.data(), n)) * unit;
}

inline void axpy(double t, const double* x, double* y, int64_t n) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::axpy(t, x, y, n);
    case Isa::avx2: return avx2::axpy(t, x, y, n);
    case Isa::base: return base::axpy(t, x, y, n);
  }
}

inline void eliminate(double s, double t, double* a, double* x, int64_t n) {
  switch (isa_in_use()) {
    case Isa::avx512: return avx512::eliminate(s, t, a, x, n);
    case Isa::avx2: return avx2::eliminate(s, t, a, x, n);
    case Isa::base: return base::eliminate(s, t, a, x, n);
  }
}

// The vectors of a product, given as a table of n rows with `count` numbers each, laid out as the
// columns want them. Where leaving out rows on which all vectors are zero pays, it is prepared.
class RightHandSides {
 public:
  template <class T>
  RightHandSides(const Dense<T>& X, const double* table, int64_t count) : vectors_{table, count} {
    list_active(X.n, table);
    if (count > 1) interleave(X.n, table);
  }
  template <class T, class I>
  RightHandSides(const Csc<T, I>&, const double* table, int64_t count) : vectors_{table, count} {}

  Vectors vectors() const { return vectors_; }
  ActiveGroups rows() const {
    if (offsets_.empty()) return {nullptr, nullptr};
    return {groups_.data(), offsets_.data()};
  }

 private:
  static constexpr double kWorthSkipping = 0.7;

  void list_active(int64_t n, const double* table) {
    groups_.push_back(0);  // so that the address of the list is never null
    for (int64_t begin = 0; begin < n; begin += kLanes) {
      if (begin % kPiece == 0) offsets_.push_back(static_cast<int64_t>(groups_.size()));
      const double* first = table + begin * vectors_.count;
      const double* last = table + std::min(n, begin + kLanes) * vectors_.count;
      if (std::any_of(first, last, [](double v) { return v != 0; }))
        groups_.push_back(static_cast<int32_t>(begin / kLanes));
    }
    offsets_.push_back(static_cast<int64_t>(groups_.size()));
    if (static_cast<double>(groups_.size() - 1) * kLanes > kWorthSkipping * static_cast<double>(n))
      offsets_.clear();
  }

  // The first address from `begin` on that starts a cache line: no load is split over two.
  static double* aligned(double* begin) {
    constexpr uintptr_t kBytes = kLanes * sizeof(double);
    const uintptr_t address = reinterpret_cast<uintptr_t>(begin);
    return reinterpret_cast<double*>((address + kBytes - 1) / kBytes * kBytes);
  }

  void interleave(int64_t n, const double* table) {
    const int64_t count = vectors_.count;
    table_.resize((n + kLanes - 1) / kLanes * kLanes * count + kLanes);
    double* lanes = aligned(table_.data());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < count; ++k)
        lanes[(i / kLanes * count + k) * kLanes + i % kLanes] = table[i * count + k];
    vectors_.data = lanes;
  }

  Vectors vectors_;
  std::vector<double> table_;
  std::vector<int32_t> groups_;
  std::vector<int64_t> offsets_;
};

}  // namespace sieve
