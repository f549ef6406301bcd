// The columns of a working set, in memory: appended at any time, read by columns and by rows.
//
// Dense columns are n numbers each, a batch side by side, so that products with them are those of
// the kernels. Sparse columns are lists of (row, value); beside them every row has the list of its
// (column, value), which grows as columns come.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "dispatch.hpp"

namespace sieve {

#pragma pack(push, 4)
struct Entry {
  int32_t column;
  double value;
};
#pragma pack(pop)

// For every row a list of entries that grows at its end, all in one pool. Nothing is kept for the
// rows before the first entry comes.
class RowLists {
 public:
  explicit RowLists(int64_t n) : n_(n) {}

  bool empty() const { return rows_.empty(); }
  const Entry* begin(int64_t i) const { return pool_.data() + rows_[i].first; }
  const Entry* end(int64_t i) const { return begin(i) + rows_[i].count; }
  int64_t bytes() const { return static_cast<int64_t>(pool_.capacity() * sizeof(Entry)); }

  // For a row that is wanted soon: first where its list is, then the list itself.
  void fetch(int64_t i) const { __builtin_prefetch(&rows_[i]); }
  void fetch_list(int64_t i) const { __builtin_prefetch(begin(i)); }

  // Whether there is room for one entry more in each of these rows.
  bool fit(const std::vector<int32_t>& rows) const {
    if (rows_.empty()) return false;
    int64_t needed = used_;
    for (const int32_t i : rows)
      if (rows_[i].count == room(rows_[i].count)) needed += room(rows_[i].count + 1);
    return needed <= static_cast<int64_t>(pool_.size());
  }

  void append(int64_t i, Entry entry) {
    if (rows_[i].count == room(rows_[i].count)) move_to_end(i);
    pool_[rows_[i].first + rows_[i].count++] = entry;
  }

  // Puts an entry where `make_room` has made room for it.
  void fill(int64_t i, Entry entry) { pool_[rows_[i].first + rows_[i].count++] = entry; }

  // Empty lists in a new pool, in the order of the rows, each with room for so many entries to be
  // filled in. The old pool is given up first: there are never two.
  void make_room(const std::vector<int32_t>& counts) {
    std::vector<Entry>().swap(pool_);
    rows_.resize(n_);
    used_ = 0;
    for (int64_t i = 0; i < n_; ++i) {
      rows_[i] = {used_, 0};
      used_ += room(counts[i]);
    }
    pool_.resize(used_ + used_ / 2);
  }

 private:
#pragma pack(push, 4)
  struct Row {
    int64_t first;
    int32_t count;
  };
#pragma pack(pop)

  // The room of a list with so many entries: 0, 2, 3, 4, 6, 8, 12, 16, 24, ...
  static int64_t room(int64_t count) {
    if (count == 0) return 0;
    int64_t room = 2;
    while (room < count) room *= 2;
    return room - room / 4 >= count ? room - room / 4 : room;
  }

  // Gives row i the room for one entry more; where it was stays a hole.
  void move_to_end(int64_t i) {
    const int64_t larger = room(rows_[i].count + 1);
    std::copy(begin(i), end(i), pool_.begin() + used_);
    rows_[i].first = used_;
    used_ += larger;
  }

  int64_t n_;
  std::vector<Row> rows_;
  std::vector<Entry> pool_;
  int64_t used_ = 0;
};

class Block {
 public:
  explicit Block(int64_t n) : n_(n), lists_(n) {}

  int64_t size() const { return static_cast<int64_t>(columns_.size()); }

  int64_t bytes() const {
    int64_t total = lists_.bytes();
    for (const Batch& batch : batches_) total += batch.values.capacity() * sizeof(double);
    for (const Column& f : columns_)
      total += f.rows.capacity() * sizeof(int32_t) + f.values.capacity() * sizeof(double);
    return total;
  }

