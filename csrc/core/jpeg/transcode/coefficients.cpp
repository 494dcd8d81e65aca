// The coefficients of a JPEG: read with libjpeg-turbo, written to another JPEG, compared. No pixel is computed.
#include "core/jpeg/transcode/coefficients.h"

#include <cstring>

namespace headrace {
namespace {

constexpr char kFull[] = "a rewritten file of more than twice the size";

bool same_layout(const jpeg_component_info& a, const jpeg_component_info& b) {
  return a.component_id == b.component_id && a.h_samp_factor == b.h_samp_factor && a.v_samp_factor == b.v_samp_factor &&
         a.width_in_blocks == b.width_in_blocks && a.height_in_blocks == b.height_in_blocks &&
         a.quant_table != nullptr && b.quant_table != nullptr &&
         std::memcmp(a.quant_table->quantval, b.quant_table->quantval, sizeof a.quant_table->quantval) == 0;
}

}  // namespace

// Destroying a structure that was never created does nothing.
Coefficients::~Coefficients() {
  jpeg_destroy_compress(&out_);
  jpeg_destroy_decompress(&in_);
}

void Coefficients::on_error(j_common_ptr cinfo) {
  Escape* escape = reinterpret_cast<Escape*>(cinfo->err);
  escape->errors.format_message(cinfo, escape->message);
  std::longjmp(escape->jump, 1);
}

// Level -1 is a warning, others are traces.
void Coefficients::on_message(j_common_ptr cinfo, int level) {
  if (level < 0) on_error(cinfo);
}

// libjpeg's empty_output_buffer: there is no other buffer.
boolean Coefficients::on_full(j_compress_ptr cinfo) {
  Escape* escape = reinterpret_cast<Escape*>(cinfo->err);
  std::memcpy(escape->message, kFull, sizeof kFull);
  std::longjmp(escape->jump, 1);
}

bool Coefficients::read(std::span<const uint8_t> data) {
  in_.err = jpeg_std_error(&escape_.errors);
  escape_.errors.error_exit = on_error;
  escape_.errors.emit_message = on_message;
  escape_.errors.output_message = on_output;
  if (setjmp(escape_.jump) != 0) return false;
  jpeg_create_decompress(&in_);
  jpeg_mem_src(&in_, data.data(), static_cast<unsigned long>(data.size()));
  jpeg_read_header(&in_, TRUE);
  arrays_ = jpeg_read_coefficients(&in_);
  return true;
}

bool Coefficients::write(std::span<uint8_t> room, size_t* size) {
  out_.err = &escape_.errors;
  if (setjmp(escape_.jump) != 0) return false;
  jpeg_create_compress(&out_);
  destination_.init_destination = [](j_compress_ptr) {};
  destination_.empty_output_buffer = on_full;
  destination_.term_destination = [](j_compress_ptr) {};
  destination_.next_output_byte = room.data();
  destination_.free_in_buffer = room.size();
  out_.dest = &destination_;
  jpeg_copy_critical_parameters(&in_, &out_);
  out_.write_JFIF_header = FALSE;
  out_.write_Adobe_marker = FALSE;
  out_.arith_code = FALSE;
  out_.scan_info = nullptr;  // one scan, whatever this libjpeg's defaults are
  out_.num_scans = 0;
  out_.optimize_coding = TRUE;
  out_.restart_interval = 0;
  out_.restart_in_rows = 1;
  jpeg_write_coefficients(&out_, arrays_);
  jpeg_finish_compress(&out_);
  *size = room.size() - destination_.free_in_buffer;
  return true;
}

bool Coefficients::compare(Coefficients& other, bool* equal) {
  if (setjmp(escape_.jump) != 0) return false;
  // Errors of the other one must be reported here; none of its own calls is active.
  other.in_.err = &escape_.errors;
  *equal = false;
  if (in_.num_components != other.in_.num_components || in_.image_width != other.in_.image_width ||
      in_.image_height != other.in_.image_height)
    return true;
  for (int c = 0; c < in_.num_components; ++c) {
    const jpeg_component_info &mine = in_.comp_info[c], &theirs = other.in_.comp_info[c];
    if (!same_layout(mine, theirs)) return true;
    for (JDIMENSION y = 0; y < mine.height_in_blocks; ++y) {
      const JBLOCKARRAY a = in_.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&in_), arrays_[c], y, 1, FALSE);
      const JBLOCKARRAY b =
          other.in_.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&other.in_), other.arrays_[c], y, 1, FALSE);
      if (std::memcmp(a[0], b[0], mine.width_in_blocks * sizeof(JBLOCK)) != 0) return true;
    }
  }
  *equal = true;
  return true;
}

}  // namespace headrace
