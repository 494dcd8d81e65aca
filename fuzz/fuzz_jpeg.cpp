// libFuzzer harness: header parser and crop decoder on any bytes, and libjpeg itself as the judge of what they accept.
#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/jpeg/sequential/opening_markers.h"
#include "core/jpeg/transcode/pack_jpeg.h"
#include "progressive/progressive_check.h"
// jpeglib.h needs FILE.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace {

using namespace headrace;

constexpr int64_t kMaxPixels = 1 << 22;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fuzz_jpeg: %s\n", what);
  __builtin_trap();
}

void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

class Keep : public RowSink {
 public:
  explicit Keep(int width) : row_bytes_(static_cast<size_t>(width) * kPixelBytes) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    require(count > 0 && stride >= row_bytes_, "an odd push");
    for (int i = 0; i < count; ++i, rows += stride) pixels.insert(pixels.end(), rows, rows + row_bytes_);
    const uint8_t* const past = rows - stride + row_bytes_;
    for (size_t i = 0; i < kRowSlack; ++i) slack_ += past[i];
  }
  std::vector<uint8_t> pixels;

 private:
  size_t row_bytes_;
  unsigned slack_ = 0;  // read for the sanitizers' sake
};

struct Judge {
  jpeg_error_mgr errors;  // first: libjpeg's pointer to it is a pointer to this
  std::jmp_buf escape;
  static void leave(j_common_ptr cinfo) { std::longjmp(reinterpret_cast<Judge*>(cinfo->err)->escape, 1); }
  static void count(j_common_ptr cinfo, int level) {
    if (level < 0) ++cinfo->err->num_warnings;
  }
};

enum class Verdict { kStops, kWarns, kClean };

/// The first `rows` rows by libjpeg's plainest calls.
Verdict judge(std::span<const uint8_t> data, int rows, size_t row_bytes, uint8_t* out) {
  jpeg_decompress_struct cinfo;
  Judge judge;
  cinfo.err = jpeg_std_error(&judge.errors);
  judge.errors.error_exit = Judge::leave;
  judge.errors.emit_message = Judge::count;
  jpeg_create_decompress(&cinfo);
  if (setjmp(judge.escape) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return Verdict::kStops;
  }
  jpeg_mem_src(&cinfo, data.data(), static_cast<unsigned long>(data.size()));
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = JCS_EXT_RGBX;
  jpeg_start_decompress(&cinfo);
  while (static_cast<int>(cinfo.output_scanline) < rows) {
    JSAMPROW row = out + cinfo.output_scanline * row_bytes;
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  const bool clean = judge.errors.num_warnings == 0;
  jpeg_abort_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return clean ? Verdict::kClean : Verdict::kWarns;
}

/// A box that depends on all bytes, so that an input names one; often the whole image, whose codes are all decoded.
Box box_of(std::span<const uint8_t> data, Size image) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const uint8_t byte : data) hash = (hash ^ byte) * 0x100000001B3u;
  const auto draw = [&hash](int below) {
    hash = hash * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((hash >> 33) % static_cast<uint64_t>(below));
  };
  if (draw(4) == 0) return whole_image(image);
  Box box;
  box.x = draw(image.width);
  box.y = draw(image.height);
  box.width = 1 + draw(image.width - box.x);
  box.height = 1 + draw(image.height - box.y);
  return box;
}

/// A decoder for each set of loops, as a worker has it: what one image leaves must not reach the next.
template <class Decoder>
std::deque<Decoder>& decoders_of_sets() {
  static std::deque<Decoder> decoders;
  if (decoders.empty()) {
    decoders.emplace_back(nullptr);
    decoders.emplace_back(&kScalarBlocks);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) decoders.emplace_back(&kAvx2Blocks);
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vnni"))
      decoders.emplace_back(&kAvx512Blocks);
#endif
  }
  return decoders;
}

