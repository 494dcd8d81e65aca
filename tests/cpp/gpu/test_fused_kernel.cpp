// The fused kernel, emulated, writes the bytes of the CPU's own path, for every plan, format and kind of image.
#include <doctest/doctest.h>

#include <memory>

#include "core/fuse/fuse.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "gpu/device/emulation.h"
#include "gpu/kernel/job_builder.h"
#include "support/jpeg_samples.h"
#include "support/plan_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// Host memory in place of the device's.
class HeapStager : public Stager {
 public:
  StagedBytes take(size_t bytes) override {
    blocks_.push_back(std::make_unique<uint32_t[]>(bytes / 4 + 1));
    auto* at = reinterpret_cast<uint8_t*>(blocks_.back().get());
    return {at, at};
  }
  uint8_t* take_device(size_t bytes) override { return take(bytes).device; }

 private:
  std::vector<std::unique_ptr<uint32_t[]>> blocks_;
};

PlanarImage rgbx(const std::vector<uint8_t>& pixels, Size size) {
  PlanarImage image;
  image.colour = Colour::kRgbx;
  image.width = size.width;
  image.height = size.height;
  image.plane[0].data = pixels.data();
  image.plane[0].stride = size.width * kPixelBytes;
  return image;
}

OutputFormat format_of(const Output& output, Size size) {
  OutputFormat format;
  format.width = size.width;
  format.height = size.height;
  format.channels = output.lut.channels;
  format.element_bytes = output.lut.element_bytes;
  format.channel_stride = output.channel_stride;
  format.row_stride = output.row_stride;
  format.pixel_stride = output.pixel_stride;
  format.lut = output.lut.entries;
  format.erased = output.erased;
  return format;
}

void run_emulated(const Plan& plan, const PlanarImage& image, const Output& output) {
  HeapStager stager;
  SampleJob job = JobBuilder().build(plan, image, stager);
  job.output = output.base;
  emulate(launch_of(&job, {&job, 1}, format_of(output, plan.last.box.size())));
}

std::vector<uint8_t> random_entries(PlanMaker& maker) {
  std::vector<uint8_t> entries(kMaxLutBytes + 64);
  for (uint8_t& b : entries) b = static_cast<uint8_t>(maker.between(0, 255));
  return entries;
}

}  // namespace

TEST_CASE("the emulated kernel writes the CPU's bytes for plans of all kinds") {
  PlanMaker maker(23);
  Fuser fuser(*kernels_named("scalar"));
  const std::vector<uint8_t> entries = random_entries(maker);
  for (int i = 0; i < 600; ++i) {
    CAPTURE(i);
    const Size size{maker.between(1, 150), maker.between(1, 150)};
    const std::vector<uint8_t> pixels = maker.image(size);
    const Plan plan = maker.plan(size, 1);
    REQUIRE(fits_kernel(plan));
    const int element = 1 << maker.between(0, 2), channels = maker.coin() ? 3 : 1;
    const bool planar = maker.coin();
    Sample want(plan.last.box.size(), element, channels, planar, entries.data());
    fuser.run(plan, pixels.data(), size_t(size.width) * kPixelBytes, size, want.output);
    Sample got(plan.last.box.size(), element, channels, planar, entries.data());
    run_emulated(plan, rgbx(pixels, size), got.output);
    REQUIRE(got.bytes == want.bytes);
  }
}

