// Decodes the Huffman codes of a baseline scan, faster than libjpeg-turbo does: wanted blocks completely, of all others
// only the lengths of the codes and the DC values.
#include "core/jpeg/huffman.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/jpeg/find_ff.h"

#define ALWAYS_INLINE [[gnu::always_inline]] inline

namespace headrace {
namespace {

// Zero bytes after the data: more than an MCU can read past the end, at most 31 bits for each of a block's 64 symbols.
constexpr size_t kPadding = kMaxBlocksInMcu * 64 * 4 + 16;

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
  std::vector<uint8_t> data;         // without stuffing and restart markers, kPadding zeros at the end
  std::vector<size_t> segment_ends;  // in data
  size_t segment = 0;
  Bits in;
  int64_t last_dc[4] = {};
  int blocks = 0, mcus_per_row = 0, first_column = 0, last_column = 0, restart_interval = 0;
  HuffmanScan::Block block[kMaxBlocksInMcu];
  std::array<DcTable, 4> dc;
  std::array<AcTable, 4> ac;
  int column = 0, mcus_to_restart = 0;  // of the next MCU; before the next restart marker
  bool fast = false;                    // BMI2

  void copy_data(std::span<const uint8_t> scan);
  bool next_segment();
  bool row_fits() const;
  size_t bits_read() const { return static_cast<size_t>(in.next - data.data()) * 8 - in.count; }
  template <bool kWanted>
  ALWAYS_INLINE bool decode(int16_t (*const* out)[64]);
  bool decode_plain(int16_t (*const* out)[64]);
  bool decode_fast(int16_t (*const* out)[64]);
};

/// Copies the scan without stuffing and restart markers; a segment ends at each marker.
void HuffmanDecoder::State::copy_data(std::span<const uint8_t> scan) {
  if (data.size() < scan.size() + kPadding) data.resize(scan.size() + kPadding);
  segment_ends.clear();
  uint8_t* out = data.data();
  const uint8_t *p = scan.data(), *const end = p + scan.size();
  while (p < end) {
    p = copy_until_ff(p, end, &out);
    if (p == end) break;
    while (p < end && *p == 0xFF) ++p;  // more than one only before a restart marker
    if (p == end) break;
    if (*p == 0) {
      *out++ = 0xFF;
    } else {
      segment_ends.push_back(static_cast<size_t>(out - data.data()));
    }
    ++p;
  }
  segment_ends.push_back(static_cast<size_t>(out - data.data()));
  std::memset(out, 0, kPadding);
}

/// Begins the next segment. False: bytes of the current one are left over, or it is the last.
bool HuffmanDecoder::State::next_segment() {
  const size_t end = segment_ends[segment];
  if ((bits_read() + 7) / 8 != end || segment + 1 == segment_ends.size()) return false;
  ++segment;
  in = Bits{0, data.data() + end, 0};
  in.refill();
  std::fill(std::begin(last_dc), std::end(last_dc), 0);
  return true;
}

/// Checked once per row: libjpeg stops if a DC value leaves the range of int, and a row of MCUs adds less than 2^30.
bool HuffmanDecoder::State::row_fits() const {
  constexpr int64_t kLimit = int64_t{1} << 30;
  return std::all_of(std::begin(last_dc), std::end(last_dc), [](int64_t v) { return -kLimit < v && v < kLimit; });
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

bool HuffmanDecoder::State::decode_plain(int16_t (*const* out)[64]) {
  return out == nullptr ? decode<false>(out) : decode<true>(out);
}

#if defined(__x86_64__)
// The same code with BMI2, where a shift by a variable is one instruction.
__attribute__((target("bmi,bmi2"))) bool HuffmanDecoder::State::decode_fast(int16_t (*const* out)[64]) {
  return out == nullptr ? decode<false>(out) : decode<true>(out);
}
bool has_fast_shifts() { return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"); }
#else
bool HuffmanDecoder::State::decode_fast(int16_t (*const* out)[64]) { return decode_plain(out); }
bool has_fast_shifts() { return false; }
#endif

HuffmanDecoder::HuffmanDecoder() : state_(std::make_unique<State>()) {
  const char* isa = std::getenv("HEADRACE_ISA");  // as for the kernels
  state_->fast = has_fast_shifts() && (isa == nullptr || std::string_view(isa) != "scalar");
}

HuffmanDecoder::~HuffmanDecoder() = default;

void HuffmanDecoder::begin(const HuffmanScan& scan) {
  State& s = *state_;
  s.copy_data(scan.data);
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
  s.restart_interval = s.mcus_to_restart = scan.restart_interval;
  s.segment = 0;
  s.column = 0;
  std::fill(std::begin(s.last_dc), std::end(s.last_dc), 0);
  s.in = Bits{0, s.data.data(), 0};
  s.in.refill();
}

bool HuffmanDecoder::next_mcu(int16_t (*const* blocks)[64]) {
  State& s = *state_;
  if (s.restart_interval != 0 && s.mcus_to_restart-- == 0) {
    if (!s.next_segment()) return false;
    s.mcus_to_restart = s.restart_interval - 1;
  }
  if (s.column == 0 && !s.row_fits()) return false;
  if (s.column < s.first_column || s.column > s.last_column) blocks = nullptr;
  if (!(s.fast ? s.decode_fast(blocks) : s.decode_plain(blocks))) return false;
  if (++s.column == s.mcus_per_row) s.column = 0;
  return s.bits_read() <= s.segment_ends[s.segment] * 8;
}

bool own_huffman_wanted() {
  static const bool wanted = [] {
    const char* chosen = std::getenv("HEADRACE_HUFFMAN");
    return chosen == nullptr || std::string_view(chosen) != "library";
  }();
  return wanted;
}

}  // namespace headrace
