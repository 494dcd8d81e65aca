// Ranges of objects in other machines: from memory, from disk, or fetched, and counted as such.
#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "core/io/remote/cache_file.h"
#include "core/io/remote/remote_ranges.h"
#include "core/io/source/reader.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

/// Six rows in two objects, of which the first is cached on disk.
struct Rows {
  TemporaryFolder folder;
  std::shared_ptr<ByteStore> store;
  std::vector<uint32_t> object_of{0, 0, 0, 1, 1, 1};
  std::vector<uint64_t> offsets{0, 100, 200, 0, 100, 200}, lengths{10, 20, 30, 40, 50, 0};

  explicit Rows(size_t keep = 0) : store(std::make_shared<ByteStore>(1 << 20, keep)) {}
  RemoteRanges table() const { return {store, {11, 12}, {folder.path("first"), ""}, object_of, offsets, lengths}; }
  RangeKey key(size_t row) const { return {object_of[row] + 11u, offsets[row], lengths[row]}; }
  Bytes bytes(size_t row) const { return Bytes(lengths[row], static_cast<uint8_t>(row + 1)); }
  std::string entry(size_t row) const {
    return folder.path("first." + std::to_string(offsets[row]) + "-" + std::to_string(lengths[row]));
  }
};

std::vector<int64_t> all_rows() {
  std::vector<int64_t> rows(6);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Bytes read(const RemoteRanges& table, size_t row, ReadBuffer& buffer) {
  const auto got = table.read(static_cast<int64_t>(row), buffer, kNeverCancelled);
  return {got.begin(), got.end()};
}

}  // namespace

TEST_CASE("rows on disk are not wanted; all others once") {
  const Rows rows;
  const RemoteRanges table = rows.table();
  REQUIRE(write_cache_file(rows.entry(1), rows.bytes(1)) == 0);
  CHECK(table.want(all_rows()) == std::vector<int64_t>{0, 2, 3, 4, 5});
  CHECK(table.want(all_rows()).empty());
  CHECK(table.has(1));
  CHECK_FALSE(table.has(2));
  for (const size_t row : {0, 2, 3, 4, 5}) rows.store->put(rows.key(row), rows.bytes(row));
  ReadBuffer buffer;
  for (size_t row = 0; row < 6; ++row) CHECK(read(table, row, buffer) == rows.bytes(row));
  CHECK(rows.store->counts().from_disk == 1);
  CHECK(rows.store->counts().fetched == 5);
  CHECK_THROWS_AS(table.want(std::vector<int64_t>{6}), std::out_of_range);
}

TEST_CASE("an entry on disk that is damaged is fetched again") {
  const Rows rows;
  const RemoteRanges table = rows.table();
  REQUIRE(write_cache_file(rows.entry(2), Bytes(29, 3)) == 0);  // one byte too few
  CHECK(table.want(std::vector<int64_t>{2}).empty());
  std::thread fetcher([&] {
    std::vector<RangeKey> demands;
    while ((demands = rows.store->take_demands()).empty()) std::this_thread::yield();
    rows.store->put(demands.front(), rows.bytes(2));
  });
  Reader reader;
  const auto got = reader.read(table.at(2));
  CHECK(Bytes(got.begin(), got.end()) == rows.bytes(2));
  fetcher.join();
}

TEST_CASE("what was read from disk stays in memory, where memory is kept") {
  const Rows rows(1000);
  const RemoteRanges table = rows.table();
  REQUIRE(write_cache_file(rows.entry(0), rows.bytes(0)) == 0);
  ReadBuffer buffer;
  for (int i = 0; i < 3; ++i) CHECK(read(table, 0, buffer) == rows.bytes(0));
  CHECK(rows.store->counts().from_disk == 1);
  CHECK(rows.store->counts().from_memory == 2);
}

TEST_CASE("arrays that do not fit are refused") {
  Rows rows;
  rows.object_of.back() = 2;
  CHECK_THROWS_AS(rows.table(), std::out_of_range);
  rows.object_of.pop_back();
  CHECK_THROWS_AS(rows.table(), std::out_of_range);
}