/// One of them, chosen by a number.
template <class Decoder>
Decoder& decoder_for(int number) {
  std::deque<Decoder>& decoders = decoders_of_sets<Decoder>();
  return decoders[static_cast<size_t>(number) % decoders.size()];
}

/// Whether it is the one for AVX-512.
bool decodes_side_by_side(const JpegDecoder& decoder) {
  const auto& decoders = decoders_of_sets<JpegDecoder>();
  return decoders.size() == 4 && &decoder == &decoders.back();
}

/// What a decoder makes of a list of entry points that may be false; nothing where it refuses.
std::vector<uint8_t> believed(JpegDecoder& decoder, std::span<const uint8_t> data, const JpegHeader& header, Box box,
                              std::span<const EntryPoint> list, EntryPoints* points) {
  points->keep(points->key_of(data), list);
  Keep any(box.width);
  try {
    decoder.decode(data, header, box, any, points);
  } catch (const NeedsPillow&) {
    return {};
  }
  return any.pixels;
}

/// What a decode of almost the whole image learns does not change the pixels of a box.
void check_entry_points(JpegDecoder& decoder, std::span<const uint8_t> data, const JpegHeader& header, Box box,
                        const std::vector<uint8_t>& pixels) {
  constexpr size_t kEnough = size_t{1} << 28;
  EntryPoints points(kEnough);
  Box most = whole_image(header.size);  // without a column: a decode of all codes learns nothing
  most.width = std::max(1, most.width - 1);
  Keep whole(most.width);
  try {
    decoder.decode(data, header, most, whole, &points);
  } catch (const NeedsPillow&) {  // damage below the box
  }
  Keep kept(box.width);
  try {
    decoder.decode(data, header, box, kept, &points);
  } catch (const NeedsPillow&) {
    fail("damaged with entry points alone");
  }
  require(kept.pixels == pixels, "other pixels with entry points");
  // False entry points: any pixels, or a refusal.
  EntryPoints lies(kEnough);
  std::vector<EntryPoint> list(1 + data.size() % 64);
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = {static_cast<uint32_t>(data[i * 7 % data.size()]) * static_cast<uint32_t>(data.size() / 16 + i),
               {1, -1, 300}};
  const std::vector<uint8_t> side_by_side = believed(decoder, data, header, box, list, &lies);
#if defined(__x86_64__)
  // The same pixels, or a refusal, where rows are not decoded side by side: see Note [row lanes]. One by one, entry
  // points are used only where they leave codes out.
  if (!decodes_side_by_side(decoder) || (box.y == 0 && box.x + box.width == header.size.width)) return;
  static JpegDecoder one_by_one(&kAvx2Blocks);
  EntryPoints same(kEnough);
  require(believed(one_by_one, data, header, box, list, &same) == side_by_side, "other pixels side by side");
#endif
}

/// A rewritten file has the same pixels.
void check_packed(std::span<const uint8_t> data, const std::vector<uint8_t>& whole, int rows, size_t row_bytes) {
  std::vector<uint8_t> packed;
  try {
    packed = pack_jpeg(data, true);
  } catch (const NeedsPillow&) {
    return;
  }
  std::vector<uint8_t> after(whole.size());
  require(judge(packed, rows, row_bytes, after.data()) == Verdict::kClean,
          "libjpeg does not find the packed file clean");
  require(after == whole, "other pixels in the packed file");
}

/// The way of a GPU: planes of samples, and the pixels made from them.
void check_planes(std::span<const uint8_t> data, const JpegHeader& header, Box box,
                  const std::vector<uint8_t>& pixels) {
  const PlaneLayout layout = plane_layout(header, box);
  std::vector<uint8_t> samples(layout.bytes);
  try {
    decoder_for<PlaneDecoder>(box.x + box.width).decode(data, header, layout, samples.data());
  } catch (const NeedsPillow&) {
    return;  // it looks at a row more than the crop needs
  }
  const PlanarImage image = layout.at(samples.data());
  const uint8_t* pixel = pixels.data();
  for (int y = 0; y < box.height; ++y)
    for (int x = 0; x < box.width; ++x, pixel += kPixelBytes)
      require(pixel_at(image, box.x + x, box.y + y) == pack_rgbx(pixel[0], pixel[1], pixel[2]), "other planes");
}

