// The problem on a working set of columns, solved exactly:
//
//   min 1/2 sum_i c_i max(0, r_i)^2 + lam sum_k v_k |w_k|,   r_i = 1 - y_i sum_k w_k x_ik.
//
// The intercept is a column of ones with v = 0. While I = {i: r_i > 0} stays the same the loss is
// quadratic, with the Gram matrix H = sum_{i in I} c_i x_i x_i'. H is kept along the whole path: a
// row that enters or leaves I changes it by c_i x_i x_i', a new column adds a row and a column.
// One step minimises the quadratic model with the penalty, in the space of H alone, and walks
// there; a step on which no row changes sides was exact.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sieve {

class Face {
  struct Entry {
    int32_t column;
    double value;
  };
  struct Column {
    std::vector<int32_t> rows;
    std::vector<double> values;
  };

 public:
  Face(const double* y, const double* c, int64_t n)
      : n_(n), y_(y, y + n), c_(n, 1.0), r_(n, 1.0), inside_(n, 1), rows_(n), along_(n) {
    if (c) c_.assign(c, c + n);
    loss_ = loss();
  }

  int64_t size() const { return static_cast<int64_t>(w_.size()); }
  const std::vector<double>& w() const { return w_; }
  const std::vector<double>& residual() const { return r_; }

  // Appends a column, given by its entries; its coefficient starts at 0.
  void add(std::vector<int32_t> rows, std::vector<double> values, double v) {
    const int64_t k = size();
    if (k == capacity_) grow();
    double* Hk = row(k);
    std::fill(Hk, Hk + capacity_, 0.0);
    for (size_t p = 0; p < rows.size(); ++p) {
      rows_[rows[p]].push_back({static_cast<int32_t>(k), values[p]});
      if (inside_[rows[p]]) add_row(Hk, rows[p], c_[rows[p]] * values[p]);
    }
    for (int64_t j = 0; j < k; ++j) row(j)[k] = Hk[j];
    columns_.push_back({std::move(rows), std::move(values)});
    w_.push_back(0.0);
    v_.push_back(v);
    zeta_.push_back(product(k));
  }

  // out[k] = f_k'vector
  void products(const double* vector, double* out) const {
    for (int64_t k = 0; k < size(); ++k)
      out[k] = sum_over(columns_[k], [&](int64_t i) { return vector[i]; });
  }

  struct Outcome {
    int64_t steps;
    bool converged;
  };

  // Steps until the optimality conditions hold to `tol` lam v_k, or as well as rounding allows, or
  // `max_steps` are done.
  Outcome solve(double lam, double tol, int64_t max_steps) {
    constexpr int kStalls = 3;
    constexpr double kProgress = 1e-15;
    int stalls = 0;
    for (int64_t step = 1; step <= max_steps; ++step) {
      model_ = w_;
      slope_.resize(size());
      for (int64_t k = 0; k < size(); ++k) slope_[k] = -zeta_[k];
      minimise_model(lam, tol);
      const double before = loss_ + lam * l1();
      const bool exact = walk(lam);
      // rows on their margin may change sides for ever without P getting any lower
      stalls = loss_ + lam * l1() < before * (1 - kProgress) ? 0 : stalls + 1;
      if (!exact && stalls < kStalls) continue;
      refresh();
      if (violation(lam) <= tol) return {step, true};
      if (stalls >= kStalls) return {step, false};
    }
    return {max_steps, false};
  }

