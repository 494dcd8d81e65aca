// Finds nvJPEG's functions in a library loaded for this purpose alone.
#include "nvjpeg_api.h"

#include <dlfcn.h>

#include <stdexcept>

namespace headrace::nvjpeg {
namespace {

template <class Function>
void find(void* library, const std::string& path, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(path + " has no function " + name);
}

}  // namespace

std::shared_ptr<const Api> load(const std::vector<std::string>& candidates) {
  std::string said = "no nvJPEG was looked for";
  for (const std::string& path : candidates) {
    // Local: its symbols meet nobody else's. torch brings none, other packages may bring an older one.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (const char* error = dlerror()) said = error;
      continue;
    }
    auto api = std::make_shared<Api>();
    api->library = {library, [](void* open) { dlclose(open); }};
    api->path = path;
    find(library, path, "nvjpegCreateEx", api->CreateEx);
    find(library, path, "nvjpegDestroy", api->Destroy);
    find(library, path, "nvjpegGetProperty", api->GetProperty);
    find(library, path, "nvjpegGetHardwareDecoderInfo", api->GetHardwareDecoderInfo);
    find(library, path, "nvjpegJpegStateCreate", api->JpegStateCreate);
    find(library, path, "nvjpegJpegStateDestroy", api->JpegStateDestroy);
    find(library, path, "nvjpegDecodeBatchedInitialize", api->DecodeBatchedInitialize);
    find(library, path, "nvjpegDecodeBatched", api->DecodeBatched);
    find(library, path, "nvjpegDecodeBatchedPreAllocate", api->DecodeBatchedPreAllocate);
    return api;
  }
  throw std::runtime_error(said);
}

std::string version(const Api& api) {
  std::string text;
  for (int part = 0; part < 3; ++part) {  // major, minor, patch of library_types.h
    int value = 0;
    if (api.GetProperty(part, &value) != kSuccess) return "";
    if (part > 0) text += '.';
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
