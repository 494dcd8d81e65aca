// A device that decodes, with a stand-in for nvJPEG: the same bytes whoever decodes, stealing, refusals, and their
// ends.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>

#include "../../csrc/gpu/device_backend.h"
#include "../../csrc/gpu/emulated_decoder.h"
#include "../../csrc/gpu/emulated_device.h"
#include "pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// Takes a while, refuses some groups.
class OddDecoder final : public EmulatedDecoder {
 public:
  OddDecoder(int most, std::chrono::milliseconds pause, int refuse_every)
      : EmulatedDecoder(most), pause_(pause), refuse_every_(refuse_every) {}
  bool decode(std::span<const EncodedImage> images) override {
    std::this_thread::sleep_for(pause_);
    for (const EncodedImage& one : images) {
      CHECK((one.planes.colour == Colour::kGray) == (images.front().planes.colour == Colour::kGray));
    }
    if (refuse_every_ > 0 && ++calls_ % refuse_every_ == 0) return false;
    return EmulatedDecoder::decode(images);
  }

 private:
  const std::chrono::milliseconds pause_;
  const int refuse_every_;
  int calls_ = 0;
};

struct Lane {
  int decoders = 1, most = 4;
  bool shared = true;
  std::chrono::milliseconds pause{0};
  int refuse_every = 0;
};

PipelineOptions on_device(PipelineOptions options, const std::shared_ptr<Device>& device, const Lane& lane) {
  DecodeLane::Decoders decoders;
  for (int i = 0; i < lane.decoders; ++i) {
    decoders.push_back(std::make_unique<OddDecoder>(lane.most, lane.pause, lane.refuse_every));
  }
  options.backend = std::make_shared<DeviceBackend>(device, options, 4,
                                                    std::make_unique<DecodeLane>(std::move(decoders), lane.shared));
  return options;
}

/// Runs some batches and checks their bytes; the counters by name.
std::map<std::string, int64_t> run(int threads, const Lane& lane) {
  const auto device = std::make_shared<EmulatedDevice>();
  std::map<std::string, int64_t> items;
  {
    const PipelineOptions recipe = training(threads);
    Pipeline pipeline(on_device(recipe, device, lane));
    const size_t each = recipe.layout.sample_bytes;
    std::vector<std::shared_ptr<Batch>> flying;
    std::vector<uint8_t*> memory;
    constexpr size_t kBatches = 8, kAhead = 3;
    const Rows rows = some_rows(20);
    for (size_t k = 0; k < kBatches + kAhead; ++k) {
      if (k < kBatches) {
        memory.push_back(device->allocate(rows.size() * each));
        flying.push_back(submit(pipeline, Images::all().table, rows, static_cast<uint32_t>(k), memory.back()));
      }
      if (k < kAhead) continue;
      const size_t due = k - kAhead;
      REQUIRE(complete(pipeline, *flying[due]));
      CHECK(flying[due]->take_failures().empty());
      pipeline.hand_over(*flying[due], 0);
      CHECK(Bytes(memory[due], memory[due] + rows.size() * each) == expected(recipe, rows, static_cast<uint32_t>(due)));
      device->free(memory[due]);
    }
    for (const StageReport& stage : pipeline.stats()) items[stage.stage] = stage.items;
  }
  CHECK(device->alive() == 0);
  return items;
}

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

TEST_CASE("idle workers take over what a slow device has not begun, unless routes are fixed") {
  auto shared = run(2, {.most = 2, .pause = 20ms});
  CHECK(shared["taken over"] > 20);
  auto fixed = run(2, {.most = 20, .shared = false, .pause = 1ms});
  CHECK(fixed["taken over"] == 0);
  CHECK(fixed["device decode"] > 100);
}

TEST_CASE("what the device refuses is made by the CPU") {
  auto counts = run(2, {.most = 3, .shared = false, .refuse_every = 1});
  CHECK(counts["refused"] > 100);
  CHECK(counts["device decode"] == 0);
}

TEST_CASE("a group that is refused is halved: the others keep their place on the device") {
  auto counts = run(2, {.most = 4, .shared = false, .refuse_every = 3});
  CHECK(counts["device decode"] > counts["refused"]);
}

TEST_CASE("batches given up in the lane, and a pipeline closed over it") {
  const auto device = std::make_shared<EmulatedDevice>();
  for (int k = 0; k < 10; ++k) {
    const PipelineOptions recipe = training(2);
    auto pipeline =
        std::make_unique<Pipeline>(on_device(recipe, device, {.most = 2, .shared = k % 2 == 0, .pause = 2ms}));
    const Rows rows = some_rows(12);
    uint8_t* memory = device->allocate(rows.size() * recipe.layout.sample_bytes);
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
  const auto device = std::make_shared<EmulatedDevice>();
  {
    const Images& images = Images::all();
    std::vector<Bytes> jpegs = images.jpegs;
    for (size_t i = jpegs[3].size() / 2; i + 4 < jpegs[3].size(); ++i) jpegs[3][i] = 0x5A;
    std::vector<Blob> blobs;
    for (const Bytes& jpeg : jpegs) blobs.push_back({nullptr, jpeg.data(), jpeg.size()});
    const auto table = BlobTable::of_memory(blobs);
    const PipelineOptions recipe = training(2);
    Pipeline pipeline(on_device(recipe, device, {.most = 12, .shared = false}));
    const Rows rows = some_rows(Images::kCount);
    const size_t each = recipe.layout.sample_bytes;
    uint8_t* memory = device->allocate(rows.size() * each);
    const auto batch = submit(pipeline, table, rows, 1, memory);
    auto job = pipeline.next_pillow_job(kLong);  // the CPU could not decode it either
    REQUIRE(job);
    CHECK(job->sample == 3);
    pipeline.fail(*job, "Pillow's word");
    REQUIRE(complete(pipeline, *batch));
    const auto failures = batch->take_failures();
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].sample == 3);
    pipeline.hand_over(*batch, 0);
    const Bytes want = expected(recipe, rows, 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i != 3)
        CHECK(Bytes(memory + i * each, memory + (i + 1) * each) == Bytes(&want[i * each], &want[i * each] + each));
    }
    device->free(memory);
  }
  CHECK(device->alive() == 0);
}
