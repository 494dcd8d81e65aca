// The pipeline with the emulated device: the CPU's bytes, in order with the user's stream.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "gpu/batches/device_backend.h"
#include "support/checked_device.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// Memory of the device for one batch.
struct BatchBytes {
  BatchBytes(const std::shared_ptr<Device>& device, size_t bytes)
      : owned(device, bytes), bytes(bytes), data(owned.get()) {}
  Bytes contents() const { return {data, data + bytes}; }

  OwnedMemory owned;
  size_t bytes;
  uint8_t* data;
};

PipelineOptions on_device(PipelineOptions options, const std::shared_ptr<Device>& device) {
  options.backend = std::make_shared<DeviceBackend>(device, options, 4);
  return options;
}

/// A device that refuses to launch.
class BrokenDevice final : public EmulatedDevice {
 public:
  void fuse(const FuseLaunch&, Stream) override { throw std::runtime_error("the device is lost"); }
};

/// Counts the threads that enter it permanently, and grants only the first `left` resources that a backend requests.
class CountingDevice final : public EmulatedDevice {
 public:
  void enter() override { ++entered; }
  uint8_t* allocate_pinned(size_t bytes) override { return granted(), EmulatedDevice::allocate_pinned(bytes); }
  uint8_t* allocate(size_t bytes) override { return granted(), EmulatedDevice::allocate(bytes); }
  Stream make_stream() override { return granted(), EmulatedDevice::make_stream(); }
  Event make_event() override { return granted(), EmulatedDevice::make_event(); }

  std::atomic<int> entered{0}, left{1 << 30};

 private:
  void granted() {
    if (left-- <= 0) throw OutOfDeviceMemory("no more");
  }
};

}  // namespace

TEST_CASE("every thread of a pipeline is bound to the device") {
  const auto device = checked_device<CountingDevice>();
  const PipelineOptions recipe = training(3);
  const Rows rows = some_rows(12);
  const BatchBytes memory(device, rows.size() * recipe.strides.sample_bytes);
  {
    Pipeline pipeline(on_device(recipe, device));
    const auto batch = submit(pipeline, Images::all().table, rows, 1, memory.data);
    REQUIRE(complete(pipeline, *batch));
    pipeline.hand_over(*batch, 0);
  }
  CHECK(device->entered == 3 + 1);  // workers and the launcher
}

TEST_CASE("a backend that a device has no room for leaves nothing there") {
  const PipelineOptions recipe = training(0);
  int granted = 0;
  for (bool made = false; !made; ++granted) {
    CAPTURE(granted);
    const auto device = checked_device<CountingDevice>();
    device->left = granted;
    try {
      DeviceBackend backend(device, recipe, 2);
      CHECK(backend.device_side() == &backend);
      made = true;
    } catch (const OutOfDeviceMemory&) {
    }
    CHECK(device->alive() == 0);
  }
  CHECK(granted > 4);
}

TEST_CASE("a device makes the CPU's bytes, whatever the number of threads") {
  for (const auto& recipe : {crops(0), training(0), retouched(0)}) {
    for (const int threads : {0, 1, 2, 7}) {
      CAPTURE(threads);
      const auto device = checked_device();
      {
        PipelineOptions options = on_device(recipe, device);
        options.threads = threads;
        Pipeline pipeline(options);
        struct Flight {
          std::shared_ptr<Batch> batch;
          std::unique_ptr<BatchBytes> memory;
          Rows rows;
          uint32_t seed;
        };
        std::vector<Flight> flying;
        for (size_t k = 0; k < 14; ++k) {
          if (k < 12) {
            const Rows rows = some_rows(1 + 3 * (static_cast<int>(k) % 4), static_cast<int>(k));
            const auto seed = static_cast<uint32_t>(50 + k);
            auto memory = std::make_unique<BatchBytes>(device, rows.size() * recipe.strides.sample_bytes);
            auto batch = submit(pipeline, Images::all().table, rows, seed, memory->data);
            flying.push_back({std::move(batch), std::move(memory), rows, seed});
          }
          if (k < 2) continue;
          Flight& due = flying[k - 2];
          REQUIRE(complete(pipeline, *due.batch));
          REQUIRE(due.batch->broken().empty());
          pipeline.hand_over(*due.batch, 0);
          CHECK(due.memory->contents() == expected(recipe, due.rows, due.seed));
        }
      }
      CHECK(device->alive() == 0);
    }
  }
}

