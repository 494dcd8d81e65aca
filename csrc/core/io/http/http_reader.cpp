// The loop of the reader's thread: waits for sockets, or for new work in the queue.
#include "core/io/http/http_reader.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#include "core/base/clock.h"
#include "core/base/platform/sockets.h"
#include "core/base/platform/this_thread.h"

namespace headrace {
namespace {

constexpr double kNs = 1e9;

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", value);
  return text;
}

ReturnedRanges failure(std::string reason) {
  ReturnedRanges what;
  what.why = Why::kFailed;
  what.reason = std::move(reason);
  return what;
}

}  // namespace

HttpReader::HttpReader(std::shared_ptr<ByteStore> store, const Limits& limits)
    : inner_(std::make_unique<Inner>(std::move(store), limits)), thread_(std::make_unique<ThreadPool>()) {
  thread_->start(1, [inner = inner_.get()](int) {
    try {
      inner->run();
    } catch (const std::bad_alloc&) {  // of a few bytes; ranges that get no memory are returned
      inner->store->close();
    }
  });
}

HttpReader::~HttpReader() {
  if (fork_.forked()) {
    (void)inner_.release();
    (void)thread_.release();
    return;
  }
  close();
}

void HttpReader::close() {
  if (fork_.forked()) return;
  inner_->queue.close();
  thread_->join();
}

HttpReader::Inner::Inner(std::shared_ptr<ByteStore> its_store, const Limits& its_limits)
    : store(std::move(its_store)), limits(its_limits), queue(its_limits.requests) {}

void HttpReader::Inner::run() {
  name_this_thread("headrace-http");
  watch.add(queue.work_descriptor(), nullptr);
  std::vector<Connection*> ready;
  while (const auto arrived = queue.arrived()) {
    for (const auto& [host, descriptor] : *arrived) {
      connections.push_back(std::make_unique<Connection>(host, descriptor));
      if (!prepare_socket(descriptor) || !watch.add(descriptor, connections.back().get())) {
        gone.push_back(connections.back().get());
      }
    }
    drop_closed();
    const int64_t look_again = begin_requests();
    ready.clear();
    watch.wait(patience_ms(look_again), [&](void* one) { ready.push_back(static_cast<Connection*>(one)); });
    for (Connection* one : ready) {
      if (one != nullptr) serve(*one);
    }
    look_at_the_time();
    drop_closed();
  }
  connections.clear();
}

/// Gives requests to idle connections. Returns the latest time to do so again; 0: at the next event.
int64_t HttpReader::Inner::begin_requests() {
  const int64_t now = now_ns();
  for (const auto& one : connections) {
    if (one->busy()) continue;
    auto request = queue.next(one->host(), now);
    if (!request) continue;
    if (one->begin(std::move(*request), *store) != Connection::State::kMore) {
      end(*one, Connection::State::kLost);
    } else if (one->sending()) {  // rare: a request is shorter than the socket's buffer
      watch.set_writing(one->descriptor(), one.get(), true);
    }
  }
  drop_closed();
  if (queue.is_crowded()) make_room();
  return queue.ask_for_connections(now);
}

/// Closes an idle connection.
void HttpReader::Inner::make_room() {
  const auto idle = std::find_if(connections.begin(), connections.end(), [](const auto& one) { return !one->busy(); });
  if (idle == connections.end()) return;
  gone.push_back(idle->get());
  drop_closed();
}

/// Whether a slow request may still be hedged.
bool HttpReader::Inner::may_be_late(const Connection& one) const {
  return one.is_small() && !one.looked_at && times.limit_ns() != RequestTimes::kNever;
}

/// How long nothing has to be checked, in ms; -1: without a limit.
int HttpReader::Inner::patience_ms(int64_t look_again) const {
  int64_t until = look_again == 0 ? std::numeric_limits<int64_t>::max() : look_again;
  const auto timeout = static_cast<int64_t>(limits.timeout_s * kNs);
  for (const auto& one : connections) {
    if (!one->busy()) continue;
    until = std::min(until, one->begun_ns() + timeout);
    if (may_be_late(*one)) until = std::min(until, one->begun_ns() + times.limit_ns());
  }
  if (until == std::numeric_limits<int64_t>::max()) return -1;
  return static_cast<int>(std::clamp<int64_t>((until - now_ns()) / 1'000'000 + 1, 0, 1000));
}

void HttpReader::Inner::serve(Connection& one) {
  if (!one.busy()) {  // the server closed it, or sends unrequested bytes
    gone.push_back(&one);
    return;
  }
  Connection::State state;
  const bool was_sending = one.sending();
  try {
    state = one.proceed();
  } catch (const std::bad_alloc&) {
    give_back(one, failure("there is not enough memory"));
    return;
  }
  if (was_sending && !one.sending()) watch.set_writing(one.descriptor(), &one, false);
  if (state != Connection::State::kMore) end(one, state);
}

/// Returns a connection's unread ranges to the caller, to be read another way, unless they were returned already.
void HttpReader::Inner::give_back(Connection& one, ReturnedRanges what) {
  const bool known = one.returned && what.why != Why::kOdd;
  RangeRequest request = one.take_back();
  if (!known) queue.give_back(std::move(request), std::move(what));
  gone.push_back(&one);
}

/// Handles the end of a request.
void HttpReader::Inner::end(Connection& one, Connection::State state) {
  const RangeResponse& response = one.response();
  queue.add_received(response.bytes());
  switch (state) {
    case Connection::State::kDone:
      if (one.is_small()) times.add(now_ns() - one.begun_ns());
      if (!response.connection_reusable()) gone.push_back(&one);
      (void)one.take_back();
      return;
    case Connection::State::kLost:
      if (response.bytes() > 0) {
        give_back(one, failure("the answer ends after " + std::to_string(response.bytes()) + " bytes"));
      } else if (one.was_idle() && !one.returned) {
        queue.again(one.take_back());
        gone.push_back(&one);
      } else {
        give_back(one, failure("the connection failed"));
      }
      return;
    case Connection::State::kRefused: {
      ReturnedRanges what;
      what.why = Why::kRefused;
      what.status = response.status();
      what.retry_after = response.retry_after();
      give_back(one, std::move(what));
      return;
    }
    case Connection::State::kShort:
      give_back(one, failure("the server sends fewer bytes than it was asked for"));
      return;
    case Connection::State::kMore:
    case Connection::State::kOdd:
      give_back(one, {});
      return;
  }
}

/// Ends requests that take too long, and returns those that take longer than most.
void HttpReader::Inner::look_at_the_time() {
  const int64_t now = now_ns();
  const auto timeout = static_cast<int64_t>(limits.timeout_s * kNs);
  for (const auto& one : connections) {
    if (!one->busy()) continue;
    const int64_t taken = now - one->begun_ns();
    if (taken >= timeout) {
      give_back(*one, failure("no complete answer in " + seconds(limits.timeout_s)));
    } else if (may_be_late(*one) && taken >= times.limit_ns()) {
      one->looked_at = true;
      one->returned = queue.may_be_late(limits.hedge);
      ReturnedRanges what;
      what.why = Why::kLate;
      if (one->returned) queue.give_back(one->missing(), std::move(what));
    }
  }
}

void HttpReader::Inner::drop_closed() {
  if (gone.empty()) return;
  std::erase_if(connections, [&](const auto& one) {
    const bool ends = std::find(gone.begin(), gone.end(), one.get()) != gone.end();
    if (ends) {
      watch.remove(one->descriptor());
      queue.lost_connection(one->host());
    }
    return ends;
  });
  gone.clear();
}

}  // namespace headrace
