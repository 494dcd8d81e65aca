// Sends a request and receives its response.
#include "core/io/http/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/clock.h"
#include "core/base/platform/sockets.h"

namespace headrace {
namespace {

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::~Connection() { ::close(descriptor_); }

Connection::State Connection::begin(RangeRequest request, ByteStore& store) {
  request_ = std::move(request);
  text_ = request_.text();
  size_ = request_.end() - request_.begin();
  sent_ = 0;
  looked_at = returned = false;
  begun_ns_ = now_ns();
  response_.emplace(request_, store);
  return send();
}

RangeRequest Connection::take_back() {
  response_.reset();
  return std::exchange(request_, {});
}

Connection::State Connection::proceed() {
  if (sending() && send() == State::kLost) return State::kLost;
  const State state = receive();
  served_ += state == State::kDone ? 1 : 0;
  return state;
}

/// Asks the kernel to wake the thread only once `count` bytes have arrived: woken by each segment, it would wake
/// several times as often.
void Connection::wake_after(uint64_t count) {
  const uint64_t least = std::max<uint64_t>(count, 1);
  if (least != least_) wait_for_bytes(descriptor_, least);
  least_ = least;
}

Connection::State Connection::send() {
  while (sending()) {
    const ssize_t count = ::send(descriptor_, text_.data() + sent_, text_.size() - sent_, kNoSignal);
    if (count >= 0) {
      sent_ += static_cast<size_t>(count);
    } else if (would_wait()) {
      return State::kMore;
    } else if (errno != EINTR) {
      return State::kLost;
    }
  }
  return State::kMore;
}

Connection::State Connection::receive() {
  for (;;) {
    const std::span<uint8_t> room = response_->room();
    const ssize_t count = ::recv(descriptor_, room.data(), room.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && would_wait()) {
      wake_after(response_->missing());
      return State::kMore;
    }
    if (count <= 0) return State::kLost;
    const State state = response_->got(static_cast<size_t>(count));
    if (state != State::kMore || static_cast<size_t>(count) < room.size()) {
      wake_after(state == State::kMore ? response_->missing() : 0);
      return state;
    }
  }
}

}  // namespace headrace
