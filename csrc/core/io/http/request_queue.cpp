// Queues of requests, one per host.
#include "core/io/http/request_queue.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/clock.h"

namespace headrace {
namespace {

constexpr int64_t kConnectAgainNs = 1'000'000'000;

/// Whether the range, and the lead before it, are inside the object.
bool is_inside(const HttpObject& object, const RangeKey& key) {
  return key.length > 0 && key.offset >= object.lead && key.offset <= object.size &&
         key.length <= object.size - key.offset;
}

}  // namespace

uint32_t RequestQueue::add_host() {
  const std::lock_guard guard(lock_);
  hosts_.emplace_back();
  return static_cast<uint32_t>(hosts_.size() - 1);
}

void RequestQueue::add_object(uint64_t number, HttpObject object) {
  const std::lock_guard guard(lock_);
  objects_[number] = std::make_shared<const HttpObject>(std::move(object));
}

void RequestQueue::drop_object(uint64_t number) {
  const std::lock_guard guard(lock_);
  objects_.erase(number);
}

std::vector<size_t> RequestQueue::fetch(std::span<const RangeKey> keys, bool urgent) {
  std::vector<size_t> others;
  const auto groups = joined_ranges(keys);
  const std::lock_guard guard(lock_);
  for (const std::vector<size_t>& group : groups) {
    const auto found = objects_.find(keys[group.front()].object);
    const bool known = found != objects_.end() && !hosts_[found->second->host].odd && !closing_ &&
                       (found->second->expires_ns == 0 || now_ns() < found->second->expires_ns);
    RangeRequest request;
    for (const size_t i : group) {
      if (!known || !is_inside(*found->second, keys[i])) {
        others.push_back(i);
        continue;
      }
      if (request.object == nullptr) {
        request.object = found->second;
        request.urgent = urgent;
      } else if (keys[i].offset - request.end() < request.object->lead) {  // a lead must not overlap the part before it
        line_of(request).push_back(std::exchange(request, {found->second, {}, urgent}));
      }
      request.parts.push_back(keys[i]);
    }
    if (!request.parts.empty()) line_of(request).push_back(std::move(request));
  }
  if (others.size() < keys.size()) work_.signal();
  std::sort(others.begin(), others.end());
  return others;
}

std::deque<RangeRequest>& RequestQueue::line_of(const RangeRequest& request) {
  Host& host = hosts_[request.object->host];
  return request.urgent ? host.urgent : host.ahead;
}

void RequestQueue::add_connection(uint32_t host, int descriptor) {
  const std::lock_guard guard(lock_);
  Host& one = hosts_.at(host);
  one.coming -= std::min<size_t>(one.coming, 1);
  if (closing_) {
    ::close(descriptor);
    return;
  }
  ++one.open;
  arriving_.emplace_back(host, descriptor);
  work_.signal();
}

void RequestQueue::lack_connections(uint32_t host, size_t count, const std::string& reason) {
  const std::lock_guard guard(lock_);
  Host& one = hosts_.at(host);
  one.coming -= std::min(one.coming, count);
  one.connect_after_ns = now_ns() + kConnectAgainNs;
  if (one.open == 0) give_back_all(one, Why::kFailed, reason);
}

void RequestQueue::pause(uint32_t host, double seconds) {
  const std::lock_guard guard(lock_);
  hosts_.at(host).paused_until_ns = now_ns() + static_cast<int64_t>(seconds * 1e9);
  work_.signal();
}

std::vector<ReturnedRanges> RequestQueue::returned() {
  events_.clear();
  const std::lock_guard guard(lock_);
  return std::exchange(returned_, {});
}

std::vector<std::pair<uint32_t, size_t>> RequestQueue::needed() {
  const std::lock_guard guard(lock_);
  std::vector<std::pair<uint32_t, size_t>> made;
  for (uint32_t i = 0; i < hosts_.size(); ++i) {
    if (const size_t count = std::exchange(hosts_[i].needed, 0); count > 0) made.emplace_back(i, count);
  }
  return made;
}

RequestQueue::Counts RequestQueue::counts() const {
  const std::lock_guard guard(lock_);
  return counts_;
}

void RequestQueue::close() {
  const std::lock_guard guard(lock_);
  closing_ = true;
  work_.signal();
}

std::optional<std::vector<std::pair<uint32_t, int>>> RequestQueue::arrived() {
  work_.clear();
  const std::lock_guard guard(lock_);
  if (!closing_) return std::exchange(arriving_, {});
  for (const auto& [host, descriptor] : arriving_) ::close(descriptor);
  arriving_.clear();
  return {};
}

std::optional<RangeRequest> RequestQueue::next(uint32_t host, int64_t now_ns) {
  const std::lock_guard guard(lock_);
  Host& one = hosts_[host];
  if (one.waiting() == 0 || now_ns < one.paused_until_ns) return {};
  std::deque<RangeRequest>& line = one.urgent.empty() ? one.ahead : one.urgent;
  RangeRequest request = std::move(line.front());
  line.pop_front();
  ++counts_.requests;
  return request;
}

size_t RequestQueue::connections() const {
  size_t sum = 0;
  for (const Host& one : hosts_) sum += one.open + one.coming;
  return sum;
}

int64_t RequestQueue::ask_for_connections(int64_t now_ns) {
  const std::lock_guard guard(lock_);
  int64_t again = 0;
  for (Host& host : hosts_) {
    if (host.waiting() == 0) continue;
    const bool paused = now_ns < host.paused_until_ns;
    const size_t all = connections(), free = most_ > all ? most_ - all : 0;
    const size_t more = std::min(free, host.waiting() - std::min(host.waiting(), host.coming));
    if (paused || (more > 0 && now_ns < host.connect_after_ns)) {
      const int64_t then = paused ? host.paused_until_ns : host.connect_after_ns;
      again = again == 0 ? then : std::min(again, then);
    } else if (more > 0) {
      host.needed += more;
      host.coming += more;
      events_.signal();
    }
  }
  return again;
}

bool RequestQueue::is_crowded() const {
  const std::lock_guard guard(lock_);
  return connections() >= most_ && std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
           return host.waiting() > 0 && host.open + host.coming == 0;
         });
}

