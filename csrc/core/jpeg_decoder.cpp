// Turns JPEG bytes into the RGBX rows of a box, through libjpeg-turbo; one decoder a worker.
//
// Note [setjmp]: libjpeg reports by calling back, and we leave it by longjmp. Every call into libjpeg therefore sits in
// one of the functions of `State` below that hold a setjmp; these own nothing with a destructor, change no local after
// the setjmp, and never call the sink, which may throw. The rows of a batch are read first and pushed afterwards.
#include "jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <memory>
#include <type_traits>

#include "error.h"
#include "huffman.h"
#include "row_buffer.h"

// Each of these needs the ones before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#ifndef LIBJPEG_TURBO_VERSION
#error "headrace needs libjpeg-turbo: IJG's libjpeg has neither jpeg_crop_scanline nor four-byte pixels"
#endif

// jpegint.h declares this one; not every distribution ships it. These two members have begun it since libjpeg 5.
static_assert(LIBJPEG_TURBO_VERSION_NUMBER < 4000000, "look whether jpeg_entropy_decoder still begins like this");
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr cinfo);
  boolean (*decode_mcu)(j_decompress_ptr cinfo, JBLOCKROW* mcu_data);
};

namespace headrace {
namespace {

// So many rows are handed on at once: enough to make the hand-over cheap, few enough to stay in L1 for usual crops.
constexpr int kBatchRows = 16;

// Libjpeg-turbo's colour conversion writes rows that are aligned to its vectors with stores that go around the cache,
// and the next stage wants the rows from the cache. 8 bytes off alignment keeps them there.
constexpr int kRowOffset = 8;

// A crop narrower than this is decoded wider: below two samples of a component libjpeg-turbo changes to an upsampling
// that a full decode does not use. The coarsest sampling has one sample to 4 pixels; twice what that asks for.
constexpr int kMinCropWidth = 16;

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};  // libjpeg's words for what it stopped at
  RowBuffer rows;
  HuffmanDecoder huffman;
  std::array<HuffmanSpec, 8> specs;  // DC 0 to 3, AC 0 to 3

  ~State() { jpeg_destroy_decompress(&cinfo); }
  bool create();
  bool start(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION* left, JDIMENSION* width);
  void plug_huffman(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION left, JDIMENSION width);
  bool skip(JDIMENSION count);
  bool read(uint8_t* first, size_t stride, int count);

  static State& of(j_common_ptr cinfo) { return *static_cast<State*>(cinfo->client_data); }
  [[noreturn]] void leave(const char* why) {
    std::snprintf(message, sizeof message, "%s", why);
    std::longjmp(escape, 1);
  }
  [[noreturn]] static void on_error(j_common_ptr cinfo) {
    State& state = of(cinfo);
    state.errors.format_message(cinfo, state.message);
    std::longjmp(state.escape, 1);
  }
  /// Level -1 is a warning, others are tracing. A warning means concealed damage: Pillow's to conceal.
  static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0) on_error(cinfo);
  }
  /// In the place of libjpeg's own decode_mcu, see Note [Huffman loop].
  static boolean on_mcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
    static_assert(std::is_same_v<JCOEF, int16_t>);
    State& state = of(reinterpret_cast<j_common_ptr>(cinfo));
    if (!state.huffman.next_mcu(blocks)) state.leave("Huffman-coded data that are damaged or odd");
    return TRUE;
  }
  static void on_output(j_common_ptr) {}
  static void source_noop(j_decompress_ptr) {}
  static boolean source_empty(j_decompress_ptr cinfo) {
    ERREXIT(cinfo, JERR_INPUT_EOF);
    return FALSE;
  }
  static void source_skip(j_decompress_ptr cinfo, long count) {
    if (count <= 0) return;
    if (static_cast<size_t>(count) > cinfo->src->bytes_in_buffer) ERREXIT(cinfo, JERR_INPUT_EOF);
    cinfo->src->next_input_byte += count;
    cinfo->src->bytes_in_buffer -= static_cast<size_t>(count);
  }
};

bool JpegDecoder::State::create() {
  cinfo.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  errors.output_message = on_output;
  cinfo.client_data = this;
  source.init_source = source_noop;
  source.fill_input_buffer = source_empty;
  source.skip_input_data = source_skip;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = source_noop;
  if (setjmp(escape) != 0) return false;
  jpeg_create_decompress(&cinfo);  // keeps err and client_data
  cinfo.src = &source;
  return true;
}

/// Reads the header and gets ready to read rows of [*left, *left + *width), widened to what libjpeg can cut.
bool JpegDecoder::State::start(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION* left,
                               JDIMENSION* width) {
  if (setjmp(escape) != 0) return false;
  source.next_input_byte = data.data();
  source.bytes_in_buffer = data.size();
  jpeg_read_header(&cinfo, TRUE);
  if (static_cast<int>(cinfo.image_width) != header.size.width ||
      static_cast<int>(cinfo.image_height) != header.size.height || cinfo.num_components != header.components ||
      header.scan_begin > header.scan_end || header.scan_end > data.size())
    leave("a header that is not of these data");
  cinfo.out_color_space = JCS_EXT_RGBX;
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&cinfo);
  if (*width < cinfo.output_width) jpeg_crop_scanline(&cinfo, left, width);
  if (header.scans == 1 && !header.progressive && own_huffman_wanted()) plug_huffman(data, header, *left, *width);
  return true;
}

