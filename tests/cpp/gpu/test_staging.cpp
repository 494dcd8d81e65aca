// Staging areas, events and streams on the emulated device: nothing is used again before the device has read it.
#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "gpu/batches/staging.h"
#include "gpu/device/emulated_device.h"

using namespace headrace;

TEST_CASE("an area takes aligned parts, keeps its blocks, and uploads what was taken") {
  EmulatedDevice device;
  const Stream stream = device.make_stream();
  const Event done = device.make_event();
  {
    StagingArea area(device);
    std::vector<StagedBytes> parts;
    for (const size_t bytes : {size_t{1}, size_t{300}, size_t{9} << 20, size_t{7} << 20, size_t{5}}) {
      parts.push_back(area.take(bytes));
      CHECK(reinterpret_cast<uintptr_t>(parts.back().host) % 256 == 0);
      CHECK(reinterpret_cast<uintptr_t>(parts.back().device) % 256 == 0);
      CHECK(parts.back().host != parts.back().device);
      std::memset(parts.back().host, static_cast<int>(parts.size()), bytes);
    }
    const size_t held = area.held();
    area.upload(stream);
    device.record(done, stream);
    device.synchronize(done);
    CHECK(parts[1].device[299] == 2);
    CHECK(parts[2].device[(size_t{9} << 20) - 1] == 3);
    CHECK(parts[4].device[4] == 5);
    for (int i = 0; i < 3; ++i) {
      area.reset();
      for (const size_t bytes : {size_t{9} << 20, size_t{5}, size_t{1}, size_t{7} << 20, size_t{300}}) area.take(bytes);
    }
    CHECK(area.held() == held);
  }
  device.destroy(done);
  device.destroy(stream);
  CHECK(device.alive() == 0);
}

TEST_CASE("an area comes back when the device has read it, and the ring waits rather than grow") {
  const auto device = std::make_shared<EmulatedDevice>();
  const Stream stream = device->make_stream();
  {
    const auto ring = std::make_shared<StagingRing>(device, 2);
    auto first = ring->acquire();
    StagingArea* const area = &*first;
    // The stream is held up by an event of another stream that has work to do.
    const Stream other = device->make_stream();
    const Event slow = device->make_event();
    std::vector<uint8_t> big(size_t{64} << 20), copy(big.size());
    for (int i = 0; i < 8; ++i) device->copy_to_device(copy.data(), big.data(), big.size(), other);
    device->record(slow, other);
    device->wait(stream, slow);
    first.release(stream);
    auto second = ring->acquire();
    CHECK(&*second != area);
    second.release(stream);
    auto third = ring->acquire();  // waits for the first to be read
    CHECK(device->happened(slow));
    CHECK(&*third == area);
    CHECK(ring->areas() == 2);
    // All held: one more rather than a wait without end.
    auto fourth = ring->acquire(), fifth = ring->acquire();
    CHECK(ring->areas() == 3);
    device->destroy(other);
    device->destroy(slow);
  }
  device->destroy(stream);
  CHECK(device->alive() == 0);
}

TEST_CASE("areas of many threads go round, and the device reads what was written for it") {
  const auto device = std::make_shared<EmulatedDevice>();
  const Stream stream = device->make_stream();
  const Event end = device->make_event();
  constexpr int kRounds = 60, kParts = 6, kBytes = 5000;
  // Where the device puts what it read: a copy behind the upload, in stream order.
  std::vector<std::vector<uint8_t>> results(kRounds * kParts, std::vector<uint8_t>(kBytes));
  {
    const auto ring = std::make_shared<StagingRing>(device, 3);
    for (int round = 0; round < kRounds; ++round) {
      auto lease = ring->acquire();
      std::vector<StagedBytes> parts(kParts);
      std::vector<std::thread> threads;
      for (int i = 0; i < kParts; ++i) {
        threads.emplace_back([&, i] {
          parts[static_cast<size_t>(i)] = lease->take(kBytes);
          std::memset(parts[static_cast<size_t>(i)].host, (round * kParts + i) % 251, kBytes);
        });
      }
      for (auto& thread : threads) thread.join();
      lease->upload(stream);
      for (int i = 0; i < kParts; ++i) {
        device->copy_to_device(results[static_cast<size_t>(round * kParts + i)].data(),
                               parts[static_cast<size_t>(i)].device, kBytes, stream);
      }
      lease.release(stream);
    }
    CHECK(ring->areas() <= 3);
    device->record(end, stream);
    device->synchronize(end);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i] == std::vector<uint8_t>(kBytes, static_cast<uint8_t>(i % 251)));
  }
  device->destroy(end);
  device->destroy(stream);
  CHECK(device->alive() == 0);
}