void RequestQueue::lost_connection(uint32_t host) {
  const std::lock_guard guard(lock_);
  --hosts_[host].open;
}

void RequestQueue::add_received(uint64_t bytes) {
  const std::lock_guard guard(lock_);
  counts_.bytes += bytes;
}

bool RequestQueue::may_be_late(double share) {
  const std::lock_guard guard(lock_);
  if (static_cast<double>(counts_.late) >= share * static_cast<double>(counts_.requests)) return false;
  ++counts_.late;
  return true;
}

void RequestQueue::again(RangeRequest request) {
  const std::lock_guard guard(lock_);
  --counts_.requests;
  line_of(request).push_front(std::move(request));
}

void RequestQueue::give_back(RangeRequest request, ReturnedRanges what) {
  const std::lock_guard guard(lock_);
  what.parts = std::move(request.parts);
  what.urgent = request.urgent;
  Host& host = hosts_[request.object->host];
  if (what.why == Why::kOdd) {
    host.odd = true;
    give_back_all(host, Why::kOdd, what.reason);
  }
  returned_.push_back(std::move(what));
  events_.signal();
}

void RequestQueue::give_back_all(Host& host, Why why, const std::string& reason) {
  for (std::deque<RangeRequest>* line : {&host.urgent, &host.ahead}) {
    for (RangeRequest& one : *line) {
      returned_.push_back({std::move(one.parts), why, one.urgent, 0, {}, reason});
      events_.signal();
    }
    line->clear();
  }
}

}  // namespace headrace
