// Decodes the Huffman codes of a baseline scan, faster than libjpeg-turbo does: wanted blocks completely; of all others
// only the lengths of the codes and the DC values.
#include "core/jpeg/sequential/huffman.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "core/jpeg/ahead/rows_ahead.h"
#include "core/jpeg/ahead/scan_pieces.h"
#include "core/jpeg/huffman/huffman_block.h"
#include "core/jpeg/scan/scan_bytes.h"

namespace headrace {
namespace {

// Readable bytes after a segment: more than an MCU can read past the end, at most 31 bits for each of a block's 64
// symbols. Their values do not matter: an MCU that ends after its segment is refused.
constexpr size_t kPadding = kMaxBlocksInMcu * 64 * 4 + 16;

// Longer segments are never passed unread: 2^16 differences of less than 2^15 stay in the range of int, so in a shorter
// one no damage makes libjpeg stop.
constexpr int64_t kMostBlocksPassed = 1 << 16;

}  // namespace

struct HuffmanDecoder::State {
  ScanBytes bytes;
  Bits in;  // of the current segment
  int64_t last_dc[4] = {};
  int blocks = 0, mcus_per_row = 0, first_column = 0, last_column = 0;
  HuffmanScan::McuBlock block[kMaxBlocksInMcu];
  std::array<DcTable, 4> dc;
  std::array<AcTable, 4> ac;
  std::array<HuffmanSpec, 4> dc_spec, ac_spec;  // of the tables that this scan uses
  bool built = false;                           // the tables are those
  int asked = 0, asked_column = 0;              // the MCU of the next call of next_mcu
  int at = 0, column = 0;                       // the MCU that begins at `in`
  int segment = 0, segment_end = 0, segment_mcus = 0;
  bool jumps = false;  // to a segment, past those in between
  bool fast = false;   // BMI1 and BMI2

  // If not null, each row of MCUs whose beginning is known is a segment, and all that follows them is one segment.
  EntryPoints* entries = nullptr;
  bool learns = false;
  uint64_t key = 0;
  std::vector<EntryPoint> known;       // rows 1, 2, ...
  std::vector<size_t> learned;         // bits of the last segment, where its rows begin
  std::vector<EntryPoint> learned_dc;  // the same rows; `bit` is not set

  HuffmanScan scan;  // its tables are the copies above
  LaneScan lanes;
  ScanPieces pieces;
  int pieces_from = -1, pieces_last = 0;  // MCUs; -1: they are not used
  RowsAhead ahead;
  int ahead_next = 0, ahead_end = 0;  // rows that are still to be decoded ahead
  int ahead_rows = 0;                 // at once

