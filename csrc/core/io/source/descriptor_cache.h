// Open files that stay open between reads, in a bounded number: opening a shard for each sample costs more than reading
// the sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace headrace {

/// A file opened for reading; closed when the last owner releases it.
class OpenFile {
 public:
  /// Throws Error(kRead) with errno if the file cannot be opened.
  explicit OpenFile(const char* path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

/// The most recently used files; the least recently used is closed first. Any thread; the lock is never held during a
/// system call.
class DescriptorCache {
 public:
  /// `limit`: most files that stay open without a reader, at least 1.
  explicit DescriptorCache(size_t limit) : limit_(limit) {}

  /// The cache of this process: at most a quarter of the descriptors that the process may open. Usable after a fork:
  /// a child inherits the open files, and reads at given offsets move nothing that the processes share.
  static DescriptorCache& of_process();

  /// File number `file` of `owner`, opened by `path` if it is not open. The result stays open as long as it is held.
  std::shared_ptr<const OpenFile> get(const void* owner, uint32_t file, const char* path);
  /// Drops all files of `owner`, which must not be used in other threads meanwhile.
  void forget(const void* owner);
  size_t open() const;

 private:
  struct Key {
    const void* owner;
    uint32_t file;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>{}(key.owner) ^ (size_t{key.file} * 0x9E3779B97F4A7C15u);
    }
  };
  struct Entry {
    Key key;
    std::shared_ptr<const OpenFile> file;
  };
  using Entries = std::list<Entry>;

  std::shared_ptr<const OpenFile> find(const Key& key);
  void clear();

  const size_t limit_;
  mutable std::mutex lock_;
  Entries used_;  // most recently used first
  std::unordered_map<Key, Entries::iterator, Hash> where_;
};

}  // namespace headrace
