// Converts the dataclasses of headrace._recipe.steps to the core's own structs.
#include "bind/convert.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bind/step_fields.h"
#include "bind/texture_conversion.h"

namespace py = pybind11;

namespace headrace {

Filter to_filter(const py::handle& name) {
  static const std::vector<std::pair<std::string, Filter>> kFilters = {
      {"nearest", Filter::kNearest},
      {"lanczos", Filter::kLanczos},
      {"bilinear", Filter::kBilinear},
      {"bicubic", Filter::kBicubic},
      {"box", Filter::kBox},
      {"hamming", Filter::kHamming},
      {"tensor_bilinear", Filter::kTensorBilinear},
      {"tensor_bicubic", Filter::kTensorBicubic},
      {"float_bilinear", Filter::kFloatBilinear},
      {"float_bicubic", Filter::kFloatBicubic},
      {"fused_bilinear", Filter::kFusedBilinear},
      {"fused_bicubic", Filter::kFusedBicubic},
      {"tensor_nearest", Filter::kTensorNearest},
      {"tensor_nearest_exact", Filter::kTensorNearestExact},
      {"opencv_bilinear", Filter::kOpencvBilinear}};
  for (const auto& [known, filter] : kFilters) {
    if (known == py::cast<std::string>(name)) return filter;
  }
  throw py::value_error("unknown filter " + py::cast<std::string>(py::repr(name)));
}

namespace {

PadMode to_pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "edge") return PadMode::kEdge;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "symmetric") return PadMode::kSymmetric;
  throw py::value_error("unknown padding_mode " + name);
}

CenterRule to_center_rule(const std::string& rounding) {
  if (rounding == "even") return CenterRule::kEven;
  if (rounding == "towards_zero") return CenterRule::kTowardsZero;
  if (rounding == "down") return CenterRule::kDown;
  throw py::value_error("unknown rounding " + rounding);
}

const std::map<std::string, Step::Kind> kWarps = {
    {"RandomRotate", Step::Kind::kRandomRotate},
    {"RandomAffine", Step::Kind::kRandomAffine},
    {"RandomPerspective", Step::Kind::kRandomPerspective},
};

const std::map<std::string, Step::Kind> kDrawnSizes = {
    {"RandomResize", Step::Kind::kRandomResize},
    {"ScaleShorter", Step::Kind::kScaleShorter},
    {"ScaleEdge", Step::Kind::kScaleEdge},
    {"FitPatches", Step::Kind::kFitPatches},
    {"ScaleJitter", Step::Kind::kScaleJitter},
    {"ZoomOut", Step::Kind::kZoomOut},
    {"RandomPad", Step::Kind::kRandomPad},
    {"RandomCropOrPad", Step::Kind::kRandomCropOrPad},
    {"RandomKeepRatio", Step::Kind::kRandomKeepRatio},
};

bool is_texture(const py::handle& step) { return StepFields(step).kind() == "Texture"; }

// Whether a parameter is a Drawn. If so, sets the step's draw to its column.
bool read_drawn(const py::handle& parameter, Step& step) {
  if (!py::hasattr(parameter, "column")) return false;
  step.draw = py::cast<int>(parameter.attr("column"));
  return step.drawn = true;
}

// The number of an EraseBoxes' boxes, and what their values depend on.
void read_boxes(StepFields& from, Step& step) {
  step.boxes = {py::cast<int>(from.attr("fewest")), py::cast<int>(from.attr("most"))};
  step.values = py::cast<int>(from.attr("drawn"));
  const auto noise = py::cast<std::string>(from.attr("noise"));
  if (noise == "channel") {
    step.noise = Noise::kChannel;
  } else if (noise == "element") {
    step.noise = Noise::kElement;
  } else if (!noise.empty()) {
    throw py::value_error("unknown noise " + noise);
  }
}

// Reads the parameter of an effect, a column or a constant: the only field of its step, since `check` refuses another.
void read_effect(StepFields& from, Step& step) {
  step.draw = kConstant;
  const std::vector<std::string> names = from.names();
  if (names.empty() || !has_parameter(step.effect)) return;
  const std::string& name = names.front();
  const py::object given = from.attr(name.c_str());
  if (read_drawn(given, step)) return;
  if (name == "draw" && !py::hasattr(given, "value")) {
    step.draw = py::cast<int>(given);
  } else if (name == "order") {
    step.parameter = channel_order(py::cast<std::array<uint8_t, 3>>(given));
  } else {
    step.parameter = py::cast<double>(name == "draw" ? given.attr("value") : given);
  }
}

