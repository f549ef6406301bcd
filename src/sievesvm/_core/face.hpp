// The problem on a working set of columns, solved exactly:
//
//   min 1/2 sum_i c_i max(0, r_i)^2 + lam sum_k v_k |w_k|,   r_i = 1 - y_i sum_k w_k x_ik.
//
// The intercept is a column of ones with v = 0. While I = {i: r_i > 0} stays the same the loss is
// quadratic, with the Gram matrix H = sum_{i in I} c_i x_i x_i'. H is kept along the whole path, and
// so is the factorisation of its part that belongs to the coefficients that are not zero: a row
// that enters or leaves I changes both by c_i x_i x_i', a new column adds a row and a column.
//
// One step minimises the quadratic model with the penalty, in the space of H alone, and walks there;
// a step on which no row changes sides was exact. How far to walk is seen from the slope of P, which
// is known where P itself is flat to rounding.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "block.hpp"
#include "factor.hpp"
#include "interrupt.hpp"

namespace sieve {

class Face {
 public:
  // y and c (nullptr: ones) are used where they lie.
  Face(const double* y, const double* c, int64_t n)
      : n_(n), y_(y), c_(c), block_(n), r_(n, 1.0), along_(n) {}

  int64_t size() const { return static_cast<int64_t>(w_.size()); }
  const std::vector<double>& w() const { return w_; }
  const std::vector<double>& residual() const { return r_; }
  // f_k'(c y r_+); after `solve`, from the residuals by sums in the order of the kernels.
  const std::vector<double>& zeta() const { return zeta_; }

  // Entries, Gram matrix and factor; not the vectors of n numbers.
  int64_t bytes() const {
    return block_.bytes() + static_cast<int64_t>(H_.capacity() * sizeof(double)) + factor_.bytes();
  }

  // New columns have the coefficient 0. The ones come first, and are not penalised.
  void add_ones() {
    block_.add_ones();
    join({0.0});
  }

  void add_sparse(std::vector<int32_t> rows, std::vector<double> values, double v) {
    settle();
    block_.add_sparse(std::move(rows), std::move(values));
    join({v});
  }

  // `v.size()` dense columns, one after the other.
  void add_dense(std::vector<double> values, const std::vector<double>& v) {
    settle();
    block_.add_dense(std::move(values), static_cast<int64_t>(v.size()));
    join(v);
  }

  // out[k] = f_k'vector
  void products(const double* vector, double* out) const { block_.products(vector, 1, 0, size(), out); }

  struct Outcome {
    int64_t steps;
    bool converged;
  };

  // Steps until the optimality conditions hold to `tol` lam v_k, or as well as rounding allows, or
  // `max_steps` are done. Interrupted, w and the residuals are those after the last whole step.
  Outcome solve(double lam, double tol, int64_t max_steps) {
    constexpr int kStalls = 5;
    constexpr double kSmall = 1e-8;
    interrupt_ = {};
    settle();
    double best = std::numeric_limits<double>::infinity();
    moved_ = best;
    int stalls = 0;
    bool polished = false;
    for (int64_t step = 0;; ++step) {
      double worst = violation(lam);
      if (worst <= tol || stalls > 0) {
        refresh();
        worst = violation(lam);
      }
      stalls = worst < 0.5 * best || moved_ > kSmall ? 0 : stalls + 1;
      if (stalls > 0 && !exact_gram_) renew_gram();
      best = std::min(best, worst);
      minimise_model(lam, tol);
      const bool converged = worst <= tol;
      if (converged && (polished || is_settled())) return {step, true};
      if (step == max_steps || stalls > kStalls) {
        refresh();
        return {step, converged};
      }
      polished = converged;
      walk(lam);
    }
  }

 private:
  double* row(int64_t k) { return &H_[k * capacity_]; }
  const double* row(int64_t k) const { return &H_[k * capacity_]; }
  double weight_of(int64_t i) const { return c_ ? c_[i] : 1.0; }
  double weight(int64_t i) const { return r_[i] > 0 ? weight_of(i) : 0.0; }  // in H

