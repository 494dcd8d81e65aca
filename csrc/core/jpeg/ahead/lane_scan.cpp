// The tables, bytes and memory of lanes, for one scan after the other.
#include "core/jpeg/ahead/lane_scan.h"

#include <algorithm>
#include <cstring>

#include "core/jpeg/ahead/huffman_scan.h"

namespace headrace {
namespace {

void invert(const uint8_t* from, size_t count, uint8_t* to) {
  constexpr size_t kWord = sizeof(uint64_t);
  size_t i = 0;
  for (uint64_t word; i + kWord <= count; i += kWord) {
    std::memcpy(&word, from + i, kWord);
    word = ~word;
    std::memcpy(to + i, &word, kWord);
  }
  for (; i < count; ++i) to[i] = static_cast<uint8_t>(~from[i]);
}

}  // namespace

bool LaneScan::begin(const HuffmanScan& scan, const RowLanes& of_lanes) {
  lanes = &of_lanes;
  blocks = scan.blocks;
  most_bytes = scan.data.size();
  used_bytes_ = 0;
  if (most_bytes > kMostLaneBytes / 2) return false;
  // The blocks' tables, of which there may be as many kinds as LaneTables has.
  unsigned kinds = 0, kind[kMaxBlocksInMcu] = {};
  const HuffmanScan::McuBlock* of_kind[LaneTables::kKinds] = {};
  for (int i = 0; i < blocks; ++i) {
    const HuffmanScan::McuBlock& block = scan.block[i];
    unsigned& found = kind[i];
    while (found < kinds && (of_kind[found]->dc_table != block.dc_table || of_kind[found]->ac_table != block.ac_table))
      ++found;
    if (found == LaneTables::kKinds) return false;
    if (found == kinds) of_kind[kinds++] = &block;
    component[i] = block.component;
  }
  for (unsigned i = 0; i < kinds; ++i)
    if (!tables_.build(i, *scan.dc[of_kind[i]->dc_table], *scan.ac[of_kind[i]->ac_table])) return false;
  const unsigned count = static_cast<unsigned>(blocks);
  for (unsigned i = 0; i < count; ++i) states_[i] = lane_state((i + 1) % count, kind[(i + 1) % count]);
  states_[kLaneStates - 1] = lane_state(0, kind[0]);
  return true;
}

int16_t* LaneScan::memory(size_t size) {
  if (memory_.size() < size) {
    memory_.resize(size);
    std::memset(memory_.data(), 0, size * sizeof(int16_t));
  }
  return memory_.data();
}

size_t LaneScan::add_bytes(const ScanBytes& bytes) {
  const size_t first = used_bytes_, needed = first + bytes.size();
  if (bytes_.size() < needed + kLanePadding) bytes_.resize(std::max(needed, most_bytes) + kLanePadding);
  invert(bytes.data(), bytes.size(), bytes_.data() + first);
  used_bytes_ = needed;
  return first;
}

void LaneScan::take_mcu(int16_t* from, int* dc, int16_t (*const* to)[64]) const {
  int16_t values[kMaxBlocksInMcu];
  for (int b = 0; b < blocks; ++b)
    values[b] = static_cast<int16_t>(dc[component[b]] += from[static_cast<ptrdiff_t>(b) * 64]);
  lanes->move(from, blocks, to);
  for (int b = 0; b < blocks; ++b) (*to[b])[0] = values[b];
}

LaneInput LaneScan::input(int16_t* memory, size_t waste) {
  std::memset(bytes_.data() + used_bytes_, 0, kLanePadding);
  return {&tables_, states_, bytes_.data(), static_cast<uint32_t>(used_bytes_), memory, static_cast<uint32_t>(waste)};
}

}  // namespace headrace
