// Entries are renamed into place without fsync: after a power loss a file may hold anything, so every read verifies the
// checksum. Others may be able to write to the folder, so a file's type and owner are checked before it is used.
#include "core/io/remote/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/io/remote/checksum.h"

namespace headrace {
namespace {

constexpr mode_t kEntryMode = 0600;               // the original may be readable only by its owner
constexpr uint64_t kMagic = 0x3165686361637268u;  // "hrcache1"

struct Header {
  uint64_t magic, length, sum;
};
static_assert(sizeof(Header) == kCacheHeader);

bool write_all(int file, const void* from, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  while (size > 0) {
    const ssize_t done = ::write(file, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

bool read_all(int file, uint8_t* to, size_t size) {
  while (size > 0) {
    const ssize_t done = ::read(file, to, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    to += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

/// Whether an open file is a regular one of this size that only this user or root can write. Checked before memory is
/// allocated.
bool is_trusted_file(int file, uint64_t size) {
  struct stat info{};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const bool trusted = info.st_uid == ::geteuid() || info.st_uid == 0;
  return trusted && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 && static_cast<uint64_t>(info.st_size) == size;
}

bool read_entry(int file, size_t length, ReadBuffer& buffer) {
  const size_t size = kCacheHeader + length;
  uint8_t* const to = buffer.make_room(size, 0);
  if (!read_all(file, to, size)) return false;
  Header header{};
  std::memcpy(&header, to, sizeof header);
  const std::span<const uint8_t> bytes(to + kCacheHeader, length);
  return header.magic == kMagic && header.length == length && header.sum == checksum(bytes);
}

}  // namespace

int write_cache_file(const std::string& path, std::span<const uint8_t> bytes) {
  static std::atomic<uint64_t> number{0};
  const std::string unfinished =
      path + ".unfinished-" + std::to_string(::getpid()) + "-" + std::to_string(number.fetch_add(1));
  const int file = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kEntryMode);
  if (file < 0) return errno;
  const Header header{kMagic, bytes.size(), checksum(bytes)};
  int code = write_all(file, &header, sizeof header) && write_all(file, bytes.data(), bytes.size()) ? 0 : errno;
  if (::close(file) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) ::unlink(unfinished.c_str());
  return code;
}

std::optional<std::span<const uint8_t>> read_cache_file(const std::string& path, uint64_t length, ReadBuffer& buffer) {
  // A link could lead anywhere, and opening a pipe would wait for its writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
  const bool there = file >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != EMFILE && errno != ENFILE);
  const bool good = file >= 0 && length < kAnyLength - kCacheHeader && is_trusted_file(file, kCacheHeader + length) &&
                    read_entry(file, static_cast<size_t>(length), buffer);
  if (file >= 0) ::close(file);
  if (good) return std::span<const uint8_t>(buffer.data() + kCacheHeader, static_cast<size_t>(length));
  if (there) ::unlink(path.c_str());
  return {};
}

}  // namespace headrace
