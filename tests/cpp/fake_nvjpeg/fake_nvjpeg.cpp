// nvJPEG's functions on the host: libjpeg decodes to where the GPU would. Refuses calls that break a rule of nvjpeg.h.
#include "fake_nvjpeg/fake_nvjpeg.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/jpeg/decode/plane_decoder.h"

#pragma GCC visibility push(default)
extern "C" {
using headrace::nvjpeg::CudaStream;
using headrace::nvjpeg::Handle;
using headrace::nvjpeg::Image;
using headrace::nvjpeg::State;
int nvjpegCreateEx(int, void*, void*, unsigned, Handle*);
int nvjpegDestroy(Handle);
int nvjpegGetProperty(int, int*);
int nvjpegGetHardwareDecoderInfo(Handle, unsigned*, unsigned*);
int nvjpegJpegStateCreate(Handle, State*);
int nvjpegJpegStateDestroy(State);
int nvjpegDecodeBatchedInitialize(Handle, State, int, int, int);
int nvjpegDecodeBatched(Handle, State, const unsigned char* const*, const size_t*, Image*, CudaStream);
int nvjpegDecodeBatchedPreAllocate(Handle, State, int, int, int, int, int);
}
#pragma GCC visibility pop

namespace headrace::nvjpeg {

struct nvjpegHandle {
  bool hardware;
};

struct nvjpegJpegState {
  explicit nvjpegJpegState(Handle library) : library(library) {}
  const Handle library;
  std::atomic<bool> busy{false};
  int batch = 0, format = 0;  // batch is 0 before initialization and after a failure
  PlaneDecoder decoder{nullptr};
  std::vector<std::vector<uint8_t>> decoded;  // the stream copies from it, so it lives until the state's next use
};

}  // namespace headrace::nvjpeg

namespace headrace::test {
namespace {

struct World {
  std::mutex mutex;
  FakeBehaviour behaviour;  // guarded by mutex, as is all of this
  FakeRecord record;
  std::string complaint;
  std::set<Handle> handles;
  std::set<State> states;
};

World& world() {
  static World* one = new World();  // never deleted: the process may end with live states
  return *one;
}

int complain(int status, const std::string& what) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  if (here.complaint.empty()) here.complaint = what;
  return status;
}

FakeBehaviour behaviour() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.behaviour;
}

/// 0, or the status of a call that breaks a rule.
int checked(const char* call, Handle handle) {
  const FakeBehaviour now = behaviour();
  if (now.current != nullptr && !now.current(now.device)) {
    return complain(kInvalidParameter, std::string(call) + " where the device is not current");
  }
  World& here = world();
  const std::lock_guard lock(here.mutex);
  if (here.handles.count(handle) > 0) return 0;
  if (here.complaint.empty()) here.complaint = std::string(call) + " with a handle that is none";
  return kInvalidParameter;
}