void JpegDecoder::State::plug_huffman(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION left,
                                      JDIMENSION width) {
  HuffmanScan scan;
  scan.data = data.subspan(header.scan_begin, header.scan_end - header.scan_begin);
  scan.blocks = cinfo.blocks_in_MCU;
  const auto spec = [this](JHUFF_TBL* const* tables, int table, int kind) {
    HuffmanSpec& made = specs[static_cast<size_t>(4 * kind + table)];
    std::copy(std::begin(tables[table]->bits), std::end(tables[table]->bits), made.lengths.begin());
    std::copy(std::begin(tables[table]->huffval), std::end(tables[table]->huffval), made.symbols.begin());
    return &made;
  };
  for (int i = 0; i < cinfo.blocks_in_MCU; ++i) {
    const int member = cinfo.MCU_membership[i];
    const jpeg_component_info& component = *cinfo.cur_comp_info[member];
    const int dc = component.dc_tbl_no, ac = component.ac_tbl_no;
    scan.block[i] = {static_cast<uint8_t>(member), static_cast<uint8_t>(dc), static_cast<uint8_t>(ac)};
    if (scan.dc[dc] == nullptr) scan.dc[dc] = spec(cinfo.dc_huff_tbl_ptrs, dc, 0);
    if (scan.ac[ac] == nullptr) scan.ac[ac] = spec(cinfo.ac_huff_tbl_ptrs, ac, 1);
  }
  const JDIMENSION mcu_width =
      static_cast<JDIMENSION>(DCTSIZE * (cinfo.comps_in_scan == 1 ? 1 : cinfo.max_h_samp_factor));
  scan.mcus_per_row = static_cast<int>(cinfo.MCUs_per_row);
  scan.first_column = static_cast<int>(left / mcu_width);
  scan.last_column = static_cast<int>((left + width - 1) / mcu_width);
  scan.restart_interval = static_cast<int>(cinfo.restart_interval);
  huffman.begin(scan);
  cinfo.entropy->decode_mcu = on_mcu;
}

bool JpegDecoder::State::skip(JDIMENSION count) {
  if (setjmp(escape) != 0) return false;
  if (jpeg_skip_scanlines(&cinfo, count) != count) ERREXIT(&cinfo, JERR_INPUT_EOF);
  return true;
}

bool JpegDecoder::State::read(uint8_t* first, size_t stride, int count) {
  if (setjmp(escape) != 0) return false;
  JSAMPROW pointers[kBatchRows];
  for (int i = 0; i < count; ++i) pointers[i] = first + static_cast<size_t>(i) * stride;
  for (int done = 0; done < count;) {
    const JDIMENSION got = jpeg_read_scanlines(&cinfo, pointers + done, static_cast<JDIMENSION>(count - done));
    if (got == 0) ERREXIT(&cinfo, JERR_INPUT_EOF);
    done += static_cast<int>(got);
  }
  return true;
}

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  if (!state_->create()) throw Error(Stage::kDecode, state_->message);
}

JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink) {
  State& state = *state_;
  // Whatever ends this call, the next image starts clean; stopping after the last row needed leaves the rest unread.
  struct Abort {
    jpeg_decompress_struct* cinfo;
    ~Abort() { jpeg_abort_decompress(cinfo); }
  } abort{&state.cinfo};
  const auto check = [&state](bool fine) {
    if (!fine) throw NeedsPillow(Stage::kDecode, state.message);
  };

  // One pixel of margin on both sides: fancy upsampling looks at the neighbour, and at the cut there is none.
  int left = std::max(box.x - 1, 0), right = std::min(box.x + box.width + 1, header.size.width);
  right = std::min(std::max(right, left + kMinCropWidth), header.size.width);
  left = std::max(std::min(left, right - kMinCropWidth), 0);
  JDIMENSION from = static_cast<JDIMENSION>(left), width = static_cast<JDIMENSION>(right - left);
  check(state.start(data, header, &from, &width));

  state.rows.reset(kBatchRows, static_cast<int>(width) * kPixelBytes + kRowOffset);
  const size_t stride = state.rows.stride();
  uint8_t* const first = state.rows.row(0) + kRowOffset;
  if (box.y > 0) check(state.skip(static_cast<JDIMENSION>(box.y)));
  for (int done = 0; done < box.height;) {
    const int count = std::min(kBatchRows, box.height - done);
    check(state.read(first, stride, count));
    sink.push(first + static_cast<size_t>(box.x - static_cast<int>(from)) * kPixelBytes, stride, count);
    done += count;
  }
}

}  // namespace headrace
