// Reads the head into scratch memory and the body into the memory that the store will hold.
#include "core/io/http/range_response.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/io/http/answer_head.h"
#include "core/io/tar/tar_check.h"
#include "core/io/tar/tar_walk.h"

namespace headrace {

RangeResponse::RangeResponse(RangeRequest& request, ByteStore& store)
    : request_(request), store_(store), scratch_(kFirst) {}

std::span<uint8_t> RangeResponse::room() {
  if (head_read_) return piece_room();
  if (filled_ == scratch_.size()) scratch_.resize(2 * scratch_.size());
  return std::span(scratch_).subspan(filled_);
}

/// A part is received into its final memory; leads and gaps into scratch memory.
std::span<uint8_t> RangeResponse::piece_room() {
  if (piece_ == Piece::kPart) return std::span(*part_).last(left_);
  if (piece_ == Piece::kLead) return std::span(scratch_).first(request_.object->lead).last(left_);
  return std::span(scratch_).first(std::min(left_, scratch_.size()));
}

RangeResponse::State RangeResponse::got(size_t count) {
  if (head_read_) {
    received_ += count;
    return advance(count);
  }
  filled_ += count;
  return read_head();
}

RangeResponse::State RangeResponse::read_head() {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::string_view text(reinterpret_cast<const char*>(scratch_.data()), filled_);
  const size_t end = text.find(kEnd);
  if (end == std::string_view::npos) return filled_ < kMostHead ? State::kMore : State::kOdd;
  const size_t head = end + kEnd.size();
  const State state = check_head(text.substr(0, head));
  if (state != State::kMore) return state;
  head_read_ = true;
  at_ = request_.begin();
  end_ = request_.end();
  begin_part();
  // The rest is the beginning of the body. Copied, since scratch_ is also the target for gaps and leads.
  const std::vector<uint8_t> rest(scratch_.begin() + static_cast<std::ptrdiff_t>(head),
                                  scratch_.begin() + static_cast<std::ptrdiff_t>(filled_));
  if (scratch_.size() < request_.object->lead) scratch_.resize(request_.object->lead);
  const State first = advance(0);  // to the first piece that has bytes
  return first == State::kMore ? take(rest) : first;
}

RangeResponse::State RangeResponse::check_head(std::string_view text) {
  const auto head = parse_answer_head(text);
  if (!head) return State::kOdd;
  status_ = head->status;
  if (head->status >= 400) {
    retry_after_ = head->retry_after;
    return State::kRefused;
  }
  const uint64_t begin = request_.begin(), end = request_.end();
  const std::string range =
      "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/" + std::to_string(request_.object->size);
  const std::string_view tag = head->tag.empty() ? head->modified : head->tag;
  const bool other = !tag.empty() && !request_.object->tag.empty() && tag != request_.object->tag;
  if (head->status != 206 || head->coded || !head->length || head->range != range || other) return State::kOdd;
  if (*head->length != end - begin) return *head->length < end - begin ? State::kShort : State::kOdd;
  reusable_ = !head->closes;
  return State::kMore;
}

/// Copies bytes of the body to their targets.
RangeResponse::State RangeResponse::take(std::span<const uint8_t> bytes) {
  State state = State::kMore;
  while (!bytes.empty()) {
    if (state != State::kMore) {  // more than the whole body
      reusable_ = false;
      return state;
    }
    const std::span<uint8_t> to = piece_room();
    const size_t count = std::min(to.size(), bytes.size());
    std::copy_n(bytes.begin(), count, to.begin());
    bytes = bytes.subspan(count);
    received_ += count;
    state = advance(count);
  }
  return state;
}

void RangeResponse::begin_part() {
  piece_ = Piece::kGap;
  left_ = request_.begin() - at_;
}

/// Call when `count` bytes of the body are in their target.
RangeResponse::State RangeResponse::advance(size_t count) {
  at_ += count;
  left_ -= count;
  while (left_ == 0) {
    const RangeKey& part = request_.parts.front();
    if (piece_ == Piece::kGap) {
      piece_ = Piece::kLead;
      left_ = request_.object->lead;
    } else if (piece_ == Piece::kLead) {
      const std::span<const uint8_t> lead = std::span(scratch_).first(request_.object->lead);
      if (request_.object->tar && !is_tar_header(lead, part.length)) return State::kOdd;
      if (request_.object->tar && part.mark != 0 && header_mark(lead) != part.mark) return State::kOdd;
      piece_ = Piece::kPart;
      part_ = std::make_shared<ByteBuffer>(part.length);
      left_ = part.length;
    } else {
      store_.arrived(part, std::exchange(part_, nullptr));
      request_.parts.erase(request_.parts.begin());
      if (request_.parts.empty()) return State::kDone;
      begin_part();
    }
  }
  return State::kMore;
}

}  // namespace headrace