/// Reserves a state for one call.
class Use {
 public:
  Use(const char* call, Handle handle, State state) {
    status = checked(call, handle);
    if (status != 0) return;
    {
      World& here = world();
      const std::lock_guard lock(here.mutex);
      known_ = here.states.count(state) > 0 && state->library == handle;
    }
    if (!known_) {
      status = complain(kInvalidParameter, std::string(call) + " with a state that is none of the handle's");
    } else if (state->busy.exchange(true, std::memory_order_relaxed)) {
      status = complain(kInvalidParameter, std::string(call) + " with a state that another thread uses");
    } else {
      state_ = state;
    }
  }
  ~Use() {
    if (state_ != nullptr) state_->busy.store(false, std::memory_order_relaxed);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  int status = 0;

 private:
  bool known_ = false;
  State state_ = nullptr;
};

bool in_engines_format(const JpegHeader& header) {
  if (header.frame != 0xC0 || header.scans != 1) return false;
  if (header.components == 1) return true;
  const auto& c = header.component;
  return header.components == 3 && c[0].h <= 2 && c[0].v <= 2 && c[1].h == 1 && c[1].v == 1 && c[2].h == 1 &&
         c[2].v == 1;
}

/// The samples of one decoded image, and their layout.
struct Planes {
  PlaneLayout layout;
  const uint8_t* from = nullptr;
  int channels = 0;
};

int decode(State state, const unsigned char* data, size_t length, const Image& to, Planes& planes) {
  if (data == nullptr || length == 0) return complain(kInvalidParameter, "DecodeBatched with an empty file");
  const JpegHeader header = parse_jpeg_header({data, length});
  if (header.not_plain != nullptr) return behaviour().bad_image;
  if (!in_engines_format(header)) return kNotSupported;
  if (header.components == 1 && state->format == nvjpeg::kYuv) {
    return complain(kInvalidParameter, "DecodeBatched with a gray image among those of three planes");
  }
  planes.layout = plane_layout(header, whole_image(header.size));
  planes.channels = state->format == nvjpeg::kY ? 1 : 3;
  for (int c = 0; c < planes.channels; ++c) {
    if (to.channel[c] == nullptr) return complain(kInvalidParameter, "DecodeBatched with no memory for a plane");
    if (to.pitch[c] < static_cast<size_t>(planes.layout.image.plane[c].width)) {
      return complain(kInvalidParameter, "DecodeBatched with rows that are too short for a plane");
    }
  }
  std::vector<uint8_t>& memory = state->decoded.emplace_back(planes.layout.bytes);
  try {
    state->decoder.decode({data, length}, header, planes.layout, memory.data());
  } catch (const Error&) {
    return behaviour().bad_image;
  }
  planes.from = memory.data();
  return 0;
}

/// Writes the image's own samples, without those that fill up its last MCUs.
void write(const Planes& planes, const Image& to, CudaStream stream, const FakeBehaviour& how) {
  for (int c = 0; c < planes.channels; ++c) {
    const Plane& plane = planes.layout.image.plane[c];
    for (int y = 0; y < plane.height; ++y) {
      const uint8_t* row = planes.from + planes.layout.offset[static_cast<size_t>(c)] + ptrdiff_t{y} * plane.stride;
      unsigned char* target = to.channel[c] + static_cast<size_t>(y) * to.pitch[c];
      const auto bytes = static_cast<size_t>(plane.width);
      if (how.copy != nullptr) {
        how.copy(how.device, stream, target, row, bytes);
      } else {
        std::memcpy(target, row, bytes);
      }
    }
  }
}

void count(int batch, int decoded, const nvjpeg::nvjpegJpegState& state) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  FakeRecord& record = here.record;
  ++record.calls;
  record.largest = std::max(record.largest, batch);
  record.images += decoded;
  if (state.format == nvjpeg::kY) record.gray += decoded;
  if (state.library->hardware) record.hardware += decoded;
}

static_assert(std::is_same_v<decltype(&nvjpegCreateEx), decltype(nvjpeg::Api::CreateEx)>);
static_assert(std::is_same_v<decltype(&nvjpegDestroy), decltype(nvjpeg::Api::Destroy)>);
static_assert(std::is_same_v<decltype(&nvjpegGetProperty), decltype(nvjpeg::Api::GetProperty)>);
static_assert(std::is_same_v<decltype(&nvjpegGetHardwareDecoderInfo), decltype(nvjpeg::Api::GetHardwareDecoderInfo)>);
static_assert(std::is_same_v<decltype(&nvjpegJpegStateCreate), decltype(nvjpeg::Api::JpegStateCreate)>);
static_assert(std::is_same_v<decltype(&nvjpegJpegStateDestroy), decltype(nvjpeg::Api::JpegStateDestroy)>);
static_assert(std::is_same_v<decltype(&nvjpegDecodeBatchedInitialize), decltype(nvjpeg::Api::DecodeBatchedInitialize)>);
static_assert(std::is_same_v<decltype(&nvjpegDecodeBatched), decltype(nvjpeg::Api::DecodeBatched)>);
static_assert(
    std::is_same_v<decltype(&nvjpegDecodeBatchedPreAllocate), decltype(nvjpeg::Api::DecodeBatchedPreAllocate)>);

}  // namespace
}  // namespace headrace::test

using namespace headrace;
using namespace headrace::test;

int nvjpegCreateEx(int backend, void* device_allocator, void* pinned_allocator, unsigned flags, Handle* handle) {
  const FakeBehaviour now = behaviour();
  if (now.current != nullptr && !now.current(now.device)) {
    return complain(kInvalidParameter, "CreateEx where the device is not current");
  }
  if (backend != nvjpeg::kHardware && backend != nvjpeg::kGpuHybrid) {
    return complain(kInvalidParameter, "CreateEx with a backend that the fake does not have");
  }
  const unsigned wanted = backend == nvjpeg::kHardware ? nvjpeg::kNoPipeline : 0;
  if (device_allocator != nullptr || pinned_allocator != nullptr || flags != wanted || handle == nullptr) {
    return complain(kInvalidParameter, "CreateEx with arguments that the fake does not take");
  }
  if (now.create != 0) return now.create;
  World& here = world();
  const std::lock_guard lock(here.mutex);
  *handle = new nvjpeg::nvjpegHandle{backend == nvjpeg::kHardware};
  here.handles.insert(*handle);
  return 0;
}

int nvjpegDestroy(Handle handle) {
  if (const int status = checked("Destroy", handle)) return status;
  World& here = world();
  const std::lock_guard lock(here.mutex);
  if (std::any_of(here.states.begin(), here.states.end(), [&](State one) { return one->library == handle; })) {
    if (here.complaint.empty()) here.complaint = "Destroy of a handle that has states";
    return kInvalidParameter;
  }
  here.handles.erase(handle);
  delete handle;
  return 0;
}

