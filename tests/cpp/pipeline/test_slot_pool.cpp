// The pool of slots: memory is reused, grows if the user keeps slots, and outlives the owner of the pool.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/pipeline/batch/slot_pool.h"
#include "support/in_child.h"

using namespace headrace;

TEST_CASE("a slot that comes back is the next one handed out") {
  const auto pool = SlotPool::make(1000, 2);
  CHECK(pool->slots() == 0);
  Lease lease = pool->acquire();
  const uint8_t* const address = lease.get();
  CHECK(pool->slots() == 1);
  lease.reset();
  CHECK(pool->slots() == 1);
  CHECK(pool->acquire().get() == address);
}

TEST_CASE("a slot returns with its last copy") {
  const auto pool = SlotPool::make(64, 1);
  Lease first = pool->acquire();
  const uint8_t* const address = first.get();
  Lease second = first;
  first.reset();
  CHECK(pool->acquire().get() != address);
  second.reset();
  CHECK(pool->slots() == 1);  // one of the two was returned to the system
}

TEST_CASE("slots are aligned and writable to the last byte, small or on huge pages") {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, 2 * kMiB - 1, 2 * kMiB, 5 * kMiB + 3}) {
    CAPTURE(bytes);
    const auto pool = SlotPool::make(bytes, 1);
    CHECK(pool->slot_bytes() == bytes);
    const Lease lease = pool->acquire();
    CHECK(reinterpret_cast<uintptr_t>(lease.get()) % 4096 == 0);
    std::memset(lease.get(), 0xA5, bytes);
    if (bytes > 0) CHECK(lease.get()[bytes - 1] == 0xA5);
  }
}

TEST_CASE("who keeps slots gets more, and what comes back beyond `keep` goes to the system") {
  const auto pool = SlotPool::make(5000, 2);
  std::vector<Lease> kept;
  std::set<const uint8_t*> addresses;
  for (int i = 0; i < 5; ++i) {
    kept.push_back(pool->acquire());
    std::memset(kept.back().get(), i, 5000);
    addresses.insert(kept.back().get());
  }
  CHECK(addresses.size() == 5);
  CHECK(pool->slots() == 5);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(kept[i].get()[0] == i);
    CHECK(kept[i].get()[4999] == i);
  }
  kept.clear();
  CHECK(pool->slots() == 2);
}

TEST_CASE("nothing is kept when nothing is to be kept") {
  const auto pool = SlotPool::make(100, 0);
  pool->acquire();
  CHECK(pool->slots() == 0);
}

TEST_CASE("a lease outlives the pool's owner and may die in another thread") {
  auto pool = SlotPool::make(100, 1);
  Lease lease = pool->acquire();
  const std::weak_ptr<SlotPool> watch = pool;
  pool.reset();
  lease.get()[99] = 1;
  CHECK_FALSE(watch.expired());
  std::thread([lease = std::exchange(lease, nullptr)] {}).join();
  CHECK(watch.expired());
}

TEST_CASE("threads take and return slots at once, and no two have the same one") {
  const auto pool = SlotPool::make(256, 3);
  std::vector<std::thread> threads;
  std::vector<int> wrong(6);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const Lease lease = pool->acquire();
        std::memset(lease.get(), t, 256);
        for (int k = 0; k < 256; ++k) wrong[static_cast<size_t>(t)] += lease.get()[k] != t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
  CHECK(pool->slots() <= 3);
}

TEST_CASE("memory that cannot be had is refused, and not counted") {
  for (const size_t bytes : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() / 4}) {
    const auto pool = SlotPool::make(bytes, 1);
    CHECK_THROWS_AS(pool->acquire(), std::bad_alloc);
    CHECK(pool->slots() == 0);
  }
}

TEST_CASE("in a forked child leases and pools die without a lock") {
  auto pool = SlotPool::make(100, 2);
  pool->acquire();  // returned at once, and leased again below
  Lease lease = pool->acquire();
  lease.get()[0] = 7;
  CHECK(test::in_child([&] {
    lease.get()[0] = 8;
    lease.reset();
    pool.reset();
    return true;
  }));
  CHECK(lease.get()[0] == 7);  // the child's memory was a copy
}
