// The part of nvJPEG that only bench/gpu/questions calls: supported files, regions and scales (none here).
#include "core/jpeg/sequential/jpeg_header.h"
#include "fake_nvjpeg/fake_nvjpeg.h"

namespace headrace::test {

struct FakeStream {
  JpegHeader header;
};

struct FakeParams {
  bool whole = true;
};

}  // namespace headrace::test

using headrace::nvjpeg::CudaStream;
using headrace::nvjpeg::Handle;
using headrace::nvjpeg::Image;
using headrace::nvjpeg::State;
using headrace::test::FakeStatus;
using Stream = headrace::test::FakeStream;
using Params = headrace::test::FakeParams;

namespace {

constexpr int kBaseline = 0xC0, kScales = 4;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int nvjpegJpegStreamCreate(Handle, Stream** stream) {
  *stream = new Stream();
  return 0;
}

int nvjpegJpegStreamDestroy(Stream* stream) {
  delete stream;
  return 0;
}

int nvjpegJpegStreamParseHeader(Handle, const unsigned char* data, size_t length, Stream* stream) {
  stream->header = headrace::parse_jpeg_header({data, length});
  return stream->header.size.width > 0 ? 0 : FakeStatus::kBadJpeg;
}

int nvjpegDecodeParamsCreate(Handle, Params** params) {
  *params = new Params();
  return 0;
}

int nvjpegDecodeParamsDestroy(Params* params) {
  delete params;
  return 0;
}

int nvjpegDecodeParamsSetOutputFormat(Params*, int format) {
  return format == headrace::nvjpeg::kYuv || format == headrace::nvjpeg::kY ? 0 : FakeStatus::kInvalidParameter;
}

int nvjpegDecodeParamsSetROI(Params* params, int x, int y, int width, int height) {
  params->whole = params->whole && width == -1 && height == -1;
  return x >= 0 && y >= 0 ? 0 : FakeStatus::kInvalidParameter;
}

int nvjpegDecodeParamsSetScaleFactor(Params* params, int scale) {
  params->whole = params->whole && scale == 0;
  return scale >= 0 && scale < kScales ? 0 : FakeStatus::kInvalidParameter;
}

// Sets `is_supported` to 0 if the file is supported.
int nvjpegDecodeBatchedSupportedEx(Handle, Stream* stream, Params* params, int* is_supported) {
  const headrace::JpegHeader& header = stream->header;
  const bool taken = header.frame == kBaseline && header.scans == 1 && header.components != 4;
  *is_supported = taken && params->whole ? 0 : 1;
  return 0;
}

int nvjpegDecodeBatchedEx(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
                          Image* destinations, Params** params, CudaStream stream);
int nvjpegDecodeBatched(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
                        Image* destinations, CudaStream stream);
}
#pragma GCC visibility pop

int nvjpegDecodeBatchedEx(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
                          Image* destinations, Params** params, CudaStream stream) {
  if (!params[0]->whole) return FakeStatus::kNotSupported;
  return nvjpegDecodeBatched(handle, state, data, lengths, destinations, stream);
}
