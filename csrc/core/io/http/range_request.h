// Ranges of an object that one request asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/remote/byte_store.h"

namespace headrace {

/// An object of a server that answers as this program expects.
struct HttpObject {
  uint32_t host = 0;       // its server's number
  std::string head;        // the request up to its range: GET, Host and the other fields, each with its line end
  uint64_t size = 0;       // bytes of the object
  std::string tag;         // ETag, or time of modification, that the answers must have; "": they need none
  uint32_t lead = 0;       // bytes in front of each range that are read as well
  bool tar = false;        // `lead` bytes are the header of a tar member: of the range's length, and of its mark
  int64_t expires_ns = 0;  // by now_ns(): no request is made of this object later. 0: never
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
