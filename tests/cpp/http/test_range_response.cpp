// Answers in pieces of any length: each range gets its own bytes, or the answer is refused with the right verdict.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "archive/tar_text.h"
#include "core/io/http/range_response.h"
#include "core/io/tar/tar_check.h"
#include "http/http_samples.h"

using namespace headrace;
using namespace headrace::test;
using State = RangeResponse::State;

namespace {

/// Feeds an answer in pieces of at most `piece` bytes until it has ended.
State feed(RangeResponse& response, std::string_view bytes, size_t piece) {
  State state = State::kMore;
  while (!bytes.empty() && state == State::kMore) {
    const std::span<uint8_t> room = response.room();
    REQUIRE_FALSE(room.empty());
    const size_t count = std::min({piece, room.size(), bytes.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    bytes.remove_prefix(count);
    state = response.got(count);
  }
  return state;
}

State answered(const std::string& bytes, RangeRequest request = a_request({{10, 20}})) {
  ByteStore store(1 << 20, 0);
  for (const RangeKey& key : request.parts) store.want(key);
  RangeResponse response(request, store);
  return feed(response, bytes, 1000);
}

std::string held(ByteStore& store, const RangeKey& key) {
  const SharedBytes bytes = store.take_if_here(key);
  return bytes == nullptr ? "nothing" : std::string(bytes->begin(), bytes->end());
}

std::string tar_header(size_t length) {
  std::string block(512, '\0');
  std::snprintf(block.data() + 124, 12, "%011zo", length);
  std::fill_n(block.begin() + 148, 8, ' ');
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  std::snprintf(block.data() + 148, 8, "%06o", sum);
  return block;
}

}  // namespace

TEST_CASE("ranges of one request, with and without gaps, in pieces of any length") {
  for (const size_t piece : {1u, 2u, 7u, 64u, 2048u, 100'000u}) {
    for (const uint64_t large : {30u, 5'000u, 70'000u}) {
      CAPTURE(piece);
      CAPTURE(large);
      ByteStore store(1 << 20, 0);
      RangeRequest request = a_request({{100, 10}, {110, large}, {60'000 + large, 3}});
      const std::vector<RangeKey> keys = request.parts;
      for (const RangeKey& key : keys) REQUIRE(store.want(key));
      const uint64_t begin = request.begin(), end = request.end();
      RangeResponse response(request, store);
      CHECK(response.untouched());
      CHECK(feed(response, a_head(begin, end) + bytes_of(begin, end), piece) == State::kDone);
      CHECK(response.connection_reusable());
      CHECK(response.bytes() == end - begin);
      CHECK(request.parts.empty());
      for (const RangeKey& key : keys) CHECK(held(store, key) == bytes_of(key.offset, key.offset + key.length));
    }
  }
}

TEST_CASE("a range is in the store as soon as it is whole, and what is missing stays in the request") {
  ByteStore store(1 << 20, 0);
  RangeRequest request = a_request({{0, 10}, {10, 10}});
  const std::vector<RangeKey> keys = request.parts;
  for (const RangeKey& key : keys) store.want(key);
  RangeResponse response(request, store);
  CHECK(feed(response, a_head(0, 20) + bytes_of(0, 15), 1000) == State::kMore);
  CHECK(response.missing() == 5);
  CHECK(held(store, keys[0]) == bytes_of(0, 10));
  CHECK(request.parts == std::vector<RangeKey>{keys[1]});
}

TEST_CASE("a header in front of each range must be of its length") {
  const std::string body = tar_header(20) + bytes_of(512, 532);
  for (const size_t piece : {1u, 100u, 10'000u}) {
    ByteStore store(1 << 20, 0);
    RangeRequest request = a_request({{512, 20}}, 512);
    HttpObject tar = an_object(512);
    tar.tar = true;
    request.object = std::make_shared<const HttpObject>(tar);
    const RangeKey key = request.parts[0];
    store.want(key);
    RangeResponse response(request, store);
    CHECK(feed(response, a_head(0, 532) + body, piece) == State::kDone);
    CHECK(held(store, key) == bytes_of(512, 532));
  }
  for (const std::string& lead : {tar_header(21), std::string(512, '\0'), std::string(512, 'x')}) {
    HttpObject tar = an_object(512);
    tar.tar = true;
    RangeRequest request = a_request({{512, 20}}, 512);
    request.object = std::make_shared<const HttpObject>(tar);
    CHECK(answered(a_head(0, 532) + lead + bytes_of(512, 532), request) == State::kOdd);
  }
}

TEST_CASE("a header in front of a range must be of its mark") {
  std::string named = tar_header(20);
  named.replace(0, 5, "a.jpg");
  named[156] = '0';
  sum(named);
  HttpObject tar = an_object(512);
  tar.tar = true;
  RangeRequest request = a_request({{512, 20}}, 512);
  request.object = std::make_shared<const HttpObject>(tar);
  for (const auto& [mark, state] : {std::pair{uint64_t{0}, State::kDone},
                                    {name_mark("a", "jpg"), State::kDone},
                                    {name_mark("b", "jpg"), State::kOdd}}) {
    request.parts[0].mark = mark;
    CHECK(answered(a_head(0, 532) + named + bytes_of(512, 532), request) == state);
  }
}

TEST_CASE("a tar member without a header in front of it is refused at once") {  // found by fuzz_http
  RangeRequest request = a_request({{10, 20}});
  HttpObject tar = an_object(0);
  tar.tar = true;
  request.object = std::make_shared<const HttpObject>(tar);
  CHECK(answered(a_head(10, 30) + bytes_of(10, 30), request) == State::kOdd);
}

TEST_CASE("answers that are none of the range") {
  const std::string body = bytes_of(10, 30);
  CHECK(answered(a_head(10, 30) + body) == State::kDone);
  CHECK(answered(a_head(10, 30, "Last-Modified: x\r\n") + body) == State::kOdd);  // it had another one
  CHECK(answered(a_head(10, 30, "") + body) == State::kDone);                     // it says neither
  CHECK(answered(a_head(10, 30, "ETag: \"u\"\r\n") + body) == State::kOdd);
  CHECK(answered(a_head(11, 31) + body) == State::kOdd);
  CHECK(answered(a_head(10, 30, "Transfer-Encoding: chunked\r\n")) == State::kOdd);
  CHECK(answered("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + body) == State::kOdd);
  CHECK(answered("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n") == State::kOdd);
  CHECK(answered("nonsense\r\n\r\n") == State::kOdd);
  CHECK(answered(std::string(100'000, 'x')) == State::kOdd);  // a head without an end
  const std::string range = "\r\nContent-Range: bytes 10-29/1000000\r\n\r\n";
  CHECK(answered("HTTP/1.1 206 OK\r\nContent-Length: 19" + range) == State::kShort);
  CHECK(answered("HTTP/1.1 206 OK\r\nContent-Length: 21" + range) == State::kOdd);
  CHECK(answered("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") == State::kRefused);
}

TEST_CASE("after the answer: connections that end, and bytes too many") {
  for (const auto& [head, tail] : {std::pair<std::string, std::string>{"Connection: close\r\n", ""}, {"", "x"}}) {
    ByteStore store(1 << 20, 0);
    RangeRequest request = a_request({{10, 20}});
    store.want(request.parts[0]);
    RangeResponse response(request, store);
    CHECK(feed(response, a_head(10, 30, head) + bytes_of(10, 30) + tail, 1000) == State::kDone);
    CHECK_FALSE(response.connection_reusable());
  }
}
