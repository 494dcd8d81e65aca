// What an HTTP reader's thread and its callers share: waiting requests, new connections, ranges to return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/platform/wake_event.h"
#include "core/io/http/range_request.h"
#include "core/io/remote/byte_store.h"

namespace headrace {

/// Why ranges are returned to the caller.
enum class Why : uint8_t {
  kRefused,  // the server reported an error: `status`
  kFailed,   // the connection failed: `reason`
  kLate,     // the request continues, but takes longer than most
  kOdd,      // they must be read another way; not a failure
};

struct ReturnedRanges {
  std::vector<RangeKey> parts;
  Why why = Why::kOdd;
  bool urgent = false;
  int status = 0;
  std::string retry_after, reason;
};

/// Any thread may call any method.
class RequestQueue {
 public:
  struct Counts {
    uint64_t requests = 0, late = 0, bytes = 0;
  };

  /// `most`: maximum number of connections, for all hosts.
  explicit RequestQueue(size_t most) : most_(most) {}

  // ---- for callers ----

  /// Adds a server; returns its number.
  uint32_t add_host();
  void add_object(uint64_t number, HttpObject object);
  /// Stops new reads: fetch() refuses its ranges. Requests already queued or sent complete.
  void drop_object(uint64_t number);
  /// Begins to read ranges, which must be wanted in the store, in this order; urgent ones before others. Does not wait.
  /// Returns the positions of those that it does not read: their object is unknown, or its server's responses were
  /// unexpected.
  std::vector<size_t> fetch(std::span<const RangeKey> keys, bool urgent);
  /// Adds a connection that was needed. Takes ownership of the descriptor.
  void add_connection(uint32_t host, int descriptor);
  /// `count` needed connections cannot be opened; they are requested again after a second. If the host has no
  /// connection, its waiting ranges are returned as failed.
  void lack_connections(uint32_t host, size_t count, const std::string& reason);
  /// Begins no request to the host for this number of seconds.
  void pause(uint32_t host, double seconds);
  /// Readable when ranges are returned or connections are needed.
  int event_descriptor() const { return events_.descriptor(); }
  std::vector<ReturnedRanges> returned();
  /// How many more connections each host needs: pairs of host and count.
  std::vector<std::pair<uint32_t, size_t>> needed();
  Counts counts() const;
  /// Ends the reader's thread.
  void close();

  // ---- for the reader's thread ----

  /// Readable when there is something new for the thread.
  int work_descriptor() const { return work_.descriptor(); }
  /// New (host, descriptor) pairs; nullopt: stop the thread.
  std::optional<std::vector<std::pair<uint32_t, int>>> arrived();
  /// The next request to a host that may begin now.
  std::optional<RangeRequest> next(uint32_t host, int64_t now_ns);
  /// Requests the connections that waiting requests need. Returns the time to do so again; 0: none.
  int64_t ask_for_connections(int64_t now_ns);
  /// Whether another host has requests but no connection, because connections of idle hosts fill the limit.
  bool is_crowded() const;
  void lost_connection(uint32_t host);
  void add_received(uint64_t bytes);
  /// Whether the share of late requests is below `share`, so that this one may be returned as late. If so, counts it.
  bool may_be_late(double share);
  /// Puts a request back at the front of its queue.
  void again(RangeRequest request);
  /// kOdd: the host's responses are unexpected, so no further request to it is made.
  void give_back(RangeRequest request, ReturnedRanges what);

 private:
  struct Host {
    std::deque<RangeRequest> urgent, ahead;
    size_t open = 0, coming = 0, needed = 0;            // connections: open, requested, to be requested
    int64_t paused_until_ns = 0, connect_after_ns = 0;  // no request before; no connection is requested before
    bool odd = false;
    size_t waiting() const { return urgent.size() + ahead.size(); }
  };

  std::deque<RangeRequest>& line_of(const RangeRequest& request);
  void give_back_all(Host& host, Why why, const std::string& reason);
  size_t connections() const;

  const size_t most_;
  const WakeEvent work_, events_;
  mutable std::mutex lock_;
  std::deque<Host> hosts_;
  std::unordered_map<uint64_t, std::shared_ptr<const HttpObject>> objects_;
  std::vector<std::pair<uint32_t, int>> arriving_;
  std::vector<ReturnedRanges> returned_;
  Counts counts_;
  bool closing_ = false;
};

}  // namespace headrace
