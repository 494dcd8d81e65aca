// Drives libjpeg-turbo: set-up, exit at the first warning or error, rows of pixels or of samples.
#include "core/jpeg/sequential/jpeg_session.h"

#include <jerror.h>

#include <algorithm>
#include <cstdio>
#include <type_traits>

// Declared in jpegint.h, which not every distribution has. It has begun with these two members since libjpeg 5.
static_assert(LIBJPEG_TURBO_VERSION_NUMBER < 4000000, "check that jpeg_entropy_decoder still begins like this");
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr cinfo);
  boolean (*decode_mcu)(j_decompress_ptr cinfo, JBLOCKROW* mcu_data);
};

namespace headrace {
namespace {

// What jpeg_start_decompress leaves in cinfo.global_state, with and without cinfo.raw_data_out (jpegint.h).
constexpr int kScanning = 205, kRawOk = 206;

}  // namespace

bool has_own_huffman(const JpegHeader& header) {
  return header.scans == 1 && !header.progressive && own_huffman_wanted();
}

void JpegSession::leave(const char* why) {
  std::snprintf(message, sizeof message, "%s", why);
  std::longjmp(escape_, 1);
}

void JpegSession::on_error(j_common_ptr cinfo) {
  JpegSession& self = of(cinfo);
  self.errors_.format_message(cinfo, self.message);
  std::longjmp(self.escape_, 1);
}

// Level -1 is a warning, others are traces. libjpeg warns where it conceals damage, which is left to Pillow.
void JpegSession::on_message(j_common_ptr cinfo, int level) {
  if (level < 0) on_error(cinfo);
}

// Replaces libjpeg's decode_mcu, see Note [Huffman loop].
boolean JpegSession::on_mcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  static_assert(std::is_same_v<JCOEF, int16_t>);
  JpegSession& self = of(reinterpret_cast<j_common_ptr>(cinfo));
  if (!self.huffman_.next_mcu(blocks)) self.leave(kDamagedHuffman);
  return TRUE;
}

boolean JpegSession::source_empty(j_decompress_ptr cinfo) {
  ERREXIT(cinfo, JERR_INPUT_EOF);
  return FALSE;
}

// libjpeg's skip_input_data. Exits by longjmp if the data end before that.
void JpegSession::source_skip(j_decompress_ptr cinfo, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > cinfo->src->bytes_in_buffer) ERREXIT(cinfo, JERR_INPUT_EOF);
  cinfo->src->next_input_byte += count;
  cinfo->src->bytes_in_buffer -= static_cast<size_t>(count);
}

bool JpegSession::create() {
  cinfo.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  errors_.output_message = on_output;
  cinfo.client_data = this;
  source_.init_source = source_noop;
  source_.fill_input_buffer = source_empty;
  source_.skip_input_data = source_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = source_noop;
  if (setjmp(escape_) != 0) return false;
  jpeg_create_decompress(&cinfo);  // keeps err and client_data
  cinfo.src = &source_;
  return true;
}

bool JpegSession::read_header(std::span<const uint8_t> data, const JpegHeader& header) {
  if (setjmp(escape_) != 0) return false;
  source_.next_input_byte = data.data();
  source_.bytes_in_buffer = data.size();
  jpeg_read_header(&cinfo, TRUE);
  if (static_cast<int>(cinfo.image_width) != header.size.width ||
      static_cast<int>(cinfo.image_height) != header.size.height || cinfo.num_components != header.components ||
      header.scan_begin > header.scan_end || header.scan_end > data.size())
    leave("a header that does not match the data");
  return true;
}

bool JpegSession::start(std::span<const uint8_t> data, const JpegHeader& header, JDIMENSION* left, JDIMENSION* width) {
  if (setjmp(escape_) != 0) return false;
  cinfo.out_color_space = JCS_EXT_RGBX;
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&cinfo);
  if (*width < cinfo.output_width) jpeg_crop_scanline(&cinfo, left, width);
  if (has_own_huffman(header)) {
    begin_huffman(data, header, static_cast<int>(*left), static_cast<int>(*left + *width));
    cinfo.entropy->decode_mcu = on_mcu;
  }
  return true;
}

