// What is proved of every feature along a path.
//
// At the dual point theta of every lambda, |g_j'theta| <= v_j has to be shown for each feature j.
// Three proofs are known here: its product with the point; a bound from its last product
// (`reference_bound`); a discard by a rule, which holds up to a grid point. And no proof is looked
// for before it could matter:
//
//   The accepted points travel. `travelled_` is the length of their way, measured in the 2-norm and
//   by the entry that moves most. A bound that left room (v - bound)/gamma goes on to hold until the
//   way is longer by that; this reading of the odometer is the expiry of the feature.
//
// The features that are not in the working set stand in one list, in the order
//   proved at the candidate | left without a proof | not due | far: not due for some steps to come.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bounds.hpp"
#include "dispatch.hpp"

namespace sieve {

// The statistics of the columns; v is the factor a product is compared with (null: ones).
struct FeatureTable {
  const double *m, *gamma, *norm1, *norm2, *v;
  int64_t count;
};

class Ledger {
 public:
  // e_s and `error` are the errors of a product with s, and of gamma, for a unit column. At most
  // `most_vectors` vectors are kept that products were made with. Unless `by_bounds`, nothing but a
  // product is a proof.
  Ledger(FeatureTable features, const double* s, int64_t n, double e_s, double error,
         int64_t most_vectors, bool by_bounds)
      : features_(features), s_(s), n_(n), e_s_(e_s), error_(error),
        most_vectors_(std::max<int64_t>(2, std::min<int64_t>(most_vectors, kNone - 1))),
        by_bounds_(by_bounds), zeta_(features.m, features.m + features.count),
        expiry_(features.count, kDue), until_(features.count, kNever),
        reference_(features.count, kSettled), anchor_(n, 0.0) {
    order_.reserve(features.count);
    for (int64_t j = 0; j < features.count; ++j) {
      if (!(v(j) > 0) || std::isinf(v(j))) continue;  // unpenalised, or left out: nothing to prove
      reference_[j] = 0;
      order_.push_back(static_cast<int32_t>(j));
    }
    near_ = size();
    vectors_.push_back({{}, dot(s, s, n), dot(s, s, n), e_s, near_});
  }

  // Looks for proofs at theta = tau p, which stands for a point within `ball` of it, at grid point
  // k. Products with p will have the error e_zeta for a unit column.
  void consider(int64_t k, const double* p, double tau, double ball, double e_zeta) {
    for (int64_t i = 0; i < proved_; ++i) expiry_[order_[i]] = kDue;
    k_ = k;
    tau_ = tau;
    ball_ = ball;
    reach_ = std::numeric_limits<int32_t>::max();
    candidate_ = free_slot();
    vectors_[candidate_] = {{p, p + n_}, dot(s_, p, n_), dot(p, p, n_), e_zeta, 0};
    view_all();
    step_ = way_to(tau);
    if (unit_.two > 0) step_ = {step_.two + ball / unit_.two, step_.largest + ball / unit_.largest};
    if (!(travelled_.two + step_.two < horizon_.two &&
          travelled_.largest + step_.largest < horizon_.largest))
      bring_near();
    classify();
  }

  // Features without a proof.
  int64_t left() const { return left_ - proved_; }
  // All features not in the working set.
  int64_t size() const { return static_cast<int64_t>(order_.size()) - settled_; }
  // The last grid point at which the candidate is known to satisfy every constraint that matters.
  int64_t reach() const { return reach_; }

  // Up to `most` features without a proof, those first that seem to be violated most; sorted.
  std::vector<int64_t> next(int64_t most) {
    const auto first = order_.begin() + proved_;
    block_ = std::min(most, left());
    if (block_ < left())
      std::nth_element(first, first + block_, order_.begin() + left_,
                       [&](int32_t a, int32_t b) { return level(a) > level(b); });
    std::sort(first, first + block_);
    return {first, first + block_};
  }

