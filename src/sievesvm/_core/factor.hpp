// The factorisation L D L' (L with ones on its diagonal) of the part of a Gram matrix H that belongs
// to some of its columns, kept while these come and go, one by one, and while H gains and loses
// terms of rank one.
//
// It need not be exact: its user knows H, corrects what the factor leaves, and clears it where that
// does not converge.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"

namespace sieve {

class Factor {
 public:
  // Of a column that is longer than this by less, relative to its square, the rest is rounding.
  static constexpr double kDependent = 1e-12;

  int64_t size() const { return static_cast<int64_t>(columns_.size()); }
  const std::vector<int32_t>& columns() const { return columns_; }
  bool has(int64_t k) const { return place(k) >= 0; }
  int64_t place(int64_t k) const {
    return k < static_cast<int64_t>(place_.size()) ? place_[k] : -1;
  }
  // D: the squared length of the part of the a-th column off the span of those before it.
  double pivot(int64_t a) const { return at(a, a); }
  int64_t bytes() const { return static_cast<int64_t>(L_.capacity() * sizeof(double)); }

  void clear() {
    columns_.clear();
    place_.clear();
  }

  // Appends column k, given its products with the columns here, in their order, and with itself.
  // False, and nothing is changed, if it depends on them: then `dependence` says how.
  bool append(int32_t k, const double* h) {
    const int64_t a = size();
    if (a == capacity_) grow();
    std::vector<double>& l = row_;
    l.assign(h, h + a);
    forward(l.data());
    double pivot = h[a];
    for (int64_t j = 0; j < a; ++j) {
      const double along = l[j];
      l[j] /= at(j, j);
      pivot -= along * l[j];
    }
    if (!(pivot > kDependent * h[a])) return false;
    for (int64_t j = 0; j < a; ++j) at(a, j) = l[j];
    at(a, a) = pivot;
    if (k >= static_cast<int64_t>(place_.size())) place_.resize(k + 1, -1);
    place_[k] = static_cast<int32_t>(a);
    columns_.push_back(k);
    return true;
  }

  // The column refused last is nearly the sum of n_a times the a-th.
  void dependence(std::vector<double>& n) const {
    n = row_;
    backward(n.data());
  }

  // Removes the a-th column.
  void remove(int64_t a) {
    const int64_t count = size();
    const double pivot = at(a, a);
    std::vector<double>& l = row_;
    l.assign(count - 1, 0.0);
    std::copy(column(a) + 1, column(a) + (count - a), l.data() + a);
    for (int64_t j = 0; j < a; ++j)
      std::copy(&at(a, j) + 1, &at(a, j) + (count - a), &at(a, j));
    for (int64_t j = a + 1; j < count; ++j)
      std::copy(column(j), column(j) + (count - j), column(j - 1));
    place_[columns_[a]] = -1;
    columns_.erase(columns_.begin() + a);
    for (int64_t b = a; b < size(); ++b) place_[columns_[b]] = static_cast<int32_t>(b);
    add_square(l.data(), pivot);
  }

  // L D L' += c x x'; x, one number per column here, is used up. False if what is left is not
  // positive: the factor is then of no use.
  bool add_square(double* x, double c) {
    const int64_t count = size();
    for (int64_t j = 0; j < count; ++j) {
      if (x[j] == 0) continue;
      const double d = at(j, j), sum = d + c * x[j] * x[j];
      if (!(sum > 0)) return false;
      at(j, j) = sum;
      eliminate(x[j], c * x[j] / sum, column(j) + 1, x + j + 1, count - j - 1);
      c *= d / sum;
    }
    return true;
  }

  // x := (L D L')^-1 x
  void solve(double* x) const {
    forward(x);
    for (int64_t j = 0; j < size(); ++j) x[j] /= at(j, j);
    backward(x);
  }

 private:
  double& at(int64_t i, int64_t j) { return L_[j * capacity_ + i]; }
  double at(int64_t i, int64_t j) const { return L_[j * capacity_ + i]; }
  // From the diagonal on.
  double* column(int64_t j) { return &L_[j * capacity_ + j]; }
  const double* column(int64_t j) const { return &L_[j * capacity_ + j]; }

  void grow() {
    const int64_t larger = (capacity_ + capacity_ / 2 + 16) / 8 * 8;
    std::vector<double> L(larger * larger);
    for (int64_t j = 0; j < size(); ++j)
      std::copy(column(j), column(j) + (size() - j), &L[j * larger + j]);
    L_.swap(L);
    capacity_ = larger;
  }

  void forward(double* x) const {  // x := L^-1 x
    const int64_t count = size();
    for (int64_t j = 0; j < count; ++j)
      if (x[j] != 0) axpy(-x[j], column(j) + 1, x + j + 1, count - j - 1);
  }

  void backward(double* x) const {  // x := L'^-1 x
    const int64_t count = size();
    for (int64_t j = count - 1; j >= 0; --j)
      x[j] -= dot(column(j) + 1, x + j + 1, count - j - 1);
  }

  int64_t capacity_ = 0;
  std::vector<double> L_;  // by columns: L(i, j), i > j, is at j * capacity + i, D on the diagonal
  std::vector<int32_t> columns_, place_;
  std::vector<double> row_;
};

}  // namespace sieve
