// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/nearest_name.h"
#include "perseus/synth.h"
#include "synth/synth_shape.h"

namespace perseus {
inline namespace v0 {
namespace {

using synth::FillShapeDefaults;
using synth::FindModelNumbers;
using synth::NoSuchModel;
using synth::WideResNets;

TransformerShape Gpt(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocabulary) {
  TransformerShape shape;
  shape.name = name;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocabulary = vocabulary;
  shape.sequence = 2048;
  return shape;
}

// Llama 3 and Qwen 3: grouped-query attention, gated feed-forward.
TransformerShape Gated(const char* name, std::int64_t layers, std::int64_t hidden,
                       std::int64_t heads, std::int64_t ffn, std::int64_t vocabulary,
                       std::int64_t sequence) {
  TransformerShape shape = Gpt(name, layers, hidden, heads, vocabulary);
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.ffn = ffn;
  shape.ffn_matrices = 3;
  shape.sequence = sequence;
  return shape;
}

TransformerShape Bert(const char* name, std::int64_t layers, std::int64_t hidden,
                      std::int64_t heads) {
  TransformerShape shape = Gpt(name, layers, hidden, heads, 30522);
  shape.sequence = 512;
  return shape;
}

TransformerShape T5(const char* name, std::int64_t heads, std::int64_t head_dim, std::int64_t ffn) {
  TransformerShape shape = Gpt(name, 48, 1024, heads, 32128);
  shape.encoder_layers = 24;
  shape.head_dim = head_dim;
  shape.ffn = ffn;
  shape.sequence = 512;
  return shape;
}

// Qwen 3, mixture of experts: every layer has 128 experts, of which a token sees 8.
TransformerShape QwenMixture(const char* name, std::int64_t layers, std::int64_t hidden,
                             std::int64_t heads, std::int64_t expert_ffn, std::int64_t vocabulary) {
  TransformerShape shape = Gated(name, layers, hidden, heads, expert_ffn, vocabulary, 4096);
  shape.kv_heads = 4;
  shape.experts = 128;
  shape.active_experts = 8;
  shape.expert_ffn = expert_ffn;
  return shape;
}

TransformerShape DeepSeekV3() {
  TransformerShape shape = Gpt("deepseek-v3", 61, 7168, 128, 129280);
  shape.head_dim = 128;
  shape.ffn = 18432;
  shape.ffn_matrices = 3;
  shape.sequence = 4096;
  shape.experts = 256;
  shape.active_experts = 8;
  shape.shared_experts = 1;
  shape.expert_ffn = 2048;
  shape.dense_layers = 3;
  shape.q_lora_rank = 1536;
  shape.kv_lora_rank = 512;
  shape.rope_head_dim = 64;
  shape.mtp_layers = 1;
  return shape;
}

// Sources: docs/evidence/synth.md. GPT-3's vocabulary of 50,257 is padded to 51,200, as
// Megatron-LM does.
std::vector<TransformerShape> Models() {
  constexpr std::int64_t kGptVocabulary = 51200;
  constexpr std::int64_t kBloomVocabulary = 250880;
  constexpr std::int64_t kLlamaVocabulary = 128256;
  constexpr std::int64_t kQwenVocabulary = 151936;
  return {
      Gpt("gpt3-1.3b", 24, 2048, 16, kGptVocabulary),
      Gpt("gpt3-2.7b", 32, 2560, 32, kGptVocabulary),
      Gpt("gpt3-6.7b", 32, 4096, 32, kGptVocabulary),
      Gpt("gpt3-13b", 40, 5120, 40, kGptVocabulary),
      Gpt("gpt3-175b", 96, 12288, 96, kGptVocabulary),
      Gpt("opt-30b", 48, 7168, 56, 50272),
      Gpt("bloom-3b", 30, 2560, 32, kBloomVocabulary),
      Gpt("bloom-176b", 70, 14336, 112, kBloomVocabulary),
      Bert("bert-base", 12, 768, 12),
      Bert("bert-large", 24, 1024, 16),
      Bert("bert-huge", 24, 2048, 16),
      T5("t5-large", 16, 64, 4096),
      T5("t5-3b", 32, 128, 16384),
      T5("t5-11b", 128, 128, 65536),
      Gated("llama3-8b", 32, 4096, 32, 14336, kLlamaVocabulary, 8192),
      Gated("llama3-70b", 80, 8192, 64, 28672, kLlamaVocabulary, 8192),
      Gated("llama3-405b", 126, 16384, 128, 53248, kLlamaVocabulary, 8192),
      Gated("qwen3-8b", 36, 4096, 32, 12288, kQwenVocabulary, 4096),
      Gated("qwen3-14b", 40, 5120, 40, 17408, kQwenVocabulary, 4096),
      Gated("qwen3-32b", 64, 5120, 64, 25600, kQwenVocabulary, 4096),
      QwenMixture("qwen3-30b-a3b", 48, 2048, 32, 768, kQwenVocabulary),
      QwenMixture("qwen3-235b-a22b", 94, 4096, 64, 1536, kQwenVocabulary),
      DeepSeekV3(),
  };
}

double Product(std::initializer_list<std::int64_t> factors) {
  double product = 1;
  for (const std::int64_t factor : factors) product *= static_cast<double>(factor);
  return product;
}

// Projections of an attention that reads queries from `tokens` tokens and
// keys and values from as many, and its scores. Operations = 2 x
// multiply-adds.
double AttentionFlops(const TransformerShape& s, std::int64_t samples) {
  const std::int64_t tokens = samples * s.sequence;
  double weights = 0;
  double score_width = 0;  // Of queries and values together, all heads.
  if (s.kv_lora_rank > 0) {
    const std::int64_t query = s.heads * (s.head_dim + s.rope_head_dim);
    weights = (s.q_lora_rank > 0 ? Product({s.hidden + query, s.q_lora_rank})
                                 : Product({s.hidden, query})) +
              Product({s.hidden, s.kv_lora_rank + s.rope_head_dim}) +
              Product({s.kv_lora_rank, 2 * s.heads * s.head_dim}) +
              Product({s.heads * s.head_dim, s.hidden});
    score_width = Product({s.heads, 2 * s.head_dim + s.rope_head_dim});
  } else {
    weights = Product({2 * s.hidden, (s.heads + s.kv_heads) * s.head_dim});
    score_width = Product({s.heads, 2 * s.head_dim});
  }
  return 2 * static_cast<double>(tokens) *
         (weights + static_cast<double>(s.sequence) * score_width);
}

double FeedForwardFlops(const TransformerShape& s, std::int64_t samples, bool dense) {
  const double tokens = Product({samples, s.sequence});
  double weights = 0;
  if (dense) {
    weights = Product({s.ffn_matrices, s.hidden, s.ffn});
  } else {
    weights = Product({s.ffn_matrices, s.hidden, s.expert_ffn}) *
                  static_cast<double>(s.active_experts + s.shared_experts) +
              Product({s.hidden, s.experts});
  }
  return 2 * tokens * weights;
}

}  // namespace

std::vector<std::string> SynthModelNames() {
  std::vector<std::string> names;
  for (const TransformerShape& shape : Models()) names.push_back(shape.name);
  for (const WideResNetShape& shape : WideResNets()) names.push_back(shape.name);
  return names;
}

}  // namespace v0
}  // namespace perseus

