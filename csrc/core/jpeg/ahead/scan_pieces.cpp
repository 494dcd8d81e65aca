// Pieces of a scan side by side: see Note [pieces].
#include "core/jpeg/ahead/scan_pieces.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/jpeg/ahead/huffman_scan.h"

namespace headrace {
namespace {

constexpr int kDcLimit = 1 << 30;  // see HuffmanDecoder::State::row_fits()
constexpr uint32_t kChunkBlocks = 128;
// Lanes agree after 1,400 bits nine times in ten; after 4,700 where an MCU has many blocks, of which a lane has to
// guess the right one.
constexpr size_t kLeastBits = 4096, kLeastBitsOfMany = 12288;
constexpr size_t kForcedBits = 16;  // where lanes are forced
constexpr int kManyBlocks = 5;
constexpr unsigned kMostPieces = 3 * kMostLanes;
constexpr double kMore = 1.06;  // bits than MCUs of the usual size would have
constexpr size_t kMargin = 1024;

}  // namespace

bool ScanPieces::begin(LaneScan* scan, const ScanBytes& bytes, const ScanPlace& from, int last_mcu, int mcus,
                       int mcus_per_row, bool learns) {
  scan_ = scan;
  at_ = from;
  learns_ = learns;
  last_mcu_ = last_mcu;
  mcus_ = mcus;
  mcus_per_row_ = mcus_per_row;
  next_bit_ = from.bit;
  bits_ = 8 * bytes.size();
  rows_.clear();
  if (bits_ <= next_bit_ || expected_bits() < least_bits() * scan_->lanes->lanes) {
    scan_ = nullptr;
    return false;
  }
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

/// Of a piece that pays.
size_t ScanPieces::least_bits() const {
  if (scan_->lanes->least == 1) return kForcedBits;
  return scan_->blocks < kManyBlocks ? kLeastBits : kLeastBitsOfMany;
}

/// Of the next MCUs up to the last one, if they are like the rest of the segment.
size_t ScanPieces::expected_bits() const {
  const size_t left = bits_ - next_bit_;
  const double share = static_cast<double>(last_mcu_ + 1 - at_.mcu) / std::max(mcus_ - at_.mcu, 1);
  return std::min(left, static_cast<size_t>(static_cast<double>(left) * share * kMore) + kMargin);
}

/// Decodes the next MCUs, in as many pieces as there are lanes. False: not one.
bool ScanPieces::decode() {
  const size_t blocks = static_cast<size_t>(scan_->blocks);
  const size_t wanted = static_cast<size_t>(last_mcu_ + 1 - at_.mcu) * blocks;
  const size_t fitting = kBestLaneMemory / 64;
  size_t bits = expected_bits();
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
  job_.least_half = static_cast<uint32_t>(least_bits() / 2);
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
    if (piece.mcus < piece.from.mcu) {  // it ended before the place where it was to go on
      piece.mcus = piece.from.mcu;
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

/// Goes on with a piece, from an MCU of it. False: there is no MCU in it, and in none that goes on.
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
  return std::all_of(std::begin(at_.dc), std::end(at_.dc), [](int v) { return -kDcLimit < v && v < kDcLimit; });
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