  // ---- columns ----

  void make_room(int64_t count) {
    if (size() + count <= capacity_) return;
    const int64_t larger = (size() + count + size() / 4 + 15) / 8 * 8;
    std::vector<double> H(larger * larger);
    for (int64_t k = 0; k < size(); ++k) std::copy(row(k), row(k) + size(), &H[k * larger]);
    H_.swap(H);
    capacity_ = larger;
  }

  // Coefficients, H and zeta of columns that are in the block already.
  void join(const std::vector<double>& v) {
    const int64_t first = size();
    make_room(static_cast<int64_t>(v.size()));
    v_.insert(v_.end(), v.begin(), v.end());
    w_.resize(v_.size(), 0.0);
    zeta_.resize(v_.size(), 0.0);
    make_gram(first, [] {});
    weigh_residuals();
    block_.products(along_.data(), 1, first, size(), &zeta_[first]);
  }

  // Rows and columns of H from `first` on.
  template <class Between>
  void make_gram(int64_t first, Between between) {
    block_.gram(first, [&](int64_t i) { return weight(i); }, [&](int64_t k) { return row(k); },
                between);
    for (int64_t k = first; k < size(); ++k)
      for (int64_t j = 0; j < k; ++j) row(j)[k] = row(k)[j];
  }

  // H without what the terms that came and went have left of their rounding.
  void renew_gram() {
    factor_.clear();
    make_gram(0, [&] { interrupt_.poll(); });
    exact_gram_ = true;
  }

  void weigh_residuals() {
    for (int64_t i = 0; i < n_; ++i) along_[i] = weight(i) * y_[i] * r_[i];
  }

  // ---- rows that have changed sides ----

  // Brings zeta, H and the factor up to date with the rows in `flipped_`.
  void settle() {
    if (too_many(static_cast<int64_t>(flipped_.size()))) factor_.clear();
    while (!flipped_.empty()) {
      interrupt_.poll();
      cross(flipped_.back());
      flipped_.pop_back();
    }
  }

  void cross(int64_t i) {
    const double c = r_[i] > 0 ? weight_of(i) : -weight_of(i);
    if (c == 0) return;
    exact_gram_ = false;
    block_.row(i, entries_);
    for (const Entry& e : entries_) zeta_[e.column] += c * y_[i] * r_[i] * e.value;
    if (static_cast<int64_t>(entries_.size()) * kDenseRow > size()) add_dense_square(c);
    else add_sparse_square(c);
    if (factor_.size() == 0) return;
    step_.assign(factor_.size(), 0.0);
    for (const Entry& e : entries_)
      if (factor_.has(e.column)) step_[factor_.place(e.column)] = e.value;
    if (!factor_.add_square(step_.data(), c)) factor_.clear();
    exact_factor_ = false;
  }

  // H += c x x' for the row x in `entries_`.
  void add_sparse_square(double c) {
    for (const Entry& a : entries_) {
      double* Ha = row(a.column);
      for (const Entry& b : entries_) Ha[b.column] += c * a.value * b.value;
    }
  }

  void add_dense_square(double c) {
    row_.assign(size(), 0.0);
    for (const Entry& e : entries_) row_[e.column] = e.value;
    for (const Entry& e : entries_)
      if (e.value != 0) axpy(c * e.value, row_.data(), row(e.column), size());
  }

  // Residuals and zeta from w, without the rounding of the steps on the way here.
  void refresh() {
    if (!exact_residuals_) {
      residuals(w_);
      arrive();
    }
    if (exact_zeta_) return;
    weigh_residuals();
    block_.products(along_.data(), 1, 0, size(), zeta_.data());
    exact_zeta_ = true;
  }

