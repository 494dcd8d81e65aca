// Reads ranges of objects over HTTP/1.1 connections that the caller opens, and puts them in the store.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/fork_guard.h"
#include "core/base/platform/socket_watch.h"
#include "core/base/thread_pool.h"
#include "core/io/http/connection.h"
#include "core/io/http/request_queue.h"
#include "core/io/http/request_times.h"

namespace headrace {

/// One thread serves all connections. It makes each request once: ranges that are refused, late, or answered with
/// anything but the range are returned to the caller, who decides about retries.
class HttpReader {
 public:
  struct Limits {
    size_t requests = 64;     // in flight at the same time, for all hosts
    double timeout_s = 30.0;  // of a request
    double hedge = 0.05;      // share of the requests that may be hedged (returned as late)
  };

  HttpReader(std::shared_ptr<ByteStore> store, const Limits& limits);
  /// Ends the thread; in a forked child, which has no such thread, does nothing.
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  RequestQueue& queue() { return inner_->queue; }
  /// Ends the thread and the connections. Pending requests are dropped. Idempotent.
  void close();

 private:
  using Connections = std::vector<std::unique_ptr<Connection>>;

  /// Everything that the thread uses.
  struct Inner {
    Inner(std::shared_ptr<ByteStore> store, const Limits& limits);
    void run();
    int64_t begin_requests();
    bool may_be_late(const Connection& one) const;
    int patience_ms(int64_t look_again) const;
    void serve(Connection& one);
    void give_back(Connection& one, ReturnedRanges what);
    void end(Connection& one, Connection::State state);
    void look_at_the_time();
    void drop_closed();
    void make_room();

    const std::shared_ptr<ByteStore> store;
    const Limits limits;
    RequestQueue queue;
    SocketWatch watch;
    RequestTimes times;
    Connections connections;
    std::vector<Connection*> gone;
  };

  std::unique_ptr<Inner> inner_;
  std::unique_ptr<ThreadPool> thread_;
  const ForkGuard fork_;
};

}  // namespace headrace
