// Tables of local files with a cache: the bytes that the files have now, or the same error as without a cache.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/io/cache/cached_tables.h"
#include "core/io/source/reader.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kMuch = 1 << 20;

/// Longer than a tick of the clock by which the kernel says when files changed.
constexpr auto kSettled = std::chrono::milliseconds(40);

/// Sets a file's time of modification, in seconds since 1970.
void set_time(const std::string& path, time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

struct Files {
  TemporaryFolder folder;
  std::string paths;
  std::vector<uint64_t> offsets;

  explicit Files(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string path = folder.file(std::to_string(i), bytes(i));
      set_time(path, 1000 + i);
      offsets.push_back(paths.size());
      paths += path + '\0';
    }
    std::this_thread::sleep_for(kSettled);
  }
  static Bytes bytes(int i) { return Bytes(static_cast<size_t>(100 + i), static_cast<uint8_t>(i + 1)); }
  std::string path(int i) const { return folder.path(std::to_string(i)); }
};

Bytes read(const BlobTable& table, int64_t row) {
  Reader reader;
  const auto got = reader.read(table.at(row));
  return {got.begin(), got.end()};
}

}  // namespace

TEST_CASE("files are read once, and again when they change") {
  const Files files(5);
  const auto cache = std::make_shared<LocalCache>(kMuch, "");
  const CachedFiles table(cache, files.paths, files.offsets);
  REQUIRE(table.size() == 5);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) CHECK(read(table, i) == Files::bytes(i));
  }
  CHECK(cache->counts().fetched == 5);
  CHECK(cache->counts().from_memory == 10);
  const CachedFiles same(cache, files.paths, files.offsets);
  CHECK(read(same, 3) == Files::bytes(3));
  CHECK(cache->counts().from_memory == 11);

  files.folder.file("1", Bytes(101, 99));  // of the same size
  set_time(files.path(1), 2000);
  CHECK(read(table, 1) == Bytes(101, 99));
  files.folder.file("2", Bytes(55, 98));
  set_time(files.path(2), 1002);  // of the same time
  std::this_thread::sleep_for(kSettled);
  CHECK(read(table, 2) == Bytes(55, 98));
  CHECK(read(table, 2) == Bytes(55, 98));
  CHECK(cache->counts().fetched == 7);
  files.folder.file("3", Bytes(103, 97));  // of the same size and time
  set_time(files.path(3), 1003);
  CHECK(read(table, 3) == Bytes(103, 97));
  files.folder.file("new", Bytes(103, 96));  // another file
  set_time(files.path(3), 1003);
  std::filesystem::rename(files.folder.path("new"), files.path(3));
  CHECK(read(table, 3) == Bytes(103, 96));
  std::filesystem::remove(files.path(4));
  CHECK_THROWS_AS(read(table, 4), Error);
}

TEST_CASE("a relative path is the file that it names now") {
  const Files first(2), second(2);
  second.folder.file("0", Bytes(100, 77));
  set_time(second.path(0), 1000);
  std::this_thread::sleep_for(kSettled);
  const auto cache = std::make_shared<LocalCache>(kMuch, "");
  const CachedFiles table(cache, std::string("0\0", 2), {0});
  const auto before = std::filesystem::current_path();
  for (int round = 0; round < 2; ++round) {
    std::filesystem::current_path(first.folder.path(""));
    CHECK(read(table, 0) == Files::bytes(0));
    std::filesystem::current_path(second.folder.path(""));
    CHECK(read(table, 0) == Bytes(100, 77));
  }
  std::filesystem::current_path(before);
  CHECK(cache->counts().fetched == 2);
}

TEST_CASE("what has no size, or too large a one, is as without a cache") {
  const TemporaryFolder folder;
  const std::string large = folder.file("large", Bytes(10, 1));
  std::filesystem::resize_file(large, Reader::kMostOther + 1);
  set_time(large, 1000);
  std::string paths;
  std::vector<uint64_t> offsets;
  for (const std::string& path :
       {std::string("/dev/null"), large, folder.path("missing"), std::string("/proc/version")}) {
    offsets.push_back(paths.size());
    paths += path + '\0';
  }
  const auto cache = std::make_shared<LocalCache>(kMuch, "");
  const CachedFiles table(cache, paths, offsets);
  CHECK(table.at(1).path == std::string_view(large));  // Pillow opens it
  CHECK_THROWS_AS(read(table, 0), NeedsPillow);
  CHECK_THROWS_AS(read(table, 1), NeedsPillow);
  CHECK_THROWS_AS(read(table, 2), Error);
  CHECK_FALSE(read(table, 3).empty());  // of size 0, as fstat says
  CHECK(cache->counts().bytes == 0);
  for (int64_t row = 0; row < 4; ++row) table.prepare(row);
}

TEST_CASE("ranges are read once; a file that changes is an error, also where its bytes are kept") {
  const Files files(2);
  const std::vector<uint32_t> file_of{0, 0, 1, 1};
  const std::vector<uint64_t> offsets{0, 10, 0, 90}, lengths{10, 90, 50, 11};
  std::vector<FileStamp> stamps;
  for (int i = 0; i < 2; ++i) stamps.push_back({Files::bytes(i).size(), (1000 + i) * int64_t{1'000'000'000}});
  const auto ranges = std::make_shared<FileRanges>(files.paths, files.offsets, stamps, file_of, offsets, lengths);
  const auto cache = std::make_shared<LocalCache>(kMuch, "");
  const CachedRanges table(cache, ranges);
  for (int round = 0; round < 2; ++round) {
    for (int64_t row = 0; row < 4; ++row) {
      const auto at = static_cast<size_t>(row);
      CHECK(read(table, row) == Bytes(lengths[at], static_cast<uint8_t>(file_of[at] + 1)));
    }
  }
  CHECK(cache->counts().fetched == 4);
  CHECK(cache->counts().from_memory == 4);
  for (int64_t row = 0; row < 4; ++row) table.prepare(row);
  set_time(files.path(1), 2000);
  CHECK(read(table, 0) == Bytes(10, 1));
  CHECK_THROWS_WITH_AS(read(table, 2), doctest::Contains("was changed after it was indexed"), Error);
}
