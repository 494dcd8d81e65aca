// Decodes the Huffman codes of a baseline scan, faster than libjpeg-turbo does: wanted blocks completely, of all others
// only the lengths of the codes and the DC values.
#include "core/jpeg/huffman.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/jpeg/scan_bytes.h"

#define ALWAYS_INLINE [[gnu::always_inline]] inline

namespace headrace {
namespace {

// Readable bytes after a segment: more than an MCU can read past the end, at most 31 bits for each of a block's 64
// symbols. Their values do not matter: an MCU that ends behind its segment is refused.
constexpr size_t kPadding = kMaxBlocksInMcu * 64 * 4 + 16;

// Longer segments are never passed unread: 2^16 differences of less than 2^15 stay in the range of int, so in a shorter
// one there is no damage at which libjpeg stops.
constexpr int64_t kMostBlocksPassed = 1 << 16;

// Zigzag to natural order. Positions past the end of a block, up to 63 + kEndOfBlock, map to the last coefficient: it
// is still zero then, and only zeros are written to it.
constexpr auto kNaturalOrder = [] {
  std::array<uint8_t, 256> order{};
  size_t n = 0;
  for (unsigned diagonal = 0; diagonal < 15; ++diagonal)
    for (unsigned i = 0; i <= diagonal; ++i) {
      const unsigned row = diagonal % 2 != 0 ? i : diagonal - i, column = diagonal - row;
      if (row < 8 && column < 8) order[n++] = static_cast<uint8_t>(row * 8 + column);
    }
  while (n < order.size()) order[n++] = 63;
  return order;
}();

ALWAYS_INLINE uint64_t load_big_endian(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

/// The next bits, left-aligned. Between symbols at least kLookupBits of them are valid, see kMaxEntryBits.
struct Bits {
  uint64_t bits = 0;
  const uint8_t* next = nullptr;
  unsigned count = 0;  // valid bits

  ALWAYS_INLINE uint64_t lookup() const { return bits >> (64 - kLookupBits); }
  /// Makes at least 56 bits valid. Bits past `count` may be set already; the OR sets them to the same values.
  ALWAYS_INLINE void refill() {
    bits |= load_big_endian(next) >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  ALWAYS_INLINE void drop(unsigned n) {  // below 64
    bits <<= n;
    count -= n;
  }
};

/// The signed value of the first 63 - `complement` bits. Branch-free, since sizes are hard to predict.
ALWAYS_INLINE int extend(uint64_t bits, unsigned complement) {
  const uint64_t negative = ~static_cast<uint64_t>(static_cast<int64_t>(bits) >> 63);  // all ones if the first bit is 0
  const int magnitude = static_cast<int>((bits ^ negative) >> 1 >> (complement & 63));
  return (magnitude ^ static_cast<int>(negative)) - static_cast<int>(negative);
}

struct Step {
  enum Outcome : uint32_t { kWrong, kGoOn, kBlockDone };
  uint64_t bits;
  const uint8_t* next;
  unsigned count;
  size_t k;
  Outcome outcome;
};

/// Decodes one AC symbol that the tables do not cover: a long code, a long value, a block filled to its end, damage.
/// Needs 31 valid bits. Takes and returns scalars: if the address of the caller's Bits were taken, they would live in
/// memory, and every block would wait for a store to be loaded again.
[[gnu::noinline]] Step single_step(uint64_t bits, const uint8_t* next, unsigned count, size_t k, const AcTable& table,
                                   int16_t* block) {
  Bits in{bits, next, count};
  const auto result = [&](Step::Outcome outcome) { return Step{in.bits, in.next, in.count, k, outcome}; };
  const uint64_t entry = table.pair[in.lookup()];
  unsigned length = entry >> 24 & 255, complement = entry >> 16 & 255, advance = entry >> 8 & 255;
  if (length == 0) {
    int long_length = 0;
    const int symbol = table.long_codes.find(in.bits, &long_length);
    if (symbol < 0) return result(Step::kWrong);
    length = static_cast<unsigned>(long_length);
    const unsigned size = symbol & 15, run = static_cast<unsigned>(symbol) >> 4;
    complement = 63 - size;
    advance = size == 0 && run != 15 ? kEndOfBlock : run + 1;
  }
  const int value = extend(in.bits << length, complement);
  in.drop(length + 63 - complement);
  in.refill();
  if (advance == kEndOfBlock) return result(Step::kBlockDone);
  k += advance;
  if (k > 64) return result(Step::kWrong);  // libjpeg would continue
  if (block != nullptr) block[kNaturalOrder[k - 1]] = static_cast<int16_t>(value);
  return result(k == 64 ? Step::kBlockDone : Step::kGoOn);
}

/// single_step() on the caller's state.
ALWAYS_INLINE Step::Outcome step(Bits* in, size_t* k, const AcTable& table, int16_t* block) {
  const Step after = single_step(in->bits, in->next, in->count, *k, table, block);
  in->bits = after.bits;
  in->next = after.next;
  in->count = after.count;
  *k = after.k;
  return after.outcome;
}

/// Decodes the AC coefficients of a block into `block`. False: damage.
ALWAYS_INLINE bool read_ac(Bits* in, const AcTable& table, int16_t* block) {
  size_t k = 1;  // the next coefficient's place in zigzag order
  uint64_t entry;
  size_t first, both;  // k after the entry's first symbol, and after both
  int value;
  const auto look = [&] {
    entry = table.pair[in->lookup()];
    first = k + (entry >> 8 & 255);
    both = k + (entry >> 48);
  };
  const auto extend_first = [&] {
    value = extend(in->bits << (entry >> 24 & 63), static_cast<unsigned>(entry >> 16) & 63);
  };
  const auto take = [&] {
    extend_first();
    // The second value first: if there is none, both places are equal, and the first value must remain.
    block[kNaturalOrder[both - 1]] = static_cast<int16_t>(entry >> 32);
    block[kNaturalOrder[first - 1]] = static_cast<int16_t>(value);
    k = both;
    in->drop(entry & 255);
  };
  for (;;) {
    look();
    in->refill();
    if (both <= 63) [[likely]] {
      take();
      look();
      if (both <= 63) [[likely]] {
        take();
        continue;
      }
    }
    if (both >= kEndOfBlock && both < kSingle && (first < 64 || first >= kEndOfBlock)) {
      extend_first();
      block[kNaturalOrder[first - 1]] = static_cast<int16_t>(value);
      in->drop(entry & 255);
      return true;
    }
    const Step::Outcome outcome = step(in, &k, table, block);
    if (outcome != Step::kGoOn) return outcome == Step::kBlockDone;
  }
}

/// Skips the AC coefficients of a block. False: damage.
ALWAYS_INLINE bool skip_ac(Bits* in, const AcTable& table) {
  size_t k = 1;
  for (;;) {
    unsigned entry = table.skip[in->lookup()];
    in->refill();
    if (k + (entry >> 6) <= 63) [[likely]] {
      k += entry >> 6;
      in->drop(entry & 63);
      entry = table.skip[in->lookup()];
      if (k + (entry >> 6) <= 63) [[likely]] {
        k += entry >> 6;
        in->drop(entry & 63);
        continue;
      }
    }
    if (entry >> 6 >= kSkipEnd && k + (entry >> 6) < 64 + kSkipEnd) {
      in->drop(entry & 63);
      return true;
    }
    const Step::Outcome outcome = step(in, &k, table, nullptr);
    if (outcome != Step::kGoOn) return outcome == Step::kBlockDone;
  }
}

ALWAYS_INLINE bool read_dc(Bits* in, const DcTable& table, int* difference) {
  const uint32_t entry = table.entry[in->lookup()];
  in->refill();
  unsigned length = entry >> 8 & 255, size = entry >> 16;
  if (entry == 0) [[unlikely]] {
    int long_length = 0;
    const int symbol = table.long_codes.find(in->bits, &long_length);
    if (symbol < 0 || symbol > 15) return false;
    length = static_cast<unsigned>(long_length);
    size = static_cast<unsigned>(symbol);
  }
  *difference = extend(in->bits << length, 63 - size);
  in->drop(length + size);
  return true;
}

}  // namespace

struct HuffmanDecoder::State {
  ScanBytes bytes;
  Bits in;  // of the current segment
  int64_t last_dc[4] = {};
  int blocks = 0, mcus_per_row = 0, first_column = 0, last_column = 0;
  HuffmanScan::Block block[kMaxBlocksInMcu];
  std::array<DcTable, 4> dc;
  std::array<AcTable, 4> ac;
  int asked = 0, asked_column = 0;  // the MCU of the next call of next_mcu
  int at = 0, column = 0;           // the MCU that begins at `in`
  int segment = 0, segment_end = 0, segment_mcus = 0;
  bool jumps = false;  // to a segment, past those in between
  bool fast = false;   // BMI2

  bool enter(int number);
  bool reach(int mcu, int16_t (*const* out)[64]);
  bool row_fits() const;
  size_t bits_read() const { return static_cast<size_t>(in.next - bytes.data()) * 8 - in.count; }
  bool count_mcu();
  template <bool kWanted>
  ALWAYS_INLINE bool decode(int16_t (*const* out)[64]);
  ALWAYS_INLINE bool advance(int skipped, int16_t (*const* out)[64]);
  bool advance_plain(int skipped, int16_t (*const* out)[64]);
  bool advance_fast(int skipped, int16_t (*const* out)[64]);
};

/// False: there is no such segment.
bool HuffmanDecoder::State::enter(int number) {
  if (!bytes.enter(number)) return false;
  segment = number;
  at = number * segment_mcus;
  column = at % mcus_per_row;
  // The last segment may end behind the last MCU; and there may be one only, of more MCUs than a number can hold.
  segment_end =
      at > std::numeric_limits<int>::max() - segment_mcus ? std::numeric_limits<int>::max() : at + segment_mcus;
  in = Bits{0, bytes.data(), 0};
  in.refill();
  std::fill(std::begin(last_dc), std::end(last_dc), 0);
  return true;
}

/// Decodes MCU `mcu` into `out`, and what lies between and must be decoded before. False as in next_mcu.
bool HuffmanDecoder::State::reach(int mcu, int16_t (*const* out)[64]) {
  const auto go = [this](int skipped, int16_t(*const* to)[64]) {
    return fast ? advance_fast(skipped, to) : advance_plain(skipped, to);
  };
  while (mcu >= segment_end) {
    if (!jumps && !go(segment_end - at, nullptr)) return false;
    if (at == segment_end && (bits_read() + 7) / 8 != bytes.size()) return false;  // bytes are left over
    if (!enter(jumps ? mcu / segment_mcus : segment + 1)) return false;
  }
  return go(mcu - at, out);
}

/// Checked once per row: libjpeg stops if a DC value leaves the range of int, and a row of MCUs adds less than 2^30.
bool HuffmanDecoder::State::row_fits() const {
  constexpr int64_t kLimit = int64_t{1} << 30;
  return std::all_of(std::begin(last_dc), std::end(last_dc), [](int64_t v) { return -kLimit < v && v < kLimit; });
}

/// After each MCU. False: it ended behind its segment, or the row does not fit.
ALWAYS_INLINE bool HuffmanDecoder::State::count_mcu() {
  ++at;
  if (++column == mcus_per_row) {
    column = 0;
    if (!row_fits()) return false;
  }
  return bits_read() <= bytes.size() * 8;
}

/// Decodes an MCU into `out` (see next_mcu), or skips it unless kWanted. False: damaged or irregular data; the state is
/// of no further use.
template <bool kWanted>
ALWAYS_INLINE bool HuffmanDecoder::State::decode(int16_t (*const* out)[64]) {
  Bits local{in.bits, in.next, in.count};  // a local copy stays in registers
  for (int i = 0; i < blocks; ++i) {
    const HuffmanScan::Block& kind = block[i];
    int difference;
    if (!read_dc(&local, dc[kind.dc_table], &difference)) return false;
    last_dc[kind.component] += difference;
    if constexpr (kWanted) {
      int16_t* coefficients = *out[i];
      coefficients[0] = static_cast<int16_t>(last_dc[kind.component]);
      if (!read_ac(&local, ac[kind.ac_table], coefficients)) return false;
    } else {
      if (!skip_ac(&local, ac[kind.ac_table])) return false;
    }
  }
  in.bits = local.bits;
  in.next = local.next;
  in.count = local.count;
  return true;
}

/// Skips MCUs, then decodes one into `out` unless it is null.
ALWAYS_INLINE bool HuffmanDecoder::State::advance(int skipped, int16_t (*const* out)[64]) {
  for (; skipped > 0; --skipped)
    if (!decode<false>(nullptr) || !count_mcu()) return false;
  return out == nullptr || (decode<true>(out) && count_mcu());
}

bool HuffmanDecoder::State::advance_plain(int skipped, int16_t (*const* out)[64]) { return advance(skipped, out); }

#if defined(__x86_64__)
// The same code with BMI2, where a shift by a variable is one instruction.
__attribute__((target("bmi,bmi2"))) bool HuffmanDecoder::State::advance_fast(int skipped, int16_t (*const* out)[64]) {
  return advance(skipped, out);
}
bool has_fast_shifts() { return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"); }
#else
bool HuffmanDecoder::State::advance_fast(int skipped, int16_t (*const* out)[64]) { return advance(skipped, out); }
bool has_fast_shifts() { return false; }
#endif

HuffmanDecoder::HuffmanDecoder() : state_(std::make_unique<State>()) {
  const char* isa = std::getenv("HEADRACE_ISA");  // as for the kernels
  state_->fast = has_fast_shifts() && (isa == nullptr || std::string_view(isa) != "scalar");
}

HuffmanDecoder::~HuffmanDecoder() = default;

void HuffmanDecoder::begin(const HuffmanScan& scan) {
  State& s = *state_;
  s.bytes.begin(scan.data, kPadding);
  for (size_t i = 0; i < 4; ++i) {
    // Keeps the last image's tables where they are the same: encoders that do not optimise write the standard's.
    if (scan.dc[i] != nullptr && s.dc[i].spec != *scan.dc[i]) s.dc[i].build(*scan.dc[i]);
    if (scan.ac[i] != nullptr && s.ac[i].spec != *scan.ac[i]) s.ac[i].build(*scan.ac[i]);
  }
  s.blocks = scan.blocks;
  std::copy(std::begin(scan.block), std::end(scan.block), s.block);
  s.mcus_per_row = scan.mcus_per_row;
  s.first_column = scan.first_column;
  s.last_column = scan.last_column;
  s.segment_mcus = scan.restart_interval != 0 ? scan.restart_interval : std::numeric_limits<int>::max();
  s.jumps = int64_t{s.segment_mcus} * s.blocks <= kMostBlocksPassed;
  s.asked = s.asked_column = 0;
  s.segment = -1;  // before the first one: nothing is left over
  s.at = s.segment_end = 0;
  s.in = Bits{0, s.bytes.data(), 0};
}

bool HuffmanDecoder::next_mcu(int16_t (*const* blocks)[64]) {
  State& s = *state_;
  const int mcu = s.asked++, column = s.asked_column++;
  if (s.asked_column == s.mcus_per_row) s.asked_column = 0;
  if (blocks == nullptr || column < s.first_column || column > s.last_column) return true;
  return s.reach(mcu, blocks);
}

bool own_huffman_wanted() {
  static const bool wanted = [] {
    const char* chosen = std::getenv("HEADRACE_HUFFMAN");
    return chosen == nullptr || std::string_view(chosen) != "library";
  }();
  return wanted;
}

}  // namespace headrace
