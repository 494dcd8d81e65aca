// One entry of a cache on disk: a file of its own, either complete or absent.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/io/source/byte_ranges.h"

namespace headrace {

/// Bytes of the header before an entry's bytes in its file.
inline constexpr size_t kCacheHeader = 24;

/// Writes an entry under a temporary name and renames it; only this user may read it. Returns 0, or errno; then no file
/// is left. The folder must exist. Any thread, any process: the last writer of one path stays, and every writer writes
/// the same bytes.
int write_cache_file(const std::string& path, std::span<const uint8_t> bytes);

/// The bytes of an entry, in `buffer`; nullopt if there is no such file, or if it is not what was written: then it is
/// removed. A link, a pipe, a device, a file that belongs neither to this user nor to root, one that others may write
/// to, and one of another size are not what was written; none of them is waited for or read. `length`: number of bytes
/// that the entry must have; with kAnyLength nothing is found.
std::optional<std::span<const uint8_t>> read_cache_file(const std::string& path, uint64_t length, ReadBuffer& buffer);

/// The length of a range that is all of an object.
inline constexpr uint64_t kAnyLength = UINT64_MAX;

}  // namespace headrace
