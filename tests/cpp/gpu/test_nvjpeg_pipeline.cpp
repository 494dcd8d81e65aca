// The whole pipeline with decoders that call nvJPEG's double: the CPU's bytes, and damage limited to the damaged file.
#include <doctest/doctest.h>

#include "gpu/decoders/nvjpeg_decoder.h"
#include "support/checked_device.h"
#include "support/device_samples.h"
#include "support/nvjpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

struct Lanes {
  int decoders = 2, most = 4;
  bool hardware = true, shared = false;
};

/// A device, and the double that decodes into its memory.
struct Machine {
  ~Machine() { CHECK(device->strays() == 0); }
  MakeLane lane(const Lanes& lanes) {
    return [this, lanes] {
      const auto library = std::make_shared<NvjpegLibrary>(device, FakeLibrary::candidates(), lanes.hardware);
      DecodeLane::Decoders decoders;
      for (int i = 0; i < lanes.decoders; ++i) decoders.push_back(std::make_unique<NvjpegDecoder>(library, lanes.most));
      return std::make_unique<DecodeLane>(std::move(decoders), lanes.shared);
    };
  }

  FakeLibrary fake;
  std::shared_ptr<WatchedDevice> device = checked_device<WatchedDevice>();
};

}  // namespace

TEST_CASE("with nvJPEG's decoders in the lane the bytes are the CPU's") {
  for (const bool hardware : {true, false}) {
    for (const bool shared : {false, true}) {
      CAPTURE(hardware);
      CAPTURE(shared);
      Machine machine;
      machine.fake.behave(hardware ? on(*machine.device) : in_stream_order(*machine.device));
      auto counts =
          compare_batches(machine.device, training(2), machine.lane({.hardware = hardware, .shared = shared}));
      const FakeRecord record = machine.fake.record();
      CHECK(counts["device decode"] == record.images);
      CHECK(counts["device decode"] + counts["taken over"] > 100);
      CHECK(counts["refused"] == 0);
      CHECK(record.largest <= 4);
      if (!shared) CHECK(record.gray > 0);
    }
  }
}

TEST_CASE("effects and crops of other sizes, on one thread and on many") {
  for (const int threads : {0, 1, 5}) {
    CAPTURE(threads);
    Machine machine;
    machine.fake.behave(on(*machine.device));
    compare_batches(machine.device, retouched(threads), machine.lane({.decoders = 3, .most = 7}));
    compare_batches(machine.device, crops(threads), machine.lane({.decoders = 1, .most = 64}));
    CHECK(machine.fake.record().images > 0);
  }
}

TEST_CASE("where every call of nvJPEG fails the CPU makes every sample") {
  Machine machine;
  FakeBehaviour broken = on(*machine.device);
  broken.initialize = kExecutionFailed;
  machine.fake.behave(broken);
  auto counts = compare_batches(machine.device, training(2), machine.lane({}));
  CHECK(counts["refused"] > 100);
  CHECK(counts["device decode"] == 0);
}

TEST_CASE("a damaged file costs only itself, however nvJPEG says so") {
  struct Way {
    int status;
    bool others_written, later;
  };
  for (const Way& way : {Way{kBadJpeg, true, false}, Way{kExecutionFailed, false, false}, Way{kIncomplete, true, false},
                         Way{kExecutionFailed, true, true}, Way{kExecutionFailed, false, true}}) {
    CAPTURE(way.status);
    CAPTURE(way.later);
    Machine machine;
    FakeBehaviour behaviour = way.later ? failing_later(*machine.device) : on(*machine.device);
    behaviour.bad_image = way.status;
    behaviour.others_written = way.others_written;
    machine.fake.behave(behaviour);
    auto counts = compare_around_damage(machine.device, machine.lane({.decoders = 1, .most = 12}));
    CHECK(counts["refused"] == 1);
    CHECK(counts["device decode"] == Images::kCount - 2);  // all but the damaged and the progressive one
  }
}
