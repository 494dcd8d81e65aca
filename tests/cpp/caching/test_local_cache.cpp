// Parts of local files in memory and on a disk: what is found is what was kept, or nothing.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/platform/file_numbers.h"
#include "core/io/cache/local_cache.h"
#include "core/io/remote/cache_file.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kMuch = 1 << 20;

/// A part of a file of this folder, which is there, in a state of its own.
FilePart part(uint64_t inode, uint64_t length, uint64_t offset = 0, int64_t modified = 1, const char* path = "/") {
  return {path, {{1000, modified}, 5, inode, 1}, offset, length, 0};
}

/// All parts that differ from one in something that names it.
std::vector<FilePart> others_than(const FilePart& part) {
  std::vector<FilePart> made(7, part);
  ++made[0].state.stamp.size;
  ++made[1].state.stamp.modified_ns;
  ++made[2].state.changed_ns;
  ++made[3].state.inode;
  ++made[4].offset;
  --made[5].length;
  ++made[6].mark;
  return made;
}

/// The bytes found, as a copy; empty for none (no test keeps an empty part).
Bytes found(LocalCache& cache, const FilePart& part) {
  ReadBuffer buffer;
  const auto got = cache.find(part, buffer);
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

TEST_CASE("what was kept in memory is found under its file's state and its place alone") {
  LocalCache cache(kMuch, "");
  const Bytes bytes(50, 7);
  CHECK(found(cache, part(1, 50)).empty());
  cache.keep(part(1, 50), bytes);
  CHECK(found(cache, part(1, 50)) == bytes);
  for (const FilePart& other : others_than(part(1, 50))) CHECK(found(cache, other).empty());
  FilePart elsewhere = part(1, 50);
  elsewhere.state.device = 6;
  CHECK(found(cache, elsewhere).empty());
  const StoreCounts counts = cache.counts();
  CHECK(counts.from_memory == 1);
  CHECK(counts.fetched == 9);
  CHECK(counts.bytes == 50);
}

TEST_CASE("the limit holds, and what is in a full cache stays") {
  LocalCache cache(100, "");
  for (uint64_t i = 0; i < 10; ++i) cache.keep(part(i, 30), Bytes(30, static_cast<uint8_t>(i + 1)));
  CHECK(cache.counts().bytes == 90);
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(found(cache, part(i, 30)) == (i < 3 ? Bytes(30, static_cast<uint8_t>(i + 1)) : Bytes()));
  }
  cache.keep(part(11, 101), Bytes(101, 1));  // larger than the cache
  CHECK(cache.counts().bytes == 90);
}

TEST_CASE("a file that was written a moment ago is not kept, whatever time it was given") {
  LocalCache cache(kMuch, "");
  constexpr int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond;
  const auto kept = [&](int64_t modified, int64_t changed) {
    static uint64_t number = 0;
    FilePart one = part(++number, 9, 0, modified);
    one.state.changed_ns = changed;
    cache.keep(one, Bytes(9, 1));
    return cache.holds(one);
  };
  CHECK_FALSE(kept(now_ns(), now_ns()));
  CHECK_FALSE(kept(now_ns(), now_ns() - kHour));
  CHECK_FALSE(kept(now_ns() - kHour, now_ns() + kSecond / 100));      // unpacked just now, with an old time
  CHECK_FALSE(kept(now_ns() - kHour, now_ns() / kSecond * kSecond));  // by a clock of seconds
  CHECK(kept(now_ns() - kHour, now_ns() - kSecond / 2));
  CHECK(kept(now_ns() - kHour, now_ns() - kHour));
  CHECK(kept(now_ns() + kHour, now_ns() + kHour));  // the clock of a file server
}

