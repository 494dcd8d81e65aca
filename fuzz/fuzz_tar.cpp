// libFuzzer harness: the index of a tar archive of any bytes. What is accepted is inside the archive, and is found
// again where the index says.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/io/tar/arriving_tar.h"
#include "core/io/tar/tar_check.h"
#include "core/io/tar/tar_samples.h"

namespace {

using namespace headrace;

class Memory final : public ByteSource {
 public:
  explicit Memory(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  size_t read(uint8_t* to, size_t length, uint64_t offset) const override {
    if (offset >= bytes_.size()) return 0;
    const size_t some = std::min<size_t>(length, bytes_.size() - offset);
    std::memcpy(to, bytes_.data() + offset, some);
    return some;
  }

 private:
  const std::span<const uint8_t> bytes_;
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_tar: %s\n", what);
  __builtin_trap();
}

/// The members of the same archive, arriving in pieces; throws what the whole archive does.
void arrive(std::span<const uint8_t> bytes, size_t piece, size_t expected) {
  ArrivingTar tar(bytes.size(), 0, {"jpg", "cls"});
  size_t fed = 0, members = 0;
  for (ArrivedMember member;;) {
    const ArrivingTar::Step step = tar.next(member);
    if (step == ArrivingTar::Step::kEnd) break;
    if (step == ArrivingTar::Step::kMember) {
      ++members;
      require(member.begin < member.offset && member.offset + member.size <= bytes.size(), "an arrived member outside");
      if (member.wanted && member.size > 0) {
        require(std::memcmp(member.bytes.data(), bytes.data() + member.offset, member.size) == 0, "other bytes");
      }
      continue;
    }
    require(fed < bytes.size(), "more bytes are wanted than there are");
    const size_t some = std::min(piece, bytes.size() - fed);
    tar.append(copy_of(bytes.subspan(fed, some)));
    fed += some;
  }
  require(members == expected, "another number of members has arrived");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const TarSamples made = tar_samples(Memory({bytes, size}));
    for (size_t i = 0; i < made.sample.size(); ++i) {
      require(made.offset[i] % TarWalk::kBlock == 0 && made.offset[i] <= size, "an offset behind the end");
      require(made.length[i] <= size - made.offset[i], "a member behind the end");
      require(made.sample[i] < made.key_offsets.size() && made.extension[i] < made.extensions.size(), "a wrong number");
      require(i == 0 ? made.sample[0] == 0 : made.sample[i] - made.sample[i - 1] <= 1, "a sample without members");
    }
    const Memory source({bytes, size});
    for (size_t i = 0; i < std::min<size_t>(made.sample.size(), 64); ++i) {
      TarPlace place{made.offset[i], made.length[i], made.keys.c_str() + made.key_offsets[made.sample[i]],
                     made.extensions[made.extension[i]]};
      int64_t number = 0;
      const bool found = is_member_at(source, place, &number);
      // Headers of more than 32 KiB in front of a member's own are not looked through.
      const uint64_t before = i == 0 ? 0 : made.offset[i - 1] + made.length[i - 1];
      require(found || made.offset[i] - before > 32'000, "a member is not found again");
      require(!found || number == made.number[i], "another number is found");
      place.offset += TarWalk::kBlock;
      is_member_at(source, place);
    }
    if (size >= TarWalk::kBlock) header_mark({bytes, TarWalk::kBlock});
    for (const size_t piece : {size_t{100}, size_t{1} << 20}) arrive({bytes, size}, piece, made.sample.size());
    for (const uint64_t key : made.key_offsets) require(made.keys[key] != '\0', "an empty key");
  } catch (const ArchiveError&) {
  }
  return 0;
}