  // A column of ones, which is not stored; before all others.
  void add_ones() {
    has_ones_ = true;
    columns_.emplace_back();
  }

  // `count` columns, one after the other.
  void add_dense(std::vector<double> values, int64_t count) {
    batches_.push_back({size(), count, std::move(values)});
    for (int64_t c = 0; c < count; ++c)
      columns_.push_back({batches_.back().values.data() + c * n_, {}, {}});
  }

  void add_sparse(std::vector<int32_t> rows, std::vector<double> values) {
    const int64_t k = size();
    columns_.push_back({nullptr, std::move(rows), std::move(values)});
    if (!lists_.fit(columns_.back().rows)) return lay_out_lists();
    for_each_entry(k, [&](int64_t i, Entry entry) { lists_.append(i, entry); });
  }

  // out[(k - first) * count + c] = f_k'v_c for the columns [first, last), which do not divide a
  // batch; v_c(i) is at v[i * count + c]. Every sum is in the order of the kernels.
  void products(const double* v, int64_t count, int64_t first, int64_t last, double* out) const {
    std::optional<RightHandSides> laid_out;
    for (const Batch& batch : batches_) {
      if (batch.first < first || batch.first >= last) continue;
      const Dense<double> X{batch.values.data(), n_, batch.count, n_};
      if (!laid_out) laid_out.emplace(X, v, count);
      dots(X, {nullptr, 0, batch.count}, laid_out->vectors(), laid_out->rows(),
           out + (batch.first - first) * count);
    }
    for (int64_t k = first; k < last; ++k) {
      const Column& f = columns_[k];
      double* products = out + (k - first) * count;
      if (is_ones(k)) {
        sums(v, count, products);
      } else if (!f.dense) {
        const int32_t offsets[] = {0, static_cast<int32_t>(f.rows.size())};
        const Csc<double, int32_t> X{f.values.data(), f.rows.data(), offsets, n_, 1};
        dots(X, {nullptr, 0, 1}, {v, count}, {nullptr, nullptr}, products);
      }
    }
  }

  // sum += d f_k
  void combine(int64_t k, double d, double* sum) const {
    const Column& f = columns_[k];
    if (f.dense) return axpy(d, f.dense, sum, n_);
    if (is_ones(k))
      for (int64_t i = 0; i < n_; ++i) sum[i] += d;
    for (size_t p = 0; p < f.rows.size(); ++p) sum[f.rows[p]] += d * f.values[p];
  }

  // Replaces `entries` by those of row i.
  void row(int64_t i, std::vector<Entry>& entries) const {
    entries.clear();
    if (!lists_.empty()) entries.assign(lists_.begin(i), lists_.end(i));
    if (has_ones_) entries.push_back({0, 1.0});
    for (const Batch& batch : batches_)
      for (int64_t c = 0; c < batch.count; ++c)
        entries.push_back({static_cast<int32_t>(batch.first + c), batch.values[c * n_ + i]});
  }

  // row(k)[j] = sum_i a(i) x_ij x_ik for the columns k from `first` on and all j <= k. Calls
  // between() now and then; where that throws, the rows not yet made are as they were.
  template <class Weight, class Row, class Between>
  void gram(int64_t first, Weight a, Row row, Between between) const {
    int64_t k = first;
    if (is_ones(k) && k < size()) {
      double total = 0.0;
      for (int64_t i = 0; i < n_; ++i) total += a(i);
      row(k++)[0] = total;
    }
    for (const Batch& batch : batches_) {
      if (batch.first < first) continue;
      between();
      gram_of_batch(batch, a, row);
    }
    for (; k < size(); ++k) {
      if (columns_[k].dense) continue;
      between();
      gram_of_sparse(k, a, row(k));
    }
  }

 private:
  struct Batch {
    int64_t first, count;
    std::vector<double> values;
  };
  struct Column {
    const double* dense = nullptr;  // in its batch; or, if there are none:
    std::vector<int32_t> rows;
    std::vector<double> values;
  };

