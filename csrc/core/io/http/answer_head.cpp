// Parses strictly: what is refused here is read again by an HTTP library, in Python.
#include "core/io/http/answer_head.h"

#include <algorithm>
#include <charconv>

namespace headrace {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

/// Compares ignoring case. `small` is in lower case.
bool same(std::string_view text, std::string_view small) {
  return text.size() == small.size() &&
         std::equal(text.begin(), text.end(), small.begin(), [](char a, char b) { return lower(a) == b; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// All of the text as a number in decimal digits.
std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    const char small = lower(letter);
    return (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9') || small == '-' || small == '_';
  });
}

bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte == '\t' || (byte >= ' ' && byte != 0x7F);
  });
}

/// The status code of the status line; 0: it is not a status line.
int status_of(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  if (!line.starts_with(kVersion) || !is_value(line)) return 0;
  line.remove_prefix(kVersion.size());
  if (line.size() > 3 && line[3] != ' ') return 0;
  const auto status = number(line.substr(0, 3));
  return status && *status >= 100 && *status <= 599 ? static_cast<int>(*status) : 0;
}

/// Stores a field. Returns false if the head cannot be relied on.
bool take(AnswerHead& head, std::string_view name, std::string_view value) {
  const auto once = [&](std::string_view& field) {
    if (!field.empty()) return false;
    field = value;
    return true;
  };
  if (same(name, "content-length")) {
    if (head.length) return false;
    head.length = number(value);
    return head.length.has_value();
  }
  if (same(name, "content-range")) return once(head.range);
  if (same(name, "etag")) return once(head.tag);
  if (same(name, "last-modified")) return once(head.modified);
  if (same(name, "retry-after")) return once(head.retry_after);
  if (same(name, "transfer-encoding")) head.coded = true;
  if (same(name, "content-encoding") && !same(value, "identity")) head.coded = true;
  if (same(name, "connection") && !same(value, "keep-alive")) head.closes = true;
  return true;
}

}  // namespace

std::optional<AnswerHead> parse_answer_head(std::string_view text) {
  AnswerHead head;
  for (bool first = true;; first = false) {
    const size_t end = text.find(kLineEnd);
    if (end == std::string_view::npos) return {};
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + kLineEnd.size());
    if (first) {
      head.status = status_of(line);
      if (head.status == 0) return {};
      continue;
    }
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return {};
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (!is_name(name) || !is_value(value) || !take(head, name, value)) return {};
  }
  if (!text.empty()) return {};
  return head;
}

}  // namespace headrace
