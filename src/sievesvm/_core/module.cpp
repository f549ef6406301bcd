#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "bounds.hpp"
#include "face.hpp"
#include "feasible.hpp"
#include "ledger.hpp"
#include "line.hpp"
#include "stats.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sieve {
namespace {

using In = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutTable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutCounts = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using List = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Raw = nb::ndarray<nb::ro, nb::device::cpu>;

const double* data_or_null(const std::optional<In>& a) { return a ? a->data() : nullptr; }

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

#define SIEVE_VIEW_ALTERNATIVE(...) , __VA_ARGS__
#define SIEVE_VIEW_ALTERNATIVES(T) SIEVE_FOR_EACH_VIEW_OF(T, SIEVE_VIEW_ALTERNATIVE)
using AnyView = std::variant<std::monostate SIEVE_FOR_EACH_VALUE_TYPE(SIEVE_VIEW_ALTERNATIVES)>;

// Calls use(T{}) with the value type of the array.
template <class Use>
AnyView with_value_type(nb::dlpack::dtype dtype, Use use) {
#define SIEVE_TRY(T) \
  if (dtype == nb::dtype<T>()) return use(T{});
  SIEVE_FOR_EACH_VALUE_TYPE(SIEVE_TRY)
#undef SIEVE_TRY
  throw std::invalid_argument("values of this type are not supported");
}

// The arrays behind one Weighting.
struct StatsTask {
  std::optional<In> e;
  InTable Q, products;
  bool centred;
  int64_t n_products;
  Out mean, norm1, norm2, gamma, deviation;
  OutCounts nonzeros;
  OutTable extra;

  Weighting weighting(int64_t n, int64_t m) const {
    const int64_t rank = static_cast<int64_t>(Q.shape(0));
    const auto has = [](const auto& array, int64_t size) {
      return static_cast<int64_t>(array.size()) == size;
    };
    require((!e || has(*e, n)) && has(Q, rank * n) && has(products, n * n_products) &&
                has(mean, m) && has(norm1, m) && has(norm2, m) && has(gamma, m) &&
                has(deviation, m) && has(nonzeros, m) && has(extra, m * (n_products - 1 - rank)),
            "the arrays do not fit the matrix");
    return {data_or_null(e), Q.data(), rank, centred, products.data(), n_products, mean.data(),
            norm1.data(), norm2.data(), gamma.data(), deviation.data(),
            nonzeros.data(), extra.data()};
  }
};

// The columns of a matrix where they lie; the arrays are kept alive and never written.
class Columns {
 public:
  static Columns dense(Raw X) {
    require(X.ndim() == 2, "a dense matrix has two dimensions");
    const int64_t n = X.shape(0), m = X.shape(1);
    require(n <= 1 || m == 0 || X.stride(0) == 1, "columns must be contiguous");
    AnyView view = with_value_type(X.dtype(), [&](auto zero) -> AnyView {
      using T = decltype(zero);
      return Dense<T>{static_cast<const T*>(X.data()), n, m, X.stride(1)};
    });
    return Columns(view, {X}, n, m);
  }

  static Columns csc(Raw data, Raw indices, Raw indptr, int64_t n, int64_t m) {
    for (const Raw& a : {data, indices, indptr})
      require(a.ndim() == 1 && (a.size() <= 1 || a.stride(0) == 1),
              "data, indices and indptr must be contiguous vectors");
    require(indices.dtype() == indptr.dtype(), "indices and indptr must be of one type");
    const int64_t stored = static_cast<int64_t>(std::min(data.size(), indices.size()));
    AnyView view = with_value_type(data.dtype(), [&](auto zero) -> AnyView {
      using T = decltype(zero);
      const auto of = [&](auto index) -> AnyView {
        using I = decltype(index);
        const I* offsets = static_cast<const I*>(indptr.data());
        check_offsets(offsets, static_cast<int64_t>(indptr.size()), m, stored);
        return Csc<T, I>{static_cast<const T*>(data.data()),
                         static_cast<const I*>(indices.data()), offsets, n, m};
      };
      if (indices.dtype() == nb::dtype<int32_t>()) return of(int32_t{});
      require(indices.dtype() == nb::dtype<int64_t>(), "indices must be int32 or int64");
      return of(int64_t{});
    });
    return Columns(view, {data, indices, indptr}, n, m);
  }

