// The sizes and boxes of single steps, with the rounding rules of torchvision, timm and transformers.
//
// Note [pass order]: Pillow resizes in two passes with 8-bit rounding between them, so their order affects the pixels.
// Up to 12.1 the horizontal pass comes first. Since 12.2 an image over 100 times as high as wide that gets shorter is
// resized in two steps, the vertical one first. Since 13.0 the vertical pass comes first if it removes enough rows.
#include "core/plan/plan_geometry.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/base/error.h"

namespace headrace {

int round_half_even(double value) { return static_cast<int>(std::nearbyint(value)); }

int uniform_below(double u, int n) { return std::min(static_cast<int>(u * n), n - 1); }

bool vertical_first(PassOrder order, Size in, Size out) {
  if (in.width == out.width || in.height == out.height) return false;  // at most one pass
  switch (order) {
    case PassOrder::kHorizontalFirst:
      return false;
    case PassOrder::kTallSplit:
      return in.height > 100 * in.width && out.height < in.height;
    case PassOrder::kByReduction:
      return in.height > out.height && in.height - out.height > 2 * (in.width - out.width);
  }
  return false;
}

// torchvision RandomResizedCrop.get_params: ten tries, then the largest centred box within the ratios.
Box random_resized_box(const Step& step, const double* draws, Size image) {
  const int width = image.width, height = image.height;
  const double area = static_cast<double>(height) * width;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * draws[2 * attempt];
    const double aspect = draws[2 * attempt + 1];
    const double exact_w = std::sqrt(target_area * aspect), exact_h = std::sqrt(target_area / aspect);
    // Compared before the conversion: with a user's scale the size may not fit int.
    if (!(exact_w < width + 1.0 && exact_h < height + 1.0)) continue;
    const int w = round_half_even(exact_w), h = round_half_even(exact_h);
    if (0 < w && w <= width && 0 < h && h <= height) {
      return {uniform_below(draws[21], width - w + 1), uniform_below(draws[20], height - h + 1), w, h};
    }
  }
  const double in_ratio = static_cast<double>(width) / height;
  int w = width, h = height;
  if (in_ratio < step.min_ratio) {
    h = round_half_even(w / step.min_ratio);
  } else if (in_ratio > step.max_ratio) {
    w = round_half_even(h * step.max_ratio);
  }
  return {(width - w) / 2, (height - h) / 2, w, h};
}

// torchvision _compute_resized_output_size for one number.
Size shorter_edge(const Step& step, Size image) {
  const bool upright = image.width <= image.height;
  const double in_short = upright ? image.width : image.height;
  const double in_long = upright ? image.height : image.width;
  // The products are integers below 2^53, so each quotient is rounded once, as Python's is.
  double out_short = step.shorter, out_long = std::trunc(step.shorter * in_long / in_short);
  if (step.shorter == 0) {  // v2's Resize(None, max_size=n): the longer edge becomes n
    out_long = step.max_size;
    out_short = std::trunc(step.max_size * in_short / in_long);
  } else if (step.max_size > 0 && out_long > step.max_size) {
    out_short = std::trunc(step.max_size * out_short / out_long);
    out_long = step.max_size;
  }
  const int s = static_cast<int>(out_short), l = static_cast<int>(std::min(out_long, 1e9));
  return upright ? Size{s, l} : Size{l, s};
}

namespace {

// Python's int() of an edge, within int.
int cut(double edge) { return static_cast<int>(std::min(edge, 1e9)); }

// The factor by which an image exceeds the target.
double excess(const Step& step, Size image) {
  const double rows = static_cast<double>(image.height) / step.height;
  const double columns = static_cast<double>(image.width) / step.width;
  return std::max(rows, columns) * step.longest + std::min(rows, columns) * (1.0 - step.longest);
}

// Most pixels along an edge: the number of bytes of such a row fits int. Pillow's limit is twice this.
constexpr int kMostEdge = 1 << 28;

}  // namespace

std::string shown_size(int64_t height, int64_t width) {
  return "(" + std::to_string(height) + ", " + std::to_string(width) + ")";
}

