#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <variant>

#include "bounds.hpp"
#include "face.hpp"
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
      for_each_block(count, block_size(count, threads), threads, [&](int64_t first, int64_t last) {
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

  // Calls use(rows, values) with the nonzero entries of column j, less `shift`.
  template <class Use>
  void with_entries(int64_t j, double shift, Use use) const {
    require(j >= 0 && j < m_, "a column is out of range");
    std::vector<int32_t> rows;
    std::vector<double> values;
    visit([&](const auto& X) {
      for_each_entry(X, j, [&](int64_t i, double f) {
        if (f - shift == 0) return;
        rows.push_back(static_cast<int32_t>(i));
        values.push_back(f - shift);
      });
    });
    use(std::move(rows), std::move(values));
  }

  int64_t rows() const { return n_; }

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

  template <class Use>
  void visit(Use use) const {
    std::visit([&](const auto& view) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(view)>, std::monostate>) use(view);
    }, view_);
  }

  template <class I>
  static void check_offsets(const I* offsets, int64_t count, int64_t m, int64_t stored) {
    bool good = count == m + 1 && offsets[0] == 0 && offsets[m] <= stored;
    for (int64_t j = 0; good && j < m; ++j) good = offsets[j] <= offsets[j + 1];
    require(good, "X is damaged: its indptr must start at 0, never decrease, have one entry more "
                  "than there are columns (CSR: rows) and end within data and indices.");
  }

  void check_range(const std::optional<List>& columns) const {
    if (!columns) return;
    for (size_t k = 0; k < columns->size(); ++k)
      require(columns->data()[k] >= 0 && columns->data()[k] < m_, "a column is out of range");
  }

  static int64_t block_size(int64_t count, int threads) {
    return threads <= 1 ? std::max<int64_t>(count, 1)
                        : std::max<int64_t>(8, std::min<int64_t>(1024, count / (8 * threads)));
  }

  AnyView view_;
  std::vector<Raw> owners_;
  int64_t n_, m_;
};

