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

// What is known of one feature: products with s and beta, distance gamma to the span of the
// unpenalised columns, weighted norms.
struct Feature {
  double m, zeta, gamma, norm2;
};

// The region { tau beta + d : ||d - q|| <= radius, h'd <= kappa }, with q and h in the complement
// of the unpenalised columns and g'q = q_m m + q_z zeta, g'h = h_m m + h_z zeta + h_x extra.
// radius, h_norm and offset = kappa - h'q are upper bounds; h_norm = 0 means no cut.
// The field order is that of sievesvm.screen.Region.
struct Region {
  double tau, q_m, q_z, radius;
  double h_m, h_z, h_x, h_norm, offset;
  double G;                             // relative error of a sum
  double e_norm, beta_norm, extra_norm; // the vectors behind m, zeta and extra
};
constexpr int64_t kRegionFields = sizeof(Region) / sizeof(double);

// Errors of the products, for a column of norm N.
struct ProductErrors {
  double m, zeta, extra, gamma;
  ProductErrors(const Region& K, double N)
      : m(2 * K.G * N * K.e_norm),
        zeta(K.G * N * K.beta_norm),
        extra(2 * K.G * N * K.extra_norm),
        gamma(4 * K.G * N) {}
};

// max { g'd : ||d|| <= R, h'd <= c } <= R ||g - (mu/H) h|| + mu c / H for every mu >= 0.
// gh is a lower bound of g'h, the others upper bounds; mu is the best one up to rounding.
inline double ball_cut_by_halfspace(double gh, double gamma, double R, double H, double c) {
  constexpr double kLargestMu = 1e7;  // times gamma: where the cut all but empties the ball
  constexpr double kUlps = 8 * std::numeric_limits<double>::epsilon();
  if (!(H > 0)) return R * gamma;
  const double nu = gh / H, psi = c / H;
  double mu = 0.0;
  if (psi < R) {
    const double g_across = std::sqrt(std::max(gamma * gamma - nu * nu, 0.0));
    const double d_across = std::sqrt(std::max(R * R - psi * psi, 0.0));
    mu = d_across > 0 ? nu - psi * g_across / d_across : psi > 0 ? nu : kLargestMu * gamma;
    mu = std::min(std::max(mu, 0.0), kLargestMu * gamma);
  }
  const double slack = std::max(gamma - nu, 0.0);
  const double length = std::sqrt((gamma - mu) * (gamma - mu) + 2 * mu * slack);
  return R * length + mu * psi + kUlps * (R * (gamma + mu) + mu * std::fabs(psi));
}

// An upper bound of |f'theta| over the region. One product serves f and -f.
inline double region_bound(const Region& K, const Feature& f, double extra) {
  const ProductErrors error(K, f.norm2);
  const double along = K.tau + K.q_z;
  const double centre = along * f.zeta + K.q_m * f.m;
  const double e_centre = std::fabs(along) * error.zeta + std::fabs(K.q_m) * error.m;
  const double gh = K.h_m * f.m + K.h_z * f.zeta + K.h_x * extra;
  const double e_gh = std::fabs(K.h_m) * error.m + std::fabs(K.h_z) * error.zeta +
                      std::fabs(K.h_x) * error.extra;
  const double gamma = f.gamma + error.gamma;
  const double up = centre + ball_cut_by_halfspace(gh - e_gh, gamma, K.radius, K.h_norm, K.offset);
  const double down =
      -centre + ball_cut_by_halfspace(-gh - e_gh, gamma, K.radius, K.h_norm, K.offset);
  if (std::isnan(up) || std::isnan(down)) return std::numeric_limits<double>::quiet_NaN();
  return std::max(up, down) + e_centre;
}

// theta = c0 s + c1 theta_r + e with e in the complement of the unpenalised columns, |.| within
// `ball` of theta: |f'theta| <= |c1 z_r + c0 m| + min(gamma ||e||_2, ||f||_1 ||e||_inf) + gamma ball.
// The field order is that of sievesvm.screen.Reference.
struct Reference {
  double c0, c1, e_two, e_inf, ball;  // e_two, e_inf, ball: upper bounds
  double G, e_norm, reference_norm;
};
constexpr int64_t kReferenceFields = sizeof(Reference) / sizeof(double);

inline double reference_bound(const Reference& r, const Feature& f, double norm1) {
  const double eta = r.G * f.norm2;
  const double gamma = f.gamma + 4 * eta;
  const double known = std::fabs(r.c1 * f.zeta + r.c0 * f.m);
  const double error = eta * (std::fabs(r.c1) * r.reference_norm + 2 * std::fabs(r.c0) * r.e_norm);
  const double rest = std::min(gamma * r.e_two, norm1 * (1 + r.G) * r.e_inf);
  return known + error + rest + gamma * r.ball;
}

}  // namespace sieve
