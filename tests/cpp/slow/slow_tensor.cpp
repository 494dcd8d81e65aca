// A slow reference for torchvision's operations on byte tensors: whole images, each written as torchvision has it.
#include "slow/slow_tensor.h"

#include <algorithm>
#include <cmath>

namespace headrace::test {
namespace {

// a + b * c. Rounded twice: a volatile product cannot be fused.
float sum_of(float a, float b, float c, bool once) {
  if (once) return std::fma(b, c, a);
  volatile float product = b * c;
  return a + product;
}

int cut(float value) { return int(std::clamp(value, 0.0f, 255.0f)); }

float gray_of(const Pixel& p, bool once) {
  const float two = sum_of(float(p[0]) * 0.2989f, float(p[1]), 0.587f, once);
  return std::floor(sum_of(two, float(p[2]), 0.114f, once));
}

int blend(int value, float other, const Effect& effect, bool once) {
  return cut(sum_of(float(value) * effect.factor, effect.rest, other, once));
}

void blend_with(Picture& picture, const Effect& effect, bool once, auto other) {
  for (Pixel& p : picture) {
    const Pixel before = p;
    for (int& value : p) value = blend(value, other(before), effect, once);
  }
}

void contrast(Picture& picture, const Effect& effect, bool once) {
  double sum = 0;
  for (const Pixel& p : picture) sum += effect.amount & kOneChannel ? double(p[0]) : double(gray_of(p, once));
  const float mean = float(sum) / float(picture.size());
  blend_with(picture, effect, once, [mean](const Pixel&) { return mean; });
}

void sharpen(Picture& picture, const Effect& effect, Size size, bool once) {
  if (size.width < 3 || size.height < 3) return;
  const Picture before = picture;
  const auto at = [&](int x, int y) -> const Pixel& { return before[size_t(y) * size_t(size.width) + size_t(x)]; };
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const bool border = x == 0 || y == 0 || x == size.width - 1 || y == size.height - 1;
      for (size_t c = 0; c < 3; ++c) {
        const int value = at(x, y)[c];
        double sum = 4.0 * value;
        for (int k = 0; k < 9 && !border; ++k) sum += at(x + k % 3 - 1, y + k / 3 - 1)[c];
        const int smooth = border ? value : int(std::nearbyint(sum / 13));
        int& made = picture[size_t(y) * size_t(size.width) + size_t(x)][c];
        if (effect.amount & kFirstVersion) {
          made = blend(value, float(smooth), effect, false);
        } else if (!border) {
          made = cut(sum_of(float(value), effect.rest, float(smooth - value), once));
        }
      }
    }
  }
}

void autocontrast(Picture& picture, bool first_version) {
  for (size_t c = 0; c < 3; ++c) {
    const auto less = [c](const Pixel& a, const Pixel& b) { return a[c] < b[c]; };
    const auto [least, most] = std::minmax_element(picture.begin(), picture.end(), less);
    const int low = (*least)[c], high = (*most)[c];
    if (low == high) continue;
    const float inverse = 1.0f / float(high - low), step = float(high - low) * float(1.0 / 255);
    for (Pixel& p : picture) {
      const auto above = float(p[c] - low);
      p[c] = cut(first_version ? above * (inverse * 255.0f) : above / step);
    }
  }
}

// Hue, saturation and value as torchvision has them, by the library's functions and its table of sectors.
Pixel turned(const Pixel& pixel, float turn, bool first) {
  float c[3];
  for (size_t i = 0; i < 3; ++i) c[i] = first ? float(pixel[i]) / 255.0f : float(pixel[i]) * float(1.0 / 255.0);
  const float most = std::max({c[0], c[1], c[2]}), least = std::min({c[0], c[1], c[2]}), range = most - least;
  const bool same = most == least;
  const float s = range / (same ? 1.0f : most);
  float d[3];
  for (size_t i = 0; i < 3; ++i) d[i] = (most - c[i]) / (same ? 1.0f : range);
  float h = most == c[0] ? d[2] - d[1] : most == c[1] ? 2.0f + d[0] - d[2] : 4.0f + d[1] - d[0];
  h = std::fmod((first ? h / 6.0f : h * float(1.0 / 6.0)) + 1.0f, 1.0f);
  h = std::fmod(h + turn, 1.0f);
  if (h < 0) h += 1.0f;
  const float floor = std::floor(h * 6.0f), f = h * 6.0f - floor;
  const float t = first ? 1.0f - s * (1.0f - f) : s * f + (1.0f - s);
  const float ways[4] = {most, (1.0f - s) * most, (1.0f - s * f) * most, t * most};
  constexpr int kWays[3][6] = {{0, 2, 1, 1, 3, 0}, {3, 0, 0, 2, 1, 1}, {1, 1, 3, 0, 0, 2}};
  Pixel made{};
  for (size_t i = 0; i < 3; ++i) made[i] = int(std::clamp(ways[kWays[i][int(floor) % 6]], 0.0f, 1.0f) * 255.999f);
  return made;
}

