// Tables of a few ranges under large numbers.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/io/remote/chosen_ranges.h"

using namespace headrace;

TEST_CASE("rows of any number are read from the store, or demanded from it") {
  const auto store = std::make_shared<ByteStore>(1 << 20, 0);
  constexpr int64_t kFar = (int64_t{5} << 56) + (int64_t{3} << 32) + 7;
  const std::vector<int64_t> rows{kFar, 2};
  const std::vector<RangeKey> keys{{1, 512, 3}, {1, 2048, 2}};
  const ChosenRanges table(store, rows, keys);
  CHECK(table.size() == kFar + 1);
  CHECK(table.at(kFar).row == kFar);
  store->put(keys[0], std::vector<uint8_t>{1, 2, 3});
  ReadBuffer buffer;
  CHECK(table.read(kFar, buffer, kNeverCancelled)[2] == 3);
  std::thread fetcher([&] {
    std::vector<RangeKey> wanted;
    while (wanted.empty()) wanted = store->take_demands();
    CHECK(wanted.front() == keys[1]);
    store->put(wanted.front(), std::vector<uint8_t>{8, 9});
  });
  CHECK(table.read(2, buffer, kNeverCancelled)[1] == 9);
  fetcher.join();
  CHECK_THROWS_AS(table.read(3, buffer, kNeverCancelled), Error);
}

TEST_CASE("rows that are no numbers of samples are refused") {
  const auto store = std::make_shared<ByteStore>(1 << 20, 0);
  const std::vector<RangeKey> keys{{1, 0, 1}};
  for (const int64_t row : {int64_t{-1}, INT64_MAX}) {
    CHECK_THROWS_AS(ChosenRanges(store, std::vector<int64_t>{row}, keys), std::out_of_range);
  }
  CHECK_THROWS_AS(ChosenRanges(store, std::vector<int64_t>{1, 2}, keys), std::out_of_range);
}