  // The products of the features that `next` named with the candidate.
  int64_t block() const { return block_; }
  void record(const double* zeta) {
    for (int64_t i = 0; i < block_; ++i) {
      const int32_t j = order_[proved_ + i];
      leave_reference(j);
      zeta_[j] = zeta[i];
      reference_[j] = static_cast<uint8_t>(candidate_);
      ++vectors_[candidate_].members;
      expiry_[j] = room(j, bound(j));
    }
    proved_ += block_;
    block_ = 0;
  }

  // Takes j out: it joined the working set.
  void forget(int64_t j) {
    if (reference_[j] == kSettled) return;
    leave_reference(j);
    reference_[j] = kSettled;
    ++settled_;
    if (until_[j] != kNever) --retired_[until_[j]];
  }

  // Discards what the rule can among the features with a new proof, by its regions at the grid
  // points from `first` on.
  void look_ahead(int64_t first, const Region* regions, int64_t count) {
    for (int64_t i = 0; i < proved_; ++i) {
      const int32_t j = order_[i];
      if (reference_[j] == kSettled || reference_[j] == kNone) continue;
      const int64_t last = last_below(regions, count, at_candidate(j), 0.0, v(j));
      if (last >= 0) discard(j, first + last);
    }
  }

  // The features that the rule has discarded at grid point k.
  int64_t count_discarded(int64_t k) const {
    int64_t count = 0;
    for (int64_t i = k; i < static_cast<int64_t>(retired_.size()); ++i) count += retired_[i];
    return count;
  }
  std::vector<int64_t> discarded(int64_t k) const {
    std::vector<int64_t> found;
    for (int64_t j = 0; j < features_.count; ++j)
      if (reference_[j] != kSettled && until_[j] >= k) found.push_back(j);
    return found;
  }

  // The candidate, at a scale that is perhaps smaller, becomes the point that the way goes on from.
  void accept(double tau) {
    pace_ = way_to(tau);
    travelled_.two += pace_.two;
    travelled_.largest += pace_.largest;
    for (int64_t i = 0; i < n_; ++i) anchor_[i] = tau * vectors_[candidate_].p[i];
    for (int64_t i = proved_ - 1; i >= 0; --i) {
      const int32_t j = order_[i];
      const float r = expiry_[j];
      if (r > 0) expiry_[j] = not_above(travelled_.two + r);
      if (r < 0) expiry_[j] = -not_above(travelled_.largest - r);
      if (is_far(j)) move_far(i);
    }
    left_ = proved_ = 0;
  }

 private:
  static constexpr uint8_t kSettled = 255, kNone = 254;  // in place of the number of a vector
  static constexpr int16_t kNever = -1;
  static constexpr float kDue = 0.0f;  // the expiry of a feature that has to be looked at

  struct Distance {
    double two, largest;  // in the 2-norm, and of the entry that differs most; in units of `unit_`
  };
  struct Vector {
    std::vector<double> p;  // empty: s
    double sp, pp, e_zeta;
    int64_t members;
  };

  double v(int64_t j) const { return features_.v ? features_.v[j] : 1.0; }
  const double* data(size_t r) const { return r == 0 ? s_ : vectors_[r].p.data(); }

  // ---- the vectors that products were made with ----

  int64_t free_slot() {
    for (size_t r = 1; r < vectors_.size(); ++r)
      if (vectors_[r].members == 0) return static_cast<int64_t>(r);
    if (static_cast<int64_t>(vectors_.size()) <= most_vectors_) {
      vectors_.push_back({});
      return static_cast<int64_t>(vectors_.size()) - 1;
    }
    size_t least = 1;
    for (size_t r = 2; r < vectors_.size(); ++r)
      if (vectors_[r].members < vectors_[least].members) least = r;
    for (uint8_t& r : reference_)
      if (r == least) r = kNone;
    return static_cast<int64_t>(least);
  }

  void leave_reference(int64_t j) {
    if (reference_[j] != kNone) --vectors_[reference_[j]].members;
  }

