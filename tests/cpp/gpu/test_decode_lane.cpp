// A device that decodes, with a stand-in for nvJPEG: the same bytes from every decoder, work stealing, refusals, and
// shutdown.
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include "gpu/decoders/emulated_decoder.h"
#include "support/checked_device.h"
#include "support/device_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// A slow decoder that refuses some groups.
class OddDecoder final : public EmulatedDecoder {
 public:
  OddDecoder(int most, std::chrono::milliseconds pause, int refuse_every)
      : EmulatedDecoder(most), pause_(pause), refuse_every_(refuse_every) {}
  std::string decode(std::span<const EncodedImage> images) override {
    std::this_thread::sleep_for(pause_);
    for (const EncodedImage& one : images) {
      CHECK((one.planes.colour == Colour::kGray) == (images.front().planes.colour == Colour::kGray));
    }
    if (refuse_every_ > 0 && ++calls_ % refuse_every_ == 0) return "not today";
    return EmulatedDecoder::decode(images);
  }

 private:
  const std::chrono::milliseconds pause_;
  const int refuse_every_;
  int calls_ = 0;
};

/// Waits in its first call until all decoders are in a call.
class Together final : public EmulatedDecoder {
 public:
  Together(int most, std::shared_ptr<std::atomic<int>> missing) : EmulatedDecoder(most), missing_(std::move(missing)) {}
  std::string decode(std::span<const EncodedImage> images) override {
    if (std::exchange(first_, false)) --*missing_;
    while (*missing_ > 0) std::this_thread::sleep_for(1ms);
    return EmulatedDecoder::decode(images);
  }

 private:
  const std::shared_ptr<std::atomic<int>> missing_;
  bool first_ = true;
};

/// Throws an error without a message.
class Mute final : public EmulatedDecoder {
 public:
  using EmulatedDecoder::EmulatedDecoder;
  std::string decode(std::span<const EncodedImage>) override { throw std::runtime_error(""); }
};

struct Lane {
  int decoders = 1, most = 4;
  bool shared = true;
  std::chrono::milliseconds pause{0};
  int refuse_every = 0;
};

MakeLane odd(const Lane& lane) {
  return [lane] {
    DecodeLane::Decoders decoders;
    for (int i = 0; i < lane.decoders; ++i) {
      decoders.push_back(std::make_unique<OddDecoder>(lane.most, lane.pause, lane.refuse_every));
    }
    return std::make_unique<DecodeLane>(std::move(decoders), lane.shared);
  };
}

Counts run(int threads, const Lane& lane) { return compare_batches(checked_device(), training(threads), odd(lane)); }

}  // namespace

TEST_CASE("whoever decodes, the bytes are the CPU's") {
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    for (const int decoders : {1, 2}) {
      auto counts = run(threads, {.decoders = decoders, .most = 7});
      CHECK(counts["device decode"] + counts["taken over"] > 100);
      CHECK(counts["refused"] == 0);
    }
  }
}

TEST_CASE("decoders work at the same time") {
  const auto missing = std::make_shared<std::atomic<int>>(3);
  compare_batches(checked_device(), training(2), [&] {
    DecodeLane::Decoders decoders;
    for (int i = 0; i < 3; ++i) decoders.push_back(std::make_unique<Together>(3, missing));
    return std::make_unique<DecodeLane>(std::move(decoders), false);
  });
  CHECK(*missing == 0);
}

TEST_CASE("idle workers take over what a slow device has not begun, unless routes are fixed") {
  auto shared = run(2, {.most = 2, .pause = 20ms});
  CHECK(shared["taken over"] > 0);
  auto fixed = run(2, {.most = 20, .shared = false, .pause = 1ms});
  CHECK(fixed["taken over"] == 0);
  CHECK(fixed["device decode"] > 100);
  CHECK(shared["header"] == fixed["header"]);  // those of samples that are taken over are not read again
}

TEST_CASE("what the device refuses is made by the CPU") {
  auto counts = run(2, {.most = 3, .shared = false, .refuse_every = 1});
  CHECK(counts["refused"] > 100);
  CHECK(counts["device decode"] == 0);
  CHECK(counts["header"] == run(2, {.most = 3, .shared = false})["header"]);
}

TEST_CASE("what a decoder throws at is made by the CPU, though it gives no reason") {
  auto counts = compare_batches(checked_device(), training(2), [] {
    DecodeLane::Decoders decoders;
    decoders.push_back(std::make_unique<Mute>(5));
    return std::make_unique<DecodeLane>(std::move(decoders), false);
  });
  CHECK(counts["refused"] > 100);
  CHECK(counts["device decode"] == 0);
}

TEST_CASE("a group that is refused is halved: the others keep their place on the device") {
  auto counts = run(2, {.most = 4, .shared = false, .refuse_every = 3});
  CHECK(counts["device decode"] > counts["refused"]);
}

TEST_CASE("batches given up in the lane, and a pipeline closed over it") {
  const auto device = checked_device();
  for (int k = 0; k < 10; ++k) {
    const PipelineOptions recipe = training(2);
    auto pipeline =
        std::make_unique<Pipeline>(on_device(recipe, device, odd({.most = 2, .shared = k % 2 == 0, .pause = 2ms})));
    const Rows rows = some_rows(12);
    uint8_t* memory = device->allocate(rows.size() * recipe.strides.sample_bytes);
    auto first = submit(*pipeline, Images::all().table, rows, 1, memory);
    std::this_thread::sleep_for(std::chrono::milliseconds(k));
    pipeline->cancel(*first);
    auto second = submit(*pipeline, Images::all().table, rows, 2, memory);
    if (k % 3 == 0) CHECK(complete(*pipeline, *second));
    pipeline->cancel(*second);
    pipeline.reset();
    device->free(memory);
  }
  CHECK(device->alive() == 0);
}

TEST_CASE("a damaged file costs only itself") {
  auto counts = compare_around_damage(checked_device(), odd({.most = 12, .shared = false}));
  CHECK(counts["refused"] == 1);
}
