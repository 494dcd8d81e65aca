// Fetched bytes: every reader gets the right ones or one error, whatever is announced, dropped, cancelled or closed.
#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "core/io/remote/byte_store.h"
#include "support/in_child.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = ByteBuffer;

namespace {

RangeKey key(uint64_t number) { return {number % 3, number, 10}; }

Bytes bytes_of(uint64_t number) { return Bytes(100, static_cast<uint8_t>(number)); }

bool readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

std::string failure(ByteStore& store, const RangeKey& wanted, const std::atomic<bool>& cancelled = kNeverCancelled) {
  try {
    store.take(wanted, cancelled);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a range is wanted once, held until it is read, and then wanted again") {
  ByteStore store(1 << 20, 0);
  CHECK(store.want(key(1)));
  CHECK_FALSE(store.want(key(1)));
  CHECK_FALSE(store.has(key(1)));
  CHECK(store.take_if_here(key(1)) == nullptr);
  store.put(key(1), bytes_of(1));
  CHECK(store.has(key(1)));
  CHECK_FALSE(store.want(key(1)));
  CHECK(store.counts().bytes == 100);
  CHECK(*store.take(key(1), kNeverCancelled) == bytes_of(1));
  CHECK(store.counts().bytes == 0);
  CHECK(store.counts().fetched == 1);
  CHECK(store.want(key(1)));
}

TEST_CASE("a reader demands what is not being fetched") {
  ByteStore store(1 << 20, 0);
  std::atomic<bool> fine{false};
  std::thread reader([&] { fine = *store.take(key(7), kNeverCancelled) == bytes_of(7); });
  while (!readable(store.demand_descriptor())) std::this_thread::yield();
  CHECK(store.take_demands() == std::vector<RangeKey>{key(7)});
  CHECK_FALSE(readable(store.demand_descriptor()));
  CHECK(store.take_demands().empty());
  CHECK_FALSE(store.want(key(7)));
  store.put(key(7), bytes_of(7));
  reader.join();
  CHECK(fine.load());
}

TEST_CASE("a failed fetch fails its readers once; the next one asks again") {
  ByteStore store(1 << 20, 0);
  REQUIRE(store.want(key(2)));
  store.fail(key(2), "no such object", 2);
  CHECK(store.has(key(2)));
  CHECK(failure(store, key(2)) == "no such object");
  CHECK(store.want(key(2)));
  store.fail(key(2), "again", 2);
  CHECK(store.want(key(2)));  // an announcement asks again, too
}

TEST_CASE("a range that is taken out is gone, and no read") {
  ByteStore store(1 << 20, 0);
  CHECK(store.take_out(key(1)) == nullptr);
  REQUIRE(store.want(key(1)));
  CHECK(store.take_out(key(1)) == nullptr);
  CHECK_FALSE(store.want(key(1)));  // it is on its way
  const auto bytes = std::make_shared<const ByteBuffer>(bytes_of(1));
  store.arrived(key(1), bytes);
  CHECK(store.take_out(key(1)) == bytes);
  CHECK(store.counts().bytes == 0);
  CHECK(store.counts().fetched == 0);
  REQUIRE(store.want(key(1)));
  store.fail(key(1), "no such object", 2);
  try {
    store.take_out(key(1));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.os_errno() == 2);
  }
  store.close();
  CHECK_THROWS_AS(store.take_out(key(1)), Error);
}

TEST_CASE("the bytes of a range that is forgotten are dropped when they arrive") {
  ByteStore store(1 << 20, 0);
  store.forget(key(1));
  REQUIRE(store.want(key(1)));
  store.forget(key(1));
  store.arrived(key(1), std::make_shared<const ByteBuffer>(bytes_of(1)));
  CHECK(store.counts().bytes == 0);
  REQUIRE(store.want(key(1)));
  store.arrived(key(1), std::make_shared<const ByteBuffer>(bytes_of(1)));
  CHECK(store.counts().bytes == 100);
  store.forget(key(1));
  CHECK(store.counts().bytes == 0);
  CHECK(store.want(key(1)));
}

TEST_CASE("cancelling and closing end the waiting") {
  ByteStore store(1 << 20, 0);
  std::atomic<bool> cancelled{false};
  std::thread reader([&] { CHECK(failure(store, key(1), cancelled) == "the batch was cancelled"); });
  while (!readable(store.demand_descriptor())) std::this_thread::yield();
  cancelled = true;
  reader.join();
  std::thread other([&] { CHECK(failure(store, key(4)) == "the connections of this process are closed"); });
  while (store.take_demands().empty()) std::this_thread::yield();
  store.close();
  other.join();
  CHECK(store.has(key(9)));  // nobody waits for what never comes
}

TEST_CASE("what was announced longest ago leaves first; what was read stays within its limit, the newest leaving") {
  ByteStore store(300, 200);
  for (uint64_t i = 0; i < 4; ++i) store.put(key(i), bytes_of(i));
  CHECK_FALSE(store.has(key(0)));
  for (uint64_t i = 1; i < 4; ++i) CHECK(*store.take(key(i), kNeverCancelled) == bytes_of(i));
  CHECK(store.counts().bytes == 200);
  CHECK(store.has(key(1)));
  CHECK(store.has(key(2)));
  CHECK_FALSE(store.has(key(3)));
  CHECK(*store.take(key(1), kNeverCancelled) == bytes_of(1));
  CHECK(store.counts().from_memory == 1);
  store.clear();
  CHECK(store.counts().bytes == 0);
}

TEST_CASE("many readers, a fetcher, announcements, failures and drops at once: no wrong byte, no reader left") {
  constexpr uint64_t kKeys = 40;
  for (const size_t keep : {size_t{0}, size_t{700}}) {
    ByteStore store(500, keep);
    std::atomic<bool> done{false}, wrong{false};
    std::atomic<uint64_t> reads{0}, failures{0};
    const auto fetch = [&](const RangeKey& one, uint64_t round) {
      if (round % 13 == 0) {
        store.fail(one, "unlucky", 0);
      } else {
        store.put(one, bytes_of(one.offset));
      }
    };
    std::thread fetcher([&] {
      for (uint64_t round = 1; !done; ++round) {
        for (const RangeKey& one : store.take_demands()) fetch(one, ++round);
        const RangeKey ahead = key(round * 7 % kKeys);
        if (store.want(ahead)) fetch(ahead, round);
        if (round % 500 == 0) store.clear();
      }
    });
    std::vector<std::thread> readers;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      readers.emplace_back([&, seed] {
        for (uint64_t i = 0; i < 3000; ++i) {
          const RangeKey wanted = key((i * 31 + seed * 17) % kKeys);
          try {
            if (*store.take(wanted, kNeverCancelled) != bytes_of(wanted.offset)) wrong = true;
            ++reads;
          } catch (const Error&) {
            ++failures;
          }
        }
      });
    }
    for (std::thread& one : readers) one.join();
    done = true;
    fetcher.join();
    CHECK_FALSE(wrong.load());
    CHECK(reads + failures == 12'000);
    CHECK(store.counts().fetched + store.counts().from_memory == reads);
  }
}

TEST_CASE("a forked child gets an error instead of a lock") {
  ByteStore store(1 << 20, 0);
  store.put(key(1), bytes_of(1));
  CHECK(in_child([&] { return failure(store, key(1)).find("before the process forked") != std::string::npos; }));
}
