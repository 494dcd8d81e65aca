// The emulated entropy kernel on rows of random symbols under random tables, long codes and large values among them:
// coefficients must be those that were written. Prints how often the rare paths were taken.
#include <cstdio>
#include <map>
#include <random>

#include "host_jobs.h"

using namespace headrace;

namespace {

struct Code {
  uint32_t code = 0, length = 0;
};

struct Table {
  CodeTable table;
  std::map<int, Code> code;  // by symbol
  std::vector<int> symbols;
};

/// `shortest`: bits of a code, at least.
Table random_table(std::mt19937_64& random, std::vector<int> symbols, uint32_t shortest) {
  Table made;
  std::shuffle(symbols.begin(), symbols.end(), random);
  uint32_t code = 0;
  size_t next = 0;
  for (uint32_t length = 1; length <= 16 && next < symbols.size(); ++length) {
    code <<= 1;
    const size_t left = symbols.size() - next;
    // All the others must fit into what is left, without the code of ones.
    const auto fits = [&](size_t count) {
      const int64_t free = (int64_t{1} << length) - static_cast<int64_t>(code + count);  // codes of this length
      return free * (int64_t{1} << (16 - length)) > static_cast<int64_t>(left - count);
    };
    size_t count = length == 16        ? left
                   : length < shortest ? 0
                                       : random() % std::min<size_t>(left + 1, 1 + (size_t{1} << length) / 4);
    count = std::min<size_t>(count, 255);
    while (count > 0 && !fits(count)) --count;
    for (size_t i = 0; i < count; ++i, ++code, ++next) {
      made.code[symbols[next]] = {code, length};
      made.table.symbols[next] = static_cast<uint8_t>(symbols[next]);
    }
    made.table.lengths[length - 1] = static_cast<uint8_t>(count);
  }
  for (const auto& [symbol, one] : made.code) made.symbols.push_back(symbol);
  return made;
}

struct Writer {
  std::vector<uint8_t> bytes;
  size_t bits = 0;
  void put(uint32_t value, uint32_t count) {
    for (; count > 0; --count, ++bits) {
      if (bits % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<uint8_t>(bytes.back() | (value >> (count - 1) & 1) << (7 - bits % 8));
    }
  }
};

struct Watch {
  size_t symbols = 0, longs = 0, shorts = 0;
  Watch& of(int) { return *this; }
  void group() {}
  void symbol(bool, bool is_long, uint32_t) { ++symbols, longs += is_long; }
  void short_of_words() { ++shorts; }
  void end(uint32_t) {}
};

}  // namespace

int main(int argc, char** argv) {
  const int trials = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::mt19937_64 random(3);
  Watch watch;
  for (int trial = 0; trial < trials; ++trial) {
    HostBatch batch;
    JpegJob image;
    // Few words for a group: codes without an entry. Many: the longest codes with one, and large values.
    const bool deep = trial % 3 == 0, wide = trial % 3 == 1;
    const uint32_t shortest = deep ? 14 : wide ? 9 : 1;
    std::vector<Table> tables[2];
    image.pairs = 1 + static_cast<int>(random() % 2);
    for (int pair = 0; pair < image.pairs; ++pair) {
      std::vector<int> dc, ac;
      for (int i = 0; i < 16; ++i) dc.push_back(i);
      for (int i = 0; i < 256; ++i)
        if (i == 0 || (wide ? i < 16 && i > 11 : i == 0xF0 || random() % (deep ? 1 : 3) == 0)) ac.push_back(i);
      tables[0].push_back(random_table(random, dc, shortest));
      tables[1].push_back(random_table(random, ac, shortest));
      image.dc[pair] = tables[0].back().table;
      image.ac[pair] = tables[1].back().table;
    }
    image.components = random() % 3 == 0 ? 1 : 3;
    std::vector<int> component, pair_of;
    for (int c = 0; c < image.components; ++c)
      for (size_t n = image.components == 1 ? 1 : 1 + random() % 3; n > 0; --n) {
        component.push_back(c);
        pair_of.push_back(c == 0 ? 0 : image.pairs - 1);
      }
    image.mcu_blocks = static_cast<int>(component.size());
    for (size_t i = 0; i < component.size(); ++i) {
      const bool turns = image.components == 3 && (i + 1 == component.size() || component[i + 1] != component[i]);
      image.pattern |= static_cast<uint32_t>(pair_of[i] | (turns ? 2 : 0)) << (2 * i);
    }
    image.columns = 1 + static_cast<int>(random() % 6);
    image.skipped = static_cast<int>(random() % 4) * image.mcu_blocks;
    image.wanted = image.columns * image.mcu_blocks;
    const int rows = 1 + static_cast<int>(random() % kLanes);
    std::vector<int16_t> expected(static_cast<size_t>(rows) * static_cast<size_t>(image.wanted) * 64),
        got(expected.size());
    image.coefficients = got.data();
    for (int row = 0; row < rows; ++row) {
      Writer out;
      RowJob job;
      job.first_bit = static_cast<uint32_t>(random() % 8);
      out.put(static_cast<uint32_t>(random()), job.first_bit);
      int dc[3];
      for (int c = 0; c < 3; ++c) dc[c] = job.dc[c] = static_cast<int16_t>(random());
      for (int b = 0; b < image.skipped + image.wanted; ++b) {
        const size_t in_mcu = static_cast<size_t>(b % image.mcu_blocks);
        int16_t* const to = b < image.skipped
                                ? nullptr
                                : &expected[(static_cast<size_t>(row) * static_cast<size_t>(image.wanted) +
                                             static_cast<size_t>(b - image.skipped)) *
                                            64];
        const auto put = [&](const Table& table, int symbol) {
          const Code code = table.code.at(symbol);
          out.put(code.code, code.length);
          const int size = symbol & 15;
          const uint32_t value = static_cast<uint32_t>(random()) & ((1u << size) - 1);
          out.put(value, static_cast<uint32_t>(size));
          return size == 0                  ? 0
                 : value >> (size - 1) != 0 ? static_cast<int>(value)
                                            : static_cast<int>(value) - (1 << size) + 1;
        };
        const size_t pair = static_cast<size_t>(pair_of[in_mcu]);
        const Table &dcs = tables[0][pair], &acs = tables[1][pair];
        int& last = dc[component[in_mcu]];
        last += put(dcs, dcs.symbols[random() % dcs.symbols.size()]);
        if (to != nullptr) to[0] = static_cast<int16_t>(last);
        for (int k = 1; k < 64;) {
          int symbol = acs.symbols[random() % acs.symbols.size()];
          const bool end = (symbol & 15) == 0 && symbol != 0xF0;
          if (!end && k + (symbol >> 4) + 1 > 64) symbol = 0;
          if (random() % 40 == 0) symbol = 0;
          const bool ends = (symbol & 15) == 0 && symbol != 0xF0;
          const int value = put(acs, symbol);
          if (ends) break;
          k += (symbol >> 4) + 1;
          if (to != nullptr) to[k - 1] = static_cast<int16_t>(value);
        }
      }
      job.most_bits = static_cast<uint32_t>(out.bits);
      job.least_bits = job.most_bits;
      job.first_chunk = static_cast<uint32_t>(batch.bytes.size() / kChunkWords);
      job.chunks = static_cast<uint32_t>((out.bytes.size() + 15) / 16);
      batch.bytes.resize(batch.bytes.size() + job.chunks * kChunkWords);
      std::memcpy(batch.bytes.data() + job.first_chunk * kChunkWords, out.bytes.data(), out.bytes.size());
      batch.rows.push_back(job);
      batch.row_of_image.push_back(row);
    }
    batch.images.push_back(image);
    batch.row_blocks.push_back({0, 0, rows, 0});
    batch.failed.push_back(0);
    emulate_entropy(batch, watch);
    if (batch.failed[0] != 0 || got != expected) {
      std::printf("trial %d: %s\n", trial, batch.failed[0] != 0 ? "refused" : "coefficients differ");
      return 1;
    }
  }
  std::printf("%d trials equal; %zu steps, %zu without an entry, short of words %zu times\n", trials, watch.symbols,
              watch.longs, watch.shorts);
}
