// Huffman decoding on a GPU, a row of MCUs in each thread: the work of one block. The same source runs on a GPU and,
// thread by thread, on the host.
//
// Note [one path]: threads of a warp are at different symbols of different blocks. So there is one path for DC and AC
// symbols, ends of blocks and of MCUs, skipped and wanted blocks; what differs is a select. Branches are taken only
// between groups of symbols: for a code of more than kLookup bits, which waits for the end of its group, and where a
// thread used up its words sooner than usual.
//
// Note [words ahead]: a load from global memory is awaited by all threads of a warp as soon as one of them needs its
// result. So words go through a ring in shared memory: each group of kGroup symbols begins by loading a chunk and ends
// by storing it to the ring, and a symbol only loads from the ring, one word before it is needed.
#pragma once

#include "jpeg_job.h"

namespace headrace {

inline constexpr int kLookup = 10;  // bits that select an entry
inline constexpr int kEntries = 1 << kLookup;
inline constexpr int kGroup = 8;           // symbols between two loads of words
inline constexpr int kRing = 16;           // words of a thread
inline constexpr int kMostWords = kGroup;  // that a group takes: 8 * 31 bits and those of a begun word

// An entry: bits of the code and its value, bits of the code << 8, 32 - bits of the value << 16, advance << 24. 0: a
// longer code. The advance is that of the coefficient's number; a wrong code and an end of block pass the block's end.
inline constexpr uint32_t kWrong = 65, kBlockEnd = 128;

struct LongCodesOf {
  uint32_t end[17];    // first 16-bit prefix past the codes of this length
  int32_t offset[17];  // code + offset = index of its symbol
};

struct EntropyMemory {
  uint32_t entry[kTablePairs][2][kEntries];  // [1]: AC
  uint32_t ring[kRing][kLanes];
  LongCodesOf codes[kTablePairs][2];
};

HEADRACE_HD inline const CodeTable& table_of(const JpegJob& image, uint32_t kind) {
  const CodeTable* const tables = kind & 1 ? image.ac : image.dc;
  return tables[kind >> 1];
}

/// The entry of a symbol.
HEADRACE_HD inline uint32_t entry_of(bool ac, uint32_t length, uint32_t symbol) {
  const uint32_t size = symbol & 15, run = symbol >> 4;
  uint32_t advance = 1;
  if (ac) advance = size == 0 && run != 15 ? kBlockEnd : run + 1;
  return (length + size) | length << 8 | (32 - size) << 16 | advance << 24;
}

/// The entry of the code at the beginning of `bits`, found by its length.
HEADRACE_HD inline uint32_t found_entry(const CodeTable& table, const LongCodesOf& codes, bool ac, uint32_t bits,
                                        int shortest) {
  const uint32_t prefix = bits >> 16;
  HEADRACE_UNROLL(1)
  for (int n = shortest; n <= 16; ++n) {
    if (prefix >= codes.end[n]) continue;
    const int32_t index = codes.offset[n] + static_cast<int32_t>(bits >> (32 - n));
    return entry_of(ac, static_cast<uint32_t>(n), table.symbols[index & 255]);
  }
  return 1u | 1u << 8 | 32u << 16 | kWrong << 24;
}

/// Makes the tables of an image: first the limits of the codes, by one thread for each table, then the entries.
template <class Threads>
HEADRACE_HD void build_tables(Threads& threads, EntropyMemory& block, const JpegJob& image) {
  threads.each([&](int thread) {
    if (thread >= 2 * image.pairs) return;
    LongCodesOf& codes = block.codes[thread >> 1][thread & 1];
    const CodeTable& table = table_of(image, static_cast<uint32_t>(thread));
    uint32_t code = 0;
    int32_t index = 0;
    HEADRACE_UNROLL(1)
    for (int n = 1; n <= 16; ++n) {
      codes.offset[n] = index - static_cast<int32_t>(code);
      code += table.lengths[n - 1];
      index += table.lengths[n - 1];
      codes.end[n] = code << (16 - n);
      code <<= 1;
    }
  });
  threads.each([&](int thread) {
    HEADRACE_UNROLL(1)
    for (int kind = 0; kind < 2 * image.pairs; ++kind) {
      const LongCodesOf& codes = block.codes[kind >> 1][kind & 1];
      const CodeTable& table = table_of(image, static_cast<uint32_t>(kind));
      HEADRACE_UNROLL(1)
      for (int i = thread; i < kEntries; i += kLanes) {
        const uint32_t bits = static_cast<uint32_t>(i) << (32 - kLookup);
        const bool is_short = bits >> 16 < codes.end[kLookup];
        block.entry[kind >> 1][kind & 1][i] = is_short ? found_entry(table, codes, kind & 1, bits, 1) : 0;
      }
    }
  });
}

/// (high:low) << by, the upper half; `by` below 32.
HEADRACE_HD inline uint32_t shifted_in(uint32_t high, uint32_t low, uint32_t by) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_l(low, high, by);
#else
  return static_cast<uint32_t>(((uint64_t{high} << 32 | low) << (by & 31)) >> 32);
#endif
}

