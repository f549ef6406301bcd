// Eight stored values as eight doubles, in as many registers as the instruction set needs.
// Compilers widen packs of small types one by one, so those conversions are spelled out.
// Included by kernels.inc.hpp.

#if defined(__AVX512F__)
constexpr int kWidth = 8;
#elif defined(__AVX2__)
constexpr int kWidth = 4;
#else
constexpr int kWidth = 2;
#endif
constexpr int kParts = kLanes / kWidth;

typedef double Part __attribute__((vector_size(kWidth * sizeof(double))));
typedef int64_t PartMask __attribute__((vector_size(kWidth * sizeof(int64_t))));

template <class T>
inline Part load_part(const T* x) {
  Part part;
  for (int l = 0; l < kWidth; ++l) part[l] = static_cast<double>(x[l]);
  return part;
}

template <>
inline Part load_part<double>(const double* x) {
  Part part;
  std::memcpy(&part, x, sizeof part);
  return part;
}

#if defined(__AVX512F__)
inline __m128i all_of(const void* x) { return _mm_loadu_si128(static_cast<const __m128i*>(x)); }
inline Part to_double(__m256i x) { return reinterpret_cast<Part>(_mm512_cvtepi32_pd(x)); }
inline __m256i ints(const int8_t* x) { return _mm256_cvtepi8_epi32(_mm_loadu_si64(x)); }
inline __m256i ints(const uint8_t* x) { return _mm256_cvtepu8_epi32(_mm_loadu_si64(x)); }
inline __m256i ints(const int16_t* x) { return _mm256_cvtepi16_epi32(all_of(x)); }
inline __m256i ints(const uint16_t* x) { return _mm256_cvtepu16_epi32(all_of(x)); }
inline Part doubles(const float* x) {
  return reinterpret_cast<Part>(_mm512_cvtps_pd(_mm256_loadu_ps(x)));
}
#elif defined(__AVX2__)
inline Part to_double(__m128i x) { return reinterpret_cast<Part>(_mm256_cvtepi32_pd(x)); }
inline __m128i ints(const int8_t* x) { return _mm_cvtepi8_epi32(_mm_loadu_si32(x)); }
inline __m128i ints(const uint8_t* x) { return _mm_cvtepu8_epi32(_mm_loadu_si32(x)); }
inline __m128i ints(const int16_t* x) { return _mm_cvtepi16_epi32(_mm_loadu_si64(x)); }
inline __m128i ints(const uint16_t* x) { return _mm_cvtepu16_epi32(_mm_loadu_si64(x)); }
inline Part doubles(const float* x) { return reinterpret_cast<Part>(_mm256_cvtps_pd(_mm_loadu_ps(x))); }
#endif

#if defined(__AVX2__)
template <> inline Part load_part<float>(const float* x) { return doubles(x); }
template <> inline Part load_part<int8_t>(const int8_t* x) { return to_double(ints(x)); }
template <> inline Part load_part<uint8_t>(const uint8_t* x) { return to_double(ints(x)); }
template <> inline Part load_part<int16_t>(const int16_t* x) { return to_double(ints(x)); }
template <> inline Part load_part<uint16_t>(const uint16_t* x) { return to_double(ints(x)); }
#endif

// a b + c, rounded once: half the instructions, and the same bits on every processor. Without the
// instruction it is slow; processors of the last ten years have it.
inline Part fused(Part a, Part b, Part c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Part>(_mm512_fmadd_pd(reinterpret_cast<__m512d>(a),
                                                reinterpret_cast<__m512d>(b),
                                                reinterpret_cast<__m512d>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<Part>(_mm256_fmadd_pd(reinterpret_cast<__m256d>(a),
                                                reinterpret_cast<__m256d>(b),
                                                reinterpret_cast<__m256d>(c)));
#else
  for (int l = 0; l < kWidth; ++l) c[l] = __builtin_fma(a[l], b[l], c[l]);
  return c;
#endif
}

struct Pack {
  Part part[kParts];

  void add_product(const Pack& a, const Pack& b) {
    for (int p = 0; p < kParts; ++p) part[p] = fused(a.part[p], b.part[p], part[p]);
  }
  double operator[](int l) const { return part[l / kWidth][l % kWidth]; }
};

inline Pack zero() {
  Pack pack;
  for (int p = 0; p < kParts; ++p) pack.part[p] = Part{};
  return pack;
}

template <class T>
inline Pack load(const T* x) {
  Pack pack;
  for (int p = 0; p < kParts; ++p) pack.part[p] = load_part(x + p * kWidth);
  return pack;
}

// The last rows of a column, filled up with zeros, which add nothing.
template <class T>
inline Pack load_some(const T* x, int64_t count) {
  T padded[kLanes] = {};
  std::memcpy(padded, x, count * sizeof(T));
  return load(padded);
}

#if defined(__AVX512F__)
inline __mmask8 first_lanes(int64_t count) { return static_cast<__mmask8>((1u << count) - 1); }

template <>
inline Pack load_some<double>(const double* x, int64_t count) {
  return {{reinterpret_cast<Part>(_mm512_maskz_loadu_pd(first_lanes(count), x))}};
}

template <>
inline Pack load_some<float>(const float* x, int64_t count) {
  return {{reinterpret_cast<Part>(
      _mm512_cvtps_pd(_mm256_maskz_loadu_ps(first_lanes(count), x)))}};
}
#endif

// Adds the upper half of the lanes to the lower, until one is left.
inline double sum(const Pack& lanes) {
  typedef double Four __attribute__((vector_size(4 * sizeof(double))));
  typedef double Two __attribute__((vector_size(2 * sizeof(double))));
  Four upper, lower;
  std::memcpy(&lower, &lanes, sizeof lower);
  std::memcpy(&upper, reinterpret_cast<const char*>(&lanes) + sizeof lower, sizeof upper);
  lower += upper;
  Two high, low;
  std::memcpy(&low, &lower, sizeof low);
  std::memcpy(&high, reinterpret_cast<const char*>(&lower) + sizeof low, sizeof high);
  low += high;
  return low[0] + low[1];
}