  // "none": row numbers increase strictly and are in range; else "unsorted" or "outside".
  std::string order_fault() const {
    nb::gil_scoped_release release;
    bool outside = false, unsorted = false;
    visit([&](const auto& X) {
      for (int64_t j = 0; j < m_; ++j) {
        int64_t last = -1;
        for_each_entry(X, j, [&](int64_t i, double) {
          outside |= i < 0 || i >= n_;
          unsorted |= i <= last;
          last = i;
        });
      }
    });
    return outside ? "outside" : unsorted ? "unsorted" : "none";
  }

  void correlate(const InTable& V, const std::optional<List>& columns, OutTable out,
                 int threads) const {
    const int64_t count = columns ? static_cast<int64_t>(columns->size()) : m_;
    const int64_t r = static_cast<int64_t>(out.shape(1));
    require(static_cast<int64_t>(V.size()) == n_ * r && static_cast<int64_t>(out.shape(0)) == count,
            "V and out do not fit the matrix");
    check_range(columns);
    const ColumnRange all{columns ? columns->data() : nullptr, 0, count};
    const double* data = V.data();
    double* target = out.data();
    nb::gil_scoped_release release;
    visit([&](const auto& X) {
      const RightHandSides v(X, data, r);
      const double work = static_cast<double>(count) * static_cast<double>(r) *
                          static_cast<double>(X.all_entries()) / std::max<double>(1.0, m_);
      const int64_t block = block_size(count, work, threads);
      for_each_block(count, block, threads, [&](int64_t first, int64_t last) {
        dots(X, ColumnRange{all.list, first, last}, v.vectors(), v.rows(), target);
      });
    });
  }

  // out += sum over k of w_k f_columns[k], in the order given.
  void combine(const In& w, const List& columns, Out out) const {
    require(w.size() == columns.size() && static_cast<int64_t>(out.size()) == n_,
            "w, columns and out do not fit the matrix");
    check_range(columns);
    double* target = out.data();
    nb::gil_scoped_release release;
    visit([&](const auto& X) {
      for (size_t k = 0; k < columns.size(); ++k) {
        const double wk = w.data()[k];
        for_each_entry(X, columns.data()[k], [&](int64_t i, double f) { target[i] += wk * f; });
      }
    });
  }

  // Row, column and value of the first entry that is not finite; column -1 if there is none.
  std::tuple<int64_t, int64_t, double> stats(const std::vector<StatsTask>& tasks, int threads) const {
    std::vector<Weighting> weightings;
    for (const StatsTask& task : tasks) weightings.push_back(task.weighting(n_, m_));
    Place place;
    nb::gil_scoped_release release;
    visit([&](const auto& X) { place = all_stats(X, weightings, threads); });
    return {place.row, place.column, place.value};
  }

  // Calls use(X) with the view of the matrix.
  template <class Use>
  void visit(Use use) const {
    std::visit([&](const auto& view) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(view)>, std::monostate>) use(view);
    }, view_);
  }

  int64_t rows() const { return n_; }

  void check_range(const std::optional<List>& columns) const {
    if (!columns) return;
    for (size_t k = 0; k < columns->size(); ++k)
      require(columns->data()[k] >= 0 && columns->data()[k] < m_, "a column is out of range");
  }

  int64_t entries(const std::optional<List>& columns) const {
    check_range(columns);
    int64_t total = 0;
    visit([&](const auto& X) {
      if (!columns) total = X.all_entries();
      else
        for (size_t p = 0; p < columns->size(); ++p) total += X.entries(columns->data()[p]);
    });
    return total;
  }

 private:
  Columns(AnyView view, std::vector<Raw> owners, int64_t n, int64_t m)
      : view_(view), owners_(std::move(owners)), n_(n), m_(m) {}

  template <class I>
  static void check_offsets(const I* offsets, int64_t count, int64_t m, int64_t stored) {
    bool good = count == m + 1 && offsets[0] == 0 && offsets[m] <= stored;
    for (int64_t j = 0; good && j < m; ++j) good = offsets[j] <= offsets[j + 1];
    require(good, "X is damaged: its indptr must start at 0, never decrease, have one entry more "
                  "than there are columns (CSR: rows) and end within data and indices.");
  }

  AnyView view_;
  std::vector<Raw> owners_;
  int64_t n_, m_;
};

