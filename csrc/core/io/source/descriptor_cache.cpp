// The cache of open files: a list in the order of use, and a map into it.
#include "core/io/source/descriptor_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace headrace {
namespace {

int opened(const char* path) {
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor >= 0) return descriptor;
  const int code = errno;
  throw Error(Stage::kRead, std::generic_category().message(code), code);
}

size_t limit_of_process() {
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return 64;
  return static_cast<size_t>(std::clamp<rlim_t>(most.rlim_cur / 4, 16, 4096));
}

}  // namespace

OpenFile::OpenFile(const char* path) : descriptor_(opened(path)) {}

OpenFile::~OpenFile() { ::close(descriptor_); }

DescriptorCache& DescriptorCache::of_process() {
  // Never destroyed: threads may read while the process exits.
  static auto* const cache = new DescriptorCache(limit_of_process());
  // No other thread may hold the lock at a fork: the child would never see it released.
  static const int registered = pthread_atfork([] { cache->lock_.lock(); }, [] { cache->lock_.unlock(); },  //
                                               [] { cache->lock_.unlock(); });
  (void)registered;
  return *cache;
}

std::shared_ptr<const OpenFile> DescriptorCache::get(const void* owner, uint32_t file, const char* path) {
  const Key key{owner, file};
  if (auto known = find(key)) return known;
  std::shared_ptr<const OpenFile> made;
  try {
    made = std::make_shared<const OpenFile>(path);
  } catch (const Error& error) {
    if (error.os_errno() != EMFILE && error.os_errno() != ENFILE) throw;
    clear();  // the program needs more descriptors than the limit leaves it
    made = std::make_shared<const OpenFile>(path);
  }
  std::shared_ptr<const OpenFile> dropped;  // closed without the lock
  const std::lock_guard guard(lock_);
  if (const auto found = where_.find(key); found != where_.end()) return found->second->file;  // another thread's
  if (used_.size() >= limit_) {
    where_.erase(used_.back().key);
    dropped = std::move(used_.back().file);
    used_.pop_back();
  }
  used_.push_front({key, made});
  where_.emplace(key, used_.begin());
  return made;
}

void DescriptorCache::forget(const void* owner) {
  Entries dropped;
  const std::lock_guard guard(lock_);
  for (auto one = used_.begin(); one != used_.end();) {
    const auto next = std::next(one);
    if (one->key.owner == owner) {
      where_.erase(one->key);
      dropped.splice(dropped.end(), used_, one);
    }
    one = next;
  }
}

size_t DescriptorCache::open() const {
  const std::lock_guard guard(lock_);
  return used_.size();
}

std::shared_ptr<const OpenFile> DescriptorCache::find(const Key& key) {
  const std::lock_guard guard(lock_);
  const auto found = where_.find(key);
  if (found == where_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return found->second->file;
}

void DescriptorCache::clear() {
  Entries dropped;
  const std::lock_guard guard(lock_);
  dropped.swap(used_);
  where_.clear();
}

}  // namespace headrace
