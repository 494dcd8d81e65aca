// An object of known bytes, requests for its ranges, and the answers of a server to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/http/range_request.h"

namespace headrace::test {

/// Byte `at` of the object.
inline uint8_t byte_at(uint64_t at) { return static_cast<uint8_t>(at * 37 + at / 251); }

inline std::string bytes_of(uint64_t begin, uint64_t end) {
  std::string made;
  for (uint64_t at = begin; at < end; ++at) made += static_cast<char>(byte_at(at));
  return made;
}

inline HttpObject an_object(uint32_t lead = 0) {
  HttpObject made;
  made.head = "GET /a.bin HTTP/1.1\r\nHost: h\r\n";
  made.size = 1'000'000;
  made.tag = "\"t\"";
  made.lead = lead;
  return made;
}

/// A request for ranges of object number 1, as pairs of offset and length.
inline RangeRequest a_request(const std::vector<std::pair<uint64_t, uint64_t>>& ranges, uint32_t lead = 0) {
  RangeRequest made;
  made.object = std::make_shared<const HttpObject>(an_object(lead));
  for (const auto& [offset, length] : ranges) made.parts.push_back({1, offset, length});
  return made;
}

/// The head of the answer that the request asks for. `more`: other fields.
inline std::string a_head(uint64_t begin, uint64_t end, const std::string& more = "ETag: \"t\"\r\n") {
  return "HTTP/1.1 206 Partial Content\r\nContent-Length: " + std::to_string(end - begin) +
         "\r\nContent-Range: bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/1000000\r\n" + more +
         "\r\n";
}

}  // namespace headrace::test
