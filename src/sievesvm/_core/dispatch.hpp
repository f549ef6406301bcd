// Chooses the kernels for the processor at hand, once, and lays out their right-hand sides.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace sieve {

enum class Isa { base, avx2, avx512 };

inline bool supported(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2");
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

// Dense columns want the vectors one after the other, sparse ones side by side.
template <class T>
Vectors right_hand_sides(const Dense<T>& X, const double* data, int64_t count) {
  return {data, count, 1, X.n};
}
template <class T, class I>
Vectors right_hand_sides(const Csc<T, I>&, const double* data, int64_t count) {
  return {data, count, count, 1};
}

// The groups of rows on which some right-hand side is not zero, if leaving the others out pays.
class RowSkipper {
 public:
  template <class T>
  RowSkipper(const Dense<T>& X, Vectors V) {
    const int64_t all = (X.n + kGroup - 1) / kGroup;
    if (all < 4) return;
    std::vector<bool> active(all);
    int64_t count = 0;
    for (int64_t g = 0; g < all; ++g) {
      active[g] = any_nonzero(V, g * kGroup, std::min(X.n, (g + 1) * kGroup));
      count += active[g];
    }
    if (count > kWorthSkipping * all) return;
    offsets_.push_back(0);
    for (int64_t begin = 0; begin < all; begin += kChunk / kGroup)
      for (int64_t parity = 0; parity < 2; ++parity) {
        for (int64_t g = begin + parity; g < std::min(all, begin + kChunk / kGroup); g += 2)
          if (active[g]) groups_.push_back(static_cast<int32_t>(g));
        offsets_.push_back(static_cast<int64_t>(groups_.size()));
      }
    groups_.push_back(0);  // so that the address is never null, even with no active group
  }
  template <class T, class I>
  RowSkipper(const Csc<T, I>&, Vectors) {}

  ActiveGroups groups() const {
    return groups_.empty() ? ActiveGroups{nullptr, nullptr}
                           : ActiveGroups{groups_.data(), offsets_.data()};
  }

 private:
  static constexpr double kWorthSkipping = 0.7;

  static bool any_nonzero(Vectors V, int64_t begin, int64_t end) {
    for (int64_t k = 0; k < V.count; ++k)
      for (int64_t i = begin; i < end; ++i)
        if (V.data[i * V.row + k * V.vector] != 0) return true;
    return false;
  }

  std::vector<int32_t> groups_;
  std::vector<int64_t> offsets_;
};

}  // namespace sieve
