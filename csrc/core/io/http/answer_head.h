// The head of an HTTP/1.1 answer, as far as a range of an object needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

/// The views lie in the text that was parsed; empty: the field is absent.
struct AnswerHead {
  int status = 0;
  std::optional<uint64_t> length;  // Content-Length
  std::string_view range;          // Content-Range
  std::string_view tag;            // ETag
  std::string_view modified;       // Last-Modified
  std::string_view retry_after;    // Retry-After
  bool closes = false;             // the connection ends with the answer
  bool coded = false;              // the body is not `length` bytes as they are: chunks, or a compression
};

/// Parses a head with its empty line. Nothing: it is not HTTP/1.1, or two readers might understand it differently
/// (a field twice, folded lines, control characters).
std::optional<AnswerHead> parse_answer_head(std::string_view text);

}  // namespace headrace