// The arrays that hold one number per feature; v null: ones.
struct Features {
  In m, zeta, gamma, norm2;
  std::optional<In> factors;
  Features(In m_, In zeta_, In gamma_, In norm2_, std::optional<In> factors_)
      : m(m_), zeta(zeta_), gamma(gamma_), norm2(norm2_), factors(factors_) {
    require(m.size() == zeta.size() && m.size() == gamma.size() && m.size() == norm2.size() &&
                (!factors || m.size() == factors->size()), "one number per feature is needed");
  }
  int64_t count() const { return static_cast<int64_t>(m.size()); }
  double v(int64_t j) const { return factors ? factors->data()[j] : 1.0; }
  Feature operator[](int64_t j) const {
    return {m.data()[j], zeta.data()[j], gamma.data()[j], norm2.data()[j], 0.0};
  }
};

void region_bounds(const In& region, const Features& f, const std::optional<In>& extra, Out out) {
  require(region.size() == kRegionFields && static_cast<int64_t>(out.size()) == f.count() &&
              (!extra || extra->size() == out.size()), "the arrays do not fit each other");
  const Region& K = *reinterpret_cast<const Region*>(region.data());
  nb::gil_scoped_release release;
  for (int64_t j = 0; j < f.count(); ++j)
    out.data()[j] = region_bound(K, f[j], extra ? extra->data()[j] : 0.0);
}

// `last_below` per feature.
void last_discard(const InTable& regions, const Features& f, const std::optional<In>& extra,
                  OutCounts out) {
  require(static_cast<int64_t>(regions.shape(1)) == kRegionFields &&
              static_cast<int64_t>(out.size()) == f.count() &&
              (!extra || extra->size() == out.size()), "the arrays do not fit each other");
  const Region* K = reinterpret_cast<const Region*>(regions.data());
  const int64_t count = static_cast<int64_t>(regions.shape(0));
  nb::gil_scoped_release release;
  for (int64_t j = 0; j < f.count(); ++j)
    out.data()[j] = last_below(K, count, f[j], extra ? extra->data()[j] : 0.0, f.v(j));
}

void reference_bounds(const In& reference, const Features& f, const In& norm1, Out out) {
  require(reference.size() == kReferenceFields && static_cast<int64_t>(out.size()) == f.count() &&
              norm1.size() == out.size(), "the arrays do not fit each other");
  const Reference& r = *reinterpret_cast<const Reference*>(reference.data());
  nb::gil_scoped_release release;
  for (int64_t j = 0; j < f.count(); ++j)
    out.data()[j] = reference_bound(r, f[j], norm1.data()[j]);
}

// The largest scale with scale (|zeta_j| + e_zeta norm2_j + (gamma_j + e_gamma norm2_j) off) <= v_j
// for all j, and the feature that limits it (-1: none). Zero if a product is not a number.
std::tuple<double, int64_t> feasible_scale(const Features& f, double e_zeta, double e_gamma,
                                           double off) {
  constexpr double kRounding = 1 - 8 * std::numeric_limits<double>::epsilon();
  double scale = std::numeric_limits<double>::infinity();
  int64_t limiting = -1;
  for (int64_t j = 0; j < f.count(); ++j) {
    if (f.v(j) == 0 || std::isinf(f.v(j))) continue;  // met by construction, or left out
    const Feature x = f[j];
    const double ratio = f.v(j) / (std::fabs(x.zeta) + e_zeta * x.norm2 +
                                        (x.gamma + e_gamma * x.norm2) * off);
    if (std::isnan(ratio)) return {0.0, j};
    if (ratio < scale) {
      scale = ratio;
      limiting = j;
    }
  }
  return {scale * kRounding, limiting};
}

