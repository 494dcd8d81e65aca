// Entry points in memory that several processes share: each finds what others keep, also after one was killed; damaged
// memory gives nothing.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "core/base/platform/platform.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/scan/entry_points.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr size_t kEnough = size_t{1} << 24;

/// The first rows of the image with a key: each list that is kept under it begins like this.
std::vector<EntryPoint> list_of(uint64_t key, size_t rows) {
  std::vector<EntryPoint> made(rows);
  for (uint32_t i = 0; i < rows; ++i)
    made[i] = {static_cast<uint32_t>(key) * 64 + i, {static_cast<int16_t>(i), static_cast<int16_t>(key), -5}};
  return made;
}

/// Whether a table gives nothing for a key, or the beginning of its list.
bool is_true(const EntryPoints& points, uint64_t key) {
  std::vector<EntryPoint> found;
  points.find(key, &found);
  return found == list_of(key, found.size());
}

size_t rows_of(const EntryPoints& points, uint64_t key) {
  std::vector<EntryPoint> found;
  points.find(key, &found);
  CHECK(found == list_of(key, found.size()));
  return found.size();
}

/// Runs `work` in a forked process.
template <typename Work>
pid_t fork_for(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("lists grow part by part, and many keys are found") {
  EntryPoints points(kEnough);
  constexpr uint64_t kKeys = 20000;
  size_t rows = 0;
  for (const size_t longer : {size_t{5}, size_t{7}, size_t{20}})
    for (uint64_t key = 0; key < kKeys; ++key) {
      const size_t now = std::max(longer, size_t{5}) - key % 5;
      points.keep(key, list_of(key, now));
      rows = std::max(rows, now);
    }
  for (uint64_t key = 0; key < kKeys; ++key) CHECK(rows_of(points, key) == 20 - key % 5);
  points.keep(7, list_of(7, 4));  // less than is known
  CHECK(rows_of(points, 7) == 18);
  CHECK(rows_of(points, kKeys) == 0);
  const std::vector<EntryList> all = points.all();
  CHECK(all.size() == kKeys);
  for (const EntryList& one : all) CHECK(one.points == list_of(one.key, one.points.size()));
  CHECK(points.counts().images == kKeys);
  // Three parts of 40 bytes, 12 a row, and 8 to 48 for the slot.
  CHECK(points.counts().bytes < kKeys * (3 * 40 + 20 * 12 + 48));
}

TEST_CASE("a list that is too long for an image is not kept") {
  EntryPoints points(kEnough);
  points.keep(1, std::vector<EntryPoint>(9000));
  points.keep(2, {});
  CHECK(points.counts().images == 0);
}

TEST_CASE("a full table keeps what it has, and its bytes stay within the limit") {
  for (const size_t limit : {size_t{0}, size_t{1}, size_t{63}, size_t{300}, size_t{5000}, size_t{300000}}) {
    EntryPoints points(limit);
    for (uint64_t key = 0; key < 3000; ++key) points.keep(key, list_of(key, 1 + key % 40));
    CHECK(points.counts().bytes <= limit);
    size_t known = 0;
    for (uint64_t key = 0; key < 3000; ++key) known += rows_of(points, key) != 0;
    CHECK(known == points.counts().images);
    CHECK(points.limit() == limit);
    if (limit >= 5000) CHECK(known > limit / 600);
  }
}

TEST_CASE("a limit beyond all memory is only a number") {
  EntryPoints points(size_t{1} << 62);
  points.keep(1, list_of(1, 3));
  CHECK(rows_of(points, 1) == 3);
  CHECK(points.limit() == size_t{1} << 62);
}

TEST_CASE("forked processes share the table") {
  EntryPoints points(kEnough);
  points.keep(1, list_of(1, 5));
  const int status = wait_for(fork_for([&] {
    if (rows_of(points, 1) != 5) ::_exit(1);
    points.keep(1, list_of(1, 9));
    points.keep(2, list_of(2, 3));
  }));
  CHECK(status == 0);
  CHECK(rows_of(points, 1) == 9);
  CHECK(rows_of(points, 2) == 3);
  CHECK(points.counts().images == 2);
}

TEST_CASE("a killed process leaves a valid table, and other processes go on") {
  EntryPoints points(kEnough);
  std::minstd_rand random(3);
  uint64_t base = 0;
  for (int i = 0; i < 40; ++i, base += 100000) {
    const pid_t child = fork_for([&] {
      for (uint64_t key = base;; ++key) points.keep(key, list_of(key, 1 + key % 40));
    });
    for (size_t wait = random() % 2000; wait > 0; --wait) CHECK(is_true(points, base + wait));
    ::kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
    for (uint64_t key = base; key < base + 50; ++key) points.keep(key, list_of(key, 45));
    if (!points.is_full()) CHECK(rows_of(points, base) == 45);
  }
  for (const EntryList& one : points.all()) CHECK(one.points == list_of(one.key, one.points.size()));
}

#if HEADRACE_LINUX
TEST_CASE("a descriptor leads another process to the table, and nothing else does") {
  EntryPoints points(100000);
  points.keep(1, list_of(1, 5));
  REQUIRE(points.descriptor() >= 0);
  const auto same = EntryPoints::attach(points.descriptor(), points.capacity(), points.secrets());
  REQUIRE(same != nullptr);
  CHECK(same->bytes().data() != points.bytes().data());
  CHECK(same->descriptor() == -1);
  same->keep(2, list_of(2, 3));
  CHECK(rows_of(points, 2) == 3);
  CHECK(rows_of(*same, 1) == 5);

  auto other = points.secrets();
  other[0] ^= 1;
  CHECK(EntryPoints::attach(points.descriptor(), points.capacity(), other) == nullptr);
  CHECK(EntryPoints::attach(points.descriptor(), points.capacity() + 9000, points.secrets()) == nullptr);
  CHECK(EntryPoints::attach(points.descriptor(), points.capacity() - 1, points.secrets()) == nullptr);
  CHECK(EntryPoints::attach(-1, points.capacity(), points.secrets()) == nullptr);
  const int file = ::open("/dev/null", O_RDWR);
  CHECK(EntryPoints::attach(file, points.capacity(), points.secrets()) == nullptr);
  ::close(file);
  CHECK(::ftruncate(points.descriptor(), 0) != 0);  // sealed
}

TEST_CASE("two mappings of one table are used at the same time") {
  EntryPoints points(kEnough);
  const auto same = EntryPoints::attach(points.descriptor(), points.capacity(), points.secrets());
  REQUIRE(same != nullptr);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      EntryPoints& mine = t % 2 == 0 ? points : *same;
      for (uint64_t i = 0; i < 3000; ++i) {
        const uint64_t key = (i * 7 + t) % 500;
        CHECK(is_true(mine, key));
        mine.keep(key, list_of(key, 1 + i % 30));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(points.counts().images == 500);  // each counted once, although two processes add it
  CHECK(points.all().size() == 500);
}
#endif

TEST_CASE("damaged memory gives true lists or none, and nothing worse") {
  std::minstd_rand random(11);
  size_t lost = 0, kept = 0;
  for (int i = 0; i < 200; ++i) {
    EntryPoints points(60000);
    for (uint64_t key = 0; key < 60; ++key) points.keep(key, list_of(key, 1 + key % 20));
    const std::span<uint8_t> memory = points.bytes();
    for (int hit = 0; hit < 1 + i % 40; ++hit) {
      const size_t end = i % 3 == 0 ? 600 : i % 3 == 1 ? 4096 + 700 : 4096 + points.counts().bytes % 60000 + 1;
      uint8_t* const at = memory.data() + random() % std::min(end, memory.size() - 8);
      if (random() % 4 == 0) {
        std::fill_n(at, 8, static_cast<uint8_t>(random() % 3 == 0 ? 0xFF : 0));
      } else {
        *at = static_cast<uint8_t>(random());
      }
    }
    for (uint64_t key = 0; key < 90; ++key) {
      ++(rows_of(points, key) == 0 && key < 60 ? lost : kept);
      points.keep(key, list_of(key, 25));
      CHECK(is_true(points, key));
    }
    for (const EntryList& one : points.all()) CHECK(one.points == list_of(one.key, one.points.size()));
    static_cast<void>(points.is_full());
  }
  CHECK(lost > 100);
  CHECK(kept > 100);
}

TEST_CASE("pixels are the same with a damaged table") {
  class Keep : public RowSink {
   public:
    void push(const uint8_t* rows, size_t stride, int count) override {
      for (int i = 0; i < count; ++i, rows += stride) pixels.insert(pixels.end(), rows, rows + 50 * kPixelBytes);
    }
    std::vector<uint8_t> pixels;
  };
  const std::vector<uint8_t> jpeg = make_jpeg({.width = 90, .height = 200, .h = {2, 1, 1}, .v = {2, 1, 1}});
  const JpegHeader header = parse_jpeg_header(jpeg);
  JpegDecoder decoder(block_sets().back());
  const Box box{10, 150, 50, 40};
  const auto decode = [&](EntryPoints* points) {
    Keep sink;
    decoder.decode(jpeg, header, box, sink, points);
    return sink.pixels;
  };
  const std::vector<uint8_t> plain = decode(nullptr);
  std::minstd_rand random(12);
  for (int i = 0; i < 300; ++i) {
    EntryPoints points(4000);
    CHECK(decode(&points) == plain);
    REQUIRE(points.counts().images == 1);
    const std::span<uint8_t> used = points.bytes().first(4096 + points.counts().bytes);
    for (int hit = 0; hit < 3; ++hit) used[random() % used.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    for (int again = 0; again < 3; ++again) CHECK(decode(&points) == plain);
  }
}
