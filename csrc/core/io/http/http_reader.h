// Reads ranges of objects over HTTP/1.1 connections that it is given, and puts them in the store.
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

/// One thread serves all connections. It makes a plain request once: what is refused, late, or answered by something
/// else than the range is returned to the caller, who decides about retries. The caller opens the connections, too.
class HttpReader {
 public:
  struct Limits {
    size_t requests = 64;     // under way at the same time, of all hosts
    double timeout_s = 30.0;  // of a request
    double hedge = 0.05;      // share of the requests that may be returned as late
  };

  HttpReader(std::shared_ptr<ByteStore> store, const Limits& limits);
  /// Ends the thread; in a forked child, which has none, leaves everything as it is.
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  RequestQueue& queue() { return inner_->queue; }
  /// Ends the thread and the connections. What was asked for and did not arrive is forgotten. Idempotent.
  void close();

 private:
  using Connections = std::vector<std::unique_ptr<Connection>>;

  /// All that the thread uses.
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