// `Factor` on arrays, by itself.
class FactorHandle {
 public:
  int64_t size() const { return factor_.size(); }
  bool append(int32_t k, const In& h) {
    require(k >= 0 && !factor_.has(k) && static_cast<int64_t>(h.size()) == size() + 1,
            "one product for every column is needed");
    return factor_.append(k, h.data());
  }
  void remove(int64_t a) {
    require(a >= 0 && a < size(), "a column is out of range");
    factor_.remove(a);
  }
  bool add_square(const In& x, double c) {
    require(static_cast<int64_t>(x.size()) == size(), "one number per column is needed");
    std::vector<double> used_up(x.data(), x.data() + x.size());
    return factor_.add_square(used_up.data(), c);
  }
  void solve(Out x) const {
    require(static_cast<int64_t>(x.size()) == size(), "one number per column is needed");
    factor_.solve(x.data());
  }

 private:
  Factor factor_;
};

// `Face` on arrays; y and c are kept alive.
class FaceHandle {
 public:
  FaceHandle(In y, std::optional<In> c) : y_(y), c_(c), face_(y.data(), data_or_null(c), rows()) {
    require(!c || c->size() == y.size(), "the vectors differ in length");
  }
  void add_ones() {
    require(face_.size() == 0, "the ones must come before all other columns");
    face_.add_ones();
  }
  void add(const Columns& block, const List& positions, const In& shift, const In& v) {
    require(block.rows() == rows() && shift.size() == v.size() && positions.size() == v.size(),
            "the block does not fit");
    block.check_range(positions);
    nb::gil_scoped_release release;
    const int64_t count = static_cast<int64_t>(v.size());
    block.visit([&](const auto& X) {
      for (int64_t first = 0; first < count; first += kTogether)
        add_some(X, positions, shift.data(), v.data(), first, std::min(first + kTogether, count));
    });
  }
  std::tuple<int64_t, bool> solve(double lam, double tol, int64_t max_steps) {
    nb::gil_scoped_release release;
    const Face::Outcome outcome = face_.solve(lam, tol, max_steps);
    return {outcome.steps, outcome.converged};
  }
  int64_t size() const { return face_.size(); }
  int64_t bytes() const { return face_.bytes(); }
  void coefficients(Out w) const { copy(face_.w(), w); }
  void zeta(Out zeta) const { copy(face_.zeta(), zeta); }
  void products(const In& vector, Out out) const {
    require(static_cast<int64_t>(vector.size()) == rows() &&
                static_cast<int64_t>(out.size()) == face_.size(), "the vectors do not fit");
    nb::gil_scoped_release release;
    face_.products(vector.data(), out.data());
  }
  void slacks(Out xi) const {
    require(static_cast<int64_t>(xi.size()) == rows(), "one number per row is needed");
    for (int64_t i = 0; i < rows(); ++i) xi.data()[i] = std::max(face_.residual()[i], 0.0);
  }

 private:
  static constexpr int64_t kTogether = 8;  // dense columns whose products are made side by side

  int64_t rows() const { return static_cast<int64_t>(y_.size()); }
  static void copy(const std::vector<double>& from, Out to) {
    require(to.size() == from.size(), "one number per column is needed");
    std::copy(from.begin(), from.end(), to.data());
  }

