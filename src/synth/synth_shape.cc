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

constexpr std::array<ShapeOption, 19> kShapeOptions = {{
    {"--layers", &TransformerShape::layers},
    {"--hidden", &TransformerShape::hidden},
    {"--heads", &TransformerShape::heads},
    {"--kv-heads", &TransformerShape::kv_heads},
    {"--head-dim", &TransformerShape::head_dim},
    {"--ffn", &TransformerShape::ffn},
    {"--ffn-matrices", &TransformerShape::ffn_matrices},
    {"--vocabulary", &TransformerShape::vocabulary},
    {"--sequence", &TransformerShape::sequence},
    {"--encoder-layers", &TransformerShape::encoder_layers},
    {"--experts", &TransformerShape::experts},
    {"--active-experts", &TransformerShape::active_experts},
    {"--shared-experts", &TransformerShape::shared_experts},
    {"--expert-ffn", &TransformerShape::expert_ffn},
    {"--dense-layers", &TransformerShape::dense_layers},
    {"--q-lora-rank", &TransformerShape::q_lora_rank},
    {"--kv-lora-rank", &TransformerShape::kv_lora_rank},
    {"--rope-head-dim", &TransformerShape::rope_head_dim},
    {"--mtp-layers", &TransformerShape::mtp_layers},
}};

tl::unexpected<Error> Missing(const SynthSpec& spec, const char* option) {
  if (spec.model.empty()) {
    return InvalidInput(fmt::format(
        "{} is missing: without --model, give at least --layers, --hidden, --heads, --vocabulary "
        "and --sequence (or name a model: {})",
        option, fmt::join(SynthModelNames(), ", ")));
  }
  return InvalidInput(fmt::format("{} must be positive", option));
}

Result<void> CheckRelations(const TransformerShape& s) {
  if (s.layers > kMaxLayers) {
    return InvalidInput(
        fmt::format("--layers {} is too many: at most {} are modelled", s.layers, kMaxLayers));
  }
  if (s.head_dim == 0) {
    return InvalidInput(fmt::format("--heads {} is more than --hidden {}: a head needs a width",
                                    s.heads, s.hidden));
  }
  if (s.heads % s.kv_heads != 0) {
    return InvalidInput(fmt::format("--kv-heads {} must divide --heads {}", s.kv_heads, s.heads));
  }
  if (s.ffn_matrices != 2 && s.ffn_matrices != 3) {
    return InvalidInput(fmt::format(
        "--ffn-matrices {}: expected 2 (plain) or 3 (gated: SwiGLU, GeGLU)", s.ffn_matrices));
  }
  if (s.encoder_layers > s.layers || s.dense_layers > s.layers) {
    return InvalidInput(fmt::format(
        "--encoder-layers {} and --dense-layers {} are counted among --layers {}: neither can be "
        "more",
        s.encoder_layers, s.dense_layers, s.layers));
  }
  if (s.experts > 0 && (s.active_experts == 0 || s.active_experts > s.experts)) {
    return InvalidInput(
        fmt::format("--active-experts {}: expected 1 to {}, the number of --experts",
                    s.active_experts, s.experts));
  }
  if (s.experts == 0 && (s.active_experts > 0 || s.shared_experts > 0 || s.dense_layers > 0)) {
    return InvalidInput(
        "--active-experts, --shared-experts and --dense-layers describe a mixture of experts: "
        "give --experts, too");
  }
  if (s.kv_lora_rank == 0 && (s.q_lora_rank > 0 || s.rope_head_dim > 0)) {
    return InvalidInput(
        "--q-lora-rank and --rope-head-dim describe multi-head latent attention: give "
        "--kv-lora-rank, too");
  }
  return {};
}

Result<ModelShape> ResolveWideResNet(const WideResNetShape& shape, const SynthSpec& spec) {
  for (const ShapeOption& option : kShapeOptions) {
    if (spec.shape.*option.field == 0) continue;
    return InvalidInput(fmt::format(
        "{} is a number of transformers, but {} is a convolutional network: leave it out",
        option.option, shape.name));
  }
  return shape;
}

}  // namespace

std::span<const ShapeOption> ShapeOptions() { return kShapeOptions; }

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
  for (const ShapeOption& option : ShapeOptions()) {
    const std::int64_t given = spec.shape.*option.field;
    if (given < 0 || given > kMaxWidth) {
      return InvalidInput(
          fmt::format("{} {} is out of range: expected 1 to {}", option.option, given, kMaxWidth));
    }
    if (given > 0) shape.*option.field = given;
  }
  FillShapeDefaults(shape);
  for (const auto& [option, field] : {ShapeOption{"--layers", &TransformerShape::layers},
                                      {"--hidden", &TransformerShape::hidden},
                                      {"--heads", &TransformerShape::heads},
                                      {"--vocabulary", &TransformerShape::vocabulary},
                                      {"--sequence", &TransformerShape::sequence}}) {
    if (shape.*field == 0) return Missing(spec, option);
  }
  if (Result<void> valid = CheckRelations(shape); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  return shape;
}

}  // namespace perseus::synth