TEST_CASE("memory that the user's stream still reads is not written, and what follows on it sees the batch") {
  const auto device = checked_device();
  {
    const PipelineOptions recipe = training(3);
    Pipeline pipeline(on_device(recipe, device));
    const OwnedStream stream(device);
    const OwnedEvent end(device);
    const Stream user = stream.get();
    const Rows rows = some_rows(6);
    const size_t bytes = rows.size() * recipe.strides.sample_bytes;
    constexpr int kBatches = 20;
    // All batches use the same memory, as an allocator would reuse it. Copies on the user's stream read each batch
    // late, after other copies that keep the stream busy.
    BatchBytes memory(device, bytes);
    std::vector<Bytes> read(kBatches, Bytes(bytes));
    std::vector<uint8_t> busy(size_t{4} << 20), sink(busy.size());
    for (int k = 0; k < kBatches; ++k) {
      const auto batch = pipeline.submit(Images::all().table, rows, draws_of(rows, 23, static_cast<uint32_t>(k)),
                                         {memory.data, static_cast<uintptr_t>(user)});
      REQUIRE(complete(pipeline, *batch));
      pipeline.hand_over(*batch, static_cast<uintptr_t>(user));
      device->copy_to_device(sink.data(), busy.data(), busy.size(), user);
      device->copy_to_device(read[static_cast<size_t>(k)].data(), memory.data, bytes, user);
    }
    device->record(end.get(), user);
    device->synchronize(end.get());
    for (int k = 0; k < kBatches; ++k) {
      CHECK(read[static_cast<size_t>(k)] == expected(recipe, rows, static_cast<uint32_t>(k)));
    }
  }
  CHECK(device->alive() == 0);
}

TEST_CASE("a sample that fails is not written, and can be made again") {
  const auto device = checked_device();
  const PipelineOptions recipe = training(2);
  Pipeline pipeline(on_device(recipe, device));
  const Images& images = Images::all();
  const auto missing = table_of({"/nonexistent/image.jpg"});
  const Rows rows = some_rows(3);
  const size_t each = recipe.strides.sample_bytes;
  BatchBytes memory(device, 3 * each);
  const auto first = submit(pipeline, images.table, rows, 1, memory.data);
  REQUIRE(complete(pipeline, *first));
  const auto failing = pipeline.repair(*first, {1}, missing, {0}, draws_of({0}, 23));
  REQUIRE(complete(pipeline, *failing));
  CHECK(failing->take_failures().size() == 1);
  const auto second = pipeline.repair(*first, {1}, images.table, {8}, draws_of({8}, 23, 1));
  REQUIRE(complete(pipeline, *second));
  pipeline.hand_over(*first, 0);
  CHECK(memory.contents() == expected(recipe, {rows[0], 8, rows[2]}, 1));
}

TEST_CASE("batches given up free their memory at once and for good") {
  const auto device = checked_device();
  {
    Pipeline pipeline(on_device(training(3), device));
    const Rows rows = some_rows(12);
    for (int k = 0; k < 50; ++k) {
      auto memory = std::make_unique<BatchBytes>(device, rows.size() * pipeline.options().strides.sample_bytes);
      const auto batch = submit(pipeline, Images::all().table, rows, 1, memory->data);
      if (k % 3 == 0) std::this_thread::sleep_for(1ms);
      if (k % 5 == 0) complete(pipeline, *batch);
      pipeline.cancel(*batch);
      std::memset(memory->data, 0, memory->bytes);  // a writer would race with this, or with the free
    }
    CHECK(pipeline.slots() <= 5);
  }
  CHECK(device->alive() == 0);
}

TEST_CASE("what the device refuses is said of the batch") {
  const auto device = checked_device<BrokenDevice>();
  Pipeline pipeline(on_device(training(1), device));
  const Rows rows = some_rows(2);
  BatchBytes memory(device, rows.size() * pipeline.options().strides.sample_bytes);
  const auto batch = submit(pipeline, Images::all().table, rows, 1, memory.data);
  REQUIRE(complete(pipeline, *batch));
  CHECK(batch->broken() == "the device is lost");
}

TEST_CASE("a batch may outlive its pipeline") {
  const auto device = checked_device();
  std::shared_ptr<Batch> batch;
  {
    const Rows rows = some_rows(4);
    Pipeline pipeline(on_device(training(2), device));
    BatchBytes memory(device, rows.size() * pipeline.options().strides.sample_bytes);
    batch = submit(pipeline, Images::all().table, rows, 1, memory.data);
    pipeline.cancel(*batch);
  }
  batch.reset();
  CHECK(device->alive() == 0);
}
