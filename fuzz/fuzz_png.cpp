// libFuzzer harness: the parser of chunks on any bytes; and the decoder on any compressed data, in a file around them
// whose checksums are right. zlib, by which Pillow decodes, is the judge: it accepts what we accept, with the same
// bytes. It also refuses symbols that the format does not have, to which libdeflate gives a meaning (decision 0090).
#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/png/png_decoder.h"
#include "support/png_samples.h"

namespace {

using namespace headrace;

constexpr size_t kMost = 1 << 18;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_png: %s\n", what);
  __builtin_trap();
}

/// Decodes in each way; returns whether the samples could be written.
bool decode(const PngHeader& header, PngBytes& samples) {
  PngDecoder decoder;
  for (const PngWanted wanted : {PngWanted::kRgb, PngWanted::kIndices}) {
    try {
      const RawImage image = decoder.decode(header, wanted);
      unsigned sum = 0;  // read for the sanitizers' sake
      for (int y = 0; y < image.size.height; ++y) {
        for (int x = 0; x < image.size.width; ++x) {
          const uint8_t* at = image.data + y * image.row_stride + x * image.pixel_stride;
          for (int c = 0; c < image.channels; ++c) sum += at[c * image.channel_stride];
        }
      }
      require(sum < ~0u, "a sum");
    } catch (const NeedsPillow&) {
    }
  }
  samples.resize(static_cast<size_t>(header.size.width) * static_cast<size_t>(header.size.height) *
                 static_cast<size_t>(png_pixel_bytes(header)));
  try {
    decoder.write_samples(header, samples.data());
  } catch (const NeedsPillow&) {
    return false;
  }
  return true;
}

/// The bytes that zlib makes of a stream; empty, with its reason, where it raises an error.
PngBytes by_zlib(const PngBytes& stream, size_t size, std::string& reason) {
  PngBytes made(size + 1);
  z_stream state{};
  require(inflateInit(&state) == Z_OK, "zlib");
  state.next_in = const_cast<Bytef*>(stream.data());
  state.avail_in = static_cast<uInt>(stream.size());
  state.next_out = made.data();
  state.avail_out = static_cast<uInt>(made.size());
  const int result = inflate(&state, Z_NO_FLUSH);
  made.resize(state.total_out);
  if (state.msg != nullptr) reason = state.msg;
  inflateEnd(&state);
  return result == Z_STREAM_END ? made : PngBytes{};
}

/// Makes a file whose compressed data are the input, if libdeflate accepts them.
void decode_as_data(std::span<const uint8_t> input) {
  if (input.size() < 4) return;
  const std::vector<PngSample> kinds = {{.depth = 1, .colour = 0}, {.depth = 4, .colour = 3},
                                        {.depth = 8, .colour = 0}, {.depth = 16, .colour = 0},
                                        {.depth = 8, .colour = 2}, {.depth = 16, .colour = 6}};
  PngSample sample = kinds[input[0] % kinds.size()];
  sample.width = 1 + input[1] % 64;
  const std::span<const uint8_t> data = input.subspan(2);
  PngBytes rows(kMost);
  size_t made = 0;
  libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
  const auto result =
      libdeflate_deflate_decompress(inflater, data.data(), data.size(), rows.data(), rows.size(), &made);
  libdeflate_free_decompressor(inflater);
  if (result != LIBDEFLATE_SUCCESS || made == 0) return;
  rows.resize(made);
  PngBytes stream = {0x78, 1};
  stream.insert(stream.end(), data.begin(), data.end());
  append_number(stream, libdeflate_adler32(1, rows.data(), rows.size()));
  PngHeader header;
  header.depth = sample.depth;
  header.colour = static_cast<PngColour>(sample.colour);
  header.size = {sample.width, 1};
  header.size.height = static_cast<int>(made / (header.row_bytes() + 1));
  if (header.size.height < 1) return;
  header.palette = stream;
  header.palette = header.palette.first(std::min<size_t>(header.palette.size() / 3 * 3, 768));
  header.data = {stream};
  PngBytes samples;
  if (!decode(header, samples)) return;
  std::string reason;
  const PngBytes other = by_zlib(stream, rows.size(), reason);
  for (const char* known :
       {"invalid literal/length code", "invalid distance code", "too many length or distance symbols"}) {
    if (reason == known) return;
  }
  require(other == rows, reason.empty() ? "zlib makes other bytes" : reason.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const PngHeader header = parse_png_header({bytes, size});
  if (header.not_plain == nullptr && int64_t{header.size.width} * header.size.height < int64_t{kMost}) {
    PngBytes samples;
    decode(header, samples);
  }
  decode_as_data({bytes, size});
  return 0;
}
