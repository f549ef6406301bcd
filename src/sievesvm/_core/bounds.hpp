// Upper bounds on |f'theta| for one feature in O(1), from products made before.
//
// Every bound is an upper bound in exact arithmetic too: each quantity enters with the largest
// value its rounding error allows (norms, radius) or the smallest (the product with the cut).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sieve {

// What is known of one feature: its products with s and with beta, the distance gamma to the span
// of the intercept and the unpenalised columns, its norm. e_zeta: where zeta was not computed but
// bounded, how far it can be from that, beside the error of a product.
struct Feature {
  double m, zeta, gamma, norm2, e_zeta;
};

// The region { tau beta + d : ||d - q|| <= radius, h'd <= kappa } with g'q = q_m m + q_z zeta and
// g'h = h_m m + h_z zeta + h_x extra. radius, h_norm >= ||h|| and offset >= kappa - h'q are upper
// bounds; h_norm = 0 means no cut. The e_ are errors of m, zeta, extra and gamma for a column of
// norm one. The order of the fields is that of sievesvm.screening.Region.
struct Region {
  double tau, q_m, q_z, radius;
  double h_m, h_z, h_x, h_norm, offset;
  double e_m, e_zeta, e_extra, e_gamma;
};
constexpr int64_t kRegionFields = sizeof(Region) / sizeof(double);

// max { g'd : ||d|| <= R, h'd <= c }, by the dual: R ||g - (mu/H) h|| + mu c/H bounds it for every
// mu >= 0, and no rounding of the best mu makes it too low. gh is below g'h by some ulps of H gamma
// at least, the other arguments are upper bounds. All is relative to gamma, R and H, so that nothing
// overflows.
inline double ball_cut_by_halfspace(double gh, double gamma, double R, double H, double c) {
  constexpr double kLargestMu = 1e7;  // where the cut all but empties the ball
  constexpr double kUlps = 8 * std::numeric_limits<double>::epsilon();
  const double whole = R * gamma;
  if (H == 0 || whole == 0) return whole;
  const double nu = gh / H / gamma, psi = c / H / R;
  double mu = 0.0;
  if (psi < 1) {
    const double g_across = std::sqrt(std::max((1 - nu) * (1 + nu), 0.0));
    const double d_across = std::sqrt(std::max((1 - psi) * (1 + psi), 0.0));
    mu = d_across > 0 ? nu - psi * g_across / d_across : kLargestMu;
    mu = std::min(std::max(mu, 0.0), kLargestMu);
  }
  const double length = std::sqrt((1 - mu) * (1 - mu) + 2 * mu * std::max(1 - nu, 0.0));
  return whole * (length + mu * psi + kUlps * (1 + mu + mu * std::fabs(psi)));
}

// An upper bound of |f'theta| over the region. One product serves f and -f. NaN if any input is.
inline double region_bound(const Region& K, const Feature& f, double extra) {
  const double along = K.tau + K.q_z;
  const double centre = along * f.zeta + K.q_m * f.m;
  const double e_zeta = f.norm2 * K.e_zeta + f.e_zeta;
  const double e_centre = std::fabs(along) * e_zeta + f.norm2 * std::fabs(K.q_m) * K.e_m;
  const double gh = K.h_m * f.m + K.h_z * f.zeta + K.h_x * extra;
  const double e_gh = std::fabs(K.h_z) * e_zeta +
                      f.norm2 * (std::fabs(K.h_m) * K.e_m + std::fabs(K.h_x) * K.e_extra);
  const double gamma = f.gamma + K.e_gamma * f.norm2;
  const double up = centre + ball_cut_by_halfspace(gh - e_gh, gamma, K.radius, K.h_norm, K.offset);
  const double down =
      -centre + ball_cut_by_halfspace(-gh - e_gh, gamma, K.radius, K.h_norm, K.offset);
  if (std::isnan(up) || std::isnan(down)) return std::numeric_limits<double>::quiet_NaN();
  return std::max(up, down) + e_centre;
}

// The last of the regions, counted from 0, up to which all bounds are below v; -1: none. The bounds
// are quasi-convex along the regions (theorem C), so bisection finds it.
inline int64_t last_below(const Region* regions, int64_t count, const Feature& f, double extra,
                          double v) {
  auto below = [&](int64_t k) { return region_bound(regions[k], f, extra) < v; };
  if (count == 0 || !below(0)) return -1;
  int64_t good = 0, bad = count;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (below(middle) ? good : bad) = middle;
  }
  return good;
}

// theta = c0 s + c1 beta_r + rest, with ||rest|| <= e_two and |rest_i| <= e_inf, and any point
// within `ball` of it:
//   |f'theta| <= |c1 zeta_r + c0 m| + min(gamma ||rest||_2, ||f||_1 ||rest||_inf) + gamma ball.
// The order of the fields is that of sievesvm.screening.Reference.
struct Reference {
  double c0, c1, e_two, e_inf, ball;
  double e_m, e_zeta, e_gamma;
};
constexpr int64_t kReferenceFields = sizeof(Reference) / sizeof(double);

inline double reference_bound(const Reference& r, const Feature& f, double norm1) {
  const double known = std::fabs(r.c1 * f.zeta + r.c0 * f.m);
  const double error = f.norm2 * (std::fabs(r.c1) * r.e_zeta + std::fabs(r.c0) * r.e_m);
  const double gamma = f.gamma + r.e_gamma * f.norm2;
  const double rest = std::min(gamma * r.e_two, (norm1 + r.e_gamma * norm1) * r.e_inf);
  return known + error + rest + gamma * r.ball;
}

}  // namespace sieve