  // along := 1 - y X u, and the rows on which that is on the other side than r.
  void residuals(const std::vector<double>& u) {
    std::fill(along_.begin(), along_.end(), 0.0);
    for (int64_t k = 0; k < size(); ++k) {
      interrupt_.poll();
      if (u[k] != 0) block_.combine(k, u[k], along_.data());
    }
    crossing_.clear();
    largest_change_ = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      along_[i] = 1 - y_[i] * along_[i];
      largest_change_ = std::max(largest_change_, std::fabs(along_[i] - r_[i]));
      if ((along_[i] > 0) != (r_[i] > 0)) crossing_.push_back(static_cast<int32_t>(i));
    }
  }

  // r := along, the residuals of w.
  void arrive() {
    r_.swap(along_);
    flipped_.swap(crossing_);
    exact_residuals_ = true;
    exact_zeta_ = false;
    settle();
  }

  // The largest violation of the optimality conditions, in units of lam v_k.
  double violation(double lam) const {
    double worst = 0.0;
    for (int64_t k = 0; k < size(); ++k) {
      const double limit = lam * v_[k];
      const double off = w_[k] != 0 || limit == 0 ? std::fabs(zeta_[k] - std::copysign(limit, w_[k]))
                                                  : std::fabs(zeta_[k]) - limit;
      worst = std::max(worst, off / (limit > 0 ? limit : lam));
    }
    return worst;
  }

  // Whether the model's minimiser is w, as far as coefficients are wanted.
  bool is_settled() const {
    constexpr double kSettled = 1e-11;
    return change() <= kSettled;
  }

  // The largest |model - w|, in units of the largest |w|.
  double change() const {
    double change = 0.0, size = 0.0;
    for (size_t k = 0; k < w_.size(); ++k) {
      change = std::max(change, std::fabs(model_[k] - w_[k]));
      size = std::max(size, std::fabs(w_[k]));
    }
    return change > 0 ? change / size : 0.0;
  }

  // ---- the model: 1/2 (u - w)'H(u - w) - zeta'(u - w) + lam sum v |u|; slope = its gradient ----

  void minimise_model(double lam, double tol) {
    constexpr int kMaxRounds = 3;  // the next step goes on from a better place
    model_ = w_;
    slope_.resize(size());
    for (int64_t k = 0; k < size(); ++k) slope_[k] = -zeta_[k];
    travelled_ = 0.0;
    for (int round = 0; round < kMaxRounds; ++round) {
      descend(lam);
      if (!enter(lam, 0.1 * tol)) return;
    }
  }

  // A step on every coefficient that is zero and should not be; whether there was one.
  bool enter(double lam, double tol) {
    bool entered = false;
    for (int64_t k = 0; k < size(); ++k) {
      const double h = row(k)[k], limit = lam * v_[k];
      if (model_[k] != 0 || limit == 0 || !(h > 0)) continue;
      if (std::fabs(slope_[k]) <= limit * (1 + tol) + rounding(k)) continue;
      move(k, -std::copysign(std::fabs(slope_[k]) - limit, slope_[k]) / h);
      entered = true;
    }
    return entered;
  }

  void move(int64_t k, double by) {
    axpy(by, row(k), slope_.data(), size());
    model_[k] += by;
    travelled_ += std::fabs(by) * std::sqrt(std::max(row(k)[k], 0.0));
  }

  // What rounding may have made of slope_k: a bound on sum |H_kj| |moved_j|, by Cauchy-Schwarz.
  double rounding(int64_t k) const {
    constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
    return kRounding * std::sqrt(std::max(row(k)[k], 0.0)) * travelled_;
  }

  // To the minimiser of the model over the coefficients that are not zero, on the way dropping
  // those that become zero. What an inexact factor leaves, the next step takes.
  void descend(double lam) {
    constexpr double kContracts = 0.25, kExact = 1e-12;
    for (;;) {
      interrupt_.poll();
      drop_zeros();
      if (!gather(lam)) continue;
      const double before = steepest(lam);
      if (before == 0) return;
      step_.resize(factor_.size());
      for (int64_t a = 0; a < factor_.size(); ++a) step_[a] = -gradient(factor_.columns()[a], lam);
      factor_.solve(step_.data());
      if (!advance(1.0)) continue;
      const double after = steepest(lam);
      if (after <= kExact) return;
      if (after <= kContracts * before) continue;
      if (exact_factor_) return;
      factor_.clear();
    }
  }

