// How far a dual point is from an exactly feasible one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"

namespace sieve {

// The symmetric matrix G of a few orthonormal vectors restricted to some rows: G = L L'.
class SmallFactor {
 public:
  explicit SmallFactor(std::vector<double> G, int64_t size) : size_(size), L_(std::move(G)) {
    for (int64_t a = 0; a < size; ++a)
      for (int64_t b = 0; b <= a; ++b) {
        double sum = at(a, b);
        for (int64_t k = 0; k < b; ++k) sum -= at(a, k) * at(b, k);
        at(a, b) = a == b ? std::sqrt(sum) : sum / at(b, b);  // NaN if G is not positive
      }
  }

  void solve(std::vector<double>& t) const {
    for (int64_t a = 0; a < size_; ++a) {
      for (int64_t k = 0; k < a; ++k) t[a] -= at(a, k) * t[k];
      t[a] /= at(a, a);
    }
    for (int64_t a = size_ - 1; a >= 0; --a) {
      for (int64_t k = a + 1; k < size_; ++k) t[a] -= at(k, a) * t[k];
      t[a] /= at(a, a);
    }
  }

  // At most the smallest eigenvalue of G: 1 / trace of its inverse.
  double smallest() const {
    double trace = 0.0;
    for (int64_t a = 0; a < size_; ++a) {
      std::vector<double> unit(size_, 0.0);
      unit[a] = 1.0;
      solve(unit);
      trace += unit[a];
    }
    return 1.0 / trace;
  }

 private:
  double& at(int64_t a, int64_t b) { return L_[a * size_ + b]; }
  double at(int64_t a, int64_t b) const { return L_[a * size_ + b]; }
  int64_t size_;
  std::vector<double> L_;
};

struct Distance {
  double off;
  bool found;  // false: the rows left do not determine the correction
};

// Bound on the distance from p = T beta to a point a in the range of T with y a >= 0, T being the
// projection off the `rank` orthonormal rows of Q.
//
// a = beta less its part in the span, restricted to the rows that `inside` names. Rows that this
// would make negative are left out there, and it is done again. `error` bounds the rounding of a
// sum, relative to the norms.
inline Distance distance_to_feasible(const double* beta, const double* p, const double* y,
                                     const double* Q, int64_t rank, int64_t n, double error,
                                     bool* inside) {
  constexpr int kDrops = 20;
  constexpr double kRank = 1e-12;  // of the smallest eigenvalue; 1 where all rows are inside
  std::vector<double> a(n), masked(n);
  const auto length = [&](const std::vector<double>& t) {
    return norm(t.data(), static_cast<int64_t>(t.size()));
  };
  for (int drop = 0; drop < kDrops; ++drop) {
    std::vector<double> G(rank * rank), t(rank);
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t i = 0; i < n; ++i) masked[i] = inside[i] ? Q[k * n + i] : 0.0;
      for (int64_t l = 0; l < rank; ++l) G[l * rank + k] = dot(masked.data(), Q + l * n, n);
    }
    const SmallFactor factor(std::move(G), rank);
    const double smallest = rank > 0 ? factor.smallest() : 1.0;
    if (!(smallest > kRank)) return {0.0, false};
    for (int64_t i = 0; i < n; ++i) a[i] = inside[i] ? beta[i] : 0.0;
    for (int again = 0; again < 2; ++again) {  // once more removes what the first time left
      for (int64_t k = 0; k < rank; ++k) t[k] = dot(Q + k * n, a.data(), n);
      factor.solve(t);
      for (int64_t k = 0; k < rank; ++k)
        for (int64_t i = 0; i < n; ++i) a[i] -= inside[i] ? t[k] * Q[k * n + i] : 0.0;
    }
    for (int64_t k = 0; k < rank; ++k) t[k] = dot(Q + k * n, a.data(), n);
    // a is this close to the exactly feasible point
    const double left = rank > 0 ? (length(t) + error * length(a)) / std::sqrt(smallest) : 0.0;
    bool positive = true;
    for (int64_t i = 0; i < n; ++i) {
      if (!inside[i] || y[i] * a[i] > left) continue;
      positive = inside[i] = false;
    }
    if (positive) {
      for (int64_t i = 0; i < n; ++i) a[i] -= p[i];
      return {length(a) + left, true};
    }
  }
  return {0.0, false};
}

}  // namespace sieve
