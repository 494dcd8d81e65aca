// Pieces of a scan side by side: see Note [pieces].
#include "core/jpeg/ahead/scan_pieces.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/jpeg/ahead/huffman_scan.h"

namespace headrace {
namespace {

constexpr uint32_t kChunkBlocks = 128;
// Lanes agree after 1,400 bits nine times in ten; after 4,700 where an MCU has many blocks, of which a lane has to
// guess the right one.
constexpr size_t kLeastBits = 4096, kLeastBitsOfMany = 12288;
constexpr size_t kForcedBits = 16;  // where lanes are forced
constexpr int kManyBlocks = 5;
constexpr unsigned kMostPieces = 3 * kMostLanes;
constexpr double kMore = 1.06;  // bits than MCUs of the usual size would have
constexpr size_t kMargin = 1024;

/// Of a piece that pays.
size_t least_bits(const RowLanes& lanes, int blocks) {
  if (lanes.least == 1) return kForcedBits;
  return blocks < kManyBlocks ? kLeastBits : kLeastBitsOfMany;
}

}  // namespace

size_t expected_bits(size_t bits, int part, int whole) {
  const double share = static_cast<double>(part) / std::max(whole, 1);
  return std::min(bits, static_cast<size_t>(static_cast<double>(bits) * share * kMore) + kMargin);
}

bool ScanPieces::pays(const RowLanes& lanes, int blocks, size_t bits) {
  return bits >= least_bits(lanes, blocks) * lanes.lanes;
}

bool ScanPieces::begin(LaneScan* scan, const ScanBytes& bytes, const ScanPlace& from, int last_mcu, int mcus,
                       int mcus_per_row, bool learns) {
  bits_ = 8 * bytes.size();
  if (bits_ <= from.bit) return false;
  scan_ = scan;
  at_ = from;
  learns_ = learns;
  last_mcu_ = last_mcu;
  mcus_ = mcus;
  mcus_per_row_ = mcus_per_row;
  next_bit_ = from.bit;
  rows_.clear();
  scan_->forget_bytes();
  scan_->add_bytes(bytes);
  return true;
}

void ScanPieces::clear() {
  if (scan_ == nullptr) return;
  clean_all();
  scan_->forget_bytes();
  scan_ = nullptr;
}

/// Leaves zeros in all chunks.
void ScanPieces::clean_all() {
  if (piece_ >= 0) piece().cleaned = std::max(piece().cleaned, in_piece_);
  for (unsigned i = 0; i < job_.used_pieces; ++i) {
    const Piece& piece = job_.pieces[i];
    clean_piece(piece, piece.cleaned, piece.written);
  }
  job_.used_pieces = 0;
  piece_ = -1;
}

/// Decodes the next MCUs, in as many pieces as there are lanes. False: not one.
bool ScanPieces::decode() {
  const size_t blocks = static_cast<size_t>(scan_->blocks);
  const size_t wanted = static_cast<size_t>(last_mcu_ + 1 - at_.mcu) * blocks;
  const size_t fitting = kBestLaneMemory / 64;
  size_t bits = expected_bits(bits_ - next_bit_, last_mcu_ + 1 - at_.mcu, mcus_ - at_.mcu);
  if (wanted > fitting) bits = bits * fitting / wanted;
  const uint32_t lanes = scan_->lanes->lanes;
  job_.blocks = scan_->blocks;
  job_.chunk_mcus = std::max(1u, kChunkBlocks / static_cast<uint32_t>(blocks));
  const size_t chunk = job_.chunk_mcus * blocks, all = static_cast<size_t>(mcus_ - at_.mcu) * blocks;
  job_.chunks = static_cast<uint32_t>(std::min(all, 3 * std::min(wanted, fitting) / 2) / chunk + 3 * lanes);
  job_.used_chunks = 0;
  const size_t waste = job_.chunks * chunk * 64;
  int16_t* const memory = scan_->memory(waste + kLaneSlack);
  static_cast<LaneInput&>(job_) = scan_->input(memory, waste);
  job_.log.clear();
  job_.least_half = static_cast<uint32_t>(least_bits(*scan_->lanes, job_.blocks) / 2);
  job_.pieces.resize(kMostPieces);
  job_.used_pieces = 0;
  for (size_t i = 0; i < lanes; ++i) {
    const size_t begin = next_bit_ + bits * i / lanes, end = next_bit_ + bits * (i + 1) / lanes;
    job_.add_piece(static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                   i + 1 < lanes ? static_cast<int>(i) + 1 : -1);
  }
  try {
    scan_->lanes->decode_pieces(&job_);
  } catch (const std::bad_alloc&) {  // of its lists
    std::memset(memory, 0, (waste + kLaneSlack) * sizeof(int16_t));
    job_.used_pieces = 0;
    throw;
  }
  std::memset(memory + waste, 0, kLaneSlack * sizeof(int16_t));
  link_pieces();
  return enter_piece(0, 0);
}

/// Finds the MCUs that were read without an error, one piece after the other.
void ScanPieces::link_pieces() {
  for (int number = 0; number >= 0;) {
    Piece& piece = job_.pieces[static_cast<unsigned>(number)];
    const auto wrong = std::upper_bound(piece.wrong.begin(), piece.wrong.end(), piece.from.time);
    if (wrong != piece.wrong.end()) {
      const uint32_t done = cursor_at(job_, piece, *wrong - 1).done / static_cast<uint32_t>(job_.blocks);
      piece.mcus = std::max(piece.from.mcu, done);
      piece.next = -1;
    }
    number = piece.next;
    if (number < 0) {  // what the lane has read after the last MCU's bytes does not count
      while (piece.mcus > piece.from.mcu && before_mcu(job_, piece, piece.mcus).bit > bits_) --piece.mcus;
      next_bit_ = before_mcu(job_, piece, piece.mcus).bit;
    } else {
      job_.pieces[static_cast<unsigned>(number)].from = piece.junction;
    }
  }
}

/// Makes an MCU of a piece the current one; where the piece has no MCU from there on, the first one of the pieces that
/// are linked after it. False: none of them has one.
bool ScanPieces::enter_piece(int number, uint32_t mcu) {
  while (number >= 0) {
    Piece& piece = job_.pieces[static_cast<unsigned>(number)];
    piece_ = number;
    in_piece_ = mcu;
    clean_piece(piece, 0, mcu);
    if (mcu < piece.mcus) return true;
    piece.cleaned = mcu;
    number = piece.next;
    mcu = piece.junction.mcu;
  }
  return false;
}

int16_t* ScanPieces::memory_of(const Piece& piece, uint32_t mcu) {
  const size_t chunk = piece.chunks[mcu / job_.chunk_mcus], blocks = static_cast<size_t>(job_.blocks);
  return job_.memory + (chunk * job_.chunk_mcus + mcu % job_.chunk_mcus) * blocks * 64;
}

/// Leaves zeros.
void ScanPieces::clean_piece(const Piece& piece, uint32_t first, uint32_t end) {
  const size_t bytes = static_cast<size_t>(job_.blocks) * 64 * sizeof(int16_t);
  while (first < end) {
    const uint32_t count = std::min(end - first, job_.chunk_mcus - first % job_.chunk_mcus);
    std::memset(memory_of(piece, first), 0, count * bytes);
    first += count;
  }
}

/// Makes the next MCU one of those that are decoded. False: it cannot be.
bool ScanPieces::reach_mcu() {
  bool there = piece_ >= 0;
  if (there && in_piece_ == piece().mcus) {
    piece().cleaned = in_piece_;
    there = enter_piece(piece().next, piece().junction.mcu);
  }
  if (!there) {
    clean_all();
    if (!decode()) return false;
  }
  return true;
}

/// Moves after MCUs of one chunk and one row. False: DC values leave their range.
bool ScanPieces::pass(uint32_t count) {
  in_piece_ += count;
  at_.mcu += static_cast<int>(count);
  if (at_.mcu % mcus_per_row_ != 0) return true;
  if (learns_) rows_.emplace_back(at_).bit = before_mcu(job_, piece(), in_piece_).bit;
  return dc_fits(at_.dc);
}

/// Sums the DC differences of MCUs of one chunk.
void ScanPieces::sum_differences(uint32_t count) {
  const size_t blocks = static_cast<size_t>(job_.blocks);
  const int16_t* block = memory_of(piece(), in_piece_);
  for (uint32_t i = 0; i < count; ++i)
    for (size_t b = 0; b < blocks; ++b, block += 64) at_.dc[scan_->component[b]] += *block;
  clean_piece(piece(), in_piece_, in_piece_ + count);
}

bool ScanPieces::take(int mcu, int16_t (*const* blocks)[64]) {
  bool fine = reach_mcu();
  while (fine && at_.mcu < mcu) {
    const int in_row = std::min(mcu - at_.mcu, mcus_per_row_ - at_.mcu % mcus_per_row_);
    const uint32_t in_chunk = std::min(piece().mcus - in_piece_, job_.chunk_mcus - in_piece_ % job_.chunk_mcus);
    const uint32_t count = std::min(static_cast<uint32_t>(in_row), in_chunk);
    sum_differences(count);
    fine = pass(count) && reach_mcu();
  }
  if (fine) {
    scan_->take_mcu(memory_of(piece(), in_piece_), at_.dc, blocks);
    fine = pass(1);
    if (!fine)
      for (int b = 0; b < job_.blocks; ++b) std::memset(*blocks[b], 0, sizeof *blocks[b]);
  }
  if (!fine) clear();
  return fine;
}

}  // namespace headrace