  // The largest gradient on the face, in units of lam v; 0 if all is rounding.
  double steepest(double lam) const {
    double worst = 0.0;
    for (const int32_t k : factor_.columns()) {
      const double g = std::fabs(gradient(k, lam));
      if (g > rounding(k)) worst = std::max(worst, g / (v_[k] > 0 ? lam * v_[k] : lam));
    }
    return worst;
  }

  double gradient(int64_t k, double lam) const {
    return slope_[k] + (model_[k] == 0 ? 0.0 : std::copysign(lam * v_[k], model_[k]));
  }

  void drop_zeros() {
    const auto zero = [&](int32_t k) { return model_[k] == 0 && v_[k] > 0; };
    const std::vector<int32_t>& held = factor_.columns();
    if (too_many(std::count_if(held.begin(), held.end(), zero))) factor_.clear();
    for (int64_t a = factor_.size() - 1; a >= 0; --a)
      if (zero(held[a])) factor_.remove(a);
  }

  // Whether it is cheaper to make the factor anew than to change it so many times.
  bool too_many(int64_t changes) const { return changes * kChangesPerRebuild > factor_.size(); }

  // Brings all coefficients of the face into the factor. False if one of them became zero instead.
  bool gather(double lam) {
    for (int64_t a = 0; a < factor_.size(); ++a) {
      const int32_t k = factor_.columns()[a];
      if (factor_.pivot(a) > Factor::kDependent * row(k)[k]) continue;
      factor_.clear();
    }
    if (factor_.size() == 0) exact_factor_ = true;
    for (int64_t k = 0; k < size(); ++k) {
      if ((model_[k] == 0 && v_[k] > 0) || factor_.has(k)) continue;
      interrupt_.poll();
      row_.clear();
      for (const int32_t j : factor_.columns()) row_.push_back(row(k)[j]);
      row_.push_back(row(k)[k]);
      if (!factor_.append(static_cast<int32_t>(k), row_.data()) && slide(k, lam)) return false;
    }
    return true;
  }

  // Column k depends on those in the factor. Goes along the dependence, on which the loss does not
  // change, downhill or, where that is flat too, to where coefficient k is zero, until some
  // coefficient is. False if none is penalised.
  bool slide(int64_t k, double lam) {
    constexpr double kFlat = 1e-12, kNothing = 1e-9;
    factor_.dependence(step_);
    double slope = gradient(k, lam), scale = lam * v_[k];
    for (int64_t a = 0; a < factor_.size(); ++a) {
      const int32_t j = factor_.columns()[a];
      // what rounding says of columns that play no part would stop the slide far away
      const bool part = step_[a] * step_[a] * row(j)[j] > kNothing * kNothing * row(k)[k];
      step_[a] = part ? -step_[a] : 0.0;
      slope += step_[a] * gradient(j, lam);
      scale += std::fabs(step_[a]) * lam * v_[j];
    }
    const bool flat = std::fabs(slope) <= kFlat * scale;
    const double along = flat ? -model_[k] : -slope;
    if (along < 0)
      for (double& d : step_) d = -d;
    return !advance(std::numeric_limits<double>::infinity(), k, along < 0 ? -1.0 : 1.0);
  }

  // Goes `limit` times the step on the coefficients in the factor, and of one more, or to where the
  // first of them becomes zero. Returns whether none did; an infinite step is then not gone at all.
  bool advance(double limit, int64_t more = -1, double step_of_more = 0.0) {
    double t = limit;
    int64_t first = -1;
    const auto try_zero = [&](int64_t k, double step) {
      if (v_[k] == 0 || model_[k] * step >= 0 || -model_[k] / step >= t) return;
      t = -model_[k] / step;
      first = k;
    };
    for (int64_t a = 0; a < factor_.size(); ++a) try_zero(factor_.columns()[a], step_[a]);
    if (more >= 0) try_zero(more, step_of_more);
    if (std::isinf(t)) return true;
    for (int64_t a = 0; a < factor_.size(); ++a) {
      const int32_t k = factor_.columns()[a];
      if (step_[a] != 0) move(k, k == first ? -model_[k] : t * step_[a]);
    }
    if (more >= 0) move(more, more == first ? -model_[more] : t * step_of_more);
    if (first >= 0) model_[first] = 0.0;
    return first < 0;
  }