TEST_CASE("with effects and erased boxes the emulated kernels write the CPU's bytes") {
  PlanMaker maker(27);
  Fuser fuser(*kernels_named("scalar"));
  const std::vector<uint8_t> entries = random_entries(maker);
  std::vector<uint8_t> values(size_t(4 + kNoiseLevels) * 3 * 4);
  for (uint8_t& byte : values) byte = static_cast<uint8_t>(maker.between(0, 255));
  int retouched = 0;
  for (int i = 0; i < 800; ++i) {
    CAPTURE(i);
    const Size size{maker.between(1, 120), maker.between(1, 120)};
    const std::vector<uint8_t> pixels = maker.image(size);
    Plan plan = maker.plan(size, 1);
    const Size resized = plan.stages.empty() ? size : plan.stages[0].resize;
    if (plan.stages.empty() || maker.coin()) {  // a part of the image is materialised before its effects
      PlanStage part;
      part.take = maker.take(resized, maker.coin());
      part.resize = part.take.box.size();
      plan.stages.push_back(part);
      plan.last = maker.take(part.resize, maker.coin());
    }
    maker.add_effects(plan, plan.stages.back(), 5);
    const Size out = plan.last.box.size();
    plan.erased = maker.erased(out, 4);
    if (!fits_kernel(plan)) continue;  // no effect was drawn, or a box blur or a mix, which are the CPU's
    retouched += !plan.stages.back().effects.empty();
    const int element = 1 << maker.between(0, 2), channels = maker.coin() ? 3 : 1;
    const bool planar = maker.coin();
    Sample want(out, element, channels, planar, entries.data()), got(out, element, channels, planar, entries.data());
    want.output.erased = got.output.erased = values.data();
    fuser.run(plan, pixels.data(), size_t(size.width) * kPixelBytes, size, want.output);
    run_emulated(plan, rgbx(pixels, size), got.output);
    REQUIRE(got.bytes == want.bytes);
  }
  CHECK(retouched > 400);
}

TEST_CASE("resizes after effects, and a second one before them, are for the CPU") {
  const Effect invert{Effect::Kind::kInvert};
  Plan plan;
  plan.stages.push_back({{.box = {0, 0, 9, 9}}, {5, 5}});
  CHECK(fits_kernel(plan));
  plan.stages[0].effects = {invert};
  CHECK(fits_kernel(plan));
  plan.stages.push_back({{.box = {0, 0, 5, 5}}, {5, 5}, Filter::kNearest, false, {invert}});
  CHECK_FALSE(fits_kernel(plan));
  plan.stages[0].effects.clear();
  CHECK(fits_kernel(plan));
  plan.stages[1].resize = {4, 5};
  CHECK_FALSE(fits_kernel(plan));
  for (const Filter filter : {Filter::kFloatBilinear, Filter::kFusedBicubic}) {
    Plan floats;
    floats.stages.push_back({{.box = {0, 0, 9, 9}}, {5, 5}, filter});
    CHECK_FALSE(fits_kernel(floats));
  }
}

TEST_CASE("an image that shrinks to a hundredth does not fit the shared memory, and is right all the same") {
  PlanMaker maker(24);
  const std::vector<uint8_t> entries = random_entries(maker);
  for (const Size size : {Size{9000, 3}, Size{3, 9000}, Size{7000, 40}}) {
    const std::vector<uint8_t> pixels = maker.image(size);
    for (const bool vertical_first : {false, true}) {
      Plan plan;
      plan.stages.push_back({{.box = whole_image(size)}, {40, 33}, Filter::kLanczos, vertical_first});
      plan.last.box = {0, 0, 40, 33};
      Sample want({40, 33}, 1, 3, true, entries.data()), got({40, 33}, 1, 3, true, entries.data());
      Fuser(kernels()).run(plan, pixels.data(), size_t(size.width) * kPixelBytes, size, want.output);
      run_emulated(plan, rgbx(pixels, size), got.output);
      CHECK(got.bytes == want.bytes);
    }
  }
}

TEST_CASE("from a JPEG's planes the emulated kernel writes what the CPU writes from its pixels") {
  PlanMaker maker(25);
  Fuser fuser(*kernels_named("scalar"));
  PlaneDecoder decoder(nullptr);
  const std::vector<uint8_t> entries = random_entries(maker);
  const std::array<std::array<int, 3>, 4> factors{{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 2}}};
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    JpegOptions options;
    options.width = maker.between(1, 120);
    options.height = maker.between(1, 120);
    options.h = factors[static_cast<size_t>(maker.between(0, 3))];
    options.v = factors[static_cast<size_t>(maker.between(0, 3))];
    options.components = maker.between(0, 5) == 0 ? 1 : 3;
    options.interleaved = options.h[0] * options.v[0] <= 8;  // an MCU holds at most ten blocks
    options.rgb = options.components == 3 && maker.between(0, 9) == 0;
    options.progressive = maker.between(0, 4) == 0;
    const std::vector<uint8_t> jpeg = make_jpeg(options), pixels = decode_whole(jpeg);
    const JpegHeader header = parse_jpeg_header(jpeg);
    REQUIRE(header.not_plain == nullptr);
    const Plan plan = maker.plan(header.size, 1);
    Sample want(plan.last.box.size(), 4, 3, true, entries.data()),
        got(plan.last.box.size(), 4, 3, true, entries.data());
    fuser.run(plan, pixels.data(), size_t(options.width) * kPixelBytes, header.size, want.output);
    const PlaneLayout layout = plane_layout(header, kernel_box(plan, header.size));
    std::vector<uint8_t> samples(layout.bytes);
    decoder.decode(jpeg, header, layout, samples.data());
    run_emulated(plan, layout.at(samples.data()), got.output);
    REQUIRE(got.bytes == want.bytes);
  }
}