  void begin_bytes();
  void build_tables();
  void decode_rows_ahead();
  void begin_pieces();
  bool pays_in_pieces(const RowLanes& with, int rows, int last) const;
  bool enter(int number);
  EntryPoint open_row(size_t row);
  void enter_row(size_t row);
  void learn(size_t bit);
  void learn_of_pieces();
  bool reach(int mcu, int16_t (*const* out)[64]);
  size_t bits_read() const { return static_cast<size_t>(in.next - bytes.data()) * 8 - in.count; }
  bool count_mcu();
  template <bool kWanted, bool kFast>
  ALWAYS_INLINE bool decode(int16_t (*const* out)[64]);
  template <bool kFast>
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
  // The last segment may end after the last MCU; a single segment may have more MCUs than an int can hold.
  segment_end =
      at > std::numeric_limits<int>::max() - segment_mcus ? std::numeric_limits<int>::max() : at + segment_mcus;
  in = Bits{0, bytes.data(), 0};
  in.refill();
  std::fill(std::begin(last_dc), std::end(last_dc), 0);
  return true;
}

/// Makes a row whose beginning is known the current part of `bytes`.
EntryPoint HuffmanDecoder::State::open_row(size_t row) {
  constexpr size_t kLastBytes = 2;  // the byte in which the next row begins, with its stuffing
  const EntryPoint first = row == 0 ? EntryPoint{} : known[row - 1];
  const bool last = row == known.size();
  bytes.enter_at(first.bit / 8, last ? EntryPoints::kMostScanBytes : known[row].bit / 8 + kLastBytes);
  return first;
}

/// As enter(), if entry points are used.
void HuffmanDecoder::State::enter_row(size_t row) {
  const EntryPoint first = open_row(row);
  segment = static_cast<int>(row);
  at = segment * mcus_per_row;
  column = 0;
  segment_end = row == known.size() ? std::numeric_limits<int>::max() : at + mcus_per_row;
  in = Bits{0, bytes.data(), 0};
  in.refill();
  in.drop(first.bit % 8);
  std::copy(first.dc.begin(), first.dc.end(), last_dc);
}

/// Records where the next row begins. After a value that an entry point cannot hold, nothing more is learned.
void HuffmanDecoder::State::learn(size_t bit) {
  EntryPoint point;
  for (size_t i = 0; i < point.dc.size(); ++i) point.dc[i] = static_cast<int16_t>(last_dc[i]);
  const size_t rows = static_cast<size_t>(at / mcus_per_row) - known.size();
  if (learned.size() + 1 != rows || !std::equal(point.dc.begin(), point.dc.end(), last_dc)) return;
  // In this order: if the second finds no memory, finish() still has a value for each of `learned`.
  learned_dc.push_back(point);
  learned.push_back(bit);
}

/// Records where the rows begin that were read in pieces.
void HuffmanDecoder::State::learn_of_pieces() {
  for (const ScanPlace& row : pieces.rows()) {
    std::copy(std::begin(row.dc), std::end(row.dc), last_dc);
    at = row.mcu;
    learn(row.bit);
  }
}

/// Before the first MCU of the scan.
void HuffmanDecoder::State::begin_bytes() {
  bytes.begin(scan.data, kPadding);
  segment = -1;  // before the first one: no bytes are left
  at = segment_end = 0;
  in = Bits{0, bytes.data(), 0};
}

/// Keeps the last image's tables where they are the same: encoders that do not optimise write the standard's.
void HuffmanDecoder::State::build_tables() {
  for (size_t i = 0; i < 4; ++i) {
    if (scan.dc[i] != nullptr && dc[i].spec != *scan.dc[i]) dc[i].build(*scan.dc[i]);
    if (scan.ac[i] != nullptr && ac[i].spec != *scan.ac[i]) ac[i].build(*scan.ac[i]);
  }
  built = true;
}

/// Decodes rows from `ahead_next` on, `ahead_rows` of them. Where that fails, `ahead` is empty, and no more are tried.
void HuffmanDecoder::State::decode_rows_ahead() {
  const int first = ahead_next, end = std::min(ahead_end, first + ahead_rows);
  ahead.clear();
  bool fine = true;
  for (int row = first; fine && row < end; ++row) {
    EntryPoint beginning;
    if (entries != nullptr)
      beginning = open_row(static_cast<size_t>(row));
    else
      fine = bytes.enter(row);
    fine = fine && ahead.add(bytes, beginning, entries == nullptr);
  }
  ahead_next = end;
  if (fine && ahead.decode()) return;
  ahead.clear();
  ahead_end = 0;
  begin_bytes();  // these rows are read one by one
}

/// At the first MCU whose row is not known.
void HuffmanDecoder::State::begin_pieces() {
  ScanPlace from;
  from.mcu = pieces_from;
  pieces_from = -1;
  ahead.clear();
  if (entries != nullptr) {
    const EntryPoint first = open_row(known.size());
    from.bit = first.bit % 8;
    std::copy(first.dc.begin(), first.dc.end(), from.dc);
  } else if (!bytes.enter(0)) {
    return;
  }
  if (!pieces.begin(&lanes, bytes, from, pieces_last, scan.mcu_rows * mcus_per_row, mcus_per_row, learns))
    begin_bytes();  // the row has no bytes
}

/// Decodes MCU `mcu` into `out`, after the MCUs before it that must be read first. Returns false as next_mcu does.
bool HuffmanDecoder::State::reach(int mcu, int16_t (*const* out)[64]) {
  if (!built) build_tables();
  const auto go = [this](int skipped, int16_t(*const* to)[64]) {
    return fast ? advance_fast(skipped, to) : advance_plain(skipped, to);
  };
  if (entries != nullptr && mcu >= segment_end)
    enter_row(std::min(static_cast<size_t>(mcu / mcus_per_row), known.size()));
  while (mcu >= segment_end) {
    if (!jumps && !go(segment_end - at, nullptr)) return false;
    if (at == segment_end && (bits_read() + 7) / 8 != bytes.size()) return false;  // bytes are left
    if (!enter(jumps ? mcu / segment_mcus : segment + 1)) return false;
  }
  return go(mcu - at, out);
}

/// Call after each MCU. False: it ended after its segment, or the row does not fit.
ALWAYS_INLINE bool HuffmanDecoder::State::count_mcu() {
  ++at;
  if (bits_read() > bytes.size() * 8) return false;
  if (++column == mcus_per_row) {
    column = 0;
    if (!dc_fits(last_dc)) return false;
    if (learns && static_cast<size_t>(segment) == known.size()) learn(bits_read());
  }
  return true;
}

/// Decodes an MCU into `out` (see next_mcu), or skips it unless kWanted. False: damaged or irregular data; the state is
/// then unusable.
template <bool kWanted, bool kFast>
ALWAYS_INLINE bool HuffmanDecoder::State::decode(int16_t (*const* out)[64]) {
  Bits local{in.bits, in.next, in.count};  // a local copy stays in registers
  for (int i = 0; i < blocks; ++i) {
    const HuffmanScan::McuBlock& kind = block[i];
    int difference;
    if (!read_dc(&local, dc[kind.dc_table], &difference)) return false;
    last_dc[kind.component] += difference;
    if constexpr (kWanted) {
      int16_t* coefficients = *out[i];
      coefficients[0] = static_cast<int16_t>(last_dc[kind.component]);
      if (!read_ac<kFast>(&local, ac[kind.ac_table], coefficients)) return false;
    } else {
      if (!skip_ac<kFast>(&local, ac[kind.ac_table])) return false;
    }
  }
  in.bits = local.bits;
  in.next = local.next;
  in.count = local.count;
  return true;
}

/// Skips MCUs, then decodes one into `out` unless it is null.
template <bool kFast>
ALWAYS_INLINE bool HuffmanDecoder::State::advance(int skipped, int16_t (*const* out)[64]) {
  for (; skipped > 0; --skipped)
    if (!decode<false, kFast>(nullptr) || !count_mcu()) return false;
  return out == nullptr || (decode<true, kFast>(out) && count_mcu());
}

bool HuffmanDecoder::State::advance_plain(int skipped, int16_t (*const* out)[64]) {
  return advance<false>(skipped, out);
}

#if defined(__x86_64__)
// The same code with BMI1 and BMI2, where a shift by a variable is one instruction, and a field one, too.
__attribute__((target("bmi,bmi2"))) bool HuffmanDecoder::State::advance_fast(int skipped, int16_t (*const* out)[64]) {
  return advance<true>(skipped, out);
}
bool has_fast_shifts() { return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"); }
#else
bool HuffmanDecoder::State::advance_fast(int skipped, int16_t (*const* out)[64]) {
  return advance<false>(skipped, out);
}
bool has_fast_shifts() { return false; }
#endif

HuffmanDecoder::HuffmanDecoder() : state_(std::make_unique<State>()) {
  const char* isa = std::getenv("HEADRACE_ISA");  // as for the kernels
  state_->fast = has_fast_shifts() && (isa == nullptr || std::string_view(isa) != "scalar");
}

HuffmanDecoder::~HuffmanDecoder() = default;

void HuffmanDecoder::begin(const HuffmanScan& scan) {
  State& s = *state_;
  s.ahead.clear();
  s.pieces.clear();
  s.ahead_next = s.ahead_end = 0;
  s.pieces_from = -1;
  s.built = false;
  s.scan = scan;
  const auto keep = [](const HuffmanSpec** from, HuffmanSpec* copy) {
    if (*from != nullptr) *from = &(*copy = **from);
  };
  for (size_t i = 0; i < 4; ++i) {
    keep(&s.scan.dc[i], &s.dc_spec[i]);
    keep(&s.scan.ac[i], &s.ac_spec[i]);
  }
  s.blocks = scan.blocks;
  std::copy(std::begin(scan.block), std::end(scan.block), s.block);
  s.mcus_per_row = scan.mcus_per_row;
  s.first_column = scan.first_column;
  s.last_column = scan.last_column;
  s.segment_mcus = scan.restart_interval != 0 ? scan.restart_interval : std::numeric_limits<int>::max();
  s.jumps = int64_t{s.segment_mcus} * s.blocks <= kMostBlocksPassed;
  s.entries = scan.entries;
  s.learns = s.entries != nullptr && !s.entries->is_full();
  s.key = scan.key;
  s.learned.clear();
  s.learned_dc.clear();
  if (s.entries != nullptr) s.entries->find(s.key, &s.known);
  s.asked = s.asked_column = 0;
  s.begin_bytes();
}

/// Whether the rows after the known ones, up to the last one that is wanted, are long enough for pieces.
bool HuffmanDecoder::State::pays_in_pieces(const RowLanes& with, int rows, int last) const {
  const size_t bits = 8 * scan.data.size(), from = known.empty() || entries == nullptr ? 0 : known.back().bit;
  return from < bits &&
         ScanPieces::pays(with, blocks, expected_bits(bits - from, last + 1 - rows, scan.mcu_rows - rows));
}

void HuffmanDecoder::decode_ahead(const RowLanes& lanes, int first_row, int last_row) {
  State& s = *state_;
  const int wanted = last_row;
  int known = 0;  // rows, of which each has an end
  if (s.entries != nullptr) {
    // The row after the last known one has no end; it is read one by one, or in pieces, if rows after it are wanted,
    // too.
    known = static_cast<int>(s.known.size());
    last_row = last_row > known ? known - 1 : last_row;
  } else if (s.segment_mcus == s.mcus_per_row && s.jumps) {
    known = wanted + 1;
  } else if (s.scan.restart_interval != 0) {
    return;
  }
  const int rows = last_row + 1 - first_row;
  const bool in_rows = known > 0 && rows >= static_cast<int>(lanes.least);
  const bool in_pieces = wanted > known && s.scan.mcu_rows > wanted && s.pays_in_pieces(lanes, known, wanted);
  if (!(in_rows || in_pieces) || !s.lanes.begin(s.scan, lanes)) return;
  if (in_pieces) {
    s.pieces_from = known * s.mcus_per_row;
    s.pieces_last = (wanted + 1) * s.mcus_per_row - 1;
  }
  if (!in_rows || !s.ahead.begin(&s.lanes, s.first_column, s.last_column, s.mcus_per_row)) return;
  const int parts = (rows - 1) / s.ahead.most_rows() + 1;
  s.ahead_next = first_row;
  s.ahead_end = last_row + 1;
  s.ahead_rows = (rows - 1) / parts + 1;
}

bool HuffmanDecoder::next_mcu(int16_t (*const* blocks)[64]) {
  State& s = *state_;
  const int mcu = s.asked++, column = s.asked_column++;
  if (s.asked_column == s.mcus_per_row) s.asked_column = 0;
  if (blocks == nullptr || column < s.first_column || column > s.last_column) return true;
  if (s.ahead.left() == 0 && s.ahead_next < s.ahead_end && mcu / s.mcus_per_row == s.ahead_next) s.decode_rows_ahead();
  if (s.ahead.left() > 0) return s.ahead.take(blocks);
  if (s.pieces_from >= 0 && mcu >= s.pieces_from) s.begin_pieces();
  if (s.pieces.is_active()) {
    if (s.pieces.take(mcu, blocks)) return true;
    s.begin_bytes();  // these MCUs are read one by one
  }
  return s.reach(mcu, blocks);
}

void HuffmanDecoder::keep_learned_entries() noexcept {
  State& s = *state_;
  if (s.entries == nullptr) return;
  try {
    if (s.pieces.is_active()) s.learn_of_pieces();
    if (s.learned.empty()) return;
    std::vector<size_t> byte = s.learned;
    for (size_t& one : byte) one /= 8;
    s.bytes.to_scan(byte);
    for (size_t i = 0; i < byte.size(); ++i) {
      s.learned_dc[i].bit = static_cast<uint32_t>(8 * byte[i] + s.learned[i] % 8);
      s.known.push_back(s.learned_dc[i]);
    }
    s.entries->keep(s.key, s.known);
  } catch (const std::bad_alloc&) {  // then nothing is learned
  }
  s.entries = nullptr;
}

bool own_huffman_wanted() {
  static const bool wanted = [] {
    const char* chosen = std::getenv("HEADRACE_HUFFMAN");
    return chosen == nullptr || std::string_view(chosen) != "library";
  }();
  return wanted;
}

}  // namespace headrace