  // ---- the walk from w to the model's minimiser ----

  // Goes all the way if P falls by enough, else to the lowest point on it.
  void walk(double lam) {
    constexpr double kEnough = 0.1;
    constexpr int kHalvings = 50;
    residuals(model_);
    const double start = slope_at(0.0, lam);
    double low = 0.0, high = 1.0;
    if (rise(lam) <= kEnough * start) low = 1.0;
    for (int halving = 0; low < 1.0 && halving < kHalvings; ++halving) {
      const double middle = 0.5 * (low + high);
      (slope_at(middle, lam) <= 0 ? low : high) = middle;
    }
    moved_ = low * largest_change_;
    go(low);
  }

  // P at the model less P at w: what the model says, and the rows that change sides. Differences
  // are taken term by term, so that it has digits where P itself is flat to rounding.
  double rise(double lam) const {
    double sum = 0.0;
    for (int64_t k = 0; k < size(); ++k)
      sum += 0.5 * (slope_[k] - zeta_[k]) * (model_[k] - w_[k]) +
             lam * v_[k] * (std::fabs(model_[k]) - std::fabs(w_[k]));
    for (const int32_t i : crossing_)
      sum += 0.5 * weight_of(i) * std::fabs(along_[i]) * along_[i];
    return sum;
  }

  // The slope of P at w + t (model - w), towards the model.
  double slope_at(double t, double lam) const {
    double sum = 0.0;
    for (int64_t k = 0; k < size(); ++k) {
      const double d = model_[k] - w_[k], u = w_[k] + t * d;
      const double side = u != 0 ? u : d;
      sum += d * (t * slope_[k] - (1 - t) * zeta_[k] + std::copysign(lam * v_[k], side));
    }
    for (const int32_t i : crossing_) {
      const double d = along_[i] - r_[i], r = r_[i] + t * d;
      if ((r > 0) != (r_[i] > 0)) sum += weight_of(i) * std::fabs(d) * r;
    }
    return sum;
  }

  // w += t (model - w), and all that follows.
  void go(double t) {
    for (int64_t k = 0; k < size(); ++k) {
      zeta_[k] -= t * (slope_[k] + zeta_[k]);  // slope + zeta = H (model - w)
      w_[k] = t == 1.0 ? model_[k] : w_[k] + t * (model_[k] - w_[k]);
    }
    if (t == 1.0) return arrive();
    exact_residuals_ = exact_zeta_ = false;
    for (int64_t i = 0; i < n_; ++i) {
      const bool inside = r_[i] > 0;
      r_[i] += t * (along_[i] - r_[i]);
      if ((r_[i] > 0) != inside) flipped_.push_back(static_cast<int32_t>(i));
    }
    settle();
  }

  static constexpr int64_t kChangesPerRebuild = 5;
  static constexpr int64_t kDenseRow = 4;  // a row with a fourth of the columns is taken for dense

  int64_t n_, capacity_ = 0;
  const double *y_, *c_;
  Block block_;
  std::vector<double> r_, along_;
  std::vector<int32_t> flipped_;   // rows that H has on the other side than r
  std::vector<int32_t> crossing_;  // rows that along has on the other side than r
  std::vector<double> w_, v_, zeta_;
  std::vector<double> H_;  // with room for `capacity_` rows and columns
  bool exact_residuals_ = true, exact_zeta_ = true, exact_gram_ = true, exact_factor_ = true;
  Factor factor_;
  Interrupt interrupt_;
  std::vector<double> model_, slope_, step_, row_;
  std::vector<Entry> entries_;
  double travelled_ = 0.0, largest_change_ = 0.0, moved_ = 0.0;
};

}  // namespace sieve