int nvjpegGetProperty(int type, int* value) {
  const FakeBehaviour now = behaviour();
  if (type < 0 || type > 2 || value == nullptr) return complain(kInvalidParameter, "GetProperty of no property");
  if (now.property != 0) return now.property;
  *value = type == 0 ? now.major : type == 1 ? now.minor : now.patch;
  return 0;
}

int nvjpegGetHardwareDecoderInfo(Handle handle, unsigned* engines, unsigned* cores_each) {
  if (const int status = checked("GetHardwareDecoderInfo", handle)) return status;
  if (behaviour().info != 0) return behaviour().info;
  *engines = behaviour().engines;
  *cores_each = 1;
  return 0;
}

int nvjpegJpegStateCreate(Handle handle, State* state) {
  if (const int status = checked("JpegStateCreate", handle)) return status;
  World& here = world();
  const std::lock_guard lock(here.mutex);
  if (static_cast<int>(here.states.size()) >= here.behaviour.states) return kNoMemory;
  *state = new nvjpeg::nvjpegJpegState(handle);
  here.states.insert(*state);
  return 0;
}

int nvjpegJpegStateDestroy(State state) {
  {
    World& here = world();
    const std::lock_guard lock(here.mutex);
    if (here.states.count(state) == 0) {
      if (here.complaint.empty()) here.complaint = "JpegStateDestroy of a state that is none";
      return kInvalidParameter;
    }
  }
  {
    const Use use("JpegStateDestroy", state->library, state);
    if (use.status != 0) return use.status;
    World& here = world();
    const std::lock_guard lock(here.mutex);
    here.states.erase(state);
  }
  delete state;
  return 0;
}

int nvjpegDecodeBatchedInitialize(Handle handle, State state, int batch, int cpu_threads, int format) {
  const Use use("DecodeBatchedInitialize", handle, state);
  if (use.status != 0) return use.status;
  if (batch < 1 || cpu_threads < 1 || (format != nvjpeg::kYuv && format != nvjpeg::kY)) {
    return complain(kInvalidParameter, "DecodeBatchedInitialize for no images, no thread or no format of planes");
  }
  state->batch = 0;
  if (behaviour().initialize != 0) return behaviour().initialize;
  state->batch = batch;
  state->format = format;
  return 0;
}

int nvjpegDecodeBatched(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
                        Image* destinations, CudaStream stream) {
  const Use use("DecodeBatched", handle, state);
  if (use.status != 0) return use.status;
  if (state->batch == 0) {
    return complain(kNotInitialized, "DecodeBatched with a state that is not initialized, or not since a failure");
  }
  if (data == nullptr || lengths == nullptr || destinations == nullptr) {
    return complain(kInvalidParameter, "DecodeBatched without images");
  }
  const FakeBehaviour now = behaviour();
  const int batch = state->batch;
  state->decoded.clear();
  std::vector<Planes> planes(static_cast<size_t>(batch));
  int status = 0, decoded = 0;
  for (int i = 0; i < batch; ++i) {
    const int one = decode(state, data[i], lengths[i], destinations[i], planes[static_cast<size_t>(i)]);
    if (status == 0) status = one;
    decoded += one == 0;
  }
  count(batch, decoded, *state);
  for (int i = 0; i < batch; ++i) {
    const Planes& one = planes[static_cast<size_t>(i)];
    if (one.from != nullptr && (status == 0 || now.others_written)) write(one, destinations[i], stream, now);
  }
  if (status == 0) return 0;
  state->batch = 0;
  if (now.fail_later == nullptr) return status;
  now.fail_later(now.device, stream);
  return 0;
}

int nvjpegDecodeBatchedPreAllocate(Handle handle, State state, int batch, int width, int height, int sampling,
                                   int format) {
  const Use use("DecodeBatchedPreAllocate", handle, state);
  if (use.status != 0) return use.status;
  if (batch < 1 || width < 1 || height < 1 || sampling != nvjpeg::k444 || format != nvjpeg::kYuv) {
    return complain(kInvalidParameter, "DecodeBatchedPreAllocate for no images");
  }
  return behaviour().preallocate;
}

void fake_nvjpeg_behave(const FakeBehaviour* behaviour) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  here.behaviour = *behaviour;
  here.record = {};
  here.complaint.clear();
}

void fake_nvjpeg_record(FakeRecord* record) {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  *record = here.record;
  record->handles = static_cast<int>(here.handles.size());
  record->states = static_cast<int>(here.states.size());
}

const char* fake_nvjpeg_complaint() {
  World& here = world();
  const std::lock_guard lock(here.mutex);
  return here.complaint.c_str();
}
