// The samples of a tar archive by WebDataset's rules: consecutive members whose names have the same key.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/tar/tar_walk.h"

namespace headrace {

/// A member's name, split: the key is its folder and its name up to the first dot, the extension is what follows.
struct TarName {
  std::string_view key, extension;  // the key is empty if the member belongs to no sample
};
TarName split_tar_name(std::string_view name);

/// The name of a member, split; its key is empty if the member belongs to no sample. Throws ArchiveError for a name
/// that leaves the archive's folder.
TarName checked_name(const TarMember& member);
/// Whether the member is metadata that macOS writes beside files: an AppleDouble file (`._name`, with its magic
/// number), anything in a folder `__MACOSX`, or `.DS_Store`. By WebDataset's pattern those in folders would be samples
/// of their own, between the members of others.
bool is_of_macos(const TarMember& member);
/// An extension in its compared form: ASCII letters in lower case.
std::string lower_case(std::string_view extension);
/// Throws ArchiveError: the member has an extension that its sample has already.
[[noreturn]] void refuse_repeated(const TarMember& member, std::string_view extension, std::string_view key);

/// All members that belong to samples, in the archive's order.
struct TarSamples {
  static constexpr int64_t kNoNumber = std::numeric_limits<int64_t>::min();

  std::vector<uint32_t> sample, extension;  // numbers of the member's sample, and of its extension
  std::vector<uint64_t> offset, length;     // of its bytes
  std::vector<int64_t> number;              // the integer that its bytes spell; kNoNumber: none
  std::string keys;                         // of the samples, each zero-terminated
  std::vector<uint64_t> key_offsets;
  std::vector<std::string> extensions;  // ASCII letters in lower case
  bool has_end = false;                 // see TarWalk::has_end
  uint64_t passed = 0;                  // number of members that are macOS's metadata
};

/// The integer that a member's bytes spell: the common subset of what Python's int() of bytes accepts.
int64_t number_in(const TarMember& member);

/// Throws ArchiveError, and Error(kRead) if the source cannot be read.
TarSamples tar_samples(const ByteSource& source);

}  // namespace headrace
