// Timings of single stages: their results, and no leaks if a device or decoder throws.
#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "core/fuse/sinks/rgbx_output.h"
#include "gpu/batches/stage_benchmarks.h"
#include "gpu/decoders/emulated_decoder.h"
#include "support/checked_device.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// A device that refuses to time anything.
class UntimedDevice final : public EmulatedDevice {
 public:
  std::vector<float> time_fuse(const FuseLaunch&, int, Stream) override { throw std::runtime_error("refused"); }
  std::vector<float> time_copy(size_t, int, Stream) override { throw std::runtime_error("refused"); }
};

/// Throws where other decoders return why they refuse.
class ThrowingDecoder final : public EmulatedDecoder {
 public:
  using EmulatedDecoder::EmulatedDecoder;
  std::string decode(std::span<const EncodedImage>) override { throw std::runtime_error("refused"); }
};

const std::vector<uint8_t>& file() {
  static const std::vector<uint8_t> made = make_jpeg({.width = 40, .height = 30});
  return made;
}

FuseTiming fuse_once(const std::shared_ptr<Device>& device) {
  const Size size{40, 30};
  const std::vector<std::span<const uint8_t>> files{file()};
  const std::vector<Plan> plans{as_it_is(size)};
  return time_fuse(device, files, plans, size, strides_of(Layout::kPlanar, 3, size, 1), byte_entries(), 2);
}

std::vector<double> decode_once(const std::shared_ptr<Device>& device, std::unique_ptr<BatchDecoder> decoder) {
  std::vector<std::unique_ptr<BatchDecoder>> decoders;
  decoders.push_back(std::move(decoder));
  const std::vector<std::span<const uint8_t>> files{file()};
  return time_decoders(device, decoders, files, 4, 2);
}

}  // namespace

TEST_CASE("one time for each run, and nothing left on the device") {
  const auto device = checked_device();
  CHECK(time_copy(device, 1000, 3).size() == 3);
  const FuseTiming timing = fuse_once(device);
  CHECK(timing.ms.size() == 2);
  CHECK(timing.bytes > 3 * 40 * 30);
  const std::vector<double> seconds = decode_once(device, std::make_unique<EmulatedDecoder>(4));
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0] > 0);
  CHECK(device->alive() == 0);
}

TEST_CASE("a timing that throws leaves no stream and no memory on the device") {
  const auto device = checked_device<UntimedDevice>();
  CHECK_THROWS_WITH_AS(time_copy(device, 1000, 3), "refused", std::runtime_error);
  CHECK(device->alive() == 0);
  CHECK_THROWS_WITH_AS(fuse_once(device), "refused", std::runtime_error);
  CHECK(device->alive() == 0);
}

TEST_CASE("passes of a decoder that throws have no time") {
  const auto device = checked_device();
  CHECK(decode_once(device, std::make_unique<ThrowingDecoder>(4)) == std::vector<double>{0, 0});
  CHECK(device->alive() == 0);
}
