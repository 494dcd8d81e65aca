// The head of an HTTP/1.1 response: the fields that reading a range of an object needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

/// The views point into the text that was parsed; empty: the field is absent.
struct AnswerHead {
  int status = 0;
  std::optional<uint64_t> length;  // Content-Length
  std::string_view range;          // Content-Range
  std::string_view tag;            // ETag
  std::string_view modified;       // Last-Modified
  std::string_view retry_after;    // Retry-After
  bool closes = false;             // the server closes the connection after the response
  bool coded = false;              // the body is chunked or compressed, not `length` plain bytes
};

/// Parses a head with its empty line. nullopt: it is not HTTP/1.1, or two parsers might understand it differently (a
/// field twice, folded lines, control characters).
std::optional<AnswerHead> parse_answer_head(std::string_view text);

}  // namespace headrace
