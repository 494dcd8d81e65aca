// Ranges of an object that one request asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/remote/byte_store.h"

namespace headrace {

/// An object on a server whose responses are as expected.
struct HttpObject {
  uint32_t host = 0;       // its server's number
  std::string head;        // the request before its Range field: GET, Host and the other fields, each with its line end
  uint64_t size = 0;       // bytes of the object
  std::string tag;         // ETag or time of modification that responses must have; "": any
  uint32_t lead = 0;       // bytes before each range that are also read
  bool tar = false;        // `lead` bytes are the header of a tar member: with the range's length, and its mark
  int64_t expires_ns = 0;  // in now_ns() time: no request for this object is made later. 0: never
};

/// One request. Its parts are in the order of their offsets and do not overlap, their leads included.
struct RangeRequest {
  std::shared_ptr<const HttpObject> object;
  std::vector<RangeKey> parts;
  bool urgent = false;

  uint64_t begin() const { return parts.front().offset - object->lead; }
  uint64_t end() const { return parts.back().offset + parts.back().length; }
  /// The request as it is sent.
  std::string text() const;
};

/// Puts ranges in groups, one for each request, as positions in `keys`: neighbours in one object that do not overlap,
/// with at most 64 KiB between two and 8 MiB in all. Groups are in the order of their first range.
std::vector<std::vector<size_t>> joined_ranges(std::span<const RangeKey> keys);

}  // namespace headrace