// The arrays that hold one number per feature.
struct Features {
  In m, zeta, gamma, norm2;
  Features(In m_, In zeta_, In gamma_, In norm2_)
      : m(m_), zeta(zeta_), gamma(gamma_), norm2(norm2_) {
    require(m.size() == zeta.size() && m.size() == gamma.size() && m.size() == norm2.size(),
            "one number per feature is needed");
  }
  int64_t count() const { return static_cast<int64_t>(m.size()); }
  Feature operator[](int64_t j) const {
    return {m.data()[j], zeta.data()[j], gamma.data()[j], norm2.data()[j]};
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

// Per feature the last region, counted from 0, up to which all bounds are below v; -1: none.
// The bounds are quasi-convex along the regions (theorem C), so bisection finds it.
void last_discard(const InTable& regions, const Features& f, const std::optional<In>& extra,
                  const In& v, OutCounts out) {
  const int64_t count = static_cast<int64_t>(regions.shape(0));
  require(static_cast<int64_t>(regions.shape(1)) == kRegionFields &&
              static_cast<int64_t>(v.size()) == f.count() &&
              static_cast<int64_t>(out.size()) == f.count() &&
              (!extra || extra->size() == out.size()), "the arrays do not fit each other");
  const Region* K = reinterpret_cast<const Region*>(regions.data());
  nb::gil_scoped_release release;
  for (int64_t j = 0; j < f.count(); ++j) {
    auto discarded = [&](int64_t k) {
      return region_bound(K[k], f[j], extra ? extra->data()[j] : 0.0) < v.data()[j];
    };
    int64_t good = -1, bad = count;
    if (count == 0 || !discarded(0)) bad = 0;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (discarded(middle) ? good : bad) = middle;
    }
    out.data()[j] = good;
  }
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
std::tuple<double, int64_t> feasible_scale(const Features& f, const In& v, double e_zeta,
                                           double e_gamma, double off) {
  constexpr double kRounding = 1 - 8 * std::numeric_limits<double>::epsilon();
  require(static_cast<int64_t>(v.size()) == f.count(), "the arrays do not fit each other");
  double scale = std::numeric_limits<double>::infinity();
  int64_t limiting = -1;
  for (int64_t j = 0; j < f.count(); ++j) {
    if (v.data()[j] == 0 || std::isinf(v.data()[j])) continue;  // met by construction, or left out
    const Feature x = f[j];
    const double ratio = v.data()[j] / (std::fabs(x.zeta) + e_zeta * x.norm2 +
                                        (x.gamma + e_gamma * x.norm2) * off);
    if (std::isnan(ratio)) return {0.0, j};
    if (ratio < scale) {
      scale = ratio;
      limiting = j;
    }
  }
  return {scale * kRounding, limiting};
}

// `Face` on arrays.
class FaceHandle {
 public:
  FaceHandle(const In& y, const std::optional<In>& c)
      : n_(static_cast<int64_t>(y.size())), face_(made(y, c)) {}
  void add_ones() {
    std::vector<int32_t> rows(n_);
    std::iota(rows.begin(), rows.end(), 0);
    face_.add(std::move(rows), std::vector<double>(n_, 1.0), 0.0);
  }
  void add(const Columns& block, const List& positions, const In& shift, const In& v) {
    require(block.rows() == n_ && shift.size() == v.size() && positions.size() == v.size(),
            "the block does not fit");
    for (size_t k = 0; k < v.size(); ++k)
      block.with_entries(positions.data()[k], shift.data()[k], [&](auto rows, auto values) {
        face_.add(std::move(rows), std::move(values), v.data()[k]);
      });
  }
  std::tuple<int64_t, bool> solve(double lam, double tol, int64_t max_steps) {
    nb::gil_scoped_release release;
    const Face::Outcome outcome = face_.solve(lam, tol, max_steps);
    return {outcome.steps, outcome.converged};
  }
  int64_t size() const { return face_.size(); }
  void coefficients(Out w) const {
    require(static_cast<int64_t>(w.size()) == face_.size(), "one number per column is needed");
    std::copy(face_.w().begin(), face_.w().end(), w.data());
  }
  void products(const In& vector, Out out) const {
    require(static_cast<int64_t>(vector.size()) == n_ &&
                static_cast<int64_t>(out.size()) == face_.size(), "the vectors do not fit");
    face_.products(vector.data(), out.data());
  }
  void slacks(Out xi) const {
    require(static_cast<int64_t>(xi.size()) == n_, "one number per row is needed");
    for (int64_t i = 0; i < n_; ++i) xi.data()[i] = std::max(face_.residual()[i], 0.0);
  }

 private:
  static Face made(const In& y, const std::optional<In>& c) {
    require(!c || c->size() == y.size(), "the vectors differ in length");
    return Face(y.data(), data_or_null(c), static_cast<int64_t>(y.size()));
  }
  int64_t n_;
  Face face_;
};

using OwnedList = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

// An array that owns what it shows.
OwnedList handed_over(std::vector<int64_t> values) {
  auto* kept = new std::vector<int64_t>(std::move(values));
  nb::capsule owner(kept, [](void* data) noexcept {
    delete static_cast<std::vector<int64_t>*>(data);
  });
  return OwnedList(kept->data(), {kept->size()}, owner);
}

// `Ledger` on arrays, which it keeps alive.
class LedgerHandle {
 public:
  LedgerHandle(In m, In gamma, In norm1, In norm2, In v, const In& s, double e_m, double e_gamma)
      : owners_{m, gamma, norm1, norm2, v},
        n_(static_cast<int64_t>(s.size())),
        ledger_({m.data(), gamma.data(), norm1.data(), norm2.data(), v.data(),
                 static_cast<int64_t>(m.size())}, s.data(), n_, e_m, e_gamma) {
    for (const In& owner : owners_) require(owner.size() == m.size(), "the arrays do not fit");
  }
  int32_t add_vector(const In& p, double e_zeta) {
    require(static_cast<int64_t>(p.size()) == n_, "one number per row is needed");
    return ledger_.add_vector(p.data(), e_zeta);
  }
  void record(const List& columns, const In& zeta, int32_t vector) {
    require(columns.size() == zeta.size(), "one product per column is needed");
    for (size_t k = 0; k < columns.size(); ++k)
      ledger_.record(checked(columns.data()[k]), zeta.data()[k], vector);
  }
  void forget(const List& columns) {
    for (size_t k = 0; k < columns.size(); ++k) ledger_.forget(checked(columns.data()[k]));
  }
  void discard(const List& columns, const List& until) {
    require(columns.size() == until.size(), "one grid point per column is needed");
    for (size_t k = 0; k < columns.size(); ++k)
      ledger_.discard(checked(columns.data()[k]), until.data()[k]);
  }
  OwnedList discarded(int64_t k) const { return handed_over(ledger_.discarded(k)); }
  nb::tuple pending(int64_t k, const In& p, double tau, double ball) {
    require(static_cast<int64_t>(p.size()) == n_, "one number per row is needed");
    std::vector<int64_t> left;
    Ledger::Count count;
    {
      nb::gil_scoped_release release;
      count = ledger_.pending(k, p.data(), tau, ball, left);
    }
    return nb::make_tuple(handed_over(std::move(left)), count.bounds, count.discards);
  }

 private:
  int64_t checked(int64_t j) const {
    require(j >= 0 && j < static_cast<int64_t>(owners_[0].size()), "a column is out of range");
    return j;
  }
  std::vector<In> owners_;
  int64_t n_;
  Ledger ledger_;
};

double minimise_on_line(const In& r, const In& a, const std::optional<In>& c, double start) {
  require(r.size() == a.size() && (!c || c->size() == r.size()), "the vectors differ in length");
  nb::gil_scoped_release release;
  return line_minimum({r.data(), a.data(), data_or_null(c), static_cast<int64_t>(r.size())}, start);
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
      .def(nb::init<In, In, In, In>(), "m"_a, "zeta"_a, "gamma"_a, "norm2"_a);
  nb::class_<FaceHandle>(module, "Face")
      .def(nb::init<In, std::optional<In>>(), "y"_a, "c"_a.none())
      .def("add_ones", &FaceHandle::add_ones)
      .def("add", &FaceHandle::add, "block"_a, "positions"_a, "shift"_a, "v"_a)
      .def("solve", &FaceHandle::solve, "lam"_a, "tol"_a, "max_steps"_a)
      .def("coefficients", &FaceHandle::coefficients, "w"_a)
      .def("products", &FaceHandle::products, "vector"_a, "out"_a)
      .def("slacks", &FaceHandle::slacks, "xi"_a)
      .def("__len__", &FaceHandle::size);
  nb::class_<LedgerHandle>(module, "Ledger")
      .def(nb::init<In, In, In, In, In, In, double, double>(), "m"_a, "gamma"_a, "norm1"_a,
           "norm2"_a, "v"_a, "s"_a, nb::kw_only(), "e_m"_a, "e_gamma"_a)
      .def("add_vector", &LedgerHandle::add_vector, "p"_a, "e_zeta"_a)
      .def("record", &LedgerHandle::record, "columns"_a, "zeta"_a, "vector"_a)
      .def("forget", &LedgerHandle::forget, "columns"_a)
      .def("discard", &LedgerHandle::discard, "columns"_a, "until"_a)
      .def("discarded", &LedgerHandle::discarded, "k"_a)
      .def("pending", &LedgerHandle::pending, "k"_a, "p"_a, "tau"_a, "ball"_a);
  module.def("region_bounds", &region_bounds, "region"_a, "features"_a, "extra"_a.none(), "out"_a);
  module.def("last_discard", &last_discard, "regions"_a, "features"_a,
             "extra"_a.none(), "v"_a, "out"_a);
  module.def("reference_bounds", &reference_bounds, "reference"_a, "features"_a, "norm1"_a,
             "out"_a);
  module.def("feasible_scale", &feasible_scale, "features"_a, "v"_a, nb::kw_only(), "e_zeta"_a,
             "e_gamma"_a, "off"_a);
  module.def("minimise_on_line", &minimise_on_line, "r"_a, "a"_a, "c"_a.none(), "start"_a);
  module.def("dot", [](const In& a, const In& b) {
    require(a.size() == b.size(), "the vectors differ in length");
    return dot(a.data(), b.data(), static_cast<int64_t>(a.size()));
  }, "a"_a, "b"_a);
  module.def("instruction_sets", &instruction_sets);
  module.def("use_instruction_set", &use_instruction_set, "name"_a);
  module.attr("CHUNK") = kChunk;
  module.attr("LANES") = kLanes;
  module.attr("SPARSE_LANES") = kSparseLanes;
  module.attr("FEW") = kFew;
}
