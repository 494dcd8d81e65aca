// Rows side by side in 16 lanes of AVX-512 with VBMI and VBMI2 (Ice Lake, Zen 4 and newer).
#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "core/jpeg/huffman/lanes_in_memory.h"
#include "core/jpeg/huffman/pieces_in_memory.h"

namespace headrace {
namespace {

using V = __m512i;

constexpr unsigned kLanes = 16;
constexpr unsigned kSymbols = 2;          // of each lane between two gathers
constexpr unsigned kWindowsPerEntry = 8;  // of the log

constexpr auto kMasks = [] {
  std::array<uint32_t, 16> masks{};
  for (unsigned size = 0; size < masks.size(); ++size) masks[size] = (1u << size) - 1;
  return masks;
}();

V load(const void* from) { return _mm512_loadu_si512(from); }
void store(void* to, V v) { _mm512_storeu_si512(to, v); }
V all(uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

/// The bytes of 128 that `at` selects. Inline assembly, because GCC 12 overwrites the table instead of `at`, and so
/// loads it again for each look-up.
ALWAYS_INLINE V bytes_of(V low, V high, V at) {
  asm("vpermi2b %2, %1, %0" : "+v"(at) : "v"(low), "v"(high));
  return at;
}

/// The lanes of a mask. GCC 12 may leave other bits above these 16 where it keeps a mask in memory for a while.
ALWAYS_INLINE unsigned lanes_of(unsigned mask) {
  asm("" : "+r"(mask));
  return mask & ((1u << kLanes) - 1);
}

struct Table {
  V low, high;
  explicit Table(const uint8_t* bytes) : low(load(bytes)), high(load(bytes + 64)) {}
  ALWAYS_INLINE V operator[](V at) const { return bytes_of(low, high, at); }
};

/// Lanes: LanesInMemory or PiecesInMemory.
template <class Lanes>
class Decoder : public Lanes {
 public:
  using Lanes::Lanes;
  /// False: damaged or irregular data; of pieces always true.
  bool run();

 private:
  using Lanes::bit_, Lanes::k_, Lanes::state_, Lanes::block_, Lanes::step_, Lanes::left_;
  using Lanes::input_, Lanes::active_, Lanes::kLeast;
  void store_values(unsigned symbol);
  void forget_values() { std::fill(&place_[0][0], &place_[0][0] + kSymbols * kLanes, input_.waste); }

  alignas(kCacheLine) uint32_t place_[kSymbols][kLanes];
  alignas(kCacheLine) int32_t value_[kSymbols][kLanes] = {};
};

template <class Lanes>
ALWAYS_INLINE void Decoder<Lanes>::store_values(unsigned symbol) {
#pragma GCC unroll 16
  for (unsigned i = 0; i < kLanes; ++i) input_.memory[place_[symbol][i]] = static_cast<int16_t>(value_[symbol][i]);
}

template <class Lanes>
bool Decoder<Lanes>::run() {
  constexpr bool kArePieces = Lanes::kArePieces;
  const LaneTables& tables = *input_.tables;
  const auto& codes = tables.ac[0];
  const auto& dc_codes = tables.dc[0];
  const Table ac_bits(codes.bits.data()), ac_advance(codes.advance.data()), ac_size(codes.size.data());
  const Table dc_bits(dc_codes.bits.data()), dc_size(dc_codes.size.data()), places(kPlaces.data());
  const V states = load(input_.states), masks = load(kMasks.data());
  const V big_endian = _mm512_broadcast_i32x4(_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
  const V zero = _mm512_setzero_si512(), one = all(1), ones = all(~0u), slot_bits = all(LaneTables::kSlots - 1);
  const V least = all(kLeast), most_bits = all(LaneTables::kMostBits), last_place = all(127), block_end = all(63);
  const V last_byte = all(input_.size);
  const auto words = [&](V bit, int ahead) {
    const V at = _mm512_min_epu32(_mm512_srli_epi32(bit, 3), last_byte);
    return _mm512_shuffle_epi8(_mm512_i32gather_epi32(at, input_.bytes + ahead, 1), big_endian);
  };
  V bit, k, state, block, step, left;
  V window;                       // the next 32 bits of each lane, inverted
  [[maybe_unused]] V end = ones;  // of the pieces
  [[maybe_unused]] unsigned windows = 0;
  V wrong = zero;
  const auto take_lanes = [&] {
    bit = load(bit_), k = load(k_), state = load(state_), block = load(block_);
    step = load(step_), left = load(left_);
    if constexpr (kArePieces) end = load(this->end_);
    const V from_bit = _mm512_and_si512(bit, all(7));
    window = _mm512_mask_mov_epi32(ones, static_cast<__mmask16>(active_),
                                   _mm512_shldv_epi32(words(bit, 0), words(bit, 4), from_bit));
  };
  forget_values();
  take_lanes();
  const auto put_lanes = [&] {
    store(bit_, bit), store(k_, k), store(state_, state), store(block_, block);
    store(left_, left);
  };
  const auto wrong_lanes = [&] { return lanes_of(_mm512_test_epi32_mask(wrong, all(kWrong))) & active_; };
  while (active_ != 0) {
    if constexpr (kArePieces)
      if (windows++ % kWindowsPerEntry == 0) {
        for (unsigned lanes = wrong_lanes(); lanes != 0; lanes &= lanes - 1)
          this->note_wrong(static_cast<unsigned>(std::countr_zero(lanes)));
        wrong = zero;
        LaneLogEntry& entry = this->add_to_log();
        store(entry.bit.data(), bit);
        store(entry.done.data(), _mm512_add_epi32(_mm512_sub_epi32(load(this->granted_), left), all(kLeast)));
        store(entry.place.data(),
              _mm512_or_si512(k, _mm512_slli_epi32(_mm512_and_si512(state, all(kLaneStates - 1)), 8)));
      }
    // Gathered while the window is used: the bits after it, of which the last 7 may be missing.
    const V after =
        _mm512_mask_sllv_epi32(ones, static_cast<__mmask16>(active_), words(bit, 4), _mm512_and_si512(bit, all(7)));
    V bits = window, used = zero, waits = zero;  // `waits`: lanes that take no part until the next window
    __mmask16 is_dc = _mm512_testn_epi32_mask(k, k);
    unsigned singles = 0, ended = 0;
#pragma GCC unroll 2
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) {
      store_values(symbol);  // of the last window
      const V number = _mm512_castps_si512(_mm512_cvt_roundepu32_ps(bits, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
      const V slot = _mm512_ternarylogic_epi32(slot_bits, _mm512_srli_epi32(number, LaneTables::kShift), state, 0xCA);
      V total = _mm512_mask_mov_epi32(ac_bits[slot], is_dc, dc_bits[slot]);
      V advance = _mm512_mask_mov_epi32(ac_advance[slot], is_dc, one);
      V size = _mm512_mask_mov_epi32(ac_size[slot], is_dc, dc_size[slot]);
      const V smallest = _mm512_min_epu32(_mm512_min_epu32(bits, left), _mm512_slli_epi32(total, 24));
      if (_mm512_cmple_epu32_mask(smallest, least) != 0) [[unlikely]] {
        const __mmask16 many_ones = _mm512_cmple_epu32_mask(bits, least);
        if (many_ones != 0) {
          const auto& ac = tables.ac[1];
          const auto& dc = tables.dc[1];
          const __mmask16 below_16 = _mm512_mask_cmpge_epu32_mask(many_ones, bits, all(1u << 16));
          const auto replace = [&](V* value, const uint8_t* of_ac, V of_dc) {
            const V found = _mm512_mask_mov_epi32(Table(of_ac)[slot], is_dc, of_dc);
            *value = _mm512_mask_mov_epi32(*value, many_ones, _mm512_maskz_mov_epi32(below_16, found));
          };
          replace(&total, ac.bits.data(), Table(dc.bits.data())[slot]);
          replace(&advance, ac.advance.data(), one);
          replace(&size, ac.size.data(), Table(dc.size.data())[slot]);
        }
        const __mmask16 ends = _mm512_mask_cmple_epu32_mask(static_cast<__mmask16>(active_), left, least);
        const __mmask16 no_slot = _mm512_testn_epi32_mask(total, total);
        ended |= ends;
        singles |= no_slot & ~ends & active_;
        block = _mm512_mask_mov_epi32(block, ends, all(input_.waste));
        waits = _mm512_mask_mov_epi32(waits, static_cast<__mmask16>(ends | no_slot), ones);
      }
      if (symbol != 0)  // the bits that are left may be too few
        waits =
            _mm512_or_si512(waits, _mm512_srai_epi32(_mm512_sub_epi32(most_bits, _mm512_add_epi32(used, total)), 31));
      total = _mm512_andnot_si512(waits, total);
      advance = _mm512_andnot_si512(waits, advance);
      size = _mm512_andnot_si512(waits, size);
      used = _mm512_add_epi32(used, total);
      bits = _mm512_rolv_epi32(bits, total);
      const V mask = _mm512_permutexvar_epi32(size, masks);
      const V magnitude = _mm512_andnot_si512(bits, mask);
      const __mmask16 negative = _mm512_cmplt_epi32_mask(_mm512_add_epi32(magnitude, magnitude), mask);
      store(value_[symbol], _mm512_mask_sub_epi32(magnitude, negative, magnitude, mask));
      const V next = _mm512_add_epi32(k, advance);
      const V place = places[_mm512_min_epu32(_mm512_or_si512(next, waits), last_place)];
      wrong = _mm512_or_si512(wrong, place);
      store(place_[symbol], _mm512_add_epi32(block, _mm512_and_si512(place, last_place)));
      const __mmask16 ends_block = _mm512_cmpgt_epi32_mask(next, block_end);
      k = _mm512_mask_mov_epi32(next, ends_block, zero);
      left = _mm512_mask_sub_epi32(left, ends_block, left, one);
      block = _mm512_mask_add_epi32(block, ends_block, block, step);
      state = _mm512_mask_permutexvar_epi32(state, ends_block, state, states);
      is_dc = _kor_mask16(ends_block, _kand_mask16(_mm512_movepi32_mask(waits), is_dc));
    }
    bit = _mm512_add_epi32(bit, used);
    window = _mm512_shldv_epi32(window, after, used);
    unsigned passed = 0;
    if constexpr (kArePieces) passed = _mm512_cmpge_epu32_mask(bit, end);
    if ((singles | ended | passed) == 0) [[likely]]
      continue;
    for (unsigned lanes = wrong_lanes(); lanes != 0; lanes &= lanes - 1) {
      if constexpr (!kArePieces) return false;
      if constexpr (kArePieces) this->note_wrong(static_cast<unsigned>(std::countr_zero(lanes)));
    }
    wrong = zero;
    for (unsigned symbol = 0; symbol < kSymbols; ++symbol) store_values(symbol);
    forget_values();
    put_lanes();
    for (unsigned lanes = lanes_of(ended); lanes != 0; lanes &= lanes - 1)
      if (!this->end_part(static_cast<unsigned>(std::countr_zero(lanes)))) return false;
    for (unsigned lanes = lanes_of(singles); lanes != 0; lanes &= lanes - 1)
      if (!this->single(static_cast<unsigned>(std::countr_zero(lanes)))) return false;
    if constexpr (kArePieces)
      for (unsigned lanes = lanes_of(passed); lanes != 0; lanes &= lanes - 1) {
        const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes));
        if (this->end_[lane] != ~0u && bit_[lane] >= this->end_[lane]) this->pass_end(lane);
      }
    take_lanes();
  }
  return true;
}

bool decode_rows(const LaneJob& job) { return Decoder<LanesInMemory<kLanes>>(job).run(); }

void decode_pieces(PieceJob* job) { Decoder<PiecesInMemory<kLanes>>(job).run(); }

void move_blocks(int16_t* from, int blocks, int16_t (*const* to)[64]) {
  for (int i = 0; i < blocks; ++i, from += 64) {
    store(*to[i], load(from));
    store(*to[i] + 32, load(from + 32));
    store(from, _mm512_setzero_si512());
    store(from + 32, _mm512_setzero_si512());
  }
}

}  // namespace

const RowLanes kAvx512RowLanes{"avx512", kLanes, 7, decode_rows, decode_pieces, move_blocks};

double gather_ns_avx512() {
  alignas(kCacheLine) int words[256];
  for (int i = 0; i < 256; ++i) words[i] = (i * 37 + 11) % 256;
  const V at = load(words);
  double best = 1e9;
  for (int round = 0; round < 8; ++round) {
    constexpr unsigned kGathers = 64;
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < kGathers; ++i) {
      V found = _mm512_i32gather_epi32(_mm512_xor_si512(at, all(i & 15)), words, 4);
      asm volatile("" : "+v"(found));
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / kGathers);
  }
  return best;
}

}  // namespace headrace
#endif
