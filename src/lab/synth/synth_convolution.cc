// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/nearest_name.h"
#include "perseus/synth.h"
#include "synth/synth_shape.h"

namespace perseus {
inline namespace v0 {
namespace {

using synth::NoSuchModel;
using synth::WideResNets;

constexpr std::int64_t kColorChannels = 3;
constexpr std::int64_t kStemChannels = 64;
constexpr std::int64_t kStemKernel = 7;
constexpr std::int64_t kExpansion = 4;  // Outer channels of a bottleneck, over the narrow ones.

// A convolution over an output of `size` x `size` pixels.
double ConvolutionFlops(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t size) {
  const auto weights = static_cast<double>(in * out * kernel * kernel);
  return 2 * weights * static_cast<double>(size * size);
}

}  // namespace

}  // namespace v0
}  // namespace perseus

namespace perseus::synth {

std::vector<WideResNetShape> WideResNets() {
  return {{.name = "wide-resnet50_8", .blocks = {3, 4, 6, 3}, .width_factor = 8},
          {.name = "wide-resnet101_8", .blocks = {3, 4, 23, 3}, .width_factor = 8}};
}

}  // namespace perseus::synth

namespace perseus {
inline namespace v0 {

Result<WideResNetShape> FindWideResNet(std::string_view name) {
  for (const WideResNetShape& shape : WideResNets()) {
    if (SameName(shape.name, name)) return shape;
  }
  return NoSuchModel(name);
}

ModelFlops CountFlops(const WideResNetShape& shape, std::int64_t microbatch_size) {
  const auto images = static_cast<double>(microbatch_size);
  ModelFlops flops;
  // The stem halves height and width, and so does the pooling after it.
  std::int64_t size = shape.image_size / 2;
  const double stem = ConvolutionFlops(kColorChannels, kStemChannels, kStemKernel, size);
  size /= 2;
  std::int64_t in = kStemChannels;
  std::int64_t narrow = kStemChannels;
  for (std::size_t group = 0; group < shape.blocks.size(); ++group) {
    const std::int64_t out = kExpansion * narrow;
    const std::int64_t inner = narrow * shape.width_factor;
    for (std::int64_t block = 0; block < shape.blocks[group]; ++block) {
      const bool first = block == 0;
      // The inner convolution of a group's first block skips every other pixel.
      const std::int64_t out_size = first && group > 0 ? size / 2 : size;
      double operations = ConvolutionFlops(in, inner, 1, size) +
                          ConvolutionFlops(inner, inner, 3, out_size) +
                          ConvolutionFlops(inner, out, 1, out_size);
      // There the shortcut needs a projection, too.
      if (first) operations += ConvolutionFlops(in, out, 1, out_size);
      flops.layers.push_back(images * operations);
      in = out;
      size = out_size;
    }
    narrow *= 2;
  }
  if (!flops.layers.empty()) flops.layers.front() += images * stem;
  flops.head = images * 2 * static_cast<double>(in * shape.classes);
  return flops;
}

}  // namespace v0
}  // namespace perseus
