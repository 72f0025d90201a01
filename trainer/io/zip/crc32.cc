#include "trainer/io/zip/crc32.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::trainer {
namespace {

#if defined(__x86_64__)
#define WITH_PCLMUL __attribute__((target("pclmul,sse4.1")))

// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), for
// bits in reverse: a block of 16 bytes may be moved over the n bits behind it, and added to what is
// there, by multiplying its halves by x^(n+32) and x^(n-32) modulo the polynomial. So four blocks
// at a time are moved over the next four, and in the end over one another, until one is left that
// has the checksum of all.

// The four blocks.
constexpr std::size_t kStride = 64;

// x^(n+32) and x^(n-32) modulo the polynomial, bits in reverse.
struct Constants {
  long long low;
  long long high;
};
constexpr Constants kOverFour = {0x0154442bd4, 0x01c6e41596};  // n = 512
constexpr Constants kOverOne = {0x01751997d0, 0x00ccaa009e};   // n = 128

WITH_PCLMUL __m128i Load(const unsigned char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

WITH_PCLMUL __m128i Moved(__m128i block, __m128i by) {
  return _mm_xor_si128(_mm_clmulepi64_si128(block, by, 0x00),
                       _mm_clmulepi64_si128(block, by, 0x11));
}

// `count` is a multiple of kStride and not 0. `crc` and the result are inverted, as they are while
// a checksum is computed.
WITH_PCLMUL std::uint32_t Fold(std::uint32_t crc, const unsigned char* data, std::size_t count) {
  __m128i a = _mm_xor_si128(Load(data), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = Load(data + 16);
  __m128i c = Load(data + 32);
  __m128i d = Load(data + 48);
  const __m128i over_four = _mm_set_epi64x(kOverFour.high, kOverFour.low);
  for (std::size_t at = kStride; at < count; at += kStride) {
    a = _mm_xor_si128(Moved(a, over_four), Load(data + at));
    b = _mm_xor_si128(Moved(b, over_four), Load(data + at + 16));
    c = _mm_xor_si128(Moved(c, over_four), Load(data + at + 32));
    d = _mm_xor_si128(Moved(d, over_four), Load(data + at + 48));
  }
  const __m128i over_one = _mm_set_epi64x(kOverOne.high, kOverOne.low);
  a = _mm_xor_si128(Moved(a, over_one), b);
  a = _mm_xor_si128(Moved(a, over_one), c);
  a = _mm_xor_si128(Moved(a, over_one), d);
  // `crc` is in them already, so the rest starts from 0, which zlib inverts, too.
  unsigned char rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return ~static_cast<std::uint32_t>(crc32_z(0xffffffff, rest, sizeof rest));
}

bool CanFold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#undef WITH_PCLMUL
#endif

}  // namespace

std::uint32_t Crc32(std::uint32_t crc, const void* data, std::size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (count >= kStride && CanFold()) {
    const std::size_t folded = count / kStride * kStride;
    crc = ~Fold(~crc, bytes, folded);
    bytes += folded;
    count -= folded;
  }
#endif
  return static_cast<std::uint32_t>(crc32_z(crc, bytes, count));
}

}  // namespace muster::trainer
