// Tar archives written by hand, for tests.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/io/tar/tar_walk.h"

namespace headrace::test {

/// An archive in memory.
struct Text final : ByteSource {
  std::string bytes;
  explicit Text(std::string all) : bytes(std::move(all)) {}
  uint64_t size() const override { return bytes.size(); }
  size_t read(uint8_t* to, size_t length, uint64_t offset) const override {
    if (offset >= bytes.size()) return 0;
    const size_t some = std::min<size_t>(length, bytes.size() - offset);
    std::memcpy(to, bytes.data() + offset, some);
    return some;
  }
};

inline void sum(std::string& block) {
  unsigned total = 0;
  block.replace(148, 8, "        ");
  for (const char byte : block) total += static_cast<unsigned char>(byte);
  char field[9];
  std::snprintf(field, sizeof field, "%06o", total & 0777777);
  block.replace(148, 7, field, 7);
}

inline std::string header(const std::string& name, uint64_t size, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  char field[24];
  std::snprintf(field, sizeof field, "%011llo", static_cast<unsigned long long>(size));
  block.replace(124, 11, field);
  block[156] = type;
  block.replace(257, 8, std::string("ustar\00000", 8));
  sum(block);
  return block;
}

inline std::string member(const std::string& name, const std::string& data, char type = '0') {
  return header(name, data.size(), type) + data + std::string((512 - data.size() % 512) % 512, '\0');
}

inline std::string pax(const std::string& key, const std::string& value) {
  std::string record = " " + key + "=" + value + "\n";
  size_t length = record.size() + 1;
  while (std::to_string(length).size() + record.size() != length) ++length;
  return std::to_string(length) + record;
}

inline const std::string kEnd(1024, '\0');

}  // namespace headrace::test