  template <class T>
  void add_some(const Dense<T>& X, const List& positions, const double* shift, const double* v,
                int64_t first, int64_t last) {
    std::vector<double> values;
    values.reserve(X.n * (last - first));
    for (int64_t k = first; k < last; ++k)
      for_each_entry(X, positions.data()[k],
                     [&](int64_t, double f) { values.push_back(f - shift[k]); });
    face_.add_dense(std::move(values), {v + first, v + last});
  }
  template <class T, class I>
  void add_some(const Csc<T, I>& X, const List& positions, const double* shift, const double* v,
                int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      const int64_t j = positions.data()[k];
      std::vector<int32_t> rows;
      std::vector<double> values;
      rows.reserve(X.entries(j));
      values.reserve(X.entries(j));
      for_each_entry(X, j, [&](int64_t i, double f) {
        if (f - shift[k] == 0) return;
        rows.push_back(static_cast<int32_t>(i));
        values.push_back(f - shift[k]);
      });
      face_.add_sparse(std::move(rows), std::move(values), v[k]);
    }
  }

  In y_;
  std::optional<In> c_;
  Face face_;
};

nb::ndarray<nb::numpy, int64_t, nb::ndim<1>> as_array(std::vector<int64_t> values) {
  auto* kept = new std::vector<int64_t>(std::move(values));
  nb::capsule owner(kept, [](void* data) noexcept {
    delete static_cast<std::vector<int64_t>*>(data);
  });
  return {kept->data(), {kept->size()}, owner};
}

// `Ledger` on arrays, which it keeps alive.
class LedgerHandle {
 public:
  LedgerHandle(In m, In gamma, In norm1, In norm2, std::optional<In> v, In s, double e_s,
               double error, int64_t most_vectors, bool by_bounds)
      : owners_{m, gamma, norm1, norm2, s},
        v_(v),
        n_(static_cast<int64_t>(s.size())),
        ledger_({m.data(), gamma.data(), norm1.data(), norm2.data(), data_or_null(v),
                 checked_count(m, gamma, norm1, norm2, v)}, s.data(), n_, e_s, error, most_vectors,
                by_bounds) {}
  void consider(int64_t k, const In& p, double tau, double ball, double e_zeta) {
    require(static_cast<int64_t>(p.size()) == n_, "one number per row is needed");
    nb::gil_scoped_release release;
    ledger_.consider(k, p.data(), tau, ball, e_zeta);
  }
  auto next(int64_t most) {
    require(most > 0, "at least one feature has to be asked for");
    return as_array(ledger_.next(most));
  }
  void record(const In& zeta) {
    require(static_cast<int64_t>(zeta.size()) == ledger_.block(), "one product per column is needed");
    ledger_.record(zeta.data());
  }
  void forget(const List& columns) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const int64_t j = columns.data()[i];
      require(j >= 0 && j < static_cast<int64_t>(owners_[0].size()), "a column is out of range");
      ledger_.forget(j);
    }
  }
  void look_ahead(int64_t first, const InTable& regions) {
    require(static_cast<int64_t>(regions.shape(1)) == kRegionFields, "these are no regions");
    nb::gil_scoped_release release;
    ledger_.look_ahead(first, reinterpret_cast<const Region*>(regions.data()),
                       static_cast<int64_t>(regions.shape(0)));
  }
  void accept(double tau) {
    require(ledger_.left() == 0, "there are features without a proof");
    nb::gil_scoped_release release;
    ledger_.accept(tau);
  }
  int64_t size() const { return ledger_.size(); }
  int64_t left() const { return ledger_.left(); }
  int64_t reach() const { return ledger_.reach(); }
  int64_t count_discarded(int64_t k) const { return ledger_.count_discarded(k); }
  auto discarded(int64_t k) const { return as_array(ledger_.discarded(k)); }

 private:
  static int64_t checked_count(const In& m, const In& gamma, const In& norm1, const In& norm2,
                               const std::optional<In>& v) {
    require(gamma.size() == m.size() && norm1.size() == m.size() && norm2.size() == m.size() &&
                (!v || v->size() == m.size()), "one number per feature is needed");
    return static_cast<int64_t>(m.size());
  }
  std::vector<In> owners_;
  std::optional<In> v_;
  int64_t n_;
  Ledger ledger_;
};

