// Where lanes were, by their log: see Note [pieces].
#include "core/jpeg/huffman/piece_job.h"

#include <algorithm>

#include "core/jpeg/huffman/huffman_block.h"

namespace headrace {
namespace {

uint32_t state_of(const LaneInput& input, uint32_t block) {
  return input.states[block == 0 ? kLaneStates - 1 : block - 1];
}

/// The last of a piece's times that `is_before` holds for, as it does for the first one.
template <class Before>
uint32_t last_time(const PieceJob& job, const Piece& piece, Before is_before) {
  uint32_t low = 0, high = piece.entries + 1;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (is_before(job.log[piece.first_entry + middle - 1]) ? low : high) = middle;
  }
  return low;
}

}  // namespace

int PieceJob::add_piece(uint32_t begin, uint32_t end, int after) {
  Piece& piece = pieces[used_pieces];
  piece.begin = begin;
  piece.end = end;
  piece.after = after;
  piece.first_entry = static_cast<uint32_t>(log.size());
  piece.entries = piece.mcus = piece.written = piece.cleaned = 0;
  piece.next = -1;
  piece.from = {.bit = begin};
  piece.chunks.clear();
  piece.wrong.clear();
  return static_cast<int>(used_pieces++);
}

LaneSymbol read_symbol(const LaneInput& input, LaneCursor* at) {
  const uint64_t bits = ~load_big_endian(input.bytes + std::min(at->bit >> 3, input.size)) << (at->bit & 7);
  const uint32_t kind = at->state / LaneTables::kSlots % LaneTables::kKinds;
  const bool dc = at->k == 0;
  int length = 0;
  const int symbol = (dc ? input.tables->dc_codes : input.tables->ac_codes)[kind].find(bits, &length, 0);
  if (symbol < 0 || (dc && symbol > 15)) return {};
  const AcSymbol one = ac_symbol(static_cast<unsigned>(length), static_cast<unsigned>(symbol));
  const uint32_t k = at->k + (dc ? 1 : one.advance);
  if (k > 64 && k < kEndOfBlock) return {};
  LaneSymbol found{.fine = true};
  if (one.size != 0 || dc) {
    found.place = kNaturalOrder[k - 1];
    found.value = static_cast<int16_t>(extend(bits << one.length, 63u - one.size));
  }
  at->bit += one.total;
  at->k = k;
  if (k < 64) return found;
  at->k = 0;
  at->state = input.states[at->state % kLaneStates];
  ++at->done;
  found.ends_block = true;
  return found;
}

LaneCursor cursor_at(const PieceJob& job, const Piece& piece, uint32_t time) {
  if (time == 0) return {piece.begin, 0, state_of(job, 0), 0};
  const LaneLogEntry& found = job.log[piece.first_entry + time - 1];
  const uint32_t place = found.place[piece.lane];
  return {found.bit[piece.lane], place & 255, state_of(job, place >> 8), found.done[piece.lane]};
}

std::optional<Junction> find_junction(const PieceJob& job, const Piece& piece, uint32_t bit) {
  if (bit < piece.begin) return {};
  const uint32_t time = last_time(job, piece, [&](const LaneLogEntry& entry) { return entry.bit[piece.lane] <= bit; });
  if (std::binary_search(piece.wrong.begin(), piece.wrong.end(), time + 1)) return {};  // maybe before this bit
  LaneCursor at = cursor_at(job, piece, time);
  while (at.bit < bit)
    if (!read_symbol(job, &at).fine) return {};
  if (at.bit != bit || !at.begins_mcu()) return {};
  return Junction{bit, at.done / static_cast<uint32_t>(job.blocks), time};
}

LaneCursor before_mcu(const PieceJob& job, const Piece& piece, uint32_t mcu) {
  const uint32_t block = mcu * static_cast<uint32_t>(job.blocks);
  // Not the last time before the next coefficient: the lane may have looked for its code at several bits.
  const auto is_before = [&](const LaneLogEntry& entry) { return entry.done[piece.lane] < block; };
  const uint32_t time = last_time(job, piece, is_before), blocks = static_cast<uint32_t>(job.blocks);
  // Before `from` it may have read what is no code at all.
  LaneCursor at = time > piece.from.time ? cursor_at(job, piece, time)
                                         : LaneCursor{piece.from.bit, 0, state_of(job, 0), piece.from.mcu * blocks};
  while (at.done < block && read_symbol(job, &at).fine) {
  }
  return at;
}

}  // namespace headrace