  void view_all() {
    views_.resize(vectors_.size());
    for (size_t r = 0; r < vectors_.size(); ++r)
      if (vectors_[r].members > 0) views_[r] = view(r);
    views_[candidate_] = {0.0, tau_, 0.0, 0.0, ball_, 0.0, vectors_[candidate_].e_zeta, error_};
  }

  // tau p = c0 s + c1 p_r + rest, by least squares.
  Reference view(size_t number) const {
    const Vector &known = vectors_[number], &own = vectors_[candidate_];
    const double *p = own.p.data(), *r = data(number);
    const double ss = vectors_[0].pp, st = tau_ * own.sp, rt = tau_ * dot(r, p, n_);
    const double det = ss * known.pp - known.sp * known.sp;
    double c0 = 0.0, c1 = known.pp > 0 ? rt / known.pp : 0.0;
    if (det > 1e-10 * ss * known.pp) {
      c0 = (st * known.pp - rt * known.sp) / det;
      c1 = (rt * ss - st * known.sp) / det;
    }
    const Rest rest = rest_of(tau_, p, c0, s_, c1, r, n_);
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * rest.size;
    const double off = error_ * (std::fabs(tau_) * std::sqrt(own.pp) +
                                 std::fabs(c0) * std::sqrt(ss) + std::fabs(c1) * std::sqrt(known.pp));
    const double e_two = std::sqrt(rest.squares) * (1 + error_) + rounding * std::sqrt(double(n_));
    return {c0, c1, e_two, rest.largest + rounding + off, ball_, e_s_, known.e_zeta, error_};
  }

  // ---- one feature at the candidate ----

  Feature feature(int64_t j) const {
    return {features_.m[j], zeta_[j], features_.gamma[j], features_.norm2[j], 0.0};
  }

  double bound(int64_t j) const {
    return reference_bound(views_[reference_[j]], feature(j), features_.norm1[j]);
  }

  // How large |g_j'theta| seems to be, in units of v_j; by its last product if nothing better.
  double level(int64_t j) const {
    if (reference_[j] == kNone) return std::fabs(tau_ * zeta_[j]) / v(j);
    const Reference& r = views_[reference_[j]];
    return std::fabs(r.c1 * zeta_[j] + r.c0 * features_.m[j]) / v(j);
  }

  // The feature with what is known of its product with p.
  Feature at_candidate(int64_t j) const {
    const Reference& r = views_[reference_[j]];
    Feature f = feature(j);
    const double known = std::fabs(r.c1 * f.zeta + r.c0 * f.m);
    f.e_zeta = (bound(j) - known) / tau_;
    f.zeta = (r.c1 * f.zeta + r.c0 * f.m) / tau_;
    return f;
  }

  bool prove(int64_t j) {
    if (by_bounds_ && reference_[j] != kNone) {
      const double known = bound(j);
      if (known <= v(j)) {
        expiry_[j] = room(j, known);
        return true;
      }
    }
    if (until_[j] < k_) return false;
    reach_ = std::min<int64_t>(reach_, until_[j]);
    expiry_[j] = kDue;
    return true;
  }

  void discard(int64_t j, int64_t until) {
    until = std::min<int64_t>(until, std::numeric_limits<int16_t>::max());
    if (until <= until_[j]) return;
    if (until >= static_cast<int64_t>(retired_.size())) retired_.resize(until + 1, 0);
    if (until_[j] != kNever) --retired_[until_[j]];
    ++retired_[until];
    until_[j] = static_cast<int16_t>(until);
  }

  // ---- the odometer ----

  // From the anchor to tau times the candidate's p.
  Distance way_to(double tau) {
    const double* p = vectors_[candidate_].p.data();
    const Rest way = rest_of(tau, p, 1.0, anchor_.data(), 0.0, p, n_);
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * way.size;
    const double root = std::sqrt(static_cast<double>(n_));
    const double two = std::sqrt(way.squares) * (1 + error_) + rounding * root;
    const double largest = way.largest + rounding + error_ * root * 2 * way.size;
    if (unit_.two == 0 && two > 0) {
      unit_ = {two, largest};
      pace_ = {1.0, 1.0};
    }
    if (unit_.two == 0) return {0.0, 0.0};
    return {two / unit_.two, largest / unit_.largest};
  }