TEST_CASE("an entry on the disk belongs to one part of one file in one state") {
  const TemporaryFolder folder;
  const Bytes bytes(50, 7);
  {
    LocalCache cache(0, folder.path(""));
    cache.keep(part(1, 50, 8), bytes);
    CHECK(cache.take_written() > 50);
    CHECK(cache.take_written() == 0);
    CHECK(cache.write_error() == 0);
  }
  LocalCache later(kMuch, folder.path(""));
  for (const FilePart& other : others_than(part(1, 50, 8))) CHECK(found(later, other).empty());
  CHECK(found(later, part(1, 50, 8, 1, "/tmp")).empty());
  CHECK(found(later, part(1, 50, 8, 1, "/missing")).empty());
  CHECK(found(later, part(1, 50, 8)) == bytes);
  CHECK(found(later, part(1, 50, 8)) == bytes);  // from memory
  CHECK(later.counts().from_disk == 1);
  CHECK(later.counts().from_memory == 1);
}

TEST_CASE("a path is without links and absolute in an entry's name") {
  const TemporaryFolder folder, files;
  files.file("file", Bytes(50, 7));
  std::filesystem::create_directory_symlink(files.path(""), folder.path("link"));
  LocalCache cache(0, folder.path(""));
  const std::string real = files.path("file"), linked = folder.path("link/file");
  cache.keep(part(1, 50, 0, 1, real.c_str()), Bytes(50, 7));
  CHECK(found(cache, part(1, 50, 0, 1, linked.c_str())) == Bytes(50, 7));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(files.path(""));
  CHECK(found(cache, part(1, 50, 0, 1, "file")) == Bytes(50, 7));
  std::filesystem::current_path(before);
}

TEST_CASE("which file systems give a file one number") {
  for (const int64_t kind : std::vector<int64_t>{0xEF53, 0x6969, 0x01021994, 0x9123683E, 0x58465342})
    CHECK(has_lasting_inodes(kind));
  for (const int64_t kind : {0x65735546, 0x4D44, 0x2011BAB0}) CHECK_FALSE(has_lasting_inodes(kind));
  CHECK_FALSE(has_lasting_inodes(0xFF534D42));
  CHECK_FALSE(has_lasting_inodes(static_cast<int32_t>(0xFE534D42)));
}

TEST_CASE("an entry that holds another part's bytes, or damaged ones, is not used") {
  const TemporaryFolder folder;
  LocalCache cache(0, folder.path(""));
  cache.keep(part(1, 50), Bytes(50, 7));
  const auto first = entries(folder.path(""));
  REQUIRE(first.size() == 1);
  cache.keep(part(2, 50), Bytes(50, 8));
  for (const auto& one : entries(folder.path(""))) {
    if (one != first[0]) std::filesystem::copy_file(one, first[0], std::filesystem::copy_options::overwrite_existing);
  }
  CHECK(found(cache, part(1, 50)).empty());  // as if both names had one hash
  CHECK(found(cache, part(2, 50)) == Bytes(50, 8));
  for (const auto& one : entries(folder.path(""))) std::filesystem::resize_file(one, 60);
  CHECK(found(cache, part(2, 50)).empty());
}

TEST_CASE("a folder that cannot be written to is an error number, once") {
  const TemporaryFolder folder;
  LocalCache cache(kMuch, folder.path("missing"));
  cache.keep(part(1, 9), Bytes(9, 1));
  CHECK(cache.write_error() == ENOENT);
  cache.keep(part(2, 9), Bytes(9, 2));
  CHECK(found(cache, part(2, 9)) == Bytes(9, 2));
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
        const FilePart wanted = part(1, expected.size(), which);
        const Bytes got = found(cache, wanted);
        if (!got.empty() && got != expected) ++wrong;
        if (got.empty()) cache.keep(wanted, expected);
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
  cache.keep(part(1, 9), Bytes(9, 1));
  const pid_t child = fork();
  if (child == 0) {
    ReadBuffer buffer;
    const bool none = !cache.find(part(1, 9), buffer) && !cache.holds(part(1, 9));
    cache.keep(part(2, 9), Bytes(9, 2));
    _exit(none ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
