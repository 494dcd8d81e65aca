// What an HTTP reader's thread and its callers share: requests that wait, connections to come, ranges to return.
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

/// Why ranges are returned to those who asked for them.
enum class Why : uint8_t {
  kRefused,  // the server said an error: `status`
  kFailed,   // the connection did: `reason`
  kLate,     // the request goes on, but takes longer than most
  kOdd,      // they must be read in another way; no failure
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

  /// `most`: connections of all hosts.
  explicit RequestQueue(size_t most) : most_(most) {}

  // ---- for callers ----

  /// A server's number.
  uint32_t add_host();
  void add_object(uint64_t number, HttpObject object);
  /// Its ranges are not read any more, but for those that were begun.
  void drop_object(uint64_t number);
  /// Begins to read ranges, which must be wanted in the store, in this order; urgent ones before others. Does not wait.
  /// Returns the positions of those that it does not read: their object is not known, or its server answered oddly.
  std::vector<size_t> fetch(std::span<const RangeKey> keys, bool urgent);
  /// A connection that was needed; it is closed here.
  void add_connection(uint32_t host, int descriptor);
  /// Needed connections cannot be had; the next ones are asked for in a second. If the host has none, what waits for
  /// them is returned as failed.
  void lack_connections(uint32_t host, size_t count, const std::string& reason);
  /// No request of the host is begun for so many seconds.
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
  /// Connections that arrived, as pairs of host and descriptor. Nothing: the thread shall end.
  std::optional<std::vector<std::pair<uint32_t, int>>> arrived();
  /// The next request of a host that may be begun now.
  std::optional<RangeRequest> next(uint32_t host, int64_t now_ns);
  /// Asks for the connections that waiting requests need. Returns the time at which to ask again; 0: there is none.
  int64_t ask_for_connections(int64_t now_ns);
  /// Whether another host has requests, but no connection for them: those of idle hosts are in its way.
  bool is_crowded() const;
  void lost_connection(uint32_t host);
  void count(uint64_t bytes);
  /// Whether so small a share of the requests is late that this one may be returned as late.
  bool may_be_late(double share);
  /// Puts a request in front again.
  void again(RangeRequest request);
  /// kOdd: its host answers oddly, so no request of it is made any more.
  void give_back(RangeRequest request, ReturnedRanges what);

 private:
  struct Host {
    std::deque<RangeRequest> urgent, ahead;
    size_t open = 0, coming = 0, needed = 0;            // connections: held, asked for, to be asked for
    int64_t paused_until_ns = 0, connect_after_ns = 0;  // no request before; no connection is asked for before
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
