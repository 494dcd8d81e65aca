// Runs pipelines with a lane of decoders.
#include "support/device_samples.h"

#include <doctest/doctest.h>

#include <vector>

namespace headrace::test {
namespace {

Counts counts_of(const Pipeline& pipeline) {
  Counts items;
  for (const StageReport& stage : pipeline.stats()) items[stage.stage] = stage.items;
  return items;
}

uint8_t* memory_for(Device& device, const Rows& rows, size_t each) {
  const DeviceScope current(device);
  return device.allocate(rows.size() * each);
}

}  // namespace

PipelineOptions on_device(PipelineOptions options, const std::shared_ptr<Device>& device, const MakeLane& lane) {
  options.backend = std::make_shared<DeviceBackend>(device, options, 4, lane());
  return options;
}

Counts compare_batches(const std::shared_ptr<EmulatedDevice>& device, const PipelineOptions& recipe,
                       const MakeLane& lane) {
  Counts counts;
  {
    Pipeline pipeline(on_device(recipe, device, lane));
    const size_t each = recipe.strides.sample_bytes;
    std::vector<std::shared_ptr<Batch>> flying;
    std::vector<uint8_t*> memory;
    constexpr size_t kBatches = 8, kAhead = 3;
    const Rows rows = some_rows(20);
    for (size_t k = 0; k < kBatches + kAhead; ++k) {
      if (k < kBatches) {
        memory.push_back(memory_for(*device, rows, each));
        flying.push_back(submit(pipeline, Images::all().table, rows, static_cast<uint32_t>(k), memory.back()));
      }
      if (k < kAhead) continue;
      const size_t due = k - kAhead;
      REQUIRE(complete(pipeline, *flying[due]));
      CHECK(flying[due]->take_failures().empty());
      CHECK(flying[due]->broken() == "");
      pipeline.hand_over(*flying[due], 0);
      CHECK(Bytes(memory[due], memory[due] + rows.size() * each) == expected(recipe, rows, static_cast<uint32_t>(due)));
      device->free(memory[due]);
    }
    counts = counts_of(pipeline);
  }
  CHECK(device->alive() == 0);
  return counts;
}

Counts compare_around_damage(const std::shared_ptr<EmulatedDevice>& device, const MakeLane& lane) {
  Counts counts;
  {
    const Images& images = Images::all();
    std::vector<Bytes> jpegs = images.jpegs;
    for (size_t i = jpegs[3].size() / 2; i + 4 < jpegs[3].size(); ++i) jpegs[3][i] = 0x5A;
    std::vector<Blob> blobs;
    for (const Bytes& jpeg : jpegs) blobs.push_back({nullptr, jpeg.data(), jpeg.size()});
    const auto table = BlobTable::of_memory(blobs);
    const PipelineOptions recipe = training(2);
    Pipeline pipeline(on_device(recipe, device, lane));
    const Rows rows = some_rows(Images::kCount);
    const size_t each = recipe.strides.sample_bytes;
    uint8_t* memory = memory_for(*device, rows, each);
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
    const Bytes untouched(each, EmulatedDevice::kPoison);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == 3) {
        CHECK(Bytes(memory + i * each, memory + (i + 1) * each) == untouched);  // no output is made from missing planes
        continue;
      }
      CHECK(Bytes(memory + i * each, memory + (i + 1) * each) == Bytes(&want[i * each], &want[i * each] + each));
    }
    device->free(memory);
    counts = counts_of(pipeline);
  }
  CHECK(device->alive() == 0);
  return counts;
}

}  // namespace headrace::test