// Reads the parameters of torchvision's effect on a byte tensor, and how torch rounds.
void read_tensor_effect(StepFields& from, Step& step) {
  step.draw = kConstant;
  step.first_version = py::cast<int>(from.attr("version")) == 1;
  const py::object rounding = from.attr("rounding");
  step.fused = !step.first_version && py::cast<bool>(rounding.attr("sums"));
  if (from.has("factor") && !read_drawn(from.attr("factor"), step)) {
    step.parameter = py::cast<double>(from.attr("factor"));
  }
  if (from.has("channels")) step.one_channel = py::cast<int>(from.attr("channels")) == 1;
  if (step.kind != Step::Kind::kTensorWarp) return;
  step.fused = py::cast<bool>(rounding.attr("samples"));
  step.fused_positions = py::cast<bool>(rounding.attr("positions"));
  step.matrix = py::cast<std::array<double, 6>>(from.attr("matrix"));
  step.filter = to_filter(from.attr("filter"));
  step.filled = !from.attr("fill").is_none();
  if (step.filled) step.color = py::cast<std::array<double, 3>>(from.attr("fill"));
}

Step to_step(const py::handle& from, int& erases);

std::vector<Step> to_steps(const py::handle& from, int& erases) {
  std::vector<Step> steps;
  for (const py::handle step : from) {
    if (!is_texture(step)) steps.push_back(to_step(step, erases));  // SampleOptions::texture
  }
  return steps;
}

