// The reader against a server on the other end of socket pairs: ranges arrive, or are returned with their reason.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "core/base/platform/sockets.h"
#include "core/io/http/http_reader.h"
#include "core/io/remote/cache_file.h"
#include "http/http_samples.h"
#include "support/in_child.h"

using namespace headrace;
using namespace headrace::test;

namespace {

const std::string kThenClose = "\1close";  // at the end of an answer: it is sent without this

/// Answers the requests of one connection until it is closed: `answer` gets the request's number, and the range.
class Peer {
 public:
  /// Its result is sent; nothing: the connection is closed.
  using Answer = std::function<std::string(int number, uint64_t begin, uint64_t end)>;

  explicit Peer(Answer answer) : answer_(std::move(answer)) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    mine_ = ends[0];
    theirs = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~Peer() { thread_.join(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int theirs = -1;  // the reader closes it

 private:
  void serve() {
    std::string asked;
    char some[4096];
    for (ssize_t count; (count = ::read(mine_, some, sizeof some)) > 0;) {
      asked.append(some, static_cast<size_t>(count));
      for (size_t end; (end = asked.find("\r\n\r\n")) != std::string::npos; asked.erase(0, end + 4)) {
        const size_t at = asked.find("bytes=") + 6, dash = asked.find('-', at);
        const uint64_t begin = std::strtoull(asked.c_str() + at, nullptr, 10);
        std::string bytes = answer_(number_++, begin, std::strtoull(asked.c_str() + dash + 1, nullptr, 10) + 1);
        const bool ends = bytes.ends_with(kThenClose);
        if (ends) bytes.resize(bytes.size() - kThenClose.size());
        if (bytes.empty() || ::send(mine_, bytes.data(), bytes.size(), kNoSignal) < 0 || ends) {
          ::close(mine_);
          return;
        }
      }
    }
    ::close(mine_);
  }

  const Answer answer_;
  int mine_ = -1, number_ = 0;
  std::thread thread_;
};

std::string right(int, uint64_t begin, uint64_t end) { return a_head(begin, end) + bytes_of(begin, end); }

struct Reading {
  explicit Reading(HttpReader::Limits limits = {}) : reader(store, limits) {
    host = reader.queue().add_host();
    reader.queue().add_object(1, an_object());
  }
  ~Reading() { reader.close(); }

  void fetch(const std::vector<RangeKey>& keys, bool urgent = false) {
    for (const RangeKey& key : keys) store->want(key);
    CHECK(reader.queue().fetch(keys, urgent).empty());
  }
  void event() {
    pollfd one{reader.queue().event_descriptor(), POLLIN, 0};
    REQUIRE(::poll(&one, 1, 20'000) == 1);
  }
  /// What is returned next; connections that are needed meanwhile are lacking.
  std::vector<ReturnedRanges> returned() {
    for (;;) {
      event();
      auto made = reader.queue().returned();
      for (const auto& [number, count] : reader.queue().needed()) needed += count;
      if (!made.empty()) return made;
    }
  }
  bool has(const RangeKey& key) {
    const SharedBytes bytes = store->take(key, kNeverCancelled);
    return std::string(bytes->begin(), bytes->end()) == bytes_of(key.offset, key.offset + key.length);
  }

  std::shared_ptr<ByteStore> store = std::make_shared<ByteStore>(1 << 24, 0);
  HttpReader reader;
  uint32_t host = 0;
  size_t needed = 0;
};

RangeKey key(uint64_t number) { return {1, number * 100'000, 1000}; }

}  // namespace

TEST_CASE("many ranges over few connections, all right") {
  Peer first(right), second(right);
  Reading reading;
  reading.reader.queue().add_connection(reading.host, first.theirs);
  reading.reader.queue().add_connection(reading.host, second.theirs);
  for (int round = 0; round < 20; ++round) {
    std::vector<RangeKey> keys;
    for (uint64_t i = 0; i < 9; ++i) keys.push_back(key(i));
    reading.fetch(keys, round % 2 == 1);
    for (const RangeKey& one : keys) CHECK(reading.has(one));
  }
  reading.reader.close();  // a range is in the store before it is counted
  CHECK(reading.reader.queue().counts().requests == 180);
  CHECK(reading.reader.queue().counts().bytes == 180'000);
}

TEST_CASE("connections are asked for as far as they are needed and allowed") {
  Reading reading({.requests = 3});
  reading.fetch({key(0), key(1)});
  reading.event();
  CHECK(reading.reader.queue().returned().empty());
  CHECK(reading.reader.queue().needed() == std::vector<std::pair<uint32_t, size_t>>{{reading.host, 2}});
  CHECK(reading.reader.queue().needed().empty());
  reading.fetch({key(2), key(3), key(4)});
  reading.event();
  CHECK(reading.reader.queue().needed() == std::vector<std::pair<uint32_t, size_t>>{{reading.host, 1}});
  reading.reader.queue().lack_connections(reading.host, 3, "refused");
  const auto back = reading.returned();
  CHECK(back.size() == 5);
  for (const ReturnedRanges& one : back) {
    CHECK(one.why == Why::kFailed);
    CHECK(one.reason == "refused");
  }
}

TEST_CASE("what the reader does not know is not begun") {
  Reading reading;
  const std::vector<RangeKey> keys = {{2, 0, 10}, {1, 0, 0}, {1, 999'999, 2}, {1, 1'000'001, 1}, {1, 5, kAnyLength}};
  CHECK(reading.reader.queue().fetch(keys, false) == std::vector<size_t>{0, 1, 2, 3, 4});
  HttpObject expired = an_object();
  expired.expires_ns = 1;
  reading.reader.queue().add_object(3, expired);
  CHECK(reading.reader.queue().fetch(std::vector<RangeKey>{{3, 0, 10}}, false) == std::vector<size_t>{0});
}

TEST_CASE("errors, closed connections and other answers come back with their reason") {
  const auto outcome = [](const Peer::Answer& answer) {
    Peer peer(answer);
    Reading reading;
    reading.reader.queue().add_connection(reading.host, peer.theirs);
    reading.fetch({key(1)});
    const auto back = reading.returned();
    REQUIRE(back.size() == 1);
    CHECK(back[0].parts == std::vector<RangeKey>{key(1)});
    reading.reader.close();
    return back[0];
  };
  const auto refused = outcome([](int, uint64_t, uint64_t) { return "HTTP/1.1 503 Slow\r\nRetry-After: 4\r\n\r\n"; });
  CHECK(refused.why == Why::kRefused);
  CHECK(refused.status == 503);
  CHECK(refused.retry_after == "4");
  CHECK(outcome([](int, uint64_t, uint64_t) { return ""; }).reason == "the connection failed");
  CHECK(outcome([](int, uint64_t, uint64_t) { return "HTTP/1.1 200 OK\r\n\r\n"; }).why == Why::kOdd);
  const auto half = outcome(
      [](int, uint64_t begin, uint64_t end) { return a_head(begin, end) + bytes_of(begin, begin + 500) + kThenClose; });
  CHECK(half.why == Why::kFailed);
  CHECK(half.reason == "the answer ends after 500 bytes");
}

TEST_CASE("an odd answer is the host's last one") {
  Peer peer([](int, uint64_t, uint64_t) { return "HTTP/1.1 200 OK\r\n\r\n"; });
  Reading reading;
  reading.fetch({key(1), key(2), key(3)});
  reading.reader.queue().add_connection(reading.host, peer.theirs);
  size_t count = 0;
  while (count < 3) count += reading.returned().size();
  CHECK(reading.reader.queue().fetch(std::vector<RangeKey>{key(4)}, false) == std::vector<size_t>{0});
  reading.reader.close();
}

TEST_CASE("a connection that the server closed between two requests costs no failure") {
  Peer first([](int number, uint64_t begin, uint64_t end) { return number == 0 ? right(0, begin, end) : ""; });
  Peer second(right);
  Reading reading;
  reading.reader.queue().add_connection(reading.host, first.theirs);
  reading.fetch({key(0)});
  CHECK(reading.has(key(0)));
  reading.fetch({key(1)});
  while (reading.reader.queue().needed().empty()) std::this_thread::yield();
  reading.reader.queue().add_connection(reading.host, second.theirs);
  CHECK(reading.has(key(1)));
  CHECK(reading.reader.queue().counts().requests == 2);
  CHECK(reading.reader.queue().returned().empty());
  reading.reader.close();
}

TEST_CASE("requests that take too long are ended, and stragglers returned while they go on") {
  std::atomic<bool> go{false};
  Peer stuck([&](int, uint64_t begin, uint64_t end) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return right(0, begin, end);
  });
  SUBCASE("too long") {
    Reading reading({.timeout_s = 0.05});
    reading.reader.queue().add_connection(reading.host, stuck.theirs);
    reading.fetch({key(1)});
    const auto back = reading.returned();
    CHECK(back.at(0).why == Why::kFailed);
    CHECK(back.at(0).reason == "no complete answer in 0.05 s");
    go = true;
    reading.reader.close();
  }
  SUBCASE("a straggler") {
    Reading reading({.hedge = 1.0});
    Peer quick(right);
    reading.reader.queue().add_connection(reading.host, quick.theirs);
    for (uint64_t i = 0; i < 64; ++i) {
      reading.fetch({key(i % 9)});
      CHECK(reading.has(key(i % 9)));
    }
    reading.reader.queue().pause(reading.host, 0.05);  // then both connections are there
    reading.reader.queue().add_connection(reading.host, stuck.theirs);
    reading.fetch({key(1), key(2)});  // one of them meets the connection that is stuck
    ReturnedRanges late;
    for (const ReturnedRanges& one : reading.returned()) late = one;
    CHECK(late.why == Why::kLate);
    REQUIRE(late.parts.size() == 1);
    go = true;
    CHECK(reading.has(key(1)));
    CHECK(reading.has(key(2)));
    CHECK(reading.reader.queue().counts().late >= 1);  // on a busy machine others are, too
    reading.reader.close();
  }
}

TEST_CASE("a pause delays what waits") {
  Peer peer(right);
  Reading reading;
  reading.reader.queue().add_connection(reading.host, peer.theirs);
  reading.reader.queue().pause(reading.host, 0.2);
  const auto begin = std::chrono::steady_clock::now();
  reading.fetch({key(1)});
  CHECK(reading.has(key(1)));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(190));
  reading.reader.close();
}

TEST_CASE("closed with requests under way; used in a forked child") {
  Peer silent([](int, uint64_t, uint64_t) { return "HTTP/1.1 2"; });
  {
    Reading reading;
    reading.reader.queue().add_connection(reading.host, silent.theirs);
    reading.fetch({key(1), key(2)});
    CHECK(in_child([&] {
      reading.reader.close();            // returns at once
      std::destroy_at(&reading.reader);  // ends no thread that is not here
      return true;
    }));
  }
}

TEST_CASE("callers, the reader and failing servers at once: each range arrives or is returned") {
  constexpr int kPeers = 4;
  std::vector<std::unique_ptr<Peer>> peers;
  Reading reading({.requests = 8, .hedge = 0.0});
  const auto answer = [](int number, uint64_t begin, uint64_t end) {
    if (number % 17 == 16) return std::string("HTTP/1.1 500 No\r\n\r\n");
    return right(0, begin, end);
  };
  const auto connect = [&] {
    peers.push_back(std::make_unique<Peer>(answer));
    reading.reader.queue().add_connection(reading.host, peers.back()->theirs);
  };
  for (int i = 0; i < kPeers; ++i) connect();
  std::atomic<bool> done{false};
  std::thread owner([&] {  // what Python does
    while (!done) {
      for (ReturnedRanges& one : reading.reader.queue().returned()) {
        CHECK(one.why == Why::kRefused);
        CHECK(reading.reader.queue().fetch(one.parts, true).empty());
      }
      for (const auto& [host, count] : reading.reader.queue().needed()) {
        for (size_t i = 0; i < count; ++i) connect();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (uint64_t number = 0; number < 3; ++number) {
    callers.emplace_back([&, number] {
      for (uint64_t i = 0; i < 300; ++i) {
        const RangeKey one{1, (i * 7 + number * 311) % 900 * 1000 + number, 500};
        if (reading.store->want(one)) (void)reading.reader.queue().fetch(std::vector<RangeKey>{one}, i % 2 == 0);
        wrong += reading.has(one) ? 0 : 1;
      }
    });
  }
  for (std::thread& one : callers) one.join();
  done = true;
  owner.join();
  CHECK(wrong == 0);
  reading.reader.close();
}
