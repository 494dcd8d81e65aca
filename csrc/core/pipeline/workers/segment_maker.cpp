// Runs the part of a recipe that comes before a Python step.
#include "core/pipeline/workers/segment_maker.h"

#include "core/fuse/sinks/rgbx_output.h"
#include "core/pipeline/workers/sample_maker.h"

namespace headrace {
namespace {

RgbxImage empty_image(Size size) {
  return {std::vector<uint8_t>(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * kPixelBytes), size};
}

}  // namespace

RgbxImage SegmentMaker::from_file(std::span<const uint8_t> bytes, const double* draws, const SampleOptions& options,
                                  Size& opened, EntryPoints* entry_points) {
  const JpegHeader header = plain_header(bytes, options);
  opened = header.size;
  const Plan plan = resolve(options.recipe, draws, header.size);
  RgbxImage image = empty_image(plan.last.box.size());
  const Output output = rgbx_output(image.pixels.data(), image.size);
  decoder_.decode(bytes, header, decode_box(plan, header.size), fuser_.begin(plan, header.size, output), entry_points);
  return image;
}

RgbxImage SegmentMaker::from_pixels(const RawImage& image, const double* draws, const SampleOptions& options,
                                    size_t from) {
  const Plan plan = resolve(options.recipe, draws, image.size, from);
  RgbxImage made = empty_image(plan.last.box.size());
  const Output output = rgbx_output(made.pixels.data(), made.size);
  raw_rows_.push(image, decode_box(plan, image.size), fuser_.begin(plan, image.size, output));
  return made;
}

}  // namespace headrace