// `erases`: rows of the values that the Erase steps before this one write, in the order of the recipe.
Step to_step(const py::handle& given, int& erases) {
  StepFields from(given);
  const std::string& kind = from.kind();
  const auto integer = [&](const char* field) { return py::cast<int>(from.attr(field)); };
  Step step;
  const auto output_size = [&] {
    step.height = integer("height");
    step.width = integer("width");
  };
  const auto padding = [&] {
    step.padding = py::cast<std::array<int, 4>>(from.attr("padding"));
    step.fill = py::cast<std::array<uint8_t, 3>>(from.attr("fill"));
    step.pad_mode = to_pad_mode(py::cast<std::string>(from.attr("padding_mode")));
  };
  const auto chance = [&] {
    step.p = py::cast<double>(from.attr("p"));
    step.draw = integer("draw");
  };
  if (kind == "RandomResizedCrop") {
    step.kind = Step::Kind::kRandomResizedCrop;
    output_size();
    std::tie(step.min_ratio, step.max_ratio) = py::cast<std::pair<double, double>>(from.attr("ratio"));
    step.filter = to_filter(from.attr("filter"));
    step.draw = integer("draw");
  } else if (kind == "Resize") {
    step.kind = Step::Kind::kResize;
    output_size();
    step.filter = to_filter(from.attr("filter"));
  } else if (kind == "ResizeShorter") {
    step.kind = Step::Kind::kResizeShorter;
    step.shorter = from.attr("size").is_none() ? 0 : integer("size");
    step.max_size = from.attr("max_size").is_none() ? 0 : integer("max_size");
    step.filter = to_filter(from.attr("filter"));
  } else if (kind == "ResizeKeepRatio") {
    step.kind = Step::Kind::kResizeKeepRatio;
    output_size();
    step.longest = py::cast<double>(from.attr("longest"));
    step.filter = to_filter(from.attr("filter"));
  } else if (kind == "CenterCrop") {
    step.kind = Step::Kind::kCenterCrop;
    output_size();
    step.fill = py::cast<std::array<uint8_t, 3>>(from.attr("fill"));
    step.center_rule = to_center_rule(py::cast<std::string>(from.attr("rounding")));
    step.pad_mode = to_pad_mode(py::cast<std::string>(from.attr("padding_mode")));
  } else if (const auto drawn = kDrawnSizes.find(kind); drawn != kDrawnSizes.end()) {
    step.kind = drawn->second;
    if (from.has("height")) output_size();
    if (from.has("draw")) step.draw = integer("draw");
    if (from.has("filter")) step.filter = to_filter(from.attr("filter"));
    if (from.has("fill")) step.fill = py::cast<std::array<uint8_t, 3>>(from.attr("fill"));
    if (from.has("padding_mode")) {
      step.pad_mode = to_pad_mode(py::cast<std::string>(from.attr("padding_mode")));
    }
    if (from.has("low")) step.shorter = integer("low");
    if (from.has("high")) step.max_size = integer("high");
    if (kind == "ScaleShorter") {
      step.shorter = integer("size");
      step.max_size = from.attr("max_size").is_none() ? 0 : integer("max_size");
    }
    if (kind == "ScaleEdge") {
      step.shorter = integer("size");
      step.of_longer = py::cast<bool>(from.attr("of_longer"));
    }
    if (from.has("patch")) step.patch = integer("patch");
    if (from.has("least")) step.least_patches = integer("least");
    if (from.has("most")) step.most_patches = integer("most");
    if (kind == "RandomKeepRatio") {
      step.longest = py::cast<double>(from.attr("longest"));
      step.p = py::cast<double>(from.attr("scale_p"));
      step.aspect_p = py::cast<double>(from.attr("aspect_p"));
      step.of_area = py::cast<bool>(from.attr("of_area"));
    }
  } else if (kind == "CornerCrop") {
    step.kind = Step::Kind::kCornerCrop;
    output_size();
    step.at_bottom = py::cast<bool>(from.attr("bottom"));
    step.at_right = py::cast<bool>(from.attr("right"));
  } else if (kind == "RandomCrop") {
    step.kind = Step::Kind::kRandomCrop;
    output_size();
    padding();
    step.pad_if_needed = py::cast<bool>(from.attr("pad_if_needed"));
    step.draw = integer("draw");
  } else if (kind == "HorizontalFlip" || kind == "VerticalFlip") {
    step.kind = kind == "HorizontalFlip" ? Step::Kind::kHorizontalFlip : Step::Kind::kVerticalFlip;
    chance();
  } else if (kind == "Grayscale") {
    step.kind = Step::Kind::kGrayscale;
  } else if (kind == "Call") {
    step.kind = Step::Kind::kCall;
  } else if (kind == "Pad") {
    step.kind = Step::Kind::kPad;
    padding();
  } else if (const Effect::Kind* effect = effect_named(kind); effect != nullptr) {
    step.kind = Step::Kind::kEffect;
    step.effect = *effect;
    is_of_tensors(*effect) ? read_tensor_effect(from, step) : read_effect(from, step);
  } else if (kind == "PillowBlur") {
    step.kind = Step::Kind::kBoxBlur;
    if (!read_drawn(from.attr("radius"), step)) {
      const auto box = py::cast<std::array<double, 3>>(from.attr("box"));
      std::copy(box.begin(), box.end(), step.matrix.begin());
    }
  } else if (kind == "GaussianBlur") {
    step.kind = Step::Kind::kGaussianBlur;
    output_size();
    step.draw = integer("draw");
  } else if (kind == "Affine" || kind == "Rotate") {
    step.kind = kind == "Affine" ? Step::Kind::kAffine : Step::Kind::kRotate;
    step.filter = to_filter(from.attr("filter"));
    step.fill = py::cast<std::array<uint8_t, 3>>(from.attr("fill"));
    const py::sequence numbers = from.attr(kind == "Affine" ? "matrix" : "turn");
    if (numbers.size() != (kind == "Affine" ? 6 : 3)) throw py::value_error(kind + ": another number of coefficients");
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!read_drawn(numbers[i], step)) {
        step.matrix[i] = py::cast<double>(numbers[i]);
      } else if (std::exchange(step.coefficient, static_cast<int>(i)) >= 0) {
        throw py::value_error("Affine: at most one coefficient is drawn");
      }
    }
  } else if (const auto warp = kWarps.find(kind); warp != kWarps.end()) {
    step.kind = warp->second;
    step.filter = to_filter(from.attr("filter"));
    step.fill = py::cast<std::array<uint8_t, 3>>(from.attr("fill"));
    step.draw = integer("draw");
    if (from.has("expand")) step.expand = py::cast<bool>(from.attr("expand"));
    if (from.has("version")) step.first_version = integer("version") == 1;
    if (from.has("center") && !from.attr("center").is_none()) {
      step.centered = false;
      step.center = py::cast<std::array<double, 2>>(from.attr("center"));
    }
  } else if (kind == "When") {
    step.kind = Step::Kind::kWhen;
    chance();
    step.branches.push_back(to_steps(from.attr("steps"), erases));
  } else if (kind == "OneOf" || kind == "Shuffled") {
    step.kind = kind == "OneOf" ? Step::Kind::kOneOf : Step::Kind::kShuffled;
    step.draw = integer("draw");
    for (const py::handle branch : from.attr("branches")) step.branches.push_back(to_steps(branch, erases));
    if (kind == "OneOf") step.bounds = py::cast<std::vector<double>>(from.attr("bounds"));
    if (kind == "OneOf" && (step.bounds.empty() || step.bounds.size() != step.branches.size())) {
      throw py::value_error("OneOf: as many bounds as branches, at least one");
    }
  } else if (kind == "ScaleShift") {
    step.kind = Step::Kind::kScaleShift;
    step.draw = integer("draw");
  } else if (kind == "TensorWarp") {
    step.kind = Step::Kind::kTensorWarp;
    read_tensor_effect(from, step);
  } else if (kind == "MixChains" || kind == "SumChains") {
    step.kind = Step::Kind::kMixChains;
    step.draw = integer("draw");
    step.summed = kind == "SumChains";
    step.blended = !step.summed && py::cast<bool>(from.attr("blended"));
    for (const py::handle chain : from.attr("chains")) step.branches.push_back(to_steps(chain, erases));
  } else if (kind == "Erase" || kind == "EraseBoxes") {
    step.kind = Step::Kind::kErase;
    chance();
    step.value = erases;
    if (kind == "EraseBoxes") read_boxes(from, step);
    erases += step.noise == Noise::kNone ? 1 : kNoiseLevels;
  } else {
    throw py::type_error("the native core does not know the step " + kind);
  }
  from.check();
  return step;
}

