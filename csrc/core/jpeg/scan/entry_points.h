// Where the rows of MCUs begin in the scans of JPEGs without restart markers: learned by one decode, used by later
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/jpeg/scan/shared_lists.h"

namespace headrace {

/// The entry points of many images, by the content of their files, so that a changed file has none. All decoders that
/// receive it share it, those of other processes, too: see Note [shared lists]. Any thread may call any method; none
/// waits.
class EntryPoints {
 public:
  /// Scans of more bytes are not entered: EntryPoint::bit cannot address them.
  static constexpr size_t kMostScanBytes = size_t{1} << 29;

  /// What keys depend on, drawn at random, so that an attacker cannot make two files with one key.
  using Secrets = SharedLists::Secrets;

  /// `limit`: bytes that may be used. `secrets`: of the table whose content is added to this one. Throws
  /// std::bad_alloc.
  explicit EntryPoints(size_t limit) : EntryPoints(limit, drawn()) {}
  EntryPoints(size_t limit, const Secrets& secrets) : limit_(limit), secrets_(secrets), lists_(limit, secrets) {}
  /// The table of another process, with its capacity and secrets, by the descriptor of its memory, which stays the
  /// caller's. Null where the descriptor leads to something else.
  static std::shared_ptr<EntryPoints> attach(int descriptor, size_t capacity, const Secrets& secrets);

  size_t limit() const { return limit_; }
  /// Bytes that are used at most, for attach().
  size_t capacity() const { return lists_.capacity(); }
  /// Of the memory, for processes that are not forked from this one; -1: they cannot share it.
  int descriptor() const { return lists_.descriptor(); }
  /// Whether the table is nearly full, so that learning more is useless.
  bool is_full() const { return lists_.is_full(); }
  const Secrets& secrets() const { return secrets_; }
  /// The key of a file's content. Two tables have different keys for the same content.
  uint64_t key_of(std::span<const uint8_t> file) const;
  /// Replaces *found by the known beginnings of rows 1, 2, ... of MCUs, perhaps not of all rows; empty: none are known.
  /// Throws std::bad_alloc.
  void find(uint64_t key, std::vector<EntryPoint>* found) const;
  /// Replaces the known entry points, which `learned` begins with, by `learned`, if the limit allows it.
  void keep(uint64_t key, std::span<const EntryPoint> learned) noexcept;

  /// Everything that is known now. Throws std::bad_alloc.
  std::vector<EntryList> all() const { return lists_.all(); }
  EntryCounts counts() const { return lists_.counts(); }
  /// The memory, for tests.
  std::span<uint8_t> bytes() const { return lists_.bytes(); }

 private:
  EntryPoints(int descriptor, size_t capacity, const Secrets& secrets)
      : limit_(capacity), secrets_(secrets), lists_(descriptor, capacity, secrets) {}
  static Secrets drawn();

  const size_t limit_;
  const Secrets secrets_;
  SharedLists lists_;
};

}  // namespace headrace