/// value >> by, also for 32.
HEADRACE_HD inline uint32_t shifted_out(uint32_t value, uint32_t by) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_rc(value, 0, by);
#else
  return by > 31 ? 0 : value >> by;
#endif
}

HEADRACE_HD inline uint32_t big_endian(uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(word, 0, 0x0123);
#else
  return __builtin_bswap32(word);
#endif
}

struct Chunk {
  uint32_t word[kChunkWords];
};

HEADRACE_HD inline Chunk load_chunk(const uint32_t* bytes, uint32_t chunk) {
#if defined(__CUDA_ARCH__)
  const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(bytes) + chunk);
  return {{loaded.x, loaded.y, loaded.z, loaded.w}};
#else
  const uint32_t* from = bytes + static_cast<size_t>(chunk) * kChunkWords;
  return {{from[0], from[1], from[2], from[3]}};
#endif
}

/// Decodes one row. `Watch`: counts on the host; its functions are called for each symbol and group.
template <class Watch>
HEADRACE_HD void decode_row(EntropyMemory& block, int lane, const JpegJob& image, const RowJob& row, int16_t* to,
                            const uint32_t* bytes, uint32_t* failed, Watch& watch) {
  const uint32_t last_chunk = row.first_chunk + row.chunks - 1;
  uint32_t chunk = row.first_chunk;
  uint32_t stored = 0, used = 0;  // words, in all: those that went to the ring, those that left it
  const auto next_chunk = [&] {
    const Chunk loaded = load_chunk(bytes, chunk);
    chunk = chunk < last_chunk ? chunk + 1 : last_chunk;
    return loaded;
  };
  const auto store = [&](const Chunk& loaded) {
    for (int i = 0; i < kChunkWords; ++i)
      block.ring[(stored + static_cast<uint32_t>(i)) % kRing][lane] = big_endian(loaded.word[i]);
    stored += kChunkWords;
  };
  for (int i = 0; i < kRing / kChunkWords; ++i) store(next_chunk());
  const auto take = [&] { return block.ring[used++ % kRing][lane]; };

  uint32_t word0 = take(), word1 = take(), word2 = take();
  uint32_t at = row.first_bit & 31;  // in word0
  for (uint32_t i = row.first_bit >> 5; i > 0; --i) {
    word0 = word1;
    word1 = word2;
    word2 = take();
  }
  uint32_t bits_used = row.first_bit;
  int dc0 = row.dc[0], dc1 = row.dc[1], dc2 = row.dc[2];
  uint32_t pattern = image.pattern;
  const int pattern_top = 2 * (image.mcu_blocks - 1);
  const int wanted = image.wanted;
  int number = -image.skipped;  // of the block; negative: it is skipped
  uint32_t k = 0;               // of the next coefficient; 0: the DC
  const uint32_t* const entries = &block.entry[0][0][0];
  uint32_t table = (pattern & 1) * (2 * kEntries);
  uint32_t long_entry = 0;  // of a code that had no entry when the last group ended
  bool wrong = false;
  uint8_t* const before = reinterpret_cast<uint8_t*>(to) - 2;  // the coefficient before the first one
  constexpr uint32_t kBlockBytes = 128;

  while (number < wanted) {
    watch.group();
    const bool room = stored - used <= kRing - kChunkWords;
    Chunk ahead{};
    if (room) ahead = next_chunk();
    HEADRACE_UNROLL(kGroup)
    for (int step = 0; step < kGroup; ++step) {
      const uint32_t bits = shifted_in(word0, word1, at);
      uint32_t entry = entries[table + (bits >> (32 - kLookup))];
      if (step == 0) entry = entry != 0 ? entry : long_entry;
      const bool active = number < wanted;
      const bool is_long = entry == 0;  // then this step, and those after it, change nothing
      watch.symbol(active, is_long, k);
      // The window.
      const uint32_t total = entry & 31;
      bits_used += active ? total : 0;
      at += total;
      if (at >= 32) {
        at -= 32;
        word0 = word1;
        word1 = word2;
        word2 = take();
      }
      // The value: a number whose first bit is 0 is negative.
      const uint32_t out = entry >> 16 & 63;
      const uint32_t left = bits << (entry >> 8 & 31);
      const uint32_t negative = static_cast<uint32_t>(static_cast<int32_t>(~left) >> 31);
      int value = static_cast<int>(shifted_out(left, out) - shifted_out(negative, out));
      const bool is_dc = k == 0 && !is_long;
      if (is_dc) value = dc0 += value;
      // The place.
      const uint32_t after = k + (entry >> 24);
      const uint32_t place = static_cast<uint32_t>(number) * kBlockBytes + after * 2;
      if (static_cast<uint32_t>(number) < static_cast<uint32_t>(wanted) && after <= 64 && !is_long)
        *reinterpret_cast<int16_t*>(before + place) = static_cast<int16_t>(value);
      // The block's end.
      const bool done = after >= 64;
      wrong = wrong || (active && after - 65 < 64);
      k = done ? 0 : after;
      number += done ? 1 : 0;
      const bool turns = done && (pattern & 2) != 0;
      pattern = done ? pattern >> 2 | (pattern & 3) << pattern_top : pattern;
      const int first = dc0;
      dc0 = turns ? dc1 : dc0;
      dc1 = turns ? dc2 : dc1;
      dc2 = turns ? first : dc2;
      table = (pattern & 1) * (2 * kEntries) + (k == 0 ? 0 : kEntries);
    }
    const uint32_t bits = shifted_in(word0, word1, at);
    if (entries[table + (bits >> (32 - kLookup))] == 0) {
      const uint32_t kind = table / kEntries;
      long_entry = found_entry(table_of(image, kind), block.codes[kind >> 1][kind & 1], kind & 1, bits, kLookup + 1);
    }
    if (wrong) break;
    if (room) store(ahead);
    while (stored - used < kMostWords + 1) {
      watch.short_of_words();
      store(next_chunk());
    }
  }
  watch.end(bits_used);
  if (wrong || bits_used > row.most_bits || bits_used < row.least_bits) *failed = 1;
}

/// Decodes the rows of one block of threads.
template <class Threads, class Watches>
HEADRACE_HD void entropy_block(Threads& threads, EntropyMemory& block, const JpegLaunch& launch, int number,
                               Watches& watches) {
  const RowsOfBlock rows = launch.row_blocks[number];
  const JpegJob& image = launch.images[rows.image];
  build_tables(threads, block, image);
  threads.each([&](int thread) {
    if (thread >= rows.count) return;
    const int row = rows.first + thread;
    int16_t* to = image.coefficients + static_cast<int64_t>(launch.row_of_image[row]) * image.wanted * 64;
    decode_row(block, thread, image, launch.rows[row], to, launch.bytes, launch.failed + rows.image, watches.of(row));
  });
}

}  // namespace headrace
