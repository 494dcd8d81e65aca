// Batches of rows of several arrays, gathered by threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "core/io/source/columns.h"
#include "core/pipeline/columns/gather_backend.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr size_t kWide = 1000, kNarrow = 3;

/// Two columns of bytes, of 1000 and of 3 bytes each row.
struct Arrays {
  explicit Arrays(int64_t rows, uint8_t first = 0) : wide(rows * kWide), narrow(rows * kNarrow) {
    std::iota(wide.begin(), wide.end(), first);
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<uint8_t>(wide[i] + i / kWide);
    std::iota(narrow.begin(), narrow.end(), static_cast<uint8_t>(first + 100));
    table = std::make_shared<Columns>(std::vector<Column>{Column::of(wide.data(), kWide, {{kWide, 1}}, 1),
                                                          Column::of(narrow.data(), kNarrow, {{3, 1}}, 1)},
                                      rows);
  }
  Bytes wide, narrow;
  std::shared_ptr<const BlobTable> table;
};

PipelineOptions gathering(int threads, std::vector<size_t> row_bytes = {kWide, kNarrow}) {
  PipelineOptions options;
  options.backend = std::make_shared<GatherBackend>(std::move(row_bytes), 3);
  options.threads = threads;
  return options;
}

std::shared_ptr<Batch> begin(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, const Rows& rows,
                             uint8_t* memory = nullptr) {
  return pipeline.submit(table, rows, {}, {memory, 0});
}

void check(const Batch& batch, const std::vector<std::pair<const Arrays*, size_t>>& rows) {
  const uint8_t* narrow = batch.memory + GatherLayout({kWide, kNarrow}).column_bytes(0, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [arrays, row] = rows[i];
    CHECK(std::equal(batch.memory + i * kWide, batch.memory + (i + 1) * kWide, arrays->wide.data() + row * kWide));
    CHECK(std::equal(narrow + i * kNarrow, narrow + (i + 1) * kNarrow, arrays->narrow.data() + row * kNarrow));
  }
}

}  // namespace

TEST_CASE("columns begin at cache lines") {
  const GatherLayout layout({1, 64, 0, 100});
  CHECK(layout.column_bytes(0, 65) == 128);
  CHECK(layout.column_bytes(1, 3) == 192);
  CHECK(layout.column_bytes(2, 9) == 0);
  CHECK(layout.batch_bytes(2) == 64 + 128 + 0 + 256);
}

TEST_CASE("rows are gathered in the order in which they are named") {
  const Arrays first(40), second(7, 50);
  const auto both = BlobTable::of_parts({BlobTable::of_rows(first.table, {39, 5, 6}), second.table});
  for (const int threads : {0, 1, 4}) {
    CAPTURE(threads);
    Pipeline pipeline(gathering(threads));
    const auto batch = begin(pipeline, first.table, {3, 39, 0, 3});
    const auto joined = begin(pipeline, both, {9, 0, 3, 2, 1});
    REQUIRE(complete(pipeline, *batch));
    REQUIRE(complete(pipeline, *joined));
    CHECK(batch->take_failures().empty());
    check(*batch, {{&first, 3}, {&first, 39}, {&first, 0}, {&first, 3}});
    check(*joined, {{&second, 6}, {&first, 39}, {&second, 0}, {&first, 6}, {&first, 5}});
    CHECK(pipeline.stats()[0].items == 9);
  }
}

TEST_CASE("rows are gathered into the caller's memory") {
  const Arrays arrays(9);
  Pipeline pipeline(gathering(2));
  Bytes memory(GatherLayout({kWide, kNarrow}).batch_bytes(2));
  const auto batch = begin(pipeline, arrays.table, {8, 1}, memory.data());
  REQUIRE(complete(pipeline, *batch));
  CHECK(batch->slot.empty());
  check(*batch, {{&arrays, 8}, {&arrays, 1}});
}

TEST_CASE("slots are reused, and cancelled batches give theirs back") {
  const Arrays arrays(9);
  Pipeline pipeline(gathering(3));
  for (int round = 0; round < 200; ++round) {
    auto kept = begin(pipeline, arrays.table, Rows(64, round % 9));
    auto dropped = begin(pipeline, arrays.table, Rows(64, 1));
    pipeline.cancel(*dropped);
    dropped.reset();
    REQUIRE(complete(pipeline, *kept));
    check(*kept, std::vector<std::pair<const Arrays*, size_t>>(64, {&arrays, static_cast<size_t>(round % 9)}));
  }
  CHECK(pipeline.slots() <= 6);  // three that are kept, and those of cancelled batches that a thread still holds
}

TEST_CASE("a row that is not there is refused, and another layout fails") {
  const Arrays arrays(9);
  Pipeline pipeline(gathering(1, {kWide, kNarrow + 1}));
  CHECK_THROWS_AS(begin(pipeline, arrays.table, {9}), std::out_of_range);
  const auto batch = begin(pipeline, arrays.table, {1});
  REQUIRE(complete(pipeline, *batch));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].reason == "a column of the table has rows of another size");
}

TEST_CASE("images and columns do not mix") {
  const Arrays arrays(9);
  Pipeline images(crops(1)), columns(gathering(1));
  const auto first = images.submit(arrays.table, {0}, {0.0, 0.0}, {});
  const auto second = begin(columns, Images::all().table, {0});
  REQUIRE(complete(images, *first));
  REQUIRE(complete(columns, *second));
  CHECK(first->take_failures().size() == 1);
  CHECK(second->take_failures().size() == 1);
}

TEST_CASE("a repair writes its rows where the batch has them") {
  const Arrays first(9), second(9, 50);
  Pipeline pipeline(gathering(2));
  const auto batch = begin(pipeline, first.table, {0, 1, 2, 3, 4});
  REQUIRE(complete(pipeline, *batch));
  const auto repair = pipeline.repair(*batch, {4, 1}, second.table, {7, 8}, {});
  REQUIRE(complete(pipeline, *repair));
  check(*batch, {{&first, 0}, {&second, 8}, {&first, 2}, {&first, 3}, {&second, 7}});
}
