// What the algorithms need of each column, once: its norms, its distance to the span of the
// intercept and the unpenalised columns, and its products with given vectors.
#pragma once
#include <atomic>
#include <cmath>
#include <vector>

#include "dispatch.hpp"
#include "parallel.hpp"

namespace sieve {

// One weighting of the rows and where its results go. With e = sqrt(c), Q is an orthonormal basis
// (n x rank, vectors one after the other) of the span of e and of e * (the unpenalised columns).
struct Weighting {
  const double* e;  // nullptr: all weights are one
  const double* Q;
  int64_t rank;
  bool centred;            // e is in the span of Q
  const double* products;  // n x n_products: c / sum c, then e * Q, then the extra vectors
  int64_t n_products;

  double *mean, *norm1, *norm2, *gamma, *deviation;  // m each; those always equal may be one array
  int64_t* nonzeros;
  double* extra;  // m x extra
};

// Where an entry is, and what it is.
struct Place {
  int64_t row = -1, column = -1;
  double value = 0.0;
};

// The first entry of column j that is NaN or infinite (row -1 if there is none).
template <class View>
Place first_nonfinite(const View& X, int64_t j) {
  Place place{-1, j, 0.0};
  for_each_entry(X, j, [&](int64_t i, double f) {
    if (place.row < 0 && !std::isfinite(f)) place = {i, j, f};
  });
  return place;
}

// Whether column j has one value on all rows of positive weight.
template <class View>
bool is_constant(const View& X, int64_t j, const double* e) {
  int64_t weighted = X.n, seen = 0;
  if (e) {
    weighted = 0;
    for (int64_t i = 0; i < X.n; ++i) weighted += e[i] > 0;
  }
  bool same = true;
  double value = 0.0;
  for_each_entry(X, j, [&](int64_t i, double f) {
    if (e && !(e[i] > 0)) return;
    if (seen++ == 0) value = f;
    same = same && f == value;
  });
  return same && (seen == weighted || value == 0.0);
}

// The power of two that brings the largest |e f| of column j near one.
template <class View>
double column_scale(const View& X, int64_t j, const double* e) {
  double largest = 0.0;
  for_each_entry(X, j, [&](int64_t i, double f) {
    largest = std::max(largest, std::fabs(e ? e[i] * f : f));
  });
  return largest > 0 ? std::ldexp(1.0, std::min(-std::ilogb(largest), 1023)) : 1.0;
}

// 2-norm of e f, and its distances to the span of e alone and of all of Q.
struct Distances {
  double norm2, deviation, gamma;
};

// r -= Q_k Q_k'r for k in [first, last).
inline void project_out(const Weighting& W, int64_t first, int64_t last, std::vector<double>& r) {
  const int64_t n = static_cast<int64_t>(r.size());
  std::vector<double> coefficients;
  for (int64_t k = first; k < last; ++k) coefficients.push_back(dot(r.data(), W.Q + k * n, n));
  for (int64_t k = first; k < last; ++k) {
    const double* q = W.Q + k * n;
    for (int64_t i = 0; i < n; ++i) r[i] -= coefficients[k - first] * q[i];
  }
}

// From the column itself: no cancellation, no overflow.
template <class View>
Distances explicit_distances(const View& X, int64_t j, const Weighting& W,
                             std::vector<double>& r) {
  r.assign(X.n, 0.0);
  const double scale = column_scale(X, j, W.e);
  const auto length = [&] { return std::sqrt(dot(r.data(), r.data(), X.n)) / scale; };
  for_each_entry(X, j, [&](int64_t i, double f) { r[i] = (W.e ? W.e[i] * f : f) * scale; });
  Distances found;
  found.norm2 = length();
  const int64_t ones = W.centred && W.rank > 0 ? 1 : 0;
  if (ones && is_constant(X, j, W.e)) {
    found.deviation = found.gamma = 0.0;
    return found;
  }
  project_out(W, 0, ones, r);
  found.deviation = length();
  project_out(W, ones, W.rank, r);
  found.gamma = length();
  return found;
}

// Squares that neither overflow nor lose digits to underflow lie within these.
constexpr double kSmallestSquare = 1e-200, kLargestSquare = 1e200;

// From the sum of squares and the coefficients on Q, where at most two bits of the squares cancel.
template <class View>
Distances distances(const View& X, int64_t j, const Weighting& W, double squares,
                    const double* coefficients, std::vector<double>& r) {
  double left = squares, left_by_ones = squares;
  for (int64_t k = 0; k < W.rank; ++k) {
    left -= coefficients[k] * coefficients[k];
    if (k == 0 && W.centred) left_by_ones = left;
  }
  const bool in_range = squares > kSmallestSquare && squares < kLargestSquare;
  if (in_range && left >= 0.25 * squares)
    return {std::sqrt(squares), std::sqrt(left_by_ones), std::sqrt(left)};
  return explicit_distances(X, j, W, r);
}

// The statistics of column j under one weighting; false if an entry is not finite.
template <class View>
bool column_stats(const View& X, int64_t j, const Weighting& W, const RightHandSides& vectors,
                  std::vector<double>& products, std::vector<double>& residual) {
  const Moments moment = moments(X, j, W.e);
  if (!std::isfinite(moment.norm1)) return false;
  products.resize(W.n_products);
  dots(X, ColumnRange{&j, 0, 1}, vectors.vectors(), vectors.rows(), products.data());
  Distances found{0.0, 0.0, 0.0};
  if (moment.norm1 > 0)
    found = distances(X, j, W, moment.squares, products.data() + 1, residual);
  W.mean[j] = products[0];
  W.norm1[j] = moment.norm1;
  W.norm2[j] = found.norm2;
  W.gamma[j] = found.gamma;
  W.deviation[j] = found.deviation;
  W.nonzeros[j] = moment.nonzeros;
  std::copy(products.begin() + 1 + W.rank, products.end(),
            W.extra + j * (W.n_products - 1 - W.rank));
  return true;
}

// One pass over the matrix, whatever the number of weightings. Returns the first place, by
// column, that is NaN or infinite; row -1 there: all finite, but their sum overflows.
template <class View>
Place all_stats(const View& X, const std::vector<Weighting>& weightings, int threads) {
  std::vector<RightHandSides> vectors;
  int64_t per_entry = 0;
  for (const Weighting& W : weightings) {
    vectors.emplace_back(X, W.products, W.n_products);
    per_entry += 4 + W.n_products;  // the moments, and where squares cancel the column once more
  }
  const double work = static_cast<double>(X.all_entries()) * static_cast<double>(per_entry);
  std::atomic<int64_t> first_bad{X.m};
  for_each_block(X.m, block_size(X.m, work, threads), threads, [&](int64_t first, int64_t last) {
    std::vector<double> products, residual;
    for (int64_t j = first; j < last; ++j)
      for (size_t w = 0; w < weightings.size(); ++w)
        if (!column_stats(X, j, weightings[w], vectors[w], products, residual)) {
          int64_t seen = first_bad;
          while (j < seen && !first_bad.compare_exchange_weak(seen, j)) {}
        }
  });
  if (first_bad == X.m) return {};
  return first_nonfinite(X, first_bad);
}

}  // namespace sieve
