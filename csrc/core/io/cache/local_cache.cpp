// Looks in memory first, then in the folder. An entry on disk begins with the name of its part, which is compared, so
// that two parts whose names have the same hash replace each other's entries but never return each other's bytes.
#include "core/io/cache/local_cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/platform/file_numbers.h"
#include "core/io/remote/cache_file.h"
#include "core/io/remote/checksum.h"

namespace headrace {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kSettled = std::chrono::seconds(2);     // the coarsest clock of a file system (FAT)
constexpr nanoseconds kTick = std::chrono::milliseconds(20);  // of the kernel's clock of files, and more
constexpr int64_t kSecond = 1'000'000'000;
constexpr mode_t kFolderMode = 0700;

bool is_older(int64_t time_ns, nanoseconds least) {
  const auto now = std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto age = now - nanoseconds(time_ns);
  return age > least || age < -least;
}

/// Whether any later change will alter the file's times. Programs set times of modification back, so the time of change
/// counts as well; a whole number of seconds may come from a clock with a resolution of seconds.
bool settled(const FileState& state) {
  return is_older(state.stamp.modified_ns, kSettled) &&
         is_older(state.changed_ns, state.changed_ns % kSecond == 0 ? kSettled : kTick);
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// The absolute path with links resolved; "" if there is none.
std::string real_path(const char* path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path, nullptr), &std::free);
  return found == nullptr ? std::string() : std::string(found.get());
}

uint64_t hash_of(std::initializer_list<uint64_t> numbers) {
  return checksum({reinterpret_cast<const uint8_t*>(numbers.begin()), numbers.size() * sizeof(uint64_t)});
}

/// The key of the part in the memory of this process.
RangeKey key_of(const FilePart& part) {
  const FileState& state = part.state;
  const uint64_t mark = hash_of({state.stamp.size, static_cast<uint64_t>(state.stamp.modified_ns),
                                 static_cast<uint64_t>(state.changed_ns), part.mark});
  if (has_lasting_inode(part.path, state.device)) {
    return {state.inode, part.offset, part.length, mark, state.device};
  }
  const std::string path = real_path(part.path);
  return {checksum(bytes_of(path)), part.offset, part.length, mark, checksum(bytes_of(path + path))};
}

/// The name of the part on disk, which is still valid after the machine restarts; "": it has none.
std::string name_of(const FilePart& part) {
  std::string name = real_path(part.path);
  if (name.empty()) return name;
  const FileState& state = part.state;
  const bool lasting = has_lasting_inode(part.path, state.device);
  for (const auto number : {lasting ? lasting_device(state.device) : 0, lasting ? state.inode : 0, state.stamp.size,
                            static_cast<uint64_t>(state.stamp.modified_ns), static_cast<uint64_t>(state.changed_ns),
                            part.offset, part.length, part.mark}) {
    name += '\0' + std::to_string(number);
  }
  return name + '\0';
}

std::string hex(uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string made;
  for (int shift = 60; shift >= 0; shift -= 4) made += kDigits[number >> shift & 15];
  return made;
}

}  // namespace

LocalCache::LocalCache(size_t memory, std::string folder) : store_(0, memory), folder_(std::move(folder)) {}

/// Path of a part's entry, in the same layout of folders as the cache of remote objects.
std::string LocalCache::entry(const std::string& name) const {
  const std::string hash = hex(checksum(bytes_of(name)));
  return folder_ + "/" + hash.substr(0, 3) + "/local-" + hash;
}

std::optional<std::span<const uint8_t>> LocalCache::find(const FilePart& part, ReadBuffer& buffer) {
  if (fork_.forked()) return {};
  if (store_.keeps()) {
    if (SharedBytes bytes = store_.take_if_here(key_of(part))) {
      buffer.hold(bytes);
      return std::span<const uint8_t>(*bytes);
    }
  }
  if (const std::string name = folder_.empty() ? std::string() : name_of(part); !name.empty()) {
    const auto found = read_cache_file(entry(name), name.size() + part.length, buffer);
    if (found && std::memcmp(found->data(), name.data(), name.size()) == 0) {
      const auto bytes = found->subspan(name.size());
      store_.count_origin(ByteStore::Origin::kDisk);
      if (store_.keeps()) store_.keep(key_of(part), bytes);
      return bytes;
    }
  }
  store_.count_origin(ByteStore::Origin::kFetched);
  return {};
}

void LocalCache::keep(const FilePart& part, std::span<const uint8_t> bytes) {
  if (fork_.forked() || !settled(part.state)) return;
  if (store_.keeps()) store_.keep(key_of(part), bytes);
  if (folder_.empty() || write_error() != 0) return;
  if (const std::string name = name_of(part); !name.empty()) write(name, bytes);
}

bool LocalCache::holds(const FilePart& part) const {
  return !fork_.forked() && store_.keeps() && store_.has(key_of(part));
}

void LocalCache::write(const std::string& name, std::span<const uint8_t> bytes) {
  std::vector<uint8_t> whole(name.size() + bytes.size());
  std::memcpy(whole.data(), name.data(), name.size());
  if (!bytes.empty()) std::memcpy(whole.data() + name.size(), bytes.data(), bytes.size());
  const std::string path = entry(name);
  int code = write_cache_file(path, whole);
  if (code == ENOENT) {
    ::mkdir(path.substr(0, path.rfind('/')).c_str(), kFolderMode);  // its failure shows in the next line
    code = write_cache_file(path, whole);
  }
  if (code == EISDIR) return;  // a folder has the entry's path: reads count it as a miss
  if (code == 0) {
    written_ += whole.size();
  } else {
    int none = 0;
    write_error_.compare_exchange_strong(none, code);
  }
}

}  // namespace headrace