namespace perseus::synth {

void FillShapeDefaults(TransformerShape& shape) {
  const auto fill = [](std::int64_t& field, std::int64_t value) {
    if (field == 0) field = value;
  };
  fill(shape.kv_heads, shape.heads);
  if (shape.heads > 0) fill(shape.head_dim, shape.hidden / shape.heads);
  fill(shape.ffn, 4 * shape.hidden);
  fill(shape.ffn_matrices, 2);
  fill(shape.expert_ffn, shape.ffn);
}

tl::unexpected<Error> NoSuchModel(std::string_view name) {
  const std::vector<std::string> names = SynthModelNames();
  return InvalidInput(fmt::format(
      "'model' {}: no such model{}; expected one of {}, or the numbers of another transformer "
      "('layers', 'hidden', 'heads', 'vocabulary', 'sequence')",
      Shown(name), NearestHint(name, names), fmt::join(names, ", ")));
}

Result<TransformerShape> FindModelNumbers(std::string_view name) {
  for (const TransformerShape& shape : Models()) {
    if (SameName(shape.name, name)) return shape;
  }
  return NoSuchModel(name);
}

}  // namespace perseus::synth

namespace perseus {
inline namespace v0 {

Result<TransformerShape> FindTransformer(std::string_view name) {
  Result<TransformerShape> shape = FindModelNumbers(name);
  if (shape) FillShapeDefaults(*shape);
  return shape;
}

ModelFlops CountFlops(const TransformerShape& shape, std::int64_t microbatch_size) {
  ModelFlops flops;
  const double attention = AttentionFlops(shape, microbatch_size);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const bool dense = shape.experts == 0 || layer < shape.dense_layers;
    const bool crosses = shape.encoder_layers > 0 && layer >= shape.encoder_layers;
    flops.layers.push_back((crosses ? 2 : 1) * attention +
                           FeedForwardFlops(shape, microbatch_size, dense));
  }
  const double tokens = Product({microbatch_size, shape.sequence});
  flops.head = 2 * tokens * Product({shape.hidden, shape.vocabulary});
  if (shape.mtp_layers > 0) {
    // Each module joins two hidden states, runs a layer and projects again.
    flops.mtp = static_cast<double>(shape.mtp_layers) *
                (2 * tokens * Product({2 * shape.hidden, shape.hidden}) + attention +
                 FeedForwardFlops(shape, microbatch_size, shape.experts == 0) + flops.head);
  }
  return flops;
}

}  // namespace v0
}  // namespace perseus