HuffmanDecoder& JpegSession::begin_huffman(std::span<const uint8_t> data, const JpegHeader& header, int left,
                                           int right) {
  HuffmanScan scan;
  scan.data = data.subspan(header.scan_begin, header.scan_end - header.scan_begin);
  const auto spec = [this](JHUFF_TBL* const* tables, int table, int kind) {
    HuffmanSpec& made = specs_[static_cast<size_t>(4 * kind + table)];
    std::copy(std::begin(tables[table]->bits), std::end(tables[table]->bits), made.lengths.begin());
    std::copy(std::begin(tables[table]->huffval), std::end(tables[table]->huffval), made.symbols.begin());
    return &made;
  };
  const bool single = cinfo.comps_in_scan == 1;  // an MCU is one block then
  for (int member = 0; member < cinfo.comps_in_scan; ++member) {
    const jpeg_component_info& component = *cinfo.cur_comp_info[member];
    const int dc = component.dc_tbl_no, ac = component.ac_tbl_no;
    if (scan.dc[dc] == nullptr) scan.dc[dc] = spec(cinfo.dc_huff_tbl_ptrs, dc, 0);
    if (scan.ac[ac] == nullptr) scan.ac[ac] = spec(cinfo.ac_huff_tbl_ptrs, ac, 1);
    for (int i = single ? 1 : component.h_samp_factor * component.v_samp_factor; i > 0; --i)
      scan.block[scan.blocks++] = {static_cast<uint8_t>(member), static_cast<uint8_t>(dc), static_cast<uint8_t>(ac)};
  }
  const int mcu_width = DCTSIZE * (single ? 1 : cinfo.max_h_samp_factor);
  const int mcu_height = DCTSIZE * (single ? 1 : cinfo.max_v_samp_factor);
  scan.mcus_per_row = divide_up(header.size.width, mcu_width);
  scan.mcu_rows = divide_up(header.size.height, mcu_height);
  scan.first_column = left / mcu_width;
  scan.last_column = (right - 1) / mcu_width;
  scan.restart_interval = static_cast<int>(cinfo.restart_interval);
  if (entry_points != nullptr && scan.restart_interval == 0 && scan.data.size() < EntryPoints::kMostScanBytes) {
    scan.entries = entry_points;
    scan.key = entry_points->key_of(data);
  }
  huffman_.begin(scan);
  return huffman_;
}

bool JpegSession::skip(JDIMENSION count) {
  if (setjmp(escape_) != 0) return false;
  if (jpeg_skip_scanlines(&cinfo, count) != count) ERREXIT(&cinfo, JERR_INPUT_EOF);
  return true;
}

bool JpegSession::read(uint8_t* first, size_t stride, int count) {
  if (setjmp(escape_) != 0) return false;
  JSAMPROW pointers[kBatchRows];
  for (int i = 0; i < count; ++i) pointers[i] = first + static_cast<size_t>(i) * stride;
  for (int done = 0; done < count;) {
    const JDIMENSION got = jpeg_read_scanlines(&cinfo, pointers + done, static_cast<JDIMENSION>(count - done));
    if (got == 0) ERREXIT(&cinfo, JERR_INPUT_EOF);
    done += static_cast<int>(got);
  }
  return true;
}

// jpeg_crop_scanline requires a decompressor that outputs pixels, jpeg_read_raw_data one that outputs samples, but both
// use the coefficient controller. So decompression starts for pixels, is cropped, and then changes its state.
bool JpegSession::use_planes() {
  if (setjmp(escape_) != 0) return false;
  if (cinfo.global_state != kScanning) leave("a libjpeg-turbo with other state numbers");
  cinfo.global_state = kRawOk;
  return true;
}

// Does what jpeg_skip_scanlines does, except for the upsampler.
bool JpegSession::skip_imcu_rows(int count) {
  if (setjmp(escape_) != 0) return false;
  const JDIMENSION rows = static_cast<JDIMENSION>(count);
  if (jpeg_has_multiple_scans(&cinfo) == FALSE) {
    for (JDIMENSION mcus = rows * cinfo.MCUs_per_row; mcus > 0; --mcus) cinfo.entropy->decode_mcu(&cinfo, nullptr);
    cinfo.input_iMCU_row += rows;
  }
  cinfo.output_iMCU_row += rows;
  cinfo.output_scanline += rows * static_cast<JDIMENSION>(cinfo.max_v_samp_factor * DCTSIZE);
  return true;
}

bool JpegSession::read_planes(JSAMPIMAGE rows) {
  if (setjmp(escape_) != 0) return false;
  if (jpeg_read_raw_data(&cinfo, rows, static_cast<JDIMENSION>(cinfo.max_v_samp_factor * DCTSIZE)) == 0)
    ERREXIT(&cinfo, JERR_INPUT_EOF);
  return true;
}

}  // namespace headrace