Size checked(int64_t width, int64_t height) {
  if (std::max(width, height) > kMostEdge) {
    throw Error(Stage::kPlan, "an image of " + shown_size(height, width) +
                                  " pixels (height, width) is too large: at most " + std::to_string(kMostEdge) +
                                  " pixels along an edge are supported; use less padding, or resize");
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

// timm ResizeKeepRatio.get_params without its random factors.
Size keep_ratio_size(const Step& step, Size image) {
  const auto edge = [ratio = excess(step, image)](int from) { return round_half_even(std::min(from / ratio, 1e9)); };
  return {edge(image.width), edge(image.height)};
}

// timm ResizeKeepRatio.get_params: chance and value of a scale, chance and value of an aspect ratio.
Size random_keep_ratio_size(const Step& step, const double* draws, Size image) {
  double rows = 1, columns = 1;
  if (draws[0] < step.p) rows = columns = step.of_area ? 1 / std::sqrt(draws[1]) : draws[1];
  if (draws[2] < step.aspect_p) {
    const double aspect = std::sqrt(draws[3]);
    rows /= aspect;
    columns *= aspect;
  }
  const double ratio = excess(step, image);
  const auto edge = [ratio](int from, double factor) { return round_half_even(std::min(from * factor / ratio, 1e9)); };
  return {edge(image.width, columns), edge(image.height, rows)};
}

// torchvision RandomResize.make_params.
Size drawn_shorter_edge(const Step& step, double u, Size image) {
  Step drawn;
  drawn.shorter = step.shorter + uniform_below(u, step.max_size - step.shorter);
  return shorter_edge(drawn, image);
}

// torchvision RandomShortestSize.make_params of one size: its factor is rounded before the edges are computed.
Size scaled_shorter(const Step& step, Size image) {
  double factor = static_cast<double>(step.shorter) / std::min(image.width, image.height);
  if (step.max_size > 0) {
    factor = std::min(factor, static_cast<double>(step.max_size) / std::max(image.width, image.height));
  }
  return {cut(image.width * factor), cut(image.height * factor)};
}

// albumentations' SmallestMaxSize and LongestMaxSize.
Size scaled_edge(const Step& step, Size image) {
  const int edge = step.of_longer ? std::max(image.width, image.height) : std::min(image.width, image.height);
  const double factor = static_cast<double>(step.shorter) / edge;
  const auto scaled = [factor](int from) { return std::max(1, round_half_even(std::min(from * factor, 1e9))); };
  return {scaled(image.width), scaled(image.height)};
}

// transformers' smart_resize of Qwen2-VL, and slivers cut to the budget. Python's operations in Python's order.
Size fitted_to_patches(const Step& step, Size image) {
  const double edge = step.patch, area = edge * edge, height = image.height, width = image.width;
  double rows = std::nearbyint(height / edge), columns = std::nearbyint(width / edge);
  if (rows * columns > step.most_patches) {
    const double beta = std::sqrt(height * width / (step.most_patches * area));
    rows = std::max(1.0, std::floor(height / beta / edge));
    columns = std::max(1.0, std::floor(width / beta / edge));
  } else if (rows * columns < step.least_patches) {
    const double beta = std::sqrt(step.least_patches * area / (height * width));
    rows = std::ceil(height * beta / edge);
    columns = std::ceil(width * beta / edge);
  }
  if (rows * columns > step.most_patches) {
    double& longer = rows > columns ? rows : columns;
    longer = std::max(1.0, std::floor(step.most_patches / std::min(rows, columns)));
  }
  return {static_cast<int>(columns) * step.patch, static_cast<int>(rows) * step.patch};
}

Size computed_size(const Step& step, Size image) {
  switch (step.kind) {
    case Step::Kind::kResizeShorter:
      return shorter_edge(step, image);
    case Step::Kind::kResizeKeepRatio:
      return keep_ratio_size(step, image);
    case Step::Kind::kScaleShorter:
      return scaled_shorter(step, image);
    case Step::Kind::kScaleEdge:
      return scaled_edge(step, image);
    case Step::Kind::kFitPatches:
      return fitted_to_patches(step, image);
    default:
      throw std::logic_error("the size of this step does not follow from the image's");
  }
}

// torchvision ScaleJitter.make_params.
Size jittered(const Step& step, double scale, Size image) {
  const double rows = static_cast<double>(step.height) / image.height;
  const double columns = static_cast<double>(step.width) / image.width;
  const double factor = std::min(rows, columns) * scale;
  return {cut(image.width * factor), cut(image.height * factor)};
}

// torchvision RandomZoomOut.make_params: a factor of both edges, then the share of the padding that is left and above.
Box zoomed_out(const double* draws, Size image) {
  const int width = cut(image.width * draws[0]), height = cut(image.height * draws[0]);
  return {-static_cast<int>((width - image.width) * draws[1]), -static_cast<int>((height - image.height) * draws[2]),
          width, height};
}

// timm RandomPad.get_params.
Box random_padding(const Step& step, const double* draws, Size image) {
  const int rows = std::max(step.height - image.height, 0), columns = std::max(step.width - image.width, 0);
  return {-uniform_below(draws[0], columns + 1), -uniform_below(draws[1], rows + 1), image.width + columns,
          image.height + rows};
}

// timm RandomCropOrPad.get_params: along each edge a position in the image, or of the image in the output.
Box random_window(const Step& step, const double* draws, Size image) {
  const auto position = [](double u, int more) {
    return more < 0 ? -uniform_below(u, 1 - more) : uniform_below(u, more + 1);
  };
  return {position(draws[1], image.width - step.width), position(draws[0], image.height - step.height), step.width,
          step.height};
}

int center_offset(CenterRule rule, int image, int crop) {
  const int more = image - crop;
  if (rule == CenterRule::kDown) return static_cast<int>(std::floor(more / 2.0));
  if (rule == CenterRule::kTowardsZero || more < 0) return more / 2;
  return round_half_even(more / 2.0);
}

}  // namespace headrace
