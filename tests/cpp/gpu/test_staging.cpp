// Staging areas, events and streams on the emulated device: no memory is reused before the device has read it.
#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "gpu/batches/staging.h"
#include "support/checked_device.h"

using namespace headrace;
using namespace headrace::test;

TEST_CASE("an area takes aligned parts, keeps its blocks, and uploads what was taken") {
  const auto device = checked_device();
  const OwnedStream stream(device);
  const OwnedEvent done(device);
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
    area.upload(stream.get());
    device->record(done.get(), stream.get());
    device->synchronize(done.get());
    CHECK(parts[1].device[299] == 2);
    CHECK(parts[2].device[(size_t{9} << 20) - 1] == 3);
    CHECK(parts[4].device[4] == 5);
    for (int i = 0; i < 3; ++i) {
      area.reset();
      for (const size_t bytes : {size_t{9} << 20, size_t{5}, size_t{1}, size_t{7} << 20, size_t{300}}) area.take(bytes);
    }
    CHECK(area.held() == held);
  }
  CHECK(device->alive() == 2);
}

TEST_CASE("an area comes back when the device has read it, and the ring waits rather than grow") {
  const auto device = checked_device();
  const OwnedStream stream(device);
  {
    const auto ring = std::make_shared<StagingRing>(device, 2);
    auto first = ring->acquire();
    StagingArea* const area = &*first;
    // The stream waits for an event of another stream, which is busy.
    const OwnedStream other(device);
    const OwnedEvent slow(device);
    std::vector<uint8_t> big(size_t{64} << 20), copy(big.size());
    for (int i = 0; i < 8; ++i) device->copy_to_device(copy.data(), big.data(), big.size(), other.get());
    device->record(slow.get(), other.get());
    device->wait(stream.get(), slow.get());
    first.release(stream.get());
    auto second = ring->acquire();
    CHECK(&*second != area);
    second.release(stream.get());
    auto third = ring->acquire();  // waits for the first to be read
    CHECK(device->happened(slow.get()));
    CHECK(&*third == area);
    CHECK(ring->areas() == 2);
    // All areas are held: the ring adds one instead of waiting forever.
    auto fourth = ring->acquire(), fifth = ring->acquire();
    CHECK(ring->areas() == 3);
  }
}

TEST_CASE("areas of many threads go round, and the device reads what was written for it") {
  const auto device = checked_device();
  const OwnedStream stream(device);
  const OwnedEvent end(device);
  constexpr int kRounds = 60, kParts = 6, kBytes = 5000;
  // What the device reads, copied after the upload in stream order.
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
      lease->upload(stream.get());
      for (int i = 0; i < kParts; ++i) {
        device->copy_to_device(results[static_cast<size_t>(round * kParts + i)].data(),
                               parts[static_cast<size_t>(i)].device, kBytes, stream.get());
      }
      lease.release(stream.get());
    }
    CHECK(ring->areas() <= 3);
    device->record(end.get(), stream.get());
    device->synchronize(end.get());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i] == std::vector<uint8_t>(kBytes, static_cast<uint8_t>(i % 251)));
  }
}