  // Residuals and products anew from w, without the rounding of the steps on the way here.
  void refresh() {
    std::fill(along_.begin(), along_.end(), 0.0);
    for (int64_t k = 0; k < size(); ++k)
      if (w_[k] != 0) add_column(k, w_[k]);
    for (int64_t i = 0; i < n_; ++i) {
      r_[i] = 1 - y_[i] * along_[i];
      cross(i);
    }
    loss_ = loss();
    for (int64_t k = 0; k < size(); ++k) zeta_[k] = product(k);
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

 private:
  double* row(int64_t k) { return &H_[k * capacity_]; }

  void grow() {
    const int64_t larger = std::max<int64_t>(16, 2 * capacity_);
    std::vector<double> H(larger * larger, 0.0);
    for (int64_t k = 0; k < size(); ++k)
      std::copy(row(k), row(k) + size(), &H[k * larger]);
    H_.swap(H);
    capacity_ = larger;
  }

  void add_row(double* Hk, int32_t i, double times) {
    for (const Entry& entry : rows_[i]) Hk[entry.column] += times * entry.value;
  }

  // f_k'(c y r_+)
  double product(int64_t k) const {
    return sum_over(columns_[k], [&](int64_t i) {
      return inside_[i] ? c_[i] * y_[i] * r_[i] : 0.0;
    });
  }

  // sum of f_i a(i), in four lanes within chunks: the rounding of a sparse product of the kernels.
  template <class Value>
  static double sum_over(const Column& f, Value a) {
    constexpr size_t kChunk = 2048;
    double total = 0.0;
    for (size_t first = 0; first < f.rows.size(); first += kChunk) {
      const size_t last = std::min(first + kChunk, f.rows.size());
      double lane[4] = {0, 0, 0, 0};
      for (size_t p = first; p < last; ++p) lane[p % 4] += f.values[p] * a(f.rows[p]);
      total += (lane[0] + lane[2]) + (lane[1] + lane[3]);
    }
    return total;
  }

  double loss() const {
    double sum = 0.0;
    for (int64_t i = 0; i < n_; ++i) sum += r_[i] > 0 ? c_[i] * r_[i] * r_[i] : 0.0;
    return 0.5 * sum;
  }

  double l1() const {
    double sum = 0.0;
    for (int64_t k = 0; k < size(); ++k) sum += v_[k] * std::fabs(w_[k]);
    return sum;
  }

  double penalty(double t) const {  // of w + t (model - w)
    double sum = 0.0;
    for (int64_t k = 0; k < size(); ++k) sum += v_[k] * std::fabs(w_[k] + t * (model_[k] - w_[k]));
    return sum;
  }

  // ---- the model: 1/2 (u - w)'H(u - w) - zeta'(u - w) + lam sum v |u|; slope = its gradient ----

  void minimise_model(double lam, double tol) {
    constexpr int kMaxRounds = 100;
    for (int round = 0; round < kMaxRounds; ++round) {
      const bool moved = sweep(lam, 0.1 * tol);
      while (!newton(lam)) {}
      if (!moved) return;
    }
  }

  // One round of coordinate descent; whether a zero coefficient became active.
  bool sweep(double lam, double tol) {
    bool entered = false;
    for (int64_t k = 0; k < size(); ++k) {
      const double h = row(k)[k], limit = lam * v_[k];
      if (!(h > 0)) continue;
      if (model_[k] == 0 && std::fabs(slope_[k]) <= limit * (1 + tol)) continue;
      const double target = h * model_[k] - slope_[k];
      const double fresh = std::copysign(std::max(std::fabs(target) - limit, 0.0), target) / h;
      if (fresh == model_[k]) continue;
      entered = entered || model_[k] == 0;
      shift(k, fresh - model_[k]);
      model_[k] = fresh;
    }
    return entered;
  }

  void shift(int64_t k, double by) {
    const double* Hk = row(k);
    for (int64_t j = 0; j < size(); ++j) slope_[j] += by * Hk[j];
  }

  // A Newton step on the coefficients that are not zero, cut where one of them becomes zero.
  // Returns whether it was not cut.
  bool newton(double lam) {
    face_.clear();
    for (int64_t k = 0; k < size(); ++k)
      if (model_[k] != 0 || v_[k] == 0) face_.push_back(k);
    const int64_t size = static_cast<int64_t>(face_.size());
    L_.assign(size * size, 0.0);
    step_.assign(size, 0.0);
    for (int64_t a = 0; a < size; ++a)
      if (!factorise(a) && v_[face_[a]] > 0 && slide(a, lam)) return false;
    for (int64_t a = 0; a < size; ++a) {
      double sum = -gradient(face_[a], lam);
      for (int64_t b = 0; b < a; ++b) sum -= L_[a * size + b] * step_[b];
      step_[a] = L_[a * size + a] > 0 ? sum / L_[a * size + a] : 0.0;
    }
    for (int64_t a = size - 1; a >= 0; --a) {
      double sum = step_[a];
      for (int64_t b = a + 1; b < size; ++b) sum -= L_[b * size + a] * step_[b];
      step_[a] = L_[a * size + a] > 0 ? sum / L_[a * size + a] : 0.0;
    }
    return advance(1.0);
  }

  double gradient(int64_t k, double lam) const {
    return slope_[k] + (model_[k] == 0 ? 0.0 : std::copysign(lam * v_[k], model_[k]));
  }

  // Row a of the Cholesky factor; false (and a zero pivot) if the column depends on those before.
  bool factorise(int64_t a) {
    constexpr double kDependent = 1e-11;
    const int64_t size = static_cast<int64_t>(face_.size());
    double* La = &L_[a * size];
    const double* H = row(face_[a]);
    double pivot = H[face_[a]];
    for (int64_t b = 0; b < a; ++b) {
      const double* Lb = &L_[b * size];
      if (!(Lb[b] > 0)) continue;
      double sum = H[face_[b]];
      for (int64_t j = 0; j < b; ++j) sum -= La[j] * Lb[j];
      La[b] = sum / Lb[b];
      pivot -= La[b] * La[b];
    }
    if (!(pivot > kDependent * H[face_[a]])) return false;
    La[a] = std::sqrt(pivot);
    return true;
  }

  // Moves along the null direction that the dependent column a closes, downhill, until a
  // coefficient becomes zero. False if the model is flat along it.
  bool slide(int64_t a, double lam) {
    constexpr double kFlat = 1e-9;
    const int64_t size = static_cast<int64_t>(face_.size());
    std::fill(step_.begin(), step_.end(), 0.0);
    double slope = gradient(face_[a], lam), scale = std::fabs(slope);
    for (int64_t b = a - 1; b >= 0; --b) {
      if (!(L_[b * size + b] > 0)) continue;
      double sum = -L_[a * size + b];
      for (int64_t j = b + 1; j < a; ++j) sum -= L_[j * size + b] * step_[j];
      step_[b] = sum / L_[b * size + b];
      slope += step_[b] * gradient(face_[b], lam);
      scale += std::fabs(step_[b]) * lam * v_[face_[b]];
    }
    step_[a] = 1.0;
    const bool flat = std::fabs(slope) <= kFlat * (scale + lam * v_[face_[a]]);
    const double along = flat ? 0.0 : slope > 0 ? -1.0 : 1.0;
    for (double& d : step_) d *= along;
    const bool cut = !flat && !advance(std::numeric_limits<double>::infinity());
    std::fill(step_.begin(), step_.end(), 0.0);
    return cut;
  }

  // Goes `limit` times the step, or to where the first coefficient of the face becomes zero.
  // Returns whether none did; without one an infinite step is not gone at all.
  bool advance(double limit) {
    double t = limit;
    int64_t first = -1;
    for (size_t a = 0; a < face_.size(); ++a) {
      const int64_t k = face_[a];
      if (v_[k] == 0 || model_[k] * step_[a] >= 0) continue;
      const double to_zero = -model_[k] / step_[a];
      if (to_zero < t) {
        t = to_zero;
        first = k;
      }
    }
    if (std::isinf(t)) return true;
    for (size_t a = 0; a < face_.size(); ++a) {
      if (step_[a] == 0) continue;
      shift(face_[a], t * step_[a]);
      model_[face_[a]] += t * step_[a];
    }
    if (first >= 0) {
      shift(first, -model_[first]);
      model_[first] = 0.0;
    }
    return first < 0;
  }

  // ---- the walk from w to the model's minimiser ----

  // Halves the step until P falls. Returns whether the model held all the way: P is exact there.
  bool walk(double lam) {
    constexpr int kHalvings = 40;
    constexpr double kRounding = 1e-14;
    std::fill(along_.begin(), along_.end(), 0.0);
    for (int64_t k = 0; k < size(); ++k) {
      if (model_[k] != w_[k]) add_column(k, model_[k] - w_[k]);
    }
    const double P = loss_ + lam * l1();
    double t = 1.0;
    for (int halving = 0; halving < kHalvings; ++halving, t *= 0.5) {
      double trial = 0.0;
      for (int64_t i = 0; i < n_; ++i) {
        const double r = r_[i] - t * y_[i] * along_[i];
        trial += r > 0 ? c_[i] * r * r : 0.0;
      }
      trial *= 0.5;
      if (trial + lam * penalty(t) <= P * (1 + kRounding)) {
        const int64_t before = flips_;
        go(t);
        loss_ = trial;
        return t == 1.0 && flips_ == before;
      }
    }
    return true;  // P is as low as rounding lets it be
  }

  void go(double t) {
    for (int64_t k = 0; k < size(); ++k) {
      zeta_[k] -= t * (slope_[k] + zeta_[k]);  // slope + zeta = H (model - w)
      w_[k] = t == 1.0 ? model_[k] : w_[k] + t * (model_[k] - w_[k]);
    }
    for (int64_t i = 0; i < n_; ++i) {
      if (along_[i] == 0) continue;
      r_[i] -= t * y_[i] * along_[i];
      cross(i);
    }
  }

  // along += d f_k
  void add_column(int64_t k, double d) {
    const Column& f = columns_[k];
    for (size_t p = 0; p < f.rows.size(); ++p) along_[f.rows[p]] += d * f.values[p];
  }

  // Brings H and zeta up to date if row i has entered or left I.
  void cross(int64_t i) {
    const bool now = r_[i] > 0;
    if (now == static_cast<bool>(inside_[i])) return;
    inside_[i] = now;
    ++flips_;
    const double sign = now ? 1.0 : -1.0, cyr = sign * c_[i] * y_[i] * r_[i];
    for (const Entry& entry : rows_[i]) {
      zeta_[entry.column] += cyr * entry.value;
      add_row(row(entry.column), i, sign * c_[i] * entry.value);
    }
  }

  int64_t n_, capacity_ = 0, flips_ = 0;
  std::vector<double> y_, c_, r_;
  std::vector<char> inside_;
  std::vector<std::vector<Entry>> rows_;
  std::vector<Column> columns_;
  std::vector<double> w_, v_, zeta_, H_, model_, slope_, along_, L_, step_;
  std::vector<int64_t> face_;
  double loss_;
};

}  // namespace sieve