Pixel warped_pixel(const TensorWarp& warp, Size size, const Picture& picture, int x, int y) {
  const float u = float(x) - float(size.width - 1) / 2, v = float(y) - float(size.height - 1) / 2;
  float at[2];
  for (size_t axis = 0; axis < 2; ++axis) {
    const float length = float(axis == 0 ? size.width : size.height), half = 0.5f * length;
    const float *m = warp.matrix.data() + 3 * axis, across = m[0] / half * u;
    const float place = sum_of(across, m[1] / half, v, warp.fused_positions) + m[2] / half;
    at[axis] = sum_of(-0.5f, place + 1.0f, half, warp.fused);
  }
  const auto pixel = [&](float column, float row, int& inside) -> Pixel {
    inside = column >= 0 && row >= 0 && column < float(size.width) && row < float(size.height);
    return inside ? picture[size_t(row) * size_t(size.width) + size_t(column)] : Pixel{0, 0, 0};
  };
  Pixel made{};
  int inside[4] = {};
  if (!warp.bilinear) {
    const Pixel found = pixel(std::nearbyint(at[0]), std::nearbyint(at[1]), inside[0]);
    for (size_t c = 0; c < 3; ++c) {
      made[c] = inside[0] || !warp.filled ? found[c] : int(std::nearbyint(warp.fill[c]));
    }
    return made;
  }
  const float left = std::floor(at[0]), top = std::floor(at[1]), dx = at[0] - left, dy = at[1] - top;
  const float weights[4] = {(1 - dx) * (1 - dy), dx * (1 - dy), (1 - dx) * dy, dx * dy};
  Pixel taps[4];
  for (int k = 0; k < 4; ++k) taps[k] = pixel(left + float(k % 2), top + float(k / 2), inside[k]);
  for (size_t c = 0; c < 3; ++c) {
    float value = 0, share = 0;
    for (int k = 0; k < 4; ++k) {
      value = k == 0 ? float(taps[0][c]) * weights[0] : sum_of(value, float(taps[k][c]), weights[k], warp.fused);
      share += float(inside[k]) * weights[k];
    }
    if (warp.filled && warp.first_version) {
      value = sum_of(value * share, 1.0f - share, warp.fill[c], false);
    } else if (warp.filled) {
      value = sum_of(warp.fill[c], value - warp.fill[c], share, false);
    }
    made[c] = std::clamp(int(std::nearbyint(value)), 0, 255);
  }
  return made;
}

}  // namespace

void apply_to_tensor(const Effect& effect, const Plan& plan, Size size, Picture& picture) {
  const bool once = (effect.amount & kFused) != 0;
  switch (effect.kind) {
    case Effect::Kind::kTensorSaturation:
      return blend_with(picture, effect, once, [once](const Pixel& p) { return gray_of(p, once); });
    case Effect::Kind::kTensorContrast:
      return contrast(picture, effect, once);
    case Effect::Kind::kTensorSharpness:
      return sharpen(picture, effect, size, once);
    case Effect::Kind::kTensorHue:
      for (Pixel& pixel : picture) pixel = turned(pixel, effect.factor, (effect.amount & kFirstVersion) != 0);
      return;
    case Effect::Kind::kTensorAutocontrast:
      return autocontrast(picture, (effect.amount & kFirstVersion) != 0);
    default: {
      const Picture before = picture;
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          picture[size_t(y) * size_t(size.width) + size_t(x)] =
              warped_pixel(plan.tensor_warps[size_t(effect.amount)], size, before, x, y);
        }
      }
    }
  }
}

}  // namespace headrace::test
