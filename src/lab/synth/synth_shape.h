// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SYNTH_SYNTH_SHAPE_H_
#define PERSEUS_SYNTH_SYNTH_SHAPE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "perseus/result.h"
#include "perseus/synth.h"

namespace perseus::synth {

// A built-in transformer as its source gives it, defaults left at 0.
Result<TransformerShape> FindModelNumbers(std::string_view name);

// The built-in convolutional networks.
std::vector<WideResNetShape> WideResNets();

// The sentence for a name that no built-in model has.
tl::unexpected<Error> NoSuchModel(std::string_view name);

// Sets the fields that are 0 and have a default.
void FillShapeDefaults(TransformerShape& shape);

using ModelShape = std::variant<TransformerShape, WideResNetShape>;

// The named model with the spec's overrides, checked. Errors name the field.
Result<ModelShape> ResolveShape(const SynthSpec& spec);

struct ShapeField {
  const char* name;
  std::int64_t TransformerShape::*field;
};
std::span<const ShapeField> ShapeFields();

// Layers per stage of the spec's partition, given what each layer costs and
// what the last stage has on top.
Result<std::vector<std::int64_t>> PartitionLayers(const SynthSpec& spec,
                                                  const std::vector<double>& layer_seconds,
                                                  double tail_seconds);

}  // namespace perseus::synth

#endif  // PERSEUS_SYNTH_SYNTH_SHAPE_H_
