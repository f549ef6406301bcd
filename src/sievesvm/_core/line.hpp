// The exact minimiser over t of 1/2 sum_i c_i max(0, r_i - t a_i)^2.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace sieve {

struct Line {
  const double *r, *a, *c;  // c = nullptr: all ones
  int64_t n;
};

struct Slope {
  double force;      // F(t) = sum c a (r - t a)_+, decreasing in t; zero at the minimum
  double curvature;  // sum of c a^2 over the rows with r - t a > 0
  int64_t flips;     // rows that are active at t or at `before`, not at both
};

inline Slope slope(const Line& L, double t, double before) {
  Slope s{0.0, 0.0, 0};
  for (int64_t i = 0; i < L.n; ++i) {
    const double a = L.a[i], c = L.c ? L.c[i] : 1.0, ca = c * a;
    const double gap = L.r[i] - t * a;
    const bool active = gap > 0 && ca != 0;
    s.force += active ? ca * gap : 0.0;
    s.curvature += active ? ca * a : 0.0;
    s.flips += active != (L.r[i] - before * a > 0 && ca != 0);
  }
  return s;
}

// Where no row is active every t of an interval is a minimiser: its middle, or its finite end.
inline double middle_of_flat(const Line& L, double t) {
  const double inf = std::numeric_limits<double>::infinity();
  double low = -inf, high = inf;
  for (int64_t i = 0; i < L.n; ++i) {
    const double a = L.a[i];
    if (a == 0 || (L.c && L.c[i] == 0)) continue;
    if (a > 0) low = std::fmax(low, L.r[i] / a);
    if (a < 0) high = std::fmin(high, L.r[i] / a);
  }
  if (low > -inf && high < inf) return low + 0.5 * (high - low);
  return low > -inf ? low : high < inf ? high : t;
}

// Newton steps on the piecewise linear F, each O(n), kept inside a bracket. On the last piece a
// Newton step is exact; one more removes what rounding left.
inline double line_minimum(const Line& L, double start) {
  constexpr int kMaxSteps = 2200;  // bisection alone needs fewer between any two doubles
  const double inf = std::numeric_limits<double>::infinity();
  double low = -inf, high = inf, t = start, width = inf;
  int slow = 0;
  Slope s = slope(L, t, t);
  for (int step = 0; step < kMaxSteps; ++step) {
    if (s.curvature == 0) return middle_of_flat(L, t);
    if (s.force > 0) low = t;
    if (s.force < 0) high = t;
    if (s.force == 0) return t;
    slow = high - low > 0.5 * width ? slow + 1 : 0;
    if (slow == 0) width = high - low;
    double next = t + s.force / s.curvature;
    const bool newton = next > low && next < high && slow < 3;
    if (!newton) {
      if (high - low == inf) return next;  // a rounding error away from the root
      next = low + 0.5 * (high - low);
      slow = 0;
      width = high - low;
    }
    if (next == t || next == low || next == high) return t;
    s = slope(L, next, t);
    if (newton && s.flips == 0) return s.curvature > 0 ? next + s.force / s.curvature : next;
    t = next;
  }
  return t;
}

}  // namespace sieve
