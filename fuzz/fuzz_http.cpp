// libFuzzer harness: any bytes as a server's answer to a request for some ranges, in pieces of any length. A range that
// is accepted has the bytes that stand at its place in the body, and the head said what was asked for.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/http/range_response.h"

namespace {

using namespace headrace;

constexpr uint64_t kSize = 100'000;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_http: %s\n", what);
  __builtin_trap();
}

/// The first bytes choose the ranges and the length of the pieces: two or three ranges, with and without leads.
struct Case {
  explicit Case(std::string_view choice) {
    const auto at = [&](size_t i) { return i < choice.size() ? static_cast<uint8_t>(choice[i]) : uint8_t{0}; };
    HttpObject object;
    object.size = kSize;
    object.tag = (at(0) & 1) != 0 ? "\"t\"" : "";
    object.lead = (at(0) & 2) != 0 ? 512 : 0;
    object.tar = (at(0) & 4) != 0;
    request.object = std::make_shared<const HttpObject>(object);
    uint64_t offset = object.lead + at(1);
    for (int i = 0; i <= (at(0) >> 3) % 3; ++i) {
      const uint64_t length = 1 + 8 * at(2);
      request.parts.push_back({1, offset, length});
      offset += length + object.lead + at(3);
    }
    piece = 1 + 16 * at(4);
  }

  RangeRequest request;
  size_t piece = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kChoice = 5;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  Case one(all.substr(0, std::min(kChoice, size)));
  const std::string_view answer = all.substr(std::min(kChoice, size));
  const std::vector<RangeKey> keys = one.request.parts;
  const uint64_t begin = one.request.begin(), end = one.request.end();
  ByteStore store(1 << 20, 0);
  for (const RangeKey& key : keys) store.want(key);

  RangeResponse reading(one.request, store);
  RangeResponse::State state = RangeResponse::State::kMore;
  for (std::string_view left = answer; !left.empty() && state == RangeResponse::State::kMore;) {
    const std::span<uint8_t> room = reading.room();
    require(!room.empty(), "there is no room for an answer that goes on");
    const size_t count = std::min({room.size(), left.size(), one.piece});
    std::copy_n(left.begin(), count, room.begin());
    left.remove_prefix(count);
    state = reading.got(count);
  }

  require((state == RangeResponse::State::kDone) == one.request.parts.empty(), "done with ranges missing");
  const size_t head = answer.find("\r\n\r\n");
  for (const RangeKey& key : keys) {
    const SharedBytes bytes = store.take_if_here(key);
    if (bytes == nullptr) continue;
    require(head != std::string_view::npos, "a range arrived without a head");
    const std::string range = "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/100000";
    require(answer.substr(0, head).find(range) != std::string_view::npos, "the head names another range");
    const std::string_view body = answer.substr(head + 4), part = body.substr(key.offset - begin, key.length);
    require(std::equal(part.begin(), part.end(), bytes->begin(), bytes->end(),
                       [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }),
            "a range has other bytes than the body");
  }
  return 0;
}