TEST_CASE("crops of 4:2:0 and 4:4:4 planes, enlarged and up to 60 times smaller") {
  PlanMaker maker(28);
  Fuser fuser(*kernels_named("scalar"));
  PlaneDecoder decoder(nullptr);
  const std::vector<uint8_t> entries = random_entries(maker);
  const std::array<Filter, 3> filters{Filter::kBilinear, Filter::kBicubic, Filter::kLanczos};
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    JpegOptions options;
    options.width = maker.between(200, 900);
    options.height = maker.between(200, 900);
    options.h = options.v = {i % 3 == 0 ? 1 : 2, 1, 1};
    const std::vector<uint8_t> jpeg = make_jpeg(options), pixels = decode_whole(jpeg);
    const JpegHeader header = parse_jpeg_header(jpeg);
    const Size size = header.size;
    Plan plan;
    PlanStage stage;
    stage.take.box = {maker.between(0, size.width / 2), maker.between(0, size.height / 2), 0, 0};
    stage.take.box.width = maker.between(20, size.width - stage.take.box.x);
    stage.take.box.height = maker.between(20, size.height - stage.take.box.y);
    // A tile's lines all fit the shared memory up to 2.7 times smaller, and a whole line up to some 40 times.
    const int smaller = 1 << maker.between(0, 6);
    stage.resize = {std::max(1, stage.take.box.width / smaller), std::max(1, maker.between(20, 90) / smaller)};
    stage.filter = filters[static_cast<size_t>(maker.between(0, 2))];
    stage.vertical_first = maker.coin();
    plan.stages.push_back(stage);
    plan.last.box = {0, 0, stage.resize.width, stage.resize.height};
    plan.last.flip_horizontal = maker.coin();
    Sample want(stage.resize, 4, 3, true, entries.data()), got(stage.resize, 4, 3, true, entries.data());
    fuser.run(plan, pixels.data(), size_t(size.width) * kPixelBytes, size, want.output);
    const PlaneLayout layout = plane_layout(header, kernel_box(plan, size));
    std::vector<uint8_t> samples(layout.bytes);
    decoder.decode(jpeg, header, layout, samples.data());
    run_emulated(plan, layout.at(samples.data()), got.output);
    REQUIRE(got.bytes == want.bytes);
  }
}

TEST_CASE("a ragged batch is one launch, and what could not be made is not written") {
  PlanMaker maker(26);
  const std::vector<uint8_t> entries = random_entries(maker);
  constexpr int kSamples = 5, kSize = 50;
  const size_t each = size_t{3} * kSize * kSize * 2;
  std::vector<uint8_t> want(each * kSamples, 0x77), got = want;
  std::vector<std::vector<uint8_t>> images;
  std::vector<SampleJob> jobs;
  HeapStager stager;
  OutputFormat format;
  for (int i = 0; i < kSamples; ++i) {
    const Size size{maker.between(20, 200), maker.between(20, 200)};
    images.push_back(maker.image(size));
    Plan plan;
    plan.stages.push_back({maker.take(size, false), {kSize, kSize}, Filter::kBicubic, maker.coin()});
    plan.last.box = {0, 0, kSize, kSize};
    Sample one({kSize, kSize}, 2, 3, false, entries.data());
    Fuser(kernels()).run(plan, images.back().data(), size_t(size.width) * kPixelBytes, size, one.output);
    format = format_of(one.output, {kSize, kSize});
    jobs.push_back(JobBuilder().build(plan, rgbx(images.back(), size), stager));
    jobs.back().output = got.data() + size_t(i) * each;
    jobs.back().skip = i == 2;
    if (i != 2) std::copy(one.bytes.begin(), one.bytes.end(), want.begin() + ptrdiff_t(size_t(i) * each));
  }
  emulate(launch_of(jobs.data(), jobs, format));
  CHECK(got == want);
}