double minimise_on_line(const In& r, const In& a, const std::optional<In>& c, double start) {
  require(r.size() == a.size() && (!c || c->size() == r.size()), "the vectors differ in length");
  nb::gil_scoped_release release;
  return line_minimum({r.data(), a.data(), data_or_null(c), static_cast<int64_t>(r.size())}, start);
}

// NaN where the rows left `inside` do not determine the correction.
double off_feasible(const In& beta, const In& p, const In& y, const InTable& Q, double error,
                    Flags inside) {
  const int64_t n = static_cast<int64_t>(beta.size());
  require(p.size() == beta.size() && y.size() == beta.size() && inside.size() == beta.size() &&
              (Q.shape(0) == 0 || Q.shape(1) == beta.size()), "the vectors differ in length");
  nb::gil_scoped_release release;
  const Distance distance = distance_to_feasible(
      beta.data(), p.data(), y.data(), Q.data(), static_cast<int64_t>(Q.shape(0)), n, error,
      inside.data());
  return distance.found ? distance.off : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names{"base"};
  if (supported(Isa::avx2)) names.push_back("avx2");
  if (supported(Isa::avx512)) names.push_back("avx512");
  return names;
}

void use_instruction_set(const std::string& name) {
  const std::vector<std::string> names = instruction_sets();
  require(std::find(names.begin(), names.end(), name) != names.end(),
          "this processor does not have that instruction set");
  isa_in_use() = name == "avx512" ? Isa::avx512 : name == "avx2" ? Isa::avx2 : Isa::base;
}

}  // namespace
}  // namespace sieve