/// What is read when a file is opened is inside it, where its lengths say, and needs nothing after its end.
void check_opening(std::span<const uint8_t> data) {
  const std::optional<OpeningMarkers> found = read_opening_markers(data);
  if (!found) return;
  require(found->end <= data.size(), "an opening beyond the data");
  const uint8_t* past = data.data() + 2;  // of SOI
  for (const auto& [marker, kind, body] : found->segments) {
    const uint8_t* const begin = body.data() - 4;
    require(begin >= past && body.data() + body.size() <= data.data() + found->end, "a segment outside its place");
    require(begin[0] == 0xFF && begin[1] == marker, "a segment of another marker");
    require(static_cast<size_t>(begin[2] << 8 | begin[3]) == body.size() + 2, "a segment of another length");
    past = body.data() + body.size();
  }
  const auto again = read_opening_markers(data.first(found->end));
  require(again && again->segments.size() == found->segments.size(), "an opening that needs what comes after it");
  require(!read_opening_markers(data.first(found->end - 1)), "an opening that is cut");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("HEADRACE_HUFFMAN", "lanes", 1);  // also of images with few rows
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::span<const uint8_t> data(bytes, size);
  check_opening(data);
  const JpegHeader header = parse_jpeg_header(data);
  if (header.not_plain != nullptr) return 0;
  require(header.size.width > 0 && header.size.height > 0, "an empty image is plain");
  require(header.components == 1 || header.components == 3, "neither gray nor colour is plain");
  require(header.scan_begin <= header.scan_end && header.scan_end < size, "a scan outside the data");
  require(header.scans >= 1 && (header.progressive || header.scans <= header.components), "too many scans");
  if (int64_t{header.size.width} * header.size.height > kMaxPixels) return 0;

  const Box box = box_of(data, header.size);
  if (header.progressive) {
    const char* const wrong = test::check_progressive(data, header, box);
    require(wrong == nullptr, wrong);
  }
  auto& decoder = decoder_for<JpegDecoder>(box.x + box.y + box.width + box.height);
  Keep kept(box.width);
  try {
    decoder.decode(data, header, box, kept);
  } catch (const NeedsPillow&) {
    return 0;
  }
  const size_t row_bytes = static_cast<size_t>(box.width) * kPixelBytes;
  require(kept.pixels.size() == row_bytes * static_cast<size_t>(box.height), "rows are missing");

  const size_t whole_bytes = static_cast<size_t>(header.size.width) * kPixelBytes;
  std::vector<uint8_t> whole(whole_bytes * static_cast<size_t>(box.y + box.height));
  const Verdict verdict = judge(data, box.y + box.height, whole_bytes, whole.data());
  // Our own loops do not read all that is beside a box: what libjpeg conceals there changes no pixel of the box.
  const bool partly = header.scans == 1 || header.progressive;
  require(verdict == Verdict::kClean || (partly && verdict == Verdict::kWarns), "libjpeg does not find this clean");
  for (size_t y = 0; y < static_cast<size_t>(box.height); ++y) {
    const uint8_t* row =
        &whole[(static_cast<size_t>(box.y) + y) * whole_bytes + static_cast<size_t>(box.x) * kPixelBytes];
    require(std::memcmp(row, &kept.pixels[y * row_bytes], row_bytes) == 0, "other pixels than libjpeg's");
  }

  check_entry_points(decoder, data, header, box, kept.pixels);
  check_packed(data, whole, box.y + box.height, whole_bytes);

  check_planes(data, header, box, kept.pixels);
  return 0;
}
