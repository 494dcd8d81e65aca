// What several threads of Python may do at once with a batch and a pipeline, where no GIL orders them.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bind/core/distinct.h"
#include "core/pipeline/batch/lease_holder.h"
#include "core/pipeline/batch/slot_pool.h"

using namespace headrace;

namespace {

constexpr int kThreads = 4;

// Calls body(number) in several threads that begin together.
template <class Body>
void together(Body body) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread& one : threads) one.join();
}

struct SameAddress {
  bool operator()(const std::shared_ptr<int>& a, const std::shared_ptr<int>& b) const { return a == b; }
};

}  // namespace

TEST_CASE("of several threads that take a lease, one gets it, and the slot returns when that one drops it") {
  const auto pool = SlotPool::make(4096, 2);
  for (int round = 0; round < 200; ++round) {
    LeaseHolder slot;
    CHECK(slot.empty());
    CHECK(slot.share() == nullptr);
    slot.put(pool->acquire());
    CHECK(!slot.empty());
    std::array<Lease, kThreads> got;
    together([&](int number) {
      if (number == 0) (void)slot.share();  // a repair does so
      got[static_cast<size_t>(number)] = slot.take();
    });
    int count = 0;
    for (const Lease& one : got) {
      count += one != nullptr;
      if (one != nullptr) CHECK(one.use_count() == 1);
    }
    CHECK(count == 1);
    CHECK(slot.empty());
  }
  CHECK(pool->slots() == 1);
}

TEST_CASE("a lease that replaces another one frees it") {
  const auto pool = SlotPool::make(4096, 0);
  LeaseHolder slot;
  slot.put(pool->acquire());
  slot.put(pool->acquire());
  CHECK(pool->slots() == 1);
  slot.put(nullptr);
  CHECK(pool->slots() == 0);
}

TEST_CASE("a list without repetitions has one copy of each object that several threads added") {
  std::vector<std::shared_ptr<int>> objects;
  for (int i = 0; i < 50; ++i) objects.push_back(std::make_shared<int>(i));
  Distinct<std::shared_ptr<int>, SameAddress> list;
  together([&](int number) {
    for (size_t i = 0; i < objects.size(); ++i)
      list.add(objects[(i + static_cast<size_t>(number) * 7) % objects.size()]);
  });
  for (const auto& one : objects) CHECK(one.use_count() == 2);
  const auto kept = list.take();
  CHECK(kept.size() == objects.size());
  CHECK(list.take().empty());
}
