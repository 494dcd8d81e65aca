// A slow reference for effects: whole images, one effect after the other, each written as it is defined.
#include "slow/slow_effects.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "slow/slow_sum.h"
#include "slow/slow_tensor.h"
#include "slow/slow_warp.h"

namespace headrace::test {
namespace {

int gray_of(const Pixel& p) { return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 32768) / 65536; }

int blend(int from, int to, float factor) {
  const float sum = slow_sum(float(from), factor, float(to - from));
  return sum <= 0 ? 0 : sum >= 255 ? 255 : int(sum);
}

// Pillow's conversions, in its mix of float and double.
Pixel turn_hue(const Pixel& p, int turn) {
  const auto [r, g, b] = p;
  const int max = std::max({r, g, b}), min = std::min({r, g, b});
  int hue = 0, saturation = 0;
  if (max != min) {
    const float range = float(max - min), s = range / float(max);
    const float rc = float(max - r) / range, gc = float(max - g) / range, bc = float(max - b) / range;
    float h = 0;
    if (r == max) {
      h = bc - gc;
    } else if (g == max) {
      h = float(2.0 + rc - bc);
    } else {
      h = float(4.0 + gc - rc);
    }
    h = float(std::fmod(h / 6.0 + 1.0, 1.0));
    hue = int(h * 255.0);
    saturation = int(s * 255.0);
  }
  hue = (hue + turn) % 256;
  if (saturation == 0) return {max, max, max};
  const int sector = int(std::floor(float(hue) * 6.0 / 255.0));
  const float f = float(float(hue) * 6.0 / 255.0 - sector), s = float(float(saturation) / 255.0);
  const int low = int(std::round(max * (1.0 - s))), falling = int(std::round(max * (1.0 - s * f))),
            rising = int(std::round(max * (1.0 - s * (1.0 - f))));
  const Pixel sectors[6] = {{max, rising, low},  {falling, max, low}, {low, max, rising},
                            {low, falling, max}, {rising, low, max},  {max, low, falling}};
  return sectors[sector % 6];
}

int autocontrast(const std::map<int, int>& counts, int value) {
  const int low = counts.begin()->first, high = counts.rbegin()->first;
  if (low == high) return value;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  const double scaled = value * scale;
  return std::clamp(int(scaled + offset), 0, 255);
}

int equalize(const std::map<int, int>& counts, int value) {
  int all = 0, below = 0;
  for (const auto& [at, count] : counts) {
    all += count;
    below += at < value ? count : 0;
  }
  const int step = (all - counts.rbegin()->second) / 255;
  return step == 0 ? value : std::min((step / 2 + below) / step, 255);
}

// One output after the other. The order of the terms determines the rounding.
Picture blurred(const Effect& effect, const std::vector<float>& weights, Size size, const Picture& picture) {
  const auto mirrored = [](int at, int edge) { return at < 0 ? -at : at >= edge ? 2 * edge - 2 - at : at; };
  Picture made(picture.size());
  for (int v = 0; v < size.height; ++v) {
    for (int u = 0; u < size.width; ++u) {
      for (size_t c = 0; c < 3; ++c) {
        float sum = 0;
        for (int i = 0; i < effect.height; ++i) {
          for (int j = 0; j < effect.width; ++j) {
            const int y = mirrored(v + i - effect.height / 2, size.height);
            const int x = mirrored(u + j - effect.width / 2, size.width);
            const float weight =
                weights[size_t(effect.weights + effect.width + i)] * weights[size_t(effect.weights + j)];
            sum = std::fma(weight, float(picture[size_t(y) * size_t(size.width) + size_t(x)][c]), sum);
          }
        }
        made[size_t(v) * size_t(size.width) + size_t(u)][c] = std::clamp(int(std::nearbyint(sum)), 0, 255);
      }
    }
  }
  return made;
}

// Pillow's filter in float32, row below, row, row above, then its blend.
Picture sharpened(float factor, Size size, const Picture& picture) {
  Picture made = picture;
  const auto at = [&](int x, int y) { return picture[size_t(y) * size_t(size.width) + size_t(x)]; };
  for (int v = 1; v < size.height - 1; ++v) {
    for (int u = 1; u < size.width - 1; ++u) {
      for (size_t c = 0; c < 3; ++c) {
        float sum = 0.5f;
        for (int y = 1; y >= -1; --y) {
          const float middle = y == 0 ? 5.0f / 13.0f : 1.0f / 13.0f;
          sum += float(at(u - 1, v + y)[c]) * (1.0f / 13.0f) + float(at(u, v + y)[c]) * middle +
                 float(at(u + 1, v + y)[c]) * (1.0f / 13.0f);
        }
        made[size_t(v) * size_t(size.width) + size_t(u)][c] = blend(int(sum), at(u, v)[c], factor);
      }
    }
  }
  return made;
}

// One box blur along the rows, or along the columns.
Picture boxed(const Effect& effect, Size size, const Picture& picture, bool rows) {
  Picture made = picture;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (size_t c = 0; c < 3; ++c) {
        uint64_t sum = 1 << 23;
        for (int k = -effect.amount - 1; k <= effect.amount + 1; ++k) {
          const int u = std::clamp(rows ? x + k : x, 0, size.width - 1),
                    v = std::clamp(rows ? y : y + k, 0, size.height - 1);
          const auto byte = static_cast<uint64_t>(picture[size_t(v) * size_t(size.width) + size_t(u)][c]);
          sum += byte * static_cast<uint64_t>(std::abs(k) <= effect.amount ? effect.width : effect.height);
        }
        made[size_t(y) * size_t(size.width) + size_t(x)][c] = int(sum >> 24 & 255);
      }
    }
  }
  return made;
}

