// Compares headrace's declarations of nvJPEG with nvJPEG's own header; built where that header exists.
#include <doctest/doctest.h>
#include <nvjpeg.h>

#include <cstddef>
#include <type_traits>

#include "gpu/decoders/nvjpeg_api.h"

namespace ours = headrace::nvjpeg;

namespace {

template <class T>
struct Signature;
template <class... Arguments>
struct Signature<nvjpegStatus_t(Arguments...)> {
  static constexpr size_t kArguments = sizeof...(Arguments);
  static constexpr bool kSameSizes(std::initializer_list<size_t> sizes) {
    const size_t theirs[] = {sizeof(Arguments)...};
    size_t i = 0;
    for (const size_t size : sizes) {
      if (theirs[i++] != size) return false;
    }
    return true;
  }
};
template <class... Arguments>
struct Signature<int (*)(Arguments...)> {
  static constexpr size_t kArguments = sizeof...(Arguments);
  template <class Theirs>
  static constexpr bool kFits = Theirs::kArguments == kArguments && Theirs::kSameSizes({sizeof(Arguments)...});
};

/// The same number of arguments, of the same sizes: enums pass as ints, handles as pointers.
template <class Ours, class Theirs>
constexpr bool fits() {
  return Signature<Ours>::template kFits<Signature<Theirs>>;
}

static_assert(sizeof(nvjpegStatus_t) == sizeof(int));
static_assert(fits<decltype(ours::Api::CreateEx), decltype(nvjpegCreateEx)>());
static_assert(fits<decltype(ours::Api::Destroy), decltype(nvjpegDestroy)>());
static_assert(fits<decltype(ours::Api::GetProperty), decltype(nvjpegGetProperty)>());
static_assert(fits<decltype(ours::Api::GetHardwareDecoderInfo), decltype(nvjpegGetHardwareDecoderInfo)>());
static_assert(fits<decltype(ours::Api::JpegStateCreate), decltype(nvjpegJpegStateCreate)>());
static_assert(fits<decltype(ours::Api::JpegStateDestroy), decltype(nvjpegJpegStateDestroy)>());
static_assert(fits<decltype(ours::Api::DecodeBatchedInitialize), decltype(nvjpegDecodeBatchedInitialize)>());
static_assert(fits<decltype(ours::Api::DecodeBatched), decltype(nvjpegDecodeBatched)>());
static_assert(fits<decltype(ours::Api::DecodeBatchedPreAllocate), decltype(nvjpegDecodeBatchedPreAllocate)>());

static_assert(sizeof(ours::Image) == sizeof(nvjpegImage_t));
static_assert(offsetof(ours::Image, pitch) == offsetof(nvjpegImage_t, pitch));

}  // namespace

TEST_CASE("nvJPEG's numbers are those of its header") {
  CHECK(static_cast<int>(ours::kMajor) == MAJOR_VERSION);
  CHECK(static_cast<int>(ours::kMinor) == MINOR_VERSION);
  CHECK(static_cast<int>(ours::kPatch) == PATCH_LEVEL);
  CHECK(static_cast<int>(ours::kSuccess) == NVJPEG_STATUS_SUCCESS);
  CHECK(static_cast<int>(ours::kGpuHybrid) == NVJPEG_BACKEND_GPU_HYBRID);
  CHECK(static_cast<int>(ours::kHardware) == NVJPEG_BACKEND_HARDWARE);
  CHECK(static_cast<unsigned>(ours::kNoPipeline) == NVJPEG_FLAGS_HW_DECODE_NO_PIPELINE);
  CHECK(static_cast<int>(ours::k444) == NVJPEG_CSS_444);
  CHECK(static_cast<int>(ours::kYuv) == NVJPEG_OUTPUT_YUV);
  CHECK(static_cast<int>(ours::kY) == NVJPEG_OUTPUT_Y);
  CHECK(ours::status_name(NVJPEG_STATUS_INCOMPLETE_BITSTREAM) == doctest::String("incomplete bitstream"));
  CHECK(ours::status_name(NVJPEG_STATUS_BAD_JPEG) == doctest::String("bad JPEG"));
}
