// Slots that pools leave: kept while there is a keeper, within a bound, and given to pools of the same size.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/platform/platform.h"
#include "core/pipeline/batch/slot_memory.h"
#include "core/pipeline/batch/slot_pool.h"
#include "support/in_child.h"

using namespace headrace;

#if !HEADRACE_LINUX

TEST_CASE("where pages cannot be let go, nothing is kept") {
  const SlotKeeper keeper;
  leave_slot(take_slot(5000), 5000);
  CHECK(left_slot_bytes() == 0);
}

#else

namespace {

constexpr size_t kMiB = size_t{1} << 20;

}  // namespace

TEST_CASE("a slot that is left is the next one of its size, and no other size gets it") {
  const SlotKeeper keeper;
  uint8_t* const slot = take_slot(5000);
  std::memset(slot, 1, 5000);
  leave_slot(slot, 5000);
  CHECK(left_slot_bytes() == 8192);
  uint8_t* const larger = take_slot(9000);
  CHECK(larger != slot);
  uint8_t* const again = take_slot(8000);  // of two pages as well
  CHECK(again == slot);
  CHECK(left_slot_bytes() == 0);
  std::memset(again, 2, 8000);
  unmap_slot(again, 8000);
  unmap_slot(larger, 9000);
}

TEST_CASE("without a keeper nothing is kept, and the last keeper's end returns everything") {
  leave_slot(take_slot(5000), 5000);
  CHECK(left_slot_bytes() == 0);
  std::optional<SlotKeeper> first(std::in_place), second(std::in_place);
  leave_slot(take_slot(5000), 5000);
  first.reset();
  CHECK(left_slot_bytes() == 8192);
  second.reset();
  CHECK(left_slot_bytes() == 0);
}

TEST_CASE("what is kept is bounded in number and in bytes, and the oldest slots go") {
  const SlotKeeper keeper;
  std::vector<uint8_t*> slots;
  for (size_t i = 0; i < 20; ++i) slots.push_back(take_slot(100 + 4096 * i));
  for (size_t i = 0; i < 20; ++i) leave_slot(slots[i], 100 + 4096 * i);
  size_t newest = 0;
  for (size_t i = 4; i < 20; ++i) newest += 4096 * (i + 1);
  CHECK(left_slot_bytes() == newest);
  const size_t half = 512 * kMiB;
  for (int i = 0; i < 2; ++i) leave_slot(take_slot(half), half);  // takes one that is left, and leaves it again
  CHECK(left_slot_bytes() <= 1024 * kMiB);
  std::vector<uint8_t*> halves;
  for (int i = 0; i < 3; ++i) halves.push_back(take_slot(half));
  for (uint8_t* slot : halves) leave_slot(slot, half);
  CHECK(left_slot_bytes() == 1024 * kMiB);
  leave_slot(take_slot(1025 * kMiB), 1025 * kMiB);  // larger than the bound
  CHECK(left_slot_bytes() == 1024 * kMiB);
}

TEST_CASE("a pool takes what the pool before it has left, also what users returned later") {
  const SlotKeeper keeper;
  Lease late;
  const uint8_t* early = nullptr;
  {
    const auto pool = SlotPool::make(3 * kMiB, 2);
    late = pool->acquire();
    early = pool->acquire().get();
    pool->retire();
  }
  CHECK(left_slot_bytes() == 4 * kMiB);
  const uint8_t* const address = late.get();
  late.reset();
  CHECK(left_slot_bytes() == 8 * kMiB);
  const auto next = SlotPool::make(3 * kMiB, 2);
  const Lease one = next->acquire(), two = next->acquire();
  CHECK(one.get() == address);
  CHECK(two.get() == early);
  CHECK(left_slot_bytes() == 0);
}

TEST_CASE("an active pool returns to the system what it does not keep") {
  const SlotKeeper keeper;
  const auto pool = SlotPool::make(100, 1);
  Lease first = pool->acquire(), second = pool->acquire();
  first.reset();
  second.reset();
  CHECK(left_slot_bytes() == 0);
}

TEST_CASE("threads take and leave slots while keepers come and go") {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const SlotKeeper keeper;
        uint8_t* const slot = take_slot(256);
        std::memset(slot, t, 256);
        for (int k = 0; k < 256; ++k) wrong[static_cast<size_t>(t)] += slot[k] != t;
        leave_slot(slot, 256);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
  CHECK(left_slot_bytes() == 0);
}

TEST_CASE("a forked child begins with nothing kept, and the end of a copied keeper does nothing") {
  auto keeper = std::make_unique<SlotKeeper>();
  leave_slot(take_slot(100), 100);
  CHECK(test::in_child([&] {
    const bool empty = left_slot_bytes() == 0;
    keeper.reset();
    const SlotKeeper own;
    leave_slot(take_slot(100), 100);
    return empty && left_slot_bytes() == 4096;
  }));
  CHECK(left_slot_bytes() == 4096);
}

#endif
