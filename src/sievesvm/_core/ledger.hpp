// What is known of every feature along a path: its last product, with which vector beta_r that
// was made, and the last grid point up to which a rule has discarded it.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bounds.hpp"
#include "dispatch.hpp"

namespace sieve {

// The statistics of the columns; v is the factor a product is compared with.
struct FeatureTable {
  const double *m, *gamma, *norm1, *norm2, *v;
  int64_t count;
};

class Ledger {
 public:
  static constexpr int32_t kSettled = -1;  // in the working set, or left out: nothing to prove

  Ledger(FeatureTable features, const double* s, int64_t n, double e_m, double e_gamma)
      : features_(features), s_(s, s + n), ss_(dot(s, s, n)), e_m_(e_m), e_gamma_(e_gamma),
        zeta_(features.count, 0.0), reference_(features.count, kSettled),
        discarded_(features.count, -1) {}

  // A vector p that products are made with from now on; e_zeta is their error for a unit column.
  int32_t add_vector(const double* p, double e_zeta) {
    const int64_t n = static_cast<int64_t>(s_.size());
    vectors_.push_back({{p, p + n}, dot(s_.data(), p, n), dot(p, p, n), e_zeta, 0});
    return static_cast<int32_t>(vectors_.size()) - 1;
  }

  void record(int64_t j, double zeta, int32_t vector) {
    forget(j);
    zeta_[j] = zeta;
    reference_[j] = vector;
    ++vectors_[vector].members;
  }

  // Takes j out of the features to be proved: it joined the working set.
  void forget(int64_t j) {
    if (reference_[j] == kSettled) return;
    Vector& before = vectors_[reference_[j]];
    if (--before.members == 0) before.p = {};
    reference_[j] = kSettled;
  }

  void discard(int64_t j, int64_t until) { discarded_[j] = std::max(discarded_[j], until); }

  // The features that a discard covers at grid point k.
  std::vector<int64_t> discarded(int64_t k) const {
    std::vector<int64_t> found;
    for (int64_t j = 0; j < features_.count; ++j)
      if (discarded_[j] >= k) found.push_back(j);
    return found;
  }

  struct Count {
    int64_t bounds, discards;
  };

  // The features for which neither a discard at grid point k nor a bound proves
  // |g_j'theta| <= v_j for theta within `ball` of tau p.
  Count pending(int64_t k, const double* p, double tau, double ball, std::vector<int64_t>& left) {
    std::vector<Reference> views(vectors_.size());
    for (size_t r = 0; r < vectors_.size(); ++r)
      if (vectors_[r].members > 0) views[r] = view(vectors_[r], p, tau, ball);
    Count count{0, 0};
    for (int64_t j = 0; j < features_.count; ++j) {
      if (reference_[j] == kSettled) continue;
      const Feature f{features_.m[j], zeta_[j], features_.gamma[j], features_.norm2[j]};
      if (reference_bound(views[reference_[j]], f, features_.norm1[j]) <= features_.v[j])
        ++count.bounds;
      else if (discarded_[j] >= k)
        ++count.discards;
      else
        left.push_back(j);
    }
    return count;
  }

 private:
  struct Vector {
    std::vector<double> p;
    double sp, pp, e_zeta;
    int64_t members;
  };

  // tau p = c0 s + c1 p_r + rest, by least squares.
  Reference view(const Vector& known, const double* p, double tau, double ball) const {
    const int64_t n = static_cast<int64_t>(s_.size());
    const double* r = known.p.data();
    const double st = tau * dot(s_.data(), p, n), rt = tau * dot(r, p, n);
    const double det = ss_ * known.pp - known.sp * known.sp;
    double c0 = 0.0, c1 = known.pp > 0 ? rt / known.pp : 0.0;
    if (det > 1e-10 * ss_ * known.pp) {
      c0 = (st * known.pp - rt * known.sp) / det;
      c1 = (rt * ss_ - st * known.sp) / det;
    }
    double squares = 0.0, largest = 0.0, size = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double a = tau * p[i], b = c0 * s_[i], c = c1 * r[i], rest = a - b - c;
      squares += rest * rest;
      largest = std::max(largest, std::fabs(rest));
      size = std::max(size, std::max(std::fabs(a), std::max(std::fabs(b), std::fabs(c))));
    }
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * size;
    const double e_two = std::sqrt(squares) * (1 + e_gamma_) + rounding * std::sqrt(double(n));
    return {c0, c1, e_two, largest + rounding, ball, e_m_, known.e_zeta, e_gamma_};
  }

  FeatureTable features_;
  std::vector<double> s_;
  double ss_, e_m_, e_gamma_;
  std::vector<double> zeta_;
  std::vector<int32_t> reference_;
  std::vector<int64_t> discarded_;
  std::vector<Vector> vectors_;
};

}  // namespace sieve
