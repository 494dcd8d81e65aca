// Memory first, then the folder. An entry on the disk begins with the name of what it holds, which is compared, so that
// two parts whose names have one hash take each other's place and never each other's bytes.
#include "core/caching/local_cache.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "core/remote/cache_file.h"
#include "core/remote/checksum.h"

namespace headrace {
namespace {

constexpr auto kSettled = std::chrono::seconds(2);  // the coarsest clock of a file system (FAT)
constexpr mode_t kFolderMode = 0777;

bool settled(const FileStamp& stamp) {
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto age = now - std::chrono::nanoseconds(stamp.modified_ns);
  return age > kSettled || age < -kSettled;
}

std::string name_of(const FilePart& part) {
  std::string name = part.path;
  for (const auto number : {part.stamp.size, static_cast<uint64_t>(part.stamp.modified_ns), part.offset, part.length}) {
    name += '\0' + std::to_string(number);
  }
  return name + '\0';
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string hex(uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string made;
  for (int shift = 60; shift >= 0; shift -= 4) made += kDigits[number >> shift & 15];
  return made;
}

}  // namespace

LocalCache::LocalCache(size_t memory, std::string folder) : store_(0, memory), folder_(std::move(folder)) {}

/// Path of a part's entry: the layout of folders that the cache of remote objects has.
std::string LocalCache::entry(const std::string& name) const {
  const std::string hash = hex(checksum(bytes_of(name)));
  return folder_ + "/" + hash.substr(0, 3) + "/local-" + hash;
}

std::optional<std::span<const uint8_t>> LocalCache::find(const RangeKey& key, const FilePart& part,
                                                         ReadBuffer& buffer) {
  if (fork_.forked()) return {};
  if (store_.keeps()) {
    if (SharedBytes bytes = store_.take_if_here(key)) {
      buffer.hold(bytes);
      return std::span<const uint8_t>(*bytes);
    }
  }
  if (!folder_.empty()) {
    const std::string name = name_of(part);
    const auto found = read_cache_file(entry(name), name.size() + part.length, buffer);
    if (found && std::memcmp(found->data(), name.data(), name.size()) == 0) {
      const auto bytes = found->subspan(name.size());
      store_.count(ByteStore::Origin::kDisk);
      store_.keep(key, bytes);
      return bytes;
    }
  }
  store_.count(ByteStore::Origin::kFetched);
  return {};
}

void LocalCache::keep(const RangeKey& key, const FilePart& part, std::span<const uint8_t> bytes) {
  if (fork_.forked() || !settled(part.stamp)) return;
  store_.keep(key, bytes);
  if (!folder_.empty() && write_error() == 0) write(name_of(part), bytes);
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
  if (code == 0) {
    written_ += whole.size();
  } else {
    int none = 0;
    write_error_.compare_exchange_strong(none, code);
  }
}

}  // namespace headrace
