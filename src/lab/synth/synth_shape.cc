// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "synth/synth_shape.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "common/nearest_name.h"

namespace perseus::synth {
namespace {

constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxWidth = 100'000'000;

constexpr std::array<ShapeField, 19> kShapeFields = {{
    {"layers", &TransformerShape::layers},
    {"hidden", &TransformerShape::hidden},
    {"heads", &TransformerShape::heads},
    {"kv_heads", &TransformerShape::kv_heads},
    {"head_dim", &TransformerShape::head_dim},
    {"ffn", &TransformerShape::ffn},
    {"ffn_matrices", &TransformerShape::ffn_matrices},
    {"vocabulary", &TransformerShape::vocabulary},
    {"sequence", &TransformerShape::sequence},
    {"encoder_layers", &TransformerShape::encoder_layers},
    {"experts", &TransformerShape::experts},
    {"active_experts", &TransformerShape::active_experts},
    {"shared_experts", &TransformerShape::shared_experts},
    {"expert_ffn", &TransformerShape::expert_ffn},
    {"dense_layers", &TransformerShape::dense_layers},
    {"q_lora_rank", &TransformerShape::q_lora_rank},
    {"kv_lora_rank", &TransformerShape::kv_lora_rank},
    {"rope_head_dim", &TransformerShape::rope_head_dim},
    {"mtp_layers", &TransformerShape::mtp_layers},
}};

tl::unexpected<Error> Missing(const SynthSpec& spec, const char* field) {
  if (spec.model.empty()) {
    return InvalidInput(fmt::format(
        "'{}' is missing: without 'model', give at least 'layers', 'hidden', 'heads', 'vocabulary' "
        "and 'sequence' (or name a model: {})",
        field, fmt::join(SynthModelNames(), ", ")));
  }
  return InvalidInput(fmt::format("'{}' must be positive", field));
}

Result<void> CheckRelations(const TransformerShape& s) {
  if (s.layers > kMaxLayers) {
    return InvalidInput(
        fmt::format("'layers' {} is too many: at most {} are modelled", s.layers, kMaxLayers));
  }
  if (s.head_dim == 0) {
    return InvalidInput(fmt::format("'heads' {} is more than 'hidden' {}: a head needs a width",
                                    s.heads, s.hidden));
  }
  if (s.heads % s.kv_heads != 0) {
    return InvalidInput(fmt::format("'kv_heads' {} must divide 'heads' {}", s.kv_heads, s.heads));
  }
  if (s.ffn_matrices != 2 && s.ffn_matrices != 3) {
    return InvalidInput(fmt::format(
        "'ffn_matrices' {}: expected 2 (plain) or 3 (gated: SwiGLU, GeGLU)", s.ffn_matrices));
  }
  if (s.encoder_layers > s.layers || s.dense_layers > s.layers) {
    return InvalidInput(fmt::format(
        "'encoder_layers' {} and 'dense_layers' {} are counted among 'layers' {}: neither can be "
        "more",
        s.encoder_layers, s.dense_layers, s.layers));
  }
  if (s.experts > 0 && (s.active_experts == 0 || s.active_experts > s.experts)) {
    return InvalidInput(
        fmt::format("'active_experts' {}: expected 1 to {}, the number of 'experts'",
                    s.active_experts, s.experts));
  }
  if (s.experts == 0 && (s.active_experts > 0 || s.shared_experts > 0 || s.dense_layers > 0)) {
    return InvalidInput(
        "'active_experts', 'shared_experts' and 'dense_layers' describe a mixture of experts: "
        "give 'experts', too");
  }
  if (s.kv_lora_rank == 0 && (s.q_lora_rank > 0 || s.rope_head_dim > 0)) {
    return InvalidInput(
        "'q_lora_rank' and 'rope_head_dim' describe multi-head latent attention: give "
        "'kv_lora_rank', too");
  }
  return {};
}

Result<ModelShape> ResolveWideResNet(const WideResNetShape& shape, const SynthSpec& spec) {
  for (const ShapeField& each : kShapeFields) {
    if (spec.shape.*each.field == 0) continue;
    return InvalidInput(fmt::format(
        "'{}' is a number of transformers, but {} is a convolutional network: leave it out",
        each.name, shape.name));
  }
  return shape;
}

}  // namespace

std::span<const ShapeField> ShapeFields() { return kShapeFields; }

Result<ModelShape> ResolveShape(const SynthSpec& spec) {
  for (const WideResNetShape& convolutional : WideResNets()) {
    if (SameName(convolutional.name, spec.model)) return ResolveWideResNet(convolutional, spec);
  }
  TransformerShape shape;
  if (!spec.model.empty()) {
    Result<TransformerShape> named = FindModelNumbers(spec.model);
    if (!named) return tl::unexpected<Error>(named.error());
    shape = *std::move(named);
  }
  for (const ShapeField& each : ShapeFields()) {
    const std::int64_t given = spec.shape.*each.field;
    if (given < 0 || given > kMaxWidth) {
      return InvalidInput(
          fmt::format("'{}' {} is out of range: expected 1 to {}", each.name, given, kMaxWidth));
    }
    if (given > 0) shape.*each.field = given;
  }
  FillShapeDefaults(shape);
  for (const auto& [name, field] : {ShapeField{"layers", &TransformerShape::layers},
                                    {"hidden", &TransformerShape::hidden},
                                    {"heads", &TransformerShape::heads},
                                    {"vocabulary", &TransformerShape::vocabulary},
                                    {"sequence", &TransformerShape::sequence}}) {
    if (shape.*field == 0) return Missing(spec, name);
  }
  if (Result<void> valid = CheckRelations(shape); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  return shape;
}

}  // namespace perseus::synth
