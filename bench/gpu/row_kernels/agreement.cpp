// Measures after how many bits a decoder that begins anywhere in a scan agrees with the true one: in the bit position,
// the position in the block, and the block of the MCU. Prints a table for all files and by kind of sampling.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "host_scan.h"

using namespace headrace;

namespace {

struct Code {
  uint8_t length = 0, symbol = 0;
};

struct Codes {  // by the next 16 bits
  std::vector<Code> code = std::vector<Code>(65536);
  explicit Codes(const HuffmanSpec& spec) {
    size_t at = 0, symbol = 0;
    for (unsigned length = 1; length <= 16; ++length)
      for (unsigned i = 0; i < spec.lengths[length]; ++i, ++symbol)
        for (unsigned j = 0; j < 1u << (16 - length); ++j)
          code[at++] = {static_cast<uint8_t>(length), spec.symbols[symbol]};
  }
};

struct Reader {
  const HostScan& scan;
  const std::vector<uint8_t>& bytes;  // padded
  std::vector<Codes> dc, ac;
  size_t bits;

  struct State {
    size_t bit = 0;
    int block = 0, k = 0;  // k 0: the DC
  };

  uint32_t peek(size_t bit) const {
    const uint8_t* p = bytes.data() + bit / 8;
    return static_cast<uint32_t>((uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3])
                                 << bit % 8) >>
           16;
  }
  /// One symbol. Returns 0: an ordinary one, 1: the block ends, 2: no such code, 3: past the end of the block. What is
  /// wrong ends the block.
  int step(State* s) const {
    const HostScan::Block& kind = scan.block[static_cast<size_t>(s->block)];
    const Code code = (s->k == 0 ? dc[kind.dc] : ac[kind.ac]).code[peek(s->bit)];
    int outcome = 0;
    if (code.length == 0) {
      ++s->bit;
      outcome = 2;
    } else if (s->k == 0) {
      s->bit += static_cast<size_t>(code.length) + (code.symbol & 15);
      s->k = 1;
    } else {
      const int size = code.symbol & 15, run = code.symbol >> 4;
      s->bit += static_cast<size_t>(code.length + size);
      s->k += run + 1;
      if (size == 0 && run != 15)
        outcome = 1;
      else if (s->k >= 64)
        outcome = s->k == 64 ? 1 : 3;
    }
    if (outcome != 0) {
      s->k = 0;
      if (++s->block == static_cast<int>(scan.block.size())) s->block = 0;
    }
    return outcome;
  }
};

struct Distance {
  unsigned place, bits, blocks, aligned_bits, symbols;  // aligned: the bit position alone
};

struct Kind {
  int files = 0;
  double bits = 0;
  std::vector<Distance> all;
  std::vector<std::vector<Distance>> by_file;
  size_t never = 0;
};

