// Later samples are prepared while reads wait, and only then; what is prepared comes from the disk before it is read.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/base/platform/file_time.h"
#include "core/base/platform/platform.h"
#include "core/base/platform/this_thread.h"
#include "core/io/source/byte_ranges.h"
#include "core/io/source/descriptor_cache.h"
#include "core/io/source/file_ranges.h"
#include "core/io/source/read_ahead.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// Images whose reads make the thread wait, as a disk does, or do not. Notes which rows were read and prepared.
class Store final : public ByteRanges {
 public:
  explicit Store(std::chrono::microseconds delay) : delay_(delay) {}
  int64_t size() const override { return 100'000; }
  std::span<const uint8_t> read(int64_t row, ReadBuffer&, const std::atomic<bool>&) const override {
    {
      const std::lock_guard lock(mutex_);
      read_.push_back(row);
    }
    if (delay_ > 0us) std::this_thread::sleep_for(delay_);
    return Images::all().jpegs[static_cast<size_t>(row) % Images::kCount];
  }
  void prepare(int64_t row) const noexcept override {
    const std::lock_guard lock(mutex_);
    prepared_.push_back(row);
    if (std::find(read_.begin(), read_.end(), row) != read_.end()) ++late_;
  }
  Rows prepared() const {
    const std::lock_guard lock(mutex_);
    return prepared_;
  }
  int late() const { return late_; }

 private:
  const std::chrono::microseconds delay_;
  mutable std::mutex mutex_;
  mutable Rows read_, prepared_;
  mutable int late_ = 0;
};

Rows consecutive(int64_t first, int count) {
  Rows rows(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = first + i;
  return rows;
}

/// The rows that were prepared while batches of 8 were made, as many ahead as a loader submits.
std::shared_ptr<Store> after_an_epoch(std::chrono::microseconds delay, int threads) {
  auto store = std::make_shared<Store>(delay);
  Pipeline pipeline(crops(threads));
  std::vector<std::shared_ptr<Batch>> batches;
  for (int i = 0; i < 50; ++i) batches.push_back(submit(pipeline, store, consecutive(8 * i, 8)));
  for (const auto& batch : batches) REQUIRE(complete(pipeline, *batch));
  return store;
}

#if HEADRACE_LINUX
/// The share of a file's pages that are in memory.
double resident(const std::string& path, size_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  REQUIRE(map != MAP_FAILED);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  REQUIRE(::mincore(map, bytes, pages.data()) == 0);
  ::munmap(map, bytes);
  const auto here = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 == 1; });
  return static_cast<double>(here) / static_cast<double>(pages.size());
}

/// Takes a file out of memory; false: this file system keeps it there.
bool evict(const std::string& path, size_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  return resident(path, bytes) == 0;
}

/// A folder with a file that is not in memory, in `path`; `path` is empty where the file system keeps it there.
struct EvictedFile {
  EvictedFile() {
    if (!evict(path, bytes.size())) {
      MESSAGE("this file system keeps its files in memory: nothing to see");
      path.clear();
    }
  }

  TemporaryFolder folder;
  Bytes bytes = Bytes(size_t{1} << 20, 7);
  std::string path = folder.file("large", bytes);
};

bool becomes_resident(const std::string& path, size_t bytes) {
  for (const auto end = std::chrono::steady_clock::now() + kLong;
       resident(path, bytes) < 1 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(10ms);
  }
  return resident(path, bytes) == 1;
}
#endif

}  // namespace

#if HEADRACE_LINUX
TEST_CASE("where reads wait, the samples that come later are prepared, once each and before they are read") {
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    const auto store = after_an_epoch(1ms, threads);
    Rows prepared = store->prepared();
    CHECK(prepared.size() > 200);
    CHECK(store->late() == 0);
    for (const int64_t row : prepared) CHECK_FALSE(ReadAhead::watched(row));
    std::sort(prepared.begin(), prepared.end());
    CHECK(std::adjacent_find(prepared.begin(), prepared.end()) == prepared.end());
    CHECK(prepared.front() >= ReadAhead::kDistance);
  }
}
#endif

TEST_CASE("where reads do not wait, nothing is prepared") {
  const auto store = after_an_epoch(0us, 1);
  CHECK(store->prepared().empty());
}

TEST_CASE("reading ahead begins with a wait and ends after four reads without one") {
  ReadAhead ahead;
  CHECK_FALSE(ahead.active());
  ahead.saw(false);
  CHECK_FALSE(ahead.active());
  ahead.saw(true);
  for (int i = 0; i < 4; ++i) {
    CHECK(ahead.active());
    ahead.saw(false);
  }
  CHECK_FALSE(ahead.active());
  const auto watched = [](int64_t row) { return ReadAhead::watched(row); };
  const Rows rows = consecutive(0, 16'000);
  const auto share = std::count_if(rows.begin(), rows.end(), watched);
  CHECK((share > 900 && share < 1100));
}

#if HEADRACE_LINUX
TEST_CASE("a thread that sleeps has waited, and one that computes has not") {
  const int64_t before = waits_of_this_thread();
  volatile unsigned sum = 0;
  for (unsigned i = 0; i < 1'000'000; ++i) sum = sum + i;
  CHECK(waits_of_this_thread() == before);
  std::this_thread::sleep_for(1ms);
  CHECK(waits_of_this_thread() > before);
}
#endif

#if HEADRACE_LINUX
TEST_CASE("prepared bytes of files and ranges come from the disk") {
  const EvictedFile large;
  const std::string& path = large.path;
  const Bytes& bytes = large.bytes;
  if (path.empty()) return;
  Blob file;
  file.path = path.c_str();
  prepare(file);
  CHECK(becomes_resident(path, bytes.size()));

  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  const std::vector<uint32_t> files{0};
  const std::vector<uint64_t> offsets{0}, lengths{bytes.size()};
  const FileStamp stamp{bytes.size(), modified_ns(info)};
  DescriptorCache cache(4);
  const FileRanges ranges(path + '\0', {0}, {stamp}, files, offsets, lengths, cache);
  CHECK(evict(path, bytes.size()));
  prepare(ranges.at(0));
  CHECK(becomes_resident(path, bytes.size()));
}

TEST_CASE("prepared bytes of mapped files come from the disk") {
  const EvictedFile large;
  const std::string& path = large.path;
  const Bytes& bytes = large.bytes;
  if (path.empty()) return;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = ::mmap(nullptr, bytes.size(), PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  REQUIRE(map != MAP_FAILED);
  Blob mapped;
  mapped.data = static_cast<const uint8_t*>(map) + 100;
  mapped.size = bytes.size() - 100;
  prepare(mapped);
  CHECK(becomes_resident(path, bytes.size()));
  ::munmap(map, bytes.size());
}
#endif

TEST_CASE("pipes are not opened, and what cannot be opened is left to the read") {
  const GatedFiles files;
  prepare(files.table->at(Images::kCount));  // opening the pipe would wait for its writer
  const TemporaryFolder folder;
  const std::string missing = folder.path("missing"), directory = folder.path("");
  for (const std::string& path : {missing, directory}) {
    Blob blob;
    blob.path = path.c_str();
    prepare(blob);
  }
  const std::vector<uint32_t> number{0};
  const std::vector<uint64_t> zero{0};
  DescriptorCache cache(4);
  const FileRanges ranges(missing + '\0', {0}, {FileStamp{}}, number, zero, zero, cache);
  prepare(ranges.at(0));
  CHECK(cache.open() == 0);
}
