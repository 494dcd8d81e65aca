// Which ranges share a request, and how it reads.
#include <doctest/doctest.h>

#include "core/io/http/range_request.h"
#include "core/io/remote/cache_file.h"
#include "http/http_samples.h"

using namespace headrace;
using namespace headrace::test;
using Groups = std::vector<std::vector<size_t>>;

TEST_CASE("neighbours share a request, in the order of the first") {
  CHECK(joined_ranges({}).empty());
  const std::vector<RangeKey> keys = {{2, 0, 10}, {1, 500, 10}, {1, 0, 10}, {1, 100'000, 10}, {1, 10, 100}};
  CHECK(joined_ranges(keys) == Groups{{0}, {2, 4, 1}, {3}});
}

TEST_CASE("overlaps, whole objects and the end of the numbers are not joined") {
  CHECK(joined_ranges(std::vector<RangeKey>{{1, 0, 10}, {1, 5, 10}}) == Groups{{0}, {1}});
  CHECK(joined_ranges(std::vector<RangeKey>{{1, 0, kAnyLength}, {1, 0, 10}}) == Groups{{0}, {1}});
  CHECK(joined_ranges(std::vector<RangeKey>{{1, kAnyLength - 5, 10}, {1, kAnyLength - 1, 1}}) == Groups{{0}, {1}});
}

TEST_CASE("a request has at most 8 MiB") {
  std::vector<RangeKey> keys;
  for (uint64_t i = 0; i < 20; ++i) keys.push_back({1, i << 20, 1 << 20});
  const Groups groups = joined_ranges(keys);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].size() == 8);
  CHECK(groups[2].size() == 4);
}

TEST_CASE("the text of a request, its lead included") {
  CHECK(a_request({{600, 10}, {700, 10}}, 512).text() ==
        "GET /a.bin HTTP/1.1\r\nHost: h\r\nRange: bytes=88-709\r\n\r\n");
}