NB_MODULE(_core, module) {
  using namespace sieve;
  nb::class_<StatsTask>(module, "StatsTask")
      .def("__init__",
           [](StatsTask* self, std::optional<In> e, InTable Q, InTable products, bool centred,
              int64_t n_products, Out mean, Out norm1, Out norm2, Out gamma,
              Out deviation, OutCounts nonzeros, OutTable extra) {
             new (self) StatsTask{e, Q, products, centred, n_products, mean, norm1, norm2, gamma,
                                  deviation, nonzeros, extra};
           },
           "e"_a.none(), "Q"_a, "products"_a, nb::kw_only(), "centred"_a, "n_products"_a,
           "mean"_a, "norm1"_a, "norm2"_a, "gamma"_a, "deviation"_a, "nonzeros"_a,
           "extra"_a);
  nb::class_<Columns>(module, "Columns")
      .def_static("dense", &Columns::dense, "X"_a)
      .def_static("csc", &Columns::csc, "data"_a, "indices"_a, "indptr"_a, "n"_a,
                  "m"_a)
      .def("order_fault", &Columns::order_fault)
      .def("correlate", &Columns::correlate, "V"_a, "columns"_a.none(), "out"_a, "threads"_a)
      .def("combine", &Columns::combine, "w"_a, "columns"_a, "out"_a)
      .def("stats", &Columns::stats, "tasks"_a, "threads"_a)
      .def("entries", &Columns::entries, "columns"_a.none());
  nb::class_<Features>(module, "Features")
      .def(nb::init<In, In, In, In, std::optional<In>>(), "m"_a, "zeta"_a, "gamma"_a, "norm2"_a,
           "v"_a.none());
  nb::class_<FactorHandle>(module, "Factor")
      .def(nb::init<>())
      .def("append", &FactorHandle::append, "k"_a, "h"_a)
      .def("remove", &FactorHandle::remove, "a"_a)
      .def("add_square", &FactorHandle::add_square, "x"_a, "c"_a)
      .def("solve", &FactorHandle::solve, "x"_a)
      .def("__len__", &FactorHandle::size);
  nb::class_<FaceHandle>(module, "Face")
      .def(nb::init<In, std::optional<In>>(), "y"_a, "c"_a.none())
      .def("add_ones", &FaceHandle::add_ones)
      .def("add", &FaceHandle::add, "block"_a, "positions"_a, "shift"_a, "v"_a)
      .def("solve", &FaceHandle::solve, "lam"_a, "tol"_a, "max_steps"_a)
      .def("coefficients", &FaceHandle::coefficients, "w"_a)
      .def("products", &FaceHandle::products, "vector"_a, "out"_a)
      .def("slacks", &FaceHandle::slacks, "xi"_a)
      .def("zeta", &FaceHandle::zeta, "out"_a)
      .def("bytes", &FaceHandle::bytes)
      .def("__len__", &FaceHandle::size);
  nb::class_<LedgerHandle>(module, "Ledger")
      .def(nb::init<In, In, In, In, std::optional<In>, In, double, double, int64_t, bool>(), "m"_a,
           "gamma"_a, "norm1"_a, "norm2"_a, "v"_a.none(), "s"_a, nb::kw_only(), "e_s"_a, "error"_a,
           "most_vectors"_a, "by_bounds"_a)
      .def("consider", &LedgerHandle::consider, "k"_a, "p"_a, "tau"_a, "ball"_a, "e_zeta"_a)
      .def("next", &LedgerHandle::next, "most"_a)
      .def("record", &LedgerHandle::record, "zeta"_a)
      .def("forget", &LedgerHandle::forget, "columns"_a)
      .def("look_ahead", &LedgerHandle::look_ahead, "first"_a, "regions"_a)
      .def("accept", &LedgerHandle::accept, "tau"_a)
      .def("count_discarded", &LedgerHandle::count_discarded, "k"_a)
      .def("discarded", &LedgerHandle::discarded, "k"_a)
      .def_prop_ro("left", &LedgerHandle::left)
      .def_prop_ro("reach", &LedgerHandle::reach)
      .def("__len__", &LedgerHandle::size);
  module.def("region_bounds", &region_bounds, "region"_a, "features"_a, "extra"_a.none(), "out"_a);
  module.def("last_discard", &last_discard, "regions"_a, "features"_a,
             "extra"_a.none(), "out"_a);
  module.def("reference_bounds", &reference_bounds, "reference"_a, "features"_a, "norm1"_a,
             "out"_a);
  module.def("feasible_scale", &feasible_scale, "features"_a, nb::kw_only(), "e_zeta"_a = 0.0,
             "e_gamma"_a = 0.0, "off"_a = 0.0);
  module.def("minimise_on_line", &minimise_on_line, "r"_a, "a"_a, "c"_a.none(), "start"_a);
  module.def("distance_to_feasible", &off_feasible, "beta"_a, "p"_a, "y"_a, "Q"_a, "error"_a,
             "inside"_a);
  module.def("dot", [](const In& a, const In& b) {
    require(a.size() == b.size(), "the vectors differ in length");
    return dot(a.data(), b.data(), static_cast<int64_t>(a.size()));
  }, "a"_a, "b"_a);
  module.def("distance", [](double a, const In& p, double b, const In& q) {
    require(p.size() == q.size(), "the vectors differ in length");
    const double* q_data = q.data();
    return std::sqrt(rest_of(a, p.data(), b, q_data, 0.0, q_data,
                             static_cast<int64_t>(p.size())).squares);
  }, "a"_a, "p"_a, "b"_a, "q"_a);
  module.def("norm", [](const In& a) {
    return norm(a.data(), static_cast<int64_t>(a.size()));
  }, "a"_a);
  module.def("instruction_sets", &instruction_sets);
  module.def("use_instruction_set", &use_instruction_set, "name"_a);
  module.attr("CHUNK") = kChunk;
  module.attr("LANES") = kLanes;
  module.attr("SPARSE_LANES") = kSparseLanes;
  module.attr("FEW") = kFew;
}