Recipe to_recipe(const py::handle& from, const std::string& pass_order) {
  Recipe recipe;
  recipe.steps = to_steps(from.attr("steps"), recipe.erases);
  int calls = 0;
  for (Step& step : recipe.steps) {
    if (step.kind == Step::Kind::kCall) step.call = calls++;
  }
  recipe.draws = static_cast<int>(py::len(from.attr("columns")));
  recipe.output = {py::cast<int>(from.attr("width")), py::cast<int>(from.attr("height"))};
  if (pass_order == "horizontal_first") {
    recipe.pass_order = PassOrder::kHorizontalFirst;
  } else if (pass_order == "tall_split") {
    recipe.pass_order = PassOrder::kTallSplit;
  } else if (pass_order == "by_reduction") {
    recipe.pass_order = PassOrder::kByReduction;
  } else {
    throw py::value_error("unknown pass order " + pass_order);
  }
  return recipe;
}

}  // namespace

SampleOptions to_sample_options(const py::object& recipe, const py::buffer& lut, const std::string& layout,
                                int64_t max_pixels, const std::string& pass_order, int frames) {
  SampleOptions options;
  options.recipe = to_recipe(recipe, pass_order);
  const py::buffer_info table = bytes_of(lut);
  const auto* bytes = static_cast<const uint8_t*>(table.ptr);
  options.lut.assign(bytes, bytes + table.size * table.itemsize);
  const int channels = py::cast<int>(recipe.attr("channels"));
  const int element_bytes = static_cast<int>(options.lut.size()) / (256 * channels);
  const auto erased = py::cast<std::string>(recipe.attr("erase_bytes"));
  options.erased.assign(erased.begin(), erased.end());
  if (options.recipe.steps.empty()) {  // plans that come with the batches may erase
    options.recipe.erases = static_cast<int>(options.erased.size()) / (channels * element_bytes);
  }
  if (options.erased.size() != static_cast<size_t>(options.recipe.erases * channels * element_bytes)) {
    throw py::value_error("erased: one element a channel for each row");
  }
  options.layout = to_layout(layout);
  options.strides = strides_of(options.layout, channels, options.recipe.output, element_bytes);
  if (const py::object texture = recipe.attr("texture"); !texture.is_none()) {
    options.texture = to_texture(options.recipe.output, texture.attr("bands"), texture.attr("tables"));
    options.strides =
        texture_strides(options.layout, py::cast<std::string>(texture.attr("layout")), options.recipe.output);
  }
  if (frames != 1) {
    if (frames < 1 || options.layout != Layout::kPlanar || options.texture != nullptr ||
        options.recipe.output.width == 0) {
      throw py::value_error("frames: only planar images of one size are stored as clips");
    }
    options.strides = clip_strides(options.strides, frames);
  }
  options.max_pixels = max_pixels;
  options.upright = py::cast<bool>(recipe.attr("upright"));
  options.indices = py::cast<std::string>(recipe.attr("mode")) == "P";
  return options;
}

py::buffer_info bytes_of(const py::buffer& buffer) {
  py::buffer_info info = buffer.request();
  ssize_t expected = info.itemsize;
  for (ssize_t axis = info.ndim; axis-- > 0;) {
    if (info.shape[axis] > 1 && info.strides[axis] != expected) throw py::value_error("the buffer is not contiguous");
    expected *= info.shape[axis];
  }
  return info;
}

const Kernels* named_kernels(const std::string& isa) {
  if (isa.empty()) return nullptr;
  const Kernels* named = kernels_named(isa.c_str());
  if (named == nullptr) throw py::value_error("this processor has no instruction set " + isa);
  return named;
}

Layout to_layout(const std::string& name) {
  if (name == "planar") return Layout::kPlanar;
  if (name == "channels_last") return Layout::kChannelsLast;
  throw py::value_error("layout must be 'planar' or 'channels_last', not '" + name + "'");
}

ElementTable::ElementTable(const py::buffer& buffer, Size size, Layout layout) : info(bytes_of(buffer)) {
  entries = {static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
  strides = strides_of(layout, 3, size, static_cast<int>(entries.size() / (3 * 256)));
}

}  // namespace headrace
