// The part of nvJPEG that headrace calls. It is declared here and loaded at run time, so that neither building nor
// importing headrace needs nvJPEG. Names and numbers are those of nvjpeg.h 13.3; a test compares them with that header.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace headrace::nvjpeg {

enum Property : int { kMajor = 0, kMinor = 1, kPatch = 2 };
enum Status : int { kSuccess = 0 };
enum Backend : int { kGpuHybrid = 2, kHardware = 3 };
enum Flag : unsigned { kNoPipeline = 1 };
enum Sampling : int { k444 = 0 };
enum OutputFormat : int { kYuv = 1, kY = 2 };

struct Image {
  unsigned char* channel[4] = {};
  size_t pitch[4] = {};
};

using Handle = struct nvjpegHandle*;
using State = struct nvjpegJpegState*;
using CudaStream = struct CUstream_st*;

/// The functions of a library, which stays loaded.
struct Api {
  int (*CreateEx)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags, Handle* handle);
  int (*Destroy)(Handle handle);
  int (*GetProperty)(int type, int* value);
  int (*GetHardwareDecoderInfo)(Handle handle, unsigned* engines, unsigned* cores_each);
  int (*JpegStateCreate)(Handle handle, State* state);
  int (*JpegStateDestroy)(State state);
  int (*DecodeBatchedInitialize)(Handle handle, State state, int batch, int cpu_threads, int format);
  int (*DecodeBatched)(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
                       Image* destinations, CudaStream stream);
  int (*DecodeBatchedPreAllocate)(Handle handle, State state, int batch, int width, int height, int sampling,
                                  int format);

  std::string path;  // or name, as given to load()
};

/// The first of these libraries, names or paths, that loads and has a supported version. Throws std::runtime_error with
/// what was wrong with the last one.
std::shared_ptr<const Api> load(const std::vector<std::string>& candidates);

/// The library's version, such as "13.3.2"; empty if it reports none.
std::string version(const Api& api);

/// A status in words, as a static string.
const char* status_name(int status);

}  // namespace headrace::nvjpeg
