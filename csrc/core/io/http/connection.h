// A connected socket that carries one request after another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/io/http/range_request.h"
#include "core/io/http/range_response.h"

namespace headrace {

/// Owns a socket that does not block. One thread.
class Connection {
 public:
  using State = RangeResponse::State;

  Connection(uint32_t host, int descriptor) : host_(host), descriptor_(descriptor) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins a request; `store` must outlive it. Returns kMore or kLost.
  State begin(RangeRequest request, ByteStore& store);
  /// Sends and receives what is possible without waiting. After any state but kMore the request has ended.
  State proceed();
  /// Ends the request, and returns the part of it that is not in the store.
  RangeRequest take_back();
  /// A copy of that part, while the request continues.
  RangeRequest missing() const { return request_; }

  uint32_t host() const { return host_; }
  int descriptor() const { return descriptor_; }
  bool busy() const { return response_.has_value(); }
  bool sending() const { return sent_ < text_.size(); }
  /// The response so far, while busy.
  const RangeResponse& response() const { return *response_; }
  /// After kLost: whether the server may have closed the connection before it saw the request, as it may at any time
  /// between two requests.
  bool was_idle() const { return served_ > 0 && response_->untouched(); }
  int64_t begun_ns() const { return begun_ns_; }
  /// Whether requests of this size take about the same time.
  bool is_small() const { return size_ <= kSmall; }

  // For the owner, per request: whether its lateness was checked, and whether its ranges were returned as late.
  bool looked_at = false, returned = false;

 private:
  static constexpr uint64_t kSmall = 1 << 20;

  State send();
  State receive();
  void wake_after(uint64_t count);

  const uint32_t host_;
  const int descriptor_;
  RangeRequest request_;
  std::optional<RangeResponse> response_;
  std::string text_;  // the request as sent
  size_t sent_ = 0;
  uint64_t least_ = 1;              // bytes after which the kernel wakes the thread
  uint64_t size_ = 0, served_ = 0;  // bytes of the request; requests before it
  int64_t begun_ns_ = 0;
};

}  // namespace headrace
