// Parts of local files in memory and on a disk: what is found is what was kept, or nothing.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/caching/local_cache.h"
#include "core/remote/cache_file.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kMuch = 1 << 20;

FilePart part(const char* path, uint64_t length, uint64_t offset = 0, int64_t modified = 1) {
  return {path, {1000, modified}, offset, length};
}

/// The bytes found, as a copy; empty for none (no test keeps an empty part).
Bytes found(LocalCache& cache, const RangeKey& key, const FilePart& part) {
  ReadBuffer buffer;
  const auto got = cache.find(key, part, buffer);
  return got ? Bytes(got->begin(), got->end()) : Bytes();
}

std::vector<std::filesystem::path> entries(const std::string& folder) {
  std::vector<std::filesystem::path> made;
  for (const auto& one : std::filesystem::recursive_directory_iterator(folder)) {
    if (one.is_regular_file()) made.push_back(one.path());
  }
  return made;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TEST_CASE("what was kept in memory is found under its key alone") {
  LocalCache cache(kMuch, "");
  const Bytes bytes(50, 7);
  CHECK(found(cache, {1, 2, 50}, part("a", 50)).empty());
  cache.keep({1, 2, 50}, part("a", 50), bytes);
  CHECK(found(cache, {1, 2, 50}, part("a", 50)) == bytes);
  for (const RangeKey& other : {RangeKey{2, 2, 50}, RangeKey{1, 3, 50}, RangeKey{1, 2, 51}}) {
    CHECK(found(cache, other, part("a", 50)).empty());
  }
  const StoreCounts counts = cache.counts();
  CHECK(counts.from_memory == 1);
  CHECK(counts.fetched == 4);
  CHECK(counts.bytes == 50);
}

TEST_CASE("the limit holds, and what is in a full cache stays") {
  LocalCache cache(100, "");
  for (uint64_t i = 0; i < 10; ++i) cache.keep({i, 0, 30}, part("a", 30), Bytes(30, static_cast<uint8_t>(i + 1)));
  CHECK(cache.counts().bytes == 90);
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(found(cache, {i, 0, 30}, part("a", 30)) == (i < 3 ? Bytes(30, static_cast<uint8_t>(i + 1)) : Bytes()));
  }
  cache.keep({11, 0, 101}, part("a", 101), Bytes(101, 1));  // larger than the cache
  CHECK(cache.counts().bytes == 90);
}

TEST_CASE("a file that was modified a moment ago is not kept") {
  LocalCache cache(kMuch, "");
  cache.keep({1, 0, 9}, part("a", 9, 0, now_ns()), Bytes(9, 1));
  CHECK(cache.counts().bytes == 0);
  constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
  cache.keep({1, 0, 9}, part("a", 9, 0, now_ns() - kHour), Bytes(9, 1));
  cache.keep({2, 0, 9}, part("a", 9, 0, now_ns() + kHour), Bytes(9, 1));  // the clock of a file server
  CHECK(cache.counts().bytes == 18);
}

TEST_CASE("an entry on the disk belongs to one part in one state") {
  const TemporaryFolder folder;
  const Bytes bytes(50, 7);
  {
    LocalCache cache(0, folder.path(""));
    cache.keep({1, 2, 50}, part("a", 50, 8), bytes);
    CHECK(cache.take_written() > 50);
    CHECK(cache.take_written() == 0);
    CHECK(cache.write_error() == 0);
  }
  LocalCache later(kMuch, folder.path(""));
  const FilePart same = part("a", 50, 8);
  for (FilePart other : {part("b", 50, 8), part("a", 50, 9), part("a", 49, 8), part("a", 50, 8, 2)}) {
    CHECK(found(later, {9, 9, other.length}, other).empty());
  }
  CHECK(found(later, {9, 9, 50}, same) == bytes);
  CHECK(found(later, {9, 9, 50}, same) == bytes);  // from memory
  CHECK(later.counts().from_disk == 1);
  CHECK(later.counts().from_memory == 1);
}

TEST_CASE("an entry that holds another part's bytes, or damaged ones, is not used") {
  const TemporaryFolder folder;
  LocalCache cache(0, folder.path(""));
  cache.keep({1, 0, 50}, part("a", 50), Bytes(50, 7));
  const auto first = entries(folder.path(""));
  REQUIRE(first.size() == 1);
  cache.keep({2, 0, 50}, part("b", 50), Bytes(50, 8));
  for (const auto& one : entries(folder.path(""))) {
    if (one != first[0]) std::filesystem::copy_file(one, first[0], std::filesystem::copy_options::overwrite_existing);
  }
  CHECK(found(cache, {1, 0, 50}, part("a", 50)).empty());  // as if both names had one hash
  CHECK(found(cache, {2, 0, 50}, part("b", 50)) == Bytes(50, 8));
  for (const auto& one : entries(folder.path(""))) std::filesystem::resize_file(one, 60);
  CHECK(found(cache, {2, 0, 50}, part("b", 50)).empty());
}

TEST_CASE("a folder that cannot be written to is an error number, once") {
  const TemporaryFolder folder;
  LocalCache cache(kMuch, folder.path("missing"));
  cache.keep({1, 0, 9}, part("a", 9), Bytes(9, 1));
  CHECK(cache.write_error() == ENOENT);
  cache.keep({2, 0, 9}, part("b", 9), Bytes(9, 2));
  CHECK(found(cache, {2, 0, 9}, part("b", 9)) == Bytes(9, 2));
  CHECK_FALSE(std::filesystem::exists(folder.path("missing")));
}

TEST_CASE("many threads keep and find") {
  const TemporaryFolder folder;
  LocalCache cache(5'000, folder.path(""));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 200; ++i) {
        const uint64_t which = (i * 7 + static_cast<uint64_t>(thread)) % 40;
        const Bytes expected(200 + which, static_cast<uint8_t>(which + 1));
        const FilePart wanted = part("a", expected.size(), which);
        const RangeKey key{1, which, expected.size()};
        const Bytes got = found(cache, key, wanted);
        if (!got.empty() && got != expected) ++wrong;
        if (got.empty()) cache.keep(key, wanted, expected);
      }
    });
  }
  for (auto& one : threads) one.join();
  CHECK(wrong == 0);
  CHECK(cache.counts().bytes <= 5'000);
  CHECK(cache.write_error() == 0);
}

TEST_CASE("a forked child finds and keeps nothing, and does not wait") {
  LocalCache cache(kMuch, "");
  cache.keep({1, 0, 9}, part("a", 9), Bytes(9, 1));
  const pid_t child = fork();
  if (child == 0) {
    ReadBuffer buffer;
    const bool none = !cache.find({1, 0, 9}, part("a", 9), buffer) && !cache.holds({1, 0, 9});
    cache.keep({2, 0, 9}, part("a", 9), Bytes(9, 2));
    _exit(none ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
