// Ranges of files: the bytes that were indexed or one error, from many threads, with few files open, across a fork.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "core/base/platform/file_time.h"
#include "core/io/source/file_ranges.h"
#include "core/io/source/reader.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kFileBytes = 40'000;

uint8_t byte_of(size_t file, size_t at) { return static_cast<uint8_t>(file * 37 + at * 31 + at / 251); }

/// `files` files, each with `each` ranges of different lengths; rows alternate between the files.
struct Shards {
  TemporaryFolder folder;
  std::string paths;
  std::vector<uint64_t> path_offsets;
  std::vector<FileStamp> stamps;
  std::vector<uint32_t> file_of;
  std::vector<uint64_t> offsets, lengths;

  Shards(size_t files, size_t each) {
    for (size_t file = 0; file < files; ++file) {
      Bytes bytes(kFileBytes);
      for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = byte_of(file, at);
      const std::string path = folder.file(name(file), bytes);
      path_offsets.push_back(paths.size());
      paths += path + '\0';
      struct stat info{};
      REQUIRE(stat(path.c_str(), &info) == 0);
      stamps.push_back({bytes.size(), modified_ns(info)});
    }
    for (size_t row = 0; row < files * each; ++row) {
      const size_t length = row * 7919 % (kFileBytes / 2);
      file_of.push_back(static_cast<uint32_t>(row % files));
      lengths.push_back(length);
      offsets.push_back(row * 104'729 % (kFileBytes - length + 1));
    }
  }
  static std::string name(size_t file) { return std::to_string(file) + ".tar"; }
  std::string path(size_t file) const { return folder.path(name(file)); }
  std::unique_ptr<FileRanges> table(DescriptorCache& cache) const {
    return std::make_unique<FileRanges>(paths, path_offsets, stamps, file_of, offsets, lengths, cache);
  }
  bool right(size_t row, std::span<const uint8_t> got) const {
    if (got.size() != lengths[row]) return false;
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != byte_of(file_of[row], offsets[row] + i)) return false;
    }
    return true;
  }
};

/// The message of the error, and its errno.
std::pair<std::string, int> failure(const FileRanges& table, int64_t row) {
  Reader reader;
  try {
    reader.read(table.at(row));
  } catch (const Error& error) {
    CHECK(error.stage() == Stage::kRead);
    return {error.what(), error.os_errno()};
  }
  return {"", 0};
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("ranges are read exactly, by one reader after another") {
  const Shards shards(3, 40);
  DescriptorCache cache(8);
  const auto table = shards.table(cache);
  REQUIRE(table->size() == 120);
  Reader reader;
  for (size_t row = 0; row < 120; ++row) CHECK(shards.right(row, reader.read(table->at(static_cast<int64_t>(row)))));
  CHECK(cache.open() == 3);
}

TEST_CASE("a table's files are closed with it, those of another one stay open") {
  const Shards shards(4, 2);
  DescriptorCache cache(16);
  Reader reader;
  const auto kept = shards.table(cache);
  reader.read(kept->at(0));
  {
    const auto table = shards.table(cache);
    for (int64_t row = 0; row < 4; ++row) reader.read(table->at(row));
    CHECK(cache.open() == 5);
  }
  CHECK(cache.open() == 1);
}

TEST_CASE("many threads read more files than may be open") {
  const Shards shards(24, 10);
  DescriptorCache cache(5);
  const auto table = shards.table(cache);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Reader reader;
      for (size_t i = 0; i < 240; ++i) {
        const size_t row = (i * 53 + t * 17) % 240;
        if (!shards.right(row, reader.read(table->at(static_cast<int64_t>(row))))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.open() == 5);
}

TEST_CASE("a file that is truncated while it is open is an error that names the offset") {
  const Shards shards(1, 3);
  DescriptorCache cache(2);
  const auto table = shards.table(cache);
  Reader reader;
  reader.read(table->at(2));
  std::filesystem::resize_file(shards.path(0), shards.offsets[2] + 5);
  const auto [text, code] = failure(*table, 2);
  CHECK(mentions(text, "truncated"));
  CHECK(mentions(text, "offset " + std::to_string(shards.offsets[2])));
  CHECK(code == 0);
}

TEST_CASE("a file that is written to in place is an error, though the bytes can be read") {
  const Shards shards(1, 3);
  DescriptorCache cache(2);
  const auto table = shards.table(cache);
  CHECK(failure(*table, 1).first == "");
  std::filesystem::last_write_time(shards.path(0),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(mentions(failure(*table, 1).first, "changed after it was indexed"));
}

TEST_CASE("a file that is replaced: the old bytes while it is open, an error when it is opened again") {
  const Shards shards(2, 3);
  DescriptorCache cache(1);
  const auto table = shards.table(cache);
  Reader reader;
  reader.read(table->at(2));
  shards.folder.file("new", Bytes(kFileBytes + 1, 7));
  std::filesystem::rename(shards.folder.path("new"), shards.path(0));
  CHECK(shards.right(2, reader.read(table->at(2))));
  reader.read(table->at(1));  // of the other file: the only descriptor
  CHECK(mentions(failure(*table, 2).first, "changed after it was indexed"));
  std::filesystem::remove(shards.path(0));
  reader.read(table->at(1));
  CHECK(failure(*table, 2).second == ENOENT);
}

TEST_CASE("a range outside its file is refused at once") {
  DescriptorCache cache(1);
  Shards shards(1, 1);
  shards.offsets[0] = kFileBytes;
  shards.lengths[0] = 1;
  CHECK_THROWS_AS(shards.table(cache), std::out_of_range);
  shards.offsets[0] = UINT64_MAX;
  CHECK_THROWS_AS(shards.table(cache), std::out_of_range);
  shards.offsets[0] = 1;
  shards.lengths[0] = UINT64_MAX;
  CHECK_THROWS_AS(shards.table(cache), std::out_of_range);
  shards.lengths[0] = 1;
  shards.file_of[0] = 1;
  CHECK_THROWS_AS(shards.table(cache), std::out_of_range);
}

TEST_CASE("a range that is larger than any image is an error, and takes no memory") {
  Shards shards(1, 1);
  std::filesystem::resize_file(shards.path(0), uint64_t{1} << 40);
  shards.stamps[0].size = uint64_t{1} << 40;
  shards.lengths[0] = uint64_t{1} << 39;
  DescriptorCache cache(1);
  CHECK(failure(*shards.table(cache), 0).second == EFBIG);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not follow a fork of a program with threads
TEST_CASE("a child made while threads read can read the same table") {
  const Shards shards(12, 4);
  const FileRanges table(shards.paths, shards.path_offsets, shards.stamps, shards.file_of, shards.offsets,
                         shards.lengths);  // the cache of the process
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Reader reader;
      for (int64_t row = 0; !stop; row = (row + 5) % 48) reader.read(table.at(row));
    });
  }
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(20);  // a deadlock ends the child
      Reader reader;
      bool right = true;
      for (size_t row = 0; row < 48; ++row) {
        right = right && shards.right(row, reader.read(table.at(static_cast<int64_t>(row))));
      }
      _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}
#endif