template <class Get>
void percentiles(const char* name, const std::vector<Distance>& all, Get get) {
  std::vector<unsigned> v;
  for (const Distance& one : all) v.push_back(get(one));
  std::sort(v.begin(), v.end());
  const auto at = [&](double q) {
    return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
  };
  double sum = 0;
  for (unsigned x : v) sum += x;
  std::printf("  %-30s mean %7.0f  50%% %6u  75%% %6u  90%% %6u  95%% %6u  99%% %6u  99.9%% %7u  max %7u\n", name,
              sum / static_cast<double>(v.size()), at(.5), at(.75), at(.9), at(.95), at(.99), at(.999), v.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "which folder?\n"), 2;
  constexpr size_t kStep = 512;
  std::map<std::string, Kind> kinds;
  std::map<std::string, int> others;
  for (const std::string& path : files_of(argv[1])) {
    const std::vector<uint8_t> file = read_file(path);
    const JpegHeader header = parse_jpeg_header(file);
    const char* const why = not_taken(header);
    if (why != nullptr || header.restart_interval != 0) {
      ++others[why != nullptr ? why : "restart markers"];
      continue;
    }
    const HostScan scan = host_scan(file, header);
    std::vector<uint8_t> bytes = without_stuffing(scan.data);
    const size_t bits = bytes.size() * 8;
    bytes.resize(bytes.size() + 64);
    Reader reader{scan, bytes, {}, {}, bits};
    for (int i = 0; i < 4; ++i) {
      reader.dc.emplace_back(scan.dc[i]);
      reader.ac.emplace_back(scan.ac[i]);
    }
    std::vector<uint16_t> truth(bits + 64);
    Reader::State s;
    const int64_t blocks = int64_t{scan.columns} * scan.rows * static_cast<int64_t>(scan.block.size());
    bool fine = true;
    for (int64_t done = 0; done < blocks && fine;) {
      truth[s.bit] = static_cast<uint16_t>(1 + s.block * 64 + s.k);
      const int outcome = reader.step(&s);
      fine = outcome < 2 && s.bit <= bits;
      done += outcome;
    }
    if (!fine) {
      ++others["damaged"];
      continue;
    }
    const size_t end = s.bit;
    char name[64];
    const auto& c = header.component;
    if (header.components == 1)
      std::snprintf(name, sizeof name, "gray");
    else
      std::snprintf(name, sizeof name, "%dx%d,%dx%d", c[0].h, c[0].v, c[1].h, c[1].v);
    std::vector<Distance> of_file;
    size_t never = 0;
    for (size_t from = kStep; from < end; from += kStep) {
      Reader::State t{from, 0, 0};
      unsigned done = 0, aligned = 0, symbols = 0;
      bool found = false;
      while (t.bit < end) {
        if (truth[t.bit] != 0 && aligned == 0) aligned = static_cast<unsigned>(t.bit - from) + 1;
        if (truth[t.bit] == 1 + t.block * 64 + t.k) {
          found = true;
          break;
        }
        done += reader.step(&t) != 0;
        ++symbols;
      }
      if (found)
        of_file.push_back(
            {static_cast<unsigned>(from), static_cast<unsigned>(t.bit - from), done, aligned - 1, symbols});
      else
        ++never;
    }
    for (const std::string& to : {std::string(name), std::string("all")}) {
      Kind& kind = kinds[to];
      ++kind.files;
      kind.bits += static_cast<double>(end);
      kind.all.insert(kind.all.end(), of_file.begin(), of_file.end());
      kind.by_file.push_back(of_file);
      kind.never += never;
    }
  }
  for (const auto& [why, count] : others) std::printf("not measured: %d files: %s\n", count, why.c_str());
  for (auto& [name, kind] : kinds) {
    std::printf("%s: %d files, %.0f kbit each, %zu starts, and %zu that the scan's end came before\n", name.c_str(),
                kind.files, kind.bits / kind.files / 1000, kind.all.size(), kind.never);
    percentiles("bits until the bit agrees", kind.all, [](const Distance& d) { return d.aligned_bits; });
    percentiles("bits until all agrees", kind.all, [](const Distance& d) { return d.bits; });
    percentiles("blocks until all agrees", kind.all, [](const Distance& d) { return d.blocks; });
    percentiles("symbols until all agrees", kind.all, [](const Distance& d) { return d.symbols; });
    for (unsigned size = 512; size <= 32768; size *= 2) {
      double inside = 0, twice = 0, count = 0, extra = 0;
      std::vector<unsigned> rounds;
      for (const auto& file : kind.by_file) {
        unsigned worst = 0;
        for (const Distance& d : file) {
          if (d.place % size != 0) continue;
          ++count;
          inside += d.bits <= size;
          twice += d.bits <= 2 * size;
          extra += d.bits;
          worst = std::max(worst, (d.bits + size - 1) / size);
        }
        rounds.push_back(worst);
      }
      std::sort(rounds.begin(), rounds.end());
      std::printf(
          "  pieces of %5u bits: agree within one %.4f, two %.4f; bits read until all agree, in pieces: %.2f; pieces "
          "to the worst "
          "agreement of a file: 50%% %u, 90%% %u, max %u\n",
          size, inside / count, twice / count, extra / count / size, rounds[rounds.size() / 2],
          rounds[rounds.size() * 9 / 10], rounds.back());
    }
  }
}