  // Calls visit(row, entry) along a sparse column, with the lists of the rows at hand.
  template <class Visit>
  void for_each_entry(int64_t k, Visit visit) const {
    const Column& f = columns_[k];
    for (size_t p = 0; p < f.rows.size(); ++p) {
      fetch_lists(f.rows, p);
      visit(f.rows[p], Entry{static_cast<int32_t>(k), f.values[p]});
    }
  }

  // The lists of the rows anew, from the columns.
  void lay_out_lists() {
    std::vector<int32_t> counts(n_, 0);
    for (const Column& f : columns_)
      for (const int32_t i : f.rows) ++counts[i];
    lists_.make_room(counts);
    for (int64_t k = 0; k < size(); ++k)
      for_each_entry(k, [&](int64_t i, Entry entry) { lists_.fill(i, entry); });
  }

  bool is_ones(int64_t k) const { return has_ones_ && k == 0; }

  // Some columns of the batch at a time, so that their products with `a` take little memory.
  template <class Weight, class Row>
  void gram_of_batch(const Batch& batch, Weight a, Row row) const {
    constexpr int64_t kTogether = 2 << 20;  // numbers
    const int64_t together = std::max<int64_t>(1, kTogether / n_);
    for (int64_t begin = 0; begin < batch.count; begin += together) {
      const int64_t count = std::min(together, batch.count - begin), last = batch.first + batch.count;
      std::vector<double> weighted(n_ * count), products(last * count);
      for (int64_t i = 0; i < n_; ++i) {
        const double times = a(i);
        for (int64_t c = 0; times != 0 && c < count; ++c)
          weighted[i * count + c] = times * batch.values[(begin + c) * n_ + i];
      }
      this->products(weighted.data(), count, 0, last, products.data());
      for (int64_t c = 0; c < count; ++c)
        for (int64_t j = 0; j <= batch.first + begin + c; ++j)
          row(batch.first + begin + c)[j] = products[j * count + c];
    }
  }

  template <class Weight>
  void gram_of_sparse(int64_t k, Weight a, double* g) const {
    const Column& f = columns_[k];
    std::fill(g, g + k + 1, 0.0);
    for (size_t p = 0; p < f.rows.size(); ++p) {
      fetch_lists(f.rows, p);
      const int64_t i = f.rows[p];
      const double times = a(i) * f.values[p];
      if (times == 0) continue;
      if (has_ones_) g[0] += times;
      const Entry* last = lists_.end(i);
      for (const Entry* e = lists_.begin(i); e != last && e->column <= k; ++e)
        g[e->column] += times * e->value;
      for (const Batch& batch : batches_)
        for (int64_t c = 0; c < batch.count && batch.first < k; ++c)
          g[batch.first + c] += times * batch.values[c * n_ + i];
    }
  }

  void fetch_lists(const std::vector<int32_t>& rows, size_t p) const {
    constexpr size_t kAhead = 8;
    if (p + 2 * kAhead >= rows.size()) return;
    lists_.fetch(rows[p + 2 * kAhead]);
    lists_.fetch_list(rows[p + kAhead]);
  }

  void sums(const double* v, int64_t count, double* out) const {
    for (int64_t c = 0; c < count; ++c) {
      double total = 0.0;
      for (int64_t begin = 0; begin < n_; begin += kChunk) {
        double lane[kSparseLanes] = {};
        for (int64_t i = begin; i < std::min(begin + kChunk, n_); ++i)
          lane[i % kSparseLanes] += v[i * count + c];
        total += (lane[0] + lane[2]) + (lane[1] + lane[3]);
      }
      out[c] = total;
    }
  }

  int64_t n_;
  bool has_ones_ = false;
  RowLists lists_;
  std::vector<Batch> batches_;
  std::vector<Column> columns_;
};

}  // namespace sieve
