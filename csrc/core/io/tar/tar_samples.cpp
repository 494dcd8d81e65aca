// Groups members into samples in one walk.
#include "core/io/tar/tar_samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace headrace {
namespace {

constexpr size_t kMostDigits = 24;  // bytes of a label: a sign, digits and blanks

bool blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/// Whether WebDataset treats the member as metadata: its first folder, or its name, is like __this__.
bool is_note(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

/// Whether a folder of the path, or its last name, is `part`.
bool has_part(std::string_view path, std::string_view part) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == part) return true;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return false;
}

[[noreturn]] void refuse(const TarMember& member, const std::string& why) {
  throw ArchiveError("at byte " + std::to_string(member.header) + ": the member " + quoted(member.name) + " " + why);
}

}  // namespace

TarName split_tar_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos) return {};
  if (dot == base) {  // a hidden file: WebDataset's pattern then takes the folder, if it has no dot, for the key
    if (base == 0) return {};
    const size_t before = slash == 0 ? std::string_view::npos : name.rfind('/', slash - 1);
    const size_t folder = before == std::string_view::npos ? 0 : before + 1;
    if (name.substr(folder, base - folder).find('.') != std::string_view::npos) return {};
  }
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string lower_case(std::string_view extension) {
  std::string made(extension);
  for (char& letter : made) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return made;
}

int64_t number_in(const TarMember& member) {
  std::span<const uint8_t> bytes = member.head;
  if (member.size > kMostDigits || member.head.size() < member.size) return TarSamples::kNoNumber;
  while (!bytes.empty() && blank(bytes.front())) bytes = bytes.subspan(1);
  while (!bytes.empty() && blank(bytes.back())) bytes = bytes.first(bytes.size() - 1);
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(begin, begin + bytes.size(), value);
  return error == std::errc() && end == begin + bytes.size() ? value : TarSamples::kNoNumber;
}

TarName checked_name(const TarMember& member) {
  if (has_part(member.name, "..")) refuse(member, "has '..' in its name; write the archive with plain names");
  return is_note(member.name) || is_of_macos(member) ? TarName() : split_tar_name(member.name);
}

bool is_of_macos(const TarMember& member) {
  constexpr std::array<uint8_t, 4> kAppleDouble = {0x00, 0x05, 0x16, 0x07};
  const std::string_view name = member.name;
  const size_t base_at = name.rfind('/') + 1;  // 0 without a folder
  const std::string_view base = name.substr(base_at);
  if (base == ".DS_Store" || has_part(name.substr(0, base_at), "__MACOSX")) return true;
  return base.starts_with("._") && member.head.size() >= kAppleDouble.size() &&
         std::equal(kAppleDouble.begin(), kAppleDouble.end(), member.head.begin());
}

void refuse_repeated(const TarMember& member, std::string_view extension, std::string_view key) {
  refuse(member, "repeats the extension " + quoted(extension) + " of its sample " + quoted(key) +
                     "; give each sample a key of its own");
}

TarSamples tar_samples(const ByteSource& source) {
  TarSamples made;
  std::unordered_map<std::string, uint32_t> known;
  std::vector<uint64_t> last_sample;  // 1 + number of the last sample with each extension
  std::string current;
  TarWalk walk(source);
  for (TarMember member; walk.next(member);) {
    const auto [key, raw] = checked_name(member);
    if (key.empty()) {
      if (is_of_macos(member)) ++made.passed;
      continue;
    }
    if (made.key_offsets.empty() || key != current) {
      current = key;
      made.key_offsets.push_back(made.keys.size());
      made.keys.append(key).push_back('\0');
    }
    const auto [entry, is_new] = known.emplace(lower_case(raw), static_cast<uint32_t>(known.size()));
    if (is_new) {
      made.extensions.push_back(entry->first);
      last_sample.push_back(0);
    }
    const uint64_t sample = made.key_offsets.size();
    if (last_sample[entry->second] == sample) {
      refuse_repeated(member, entry->first, current);
    }
    last_sample[entry->second] = sample;
    made.sample.push_back(static_cast<uint32_t>(sample - 1));
    made.extension.push_back(entry->second);
    made.offset.push_back(member.offset);
    made.length.push_back(member.size);
    made.number.push_back(number_in(member));
  }
  made.has_end = walk.has_end();
  return made;
}

}  // namespace headrace
