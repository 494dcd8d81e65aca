// Loads an nvJPEG library and looks up its functions.
#include "gpu/decoders/nvjpeg_api.h"

#include <dlfcn.h>

#include <stdexcept>

namespace headrace::nvjpeg {
namespace {

// 13.0 fixed rounding, 13.3 the borders of regions. The next major version may change the declarations.
constexpr int kMajorVersion = 13, kLeastMinor = 3;

template <class Function>
void find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

// The first function of Api that the library lacks; empty: none.
std::string missing_function(void* library, Api& api) {
  std::string missing;
  find(library, "nvjpegCreateEx", api.CreateEx, missing);
  find(library, "nvjpegDestroy", api.Destroy, missing);
  find(library, "nvjpegGetProperty", api.GetProperty, missing);
  find(library, "nvjpegGetHardwareDecoderInfo", api.GetHardwareDecoderInfo, missing);
  find(library, "nvjpegJpegStateCreate", api.JpegStateCreate, missing);
  find(library, "nvjpegJpegStateDestroy", api.JpegStateDestroy, missing);
  find(library, "nvjpegDecodeBatchedInitialize", api.DecodeBatchedInitialize, missing);
  find(library, "nvjpegDecodeBatched", api.DecodeBatched, missing);
  find(library, "nvjpegDecodeBatchedPreAllocate", api.DecodeBatchedPreAllocate, missing);
  return missing;
}

bool declared_here(const Api& api) {
  int major = 0, minor = 0;
  return api.GetProperty(kMajor, &major) == kSuccess && api.GetProperty(kMinor, &minor) == kSuccess &&
         major == kMajorVersion && minor >= kLeastMinor;
}

}  // namespace

std::shared_ptr<const Api> load(const std::vector<std::string>& candidates) {
  std::string said = "no nvJPEG was looked for";
  for (const std::string& path : candidates) {
    // RTLD_LOCAL: its symbols cannot clash with those of other libraries. RTLD_NODELETE: it contains a CUDA runtime,
    // whose threads and handlers outlive a dlclose.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      if (const char* error = dlerror()) said = error;
      continue;
    }
    auto api = std::make_shared<Api>();
    api->path = path;
    const std::string missing = missing_function(library, *api);
    if (!missing.empty()) {
      said = path + " has no function " + missing;
    } else if (!declared_here(*api)) {
      const std::string its = version(*api);
      said =
          path + (its.empty() ? " does not tell its version" : " is version " + its) + "; 13.3 or a later 13 is needed";
    } else {
      return api;
    }
  }
  throw std::runtime_error(said);
}

std::string version(const Api& api) {
  std::string text;
  for (const int part : {kMajor, kMinor, kPatch}) {
    int value = 0;
    if (api.GetProperty(part, &value) != kSuccess) return "";
    if (!text.empty()) text += '.';
    text += std::to_string(value);
  }
  return text;
}

const char* status_name(int status) {
  static constexpr const char* kNames[] = {"success",
                                           "not initialized",
                                           "invalid parameter",
                                           "bad JPEG",
                                           "JPEG not supported",
                                           "allocator failure",
                                           "execution failed",
                                           "architecture mismatch",
                                           "internal error",
                                           "implementation not supported",
                                           "incomplete bitstream"};
  return status >= 0 && status < static_cast<int>(std::size(kNames)) ? kNames[status] : "unknown status";
}

}  // namespace headrace::nvjpeg
