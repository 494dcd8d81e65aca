// The response to one request: where its bytes go, and what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/http/range_request.h"
#include "core/io/remote/byte_store.h"

namespace headrace {

/// Takes the bytes of a response in pieces of any length. The parts of the request go to the store as soon as they are
/// whole, and are then removed from the request. One thread.
class RangeResponse {
 public:
  enum class State : uint8_t {
    kMore,     // bytes are missing
    kDone,     // all parts are in the store
    kRefused,  // the server reported an error: status() and retry_after()
    kShort,    // it sends fewer bytes than requested
    kOdd,      // not the range of the unchanged object: an HTTP library must interpret it
    kLost,     // only from a Connection: it ended before the response did
  };

  /// `request` and `store` must outlive it.
  RangeResponse(RangeRequest& request, ByteStore& store);

  /// Memory for the next bytes; never empty in state kMore.
  std::span<uint8_t> room();
  /// Call when `count` bytes were written to room().
  State got(size_t count);

  /// Bytes that are missing; 0: not known yet.
  uint64_t missing() const { return head_read_ ? end_ - at_ : 0; }
  /// Whether nothing has arrived.
  bool untouched() const { return filled_ == 0 && !head_read_; }
  /// After kDone: whether the connection can take another request.
  bool connection_reusable() const { return reusable_; }
  int status() const { return status_; }
  const std::string& retry_after() const { return retry_after_; }
  uint64_t bytes() const { return received_; }

  static constexpr size_t kFirst = 2048;  // room for the head: what follows it there is copied
  static constexpr size_t kMostHead = 16384;

 private:
  enum class Piece : uint8_t { kGap, kLead, kPart };

  State read_head();
  State check_head(std::string_view text);
  State take(std::span<const uint8_t> bytes);
  State advance(size_t count);
  void begin_part();
  std::span<uint8_t> piece_room();

  RangeRequest& request_;
  ByteStore& store_;
  std::vector<uint8_t> scratch_;
  size_t filled_ = 0;  // of scratch_, while the head is read
  bool head_read_ = false, reusable_ = false;
  int status_ = 0;
  std::string retry_after_;
  uint64_t at_ = 0, end_ = 0, received_ = 0;  // offsets in the object; bytes of the body
  Piece piece_ = Piece::kGap;
  size_t left_ = 0;                   // bytes of this piece that are missing
  std::shared_ptr<ByteBuffer> part_;  // being filled
};

}  // namespace headrace