// All chains, then their mix, value by value.
Picture mixed(const ChainMix& mix, const Plan& plan, Size size, const Picture& picture) {
  std::vector<Picture> changed(mix.chains.size(), picture);
  for (size_t k = 0; k < changed.size(); ++k) {
    for (const Effect& effect : mix.chains[k].effects) apply(effect, plan, size, changed[k]);
  }
  Picture made = picture;
  for (size_t i = 0; i < made.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      float sum = mix.summed ? mix.factor * float(picture[i][c]) : 0.0f;
      for (size_t k = 0; k < changed.size(); ++k) {
        if (mix.blended) made[i][c] = blend(made[i][c], changed[k][i][c], mix.chains[k].weight);
        const float product = mix.chains[k].weight * float(changed[k][i][c]);
        sum = sum + product;
      }
      if (mix.summed) {
        made[i][c] = int(std::clamp(sum, 0.0f, 255.0f));
      } else if (!mix.blended) {
        made[i][c] = blend(made[i][c], int(std::clamp(sum, 0.0f, 255.0f)), mix.factor);
      }
    }
  }
  return made;
}

}  // namespace

void apply(const Effect& effect, const Plan& plan, Size size, Picture& picture) {
  if (is_of_tensors(effect.kind)) return apply_to_tensor(effect, plan, size, picture);
  if (effect.kind == Effect::Kind::kBoxBlur) {
    for (int pass = 0; pass < 3; ++pass) picture = boxed(effect, size, picture, true);
    for (int pass = 0; pass < 3; ++pass) picture = boxed(effect, size, picture, false);
    return;
  }
  if (effect.kind == Effect::Kind::kMixChains) {
    picture = mixed(plan.chain_mixes[size_t(effect.amount)], plan, size, picture);
    return;
  }
  if (effect.kind == Effect::Kind::kBlur) {
    picture = blurred(effect, plan.weights, size, picture);
    return;
  }
  if (effect.kind == Effect::Kind::kWarp) {
    picture = warped(plan.warps[size_t(effect.amount)], size, picture);
    return;
  }
  if (effect.kind == Effect::Kind::kSharpness) {
    picture = sharpened(effect.factor, size, picture);
    return;
  }
  double sum = 0;
  std::map<int, int> counts[3];
  for (const Pixel& p : picture) {
    sum += gray_of(p);
    for (int c = 0; c < 3; ++c) ++counts[c][p[size_t(c)]];
  }
  const int mean = int(sum / double(picture.size()) + 0.5);
  for (Pixel& p : picture) {
    const int gray = gray_of(p);
    const Pixel before = p;
    if (effect.kind == Effect::Kind::kHue) p = turn_hue(p, effect.amount);
    for (int c = 0; c < 3; ++c) {
      int& v = p[size_t(c)];
      switch (effect.kind) {
        case Effect::Kind::kGray:
          v = gray;
          break;
        case Effect::Kind::kBrightness:
          v = blend(0, v, effect.factor);
          break;
        case Effect::Kind::kContrast:
          v = blend(mean, v, effect.factor);
          break;
        case Effect::Kind::kSaturation:
          v = blend(gray, v, effect.factor);
          break;
        default:  // not changed here
          break;
        case Effect::Kind::kPermute:
          v = before[size_t(effect.amount >> 2 * c & 3)];
          break;
        case Effect::Kind::kInvert:
          v = 255 - v;
          break;
        case Effect::Kind::kSolarizeAdd:
          v = v < 128 ? std::min(v + effect.amount, 255) : v;
          break;
        case Effect::Kind::kScaleShift: {
          const float product = float(v) * effect.factor;
          v = int(std::clamp(product + effect.rest, 0.0f, 255.0f));
          break;
        }
        case Effect::Kind::kPosterize:
          v &= effect.amount;
          break;
        case Effect::Kind::kSolarize:
          v = v < effect.amount ? v : 255 - v;
          break;
        case Effect::Kind::kAutocontrast:
          v = autocontrast(counts[c], v);
          break;
        case Effect::Kind::kEqualize:
          v = equalize(counts[c], v);
          break;
      }
    }
  }
}

}  // namespace headrace::test