  // How far the point may go before the bound is used up, on the odometer that will take longer:
  // positive for the 2-norm, negative for the largest entry. None while all points were zero: there
  // is no unit yet to measure it in.
  float room(int64_t j, double known) const {
    const double slack = v(j) - known, unfit = features_.norm2[j] * error_;
    if (!by_bounds_ || !(slack > 0) || !(unit_.two > 0)) return kDue;
    const double two = slack / (features_.gamma[j] + unfit) / unit_.two;
    const double largest = slack / (features_.norm1[j] * (1 + error_)) / unit_.largest;
    return two * pace_.largest >= largest * pace_.two ? not_above(two) : -not_above(largest);
  }

  static float not_above(double x) {
    constexpr double kLargest = 1e30, kSmallest = 1e-30;
    if (!(x > kSmallest)) return kDue;
    return static_cast<float>(std::min(x, kLargest) * (1 - 2e-7));
  }

  bool is_due(int64_t j) const {
    const float e = expiry_[j];
    if (e > 0) return !(travelled_.two + step_.two < e);
    return !(e < 0 && travelled_.largest + step_.largest < -e);
  }
  bool is_far(int64_t j) const {
    const float e = expiry_[j];
    return e > 0 ? e >= horizon_.two : e < 0 && -e >= horizon_.largest;
  }

  // Moves the horizon, and what lies before it out of the far part.
  void bring_near() {
    constexpr double kSteps = 4;
    horizon_ = {travelled_.two + kSteps * step_.two, travelled_.largest + kSteps * step_.largest};
    for (int64_t i = near_; i < static_cast<int64_t>(order_.size()); ++i)
      if (!is_far(order_[i])) std::swap(order_[i], order_[near_++]);
  }

  // ---- the list ----

  void classify() {
    int64_t next = 0, end = near_;
    proved_ = 0;
    while (next < end) {
      const int32_t j = order_[next];
      if (reference_[j] == kSettled) {
        order_[next] = order_[end - 1];
        order_[--end] = order_[near_ - 1];
        order_[--near_] = order_.back();
        order_.pop_back();
        --settled_;
      } else if (!is_due(j)) {
        std::swap(order_[next], order_[--end]);
      } else if (prove(j)) {
        std::swap(order_[next++], order_[proved_++]);
      } else {
        ++next;
      }
    }
    left_ = next;
  }

  // Moves the i-th of the proved ones behind those that are near.
  void move_far(int64_t i) {
    const int32_t j = order_[i];
    order_[i] = order_[--proved_];
    order_[proved_] = order_[--near_];
    order_[near_] = j;
  }

  FeatureTable features_;
  const double* s_;
  int64_t n_;
  double e_s_, error_;
  int64_t most_vectors_;
  bool by_bounds_;

  std::vector<double> zeta_;        // the last product
  std::vector<float> expiry_;       // of the proof; of one at the candidate: the room it leaves
  std::vector<int16_t> until_;      // the last grid point at which the rule discards the feature
  std::vector<uint8_t> reference_;  // the vector of the last product
  std::vector<int32_t> order_;
  int64_t proved_ = 0, left_ = 0, near_ = 0;  // where the parts of the list end
  int64_t settled_ = 0;  // features in the list that have joined the working set
  int64_t block_ = 0;
  std::vector<int64_t> retired_;  // how many are discarded up to each grid point

  std::vector<Vector> vectors_;
  std::vector<Reference> views_;  // the candidate, seen from each vector
  int64_t candidate_ = 0, k_ = 0, reach_ = 0;
  double tau_ = 0.0, ball_ = 0.0;

  std::vector<double> anchor_;  // the point accepted last
  Distance unit_{0.0, 0.0}, pace_{0.0, 0.0}, travelled_{0.0, 0.0}, step_{0.0, 0.0}, horizon_{0.0, 0.0};
};

}  // namespace sieve
