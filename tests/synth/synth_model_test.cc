// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The parts of models beyond a plain transformer: mixture of experts,
// multi-token prediction, encoder-decoder, convolutions, virtual stages.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "perseus/synth.h"
#include "synth/synth_testing.h"

namespace perseus {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Parameters of ordinary attention's models that take part in products with
// every token: half of the operations, without the attention scores.
double Parameters(const TransformerShape& shape) {
  const ModelFlops flops = CountFlops(shape, 1);
  const auto tokens = static_cast<double>(shape.sequence);
  const auto attentions =
      static_cast<double>(shape.layers + (shape.encoder_layers > 0 ? shape.encoder_layers : 0));
  const auto width = static_cast<double>(2 * shape.heads * shape.head_dim);
  return (Sum(flops.layers) + flops.head) / (2 * tokens) - attentions * tokens * width;
}

TransformerShape Find(const char* name) { return FindTransformer(name).value(); }

TEST(SynthModelTest, MixtureHasThePublishedParameters) {
  // All experts at once, and the embedding: 30.53 B and 235.1 B.
  for (const auto& [name, total, activated] :
       {std::tuple{"qwen3-30b-a3b", 30.53e9, 3.3e9}, {"qwen3-235b-a22b", 235.1e9, 22e9}}) {
    TransformerShape shape = Find(name);
    const auto embedding = static_cast<double>(shape.vocabulary * shape.hidden);
    EXPECT_NEAR((Parameters(shape) + embedding) / activated, 1, 0.04) << name;
    shape.active_experts = shape.experts;
    EXPECT_NEAR((Parameters(shape) + embedding) / total, 1, 0.001) << name;
  }
}

TEST(SynthModelTest, DenseModelsHaveThePublishedParameters) {
  EXPECT_NEAR(Parameters(Find("qwen3-14b")), 14.77e9 - 151936.0 * 5120, 0.01e9);
  // The embedding of BERT and T5 is the head, too. Positions, biases and norms left out.
  EXPECT_NEAR(Parameters(Find("bert-base")), 110e6, 2e6);
  EXPECT_NEAR(Parameters(Find("bert-large")), 340e6, 8e6);
  EXPECT_NEAR(Parameters(Find("t5-large")), 737.7e6, 1e6);
  EXPECT_NEAR(Parameters(Find("t5-11b")), 11.3e9, 0.1e9);
}

TEST(SynthModelTest, ExpertsCostWhatATokenSees) {
  TransformerShape shape = Find("qwen3-30b-a3b");
  const double eight = CountFlops(shape, 1).layers[5];
  shape.active_experts = 4;
  const double four = CountFlops(shape, 1).layers[5];
  EXPECT_DOUBLE_EQ(eight - four, 2.0 * 4096 * 4 * 3 * 2048 * 768);
  shape.active_experts = 8;
  shape.shared_experts = 1;
  EXPECT_DOUBLE_EQ(CountFlops(shape, 1).layers[5] - eight, 2.0 * 4096 * 3 * 2048 * 768);
  shape.dense_layers = 2;
  const ModelFlops mixed = CountFlops(shape, 1);
  EXPECT_LT(mixed.layers[1], mixed.layers[2]);
}

TEST(SynthModelTest, MultiTokenPredictionLiesOnTheLastStage) {
  SynthSpec spec;
  spec.model = "deepseek-v3";
  spec.gpu = "a100-sxm";
  spec.stages = 4;
  spec.tensor_parallel = 8;
  spec.partition = "16,15,15,15";
  const SynthResult with = Synthesize(spec).value();
  const ModelFlops flops = CountFlops(Find("deepseek-v3"), 1);
  // The same layers in front of the last stage, and a whole layer and head more in it.
  EXPECT_GT(with.stages[3].forward_seconds,
            with.stages[2].forward_seconds * (1 + 1.0 / 15) + 2 * 0.002575);
  EXPECT_DOUBLE_EQ(with.flops_per_microbatch, 3 * (Sum(flops.layers) + flops.head + flops.mtp));
  spec.partition = "balanced";
  const SynthResult balanced = Synthesize(spec).value();
  EXPECT_LT(balanced.stages[3].layers, balanced.stages[2].layers);
}

TEST(SynthModelTest, VirtualStagesGoIntoTheJob) {
  SynthSpec spec;
  spec.model = "llama3-70b";
  spec.gpu = "a100-sxm";
  spec.stages = 16;
  spec.virtual_stages = 2;
  spec.tensor_parallel = 8;
  const SynthResult result = Synthesize(spec).value();
  EXPECT_EQ(result.stages.size(), 16U);
  for (const char* line : {"schedule = \"interleaved-1f1b\"\n", "stages = 16\n",
                           "virtual_stages = 2\n", "microbatches = 32\n", "tp = 8\n"}) {
    EXPECT_NE(result.job_toml.find(line), std::string::npos) << line;
  }
}

TEST(SynthConvolutionTest, CountsTheMultiplyAddsThatTorchvisionStates) {
  // wide_resnet50_2 and wide_resnet101_2: 11.398 and 22.753 G per image.
  const auto giga = [](std::array<std::int64_t, 4> blocks) {
    const ModelFlops flops = CountFlops({.name = "", .blocks = blocks, .width_factor = 2}, 1);
    return (Sum(flops.layers) + flops.head) / 2e9;
  };
  EXPECT_NEAR(giga({3, 4, 6, 3}), 11.398, 0.0005);
  EXPECT_NEAR(giga({3, 4, 23, 3}), 22.753, 0.0005);
}

TEST(SynthConvolutionTest, BlocksOfAGroupAreAlike) {
  const WideResNetShape shape = FindWideResNet("wide-resnet101_8").value();
  const ModelFlops flops = CountFlops(shape, 32);
  ASSERT_EQ(flops.layers.size(), 33U);
  EXPECT_EQ(flops.layers[1], flops.layers[2]);
  // Half the pixels in each direction, twice the channels in each direction.
  EXPECT_EQ(flops.layers[2], flops.layers[4]);
  EXPECT_EQ(flops.layers[2], flops.layers[32]);
  EXPECT_GT(flops.layers[3], flops.layers[2]);  // The projection of the shortcut.
  EXPECT_DOUBLE_EQ(flops.head, 32 * 2 * 2048.0 * 1000);
  EXPECT_DOUBLE_EQ(CountFlops(shape, 64).layers[0], 2 * flops.layers[0]);
}

SynthSpec WideResNetSpec() {
  SynthSpec spec;
  spec.model = "Wide_ResNet101_8";
  spec.gpu = "a40";
  spec.stages = 8;
  spec.microbatch_size = 32;
  spec.partition = "4,5,4,4,4,4,5,3";
  return spec;
}

TEST(SynthConvolutionTest, StagesFollowTheBlocksAndTheirPixels) {
  const SynthResult result = Synthesize(WideResNetSpec()).value();
  EXPECT_EQ(result.command.rfind("perseus synth --model wide-resnet101_8 --gpu a40 ", 0), 0U);
  EXPECT_NE(result.profile_csv.find(
                "# Residual blocks per stage: 4,5,4,4,4,4,5,3; the first stage also has the stem"),
            std::string::npos);
  EXPECT_DOUBLE_EQ(result.stages[2].forward_seconds, result.stages[5].forward_seconds);
  EXPECT_NEAR(result.stages[6].forward_seconds, 1.25 * result.stages[2].forward_seconds, 1e-3);
  // As many operations, but pixels and channels that suit the card less.
  EXPECT_GT(result.stages[0].forward_seconds, 1.2 * result.stages[2].forward_seconds);
  EXPECT_GT(result.stages[7].forward_seconds, result.stages[2].forward_seconds);
  SynthSpec balanced = WideResNetSpec();
  balanced.partition = "balanced";
  EXPECT_LT(Synthesize(balanced)->imbalance, result.imbalance);
}

TEST(SynthConvolutionTest, RefusesWithASentence) {
  const auto expect = [](auto change, const std::string& part) {
    SynthSpec spec = WideResNetSpec();
    change(spec);
    const std::string message = ErrorOf(spec);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect([](SynthSpec& s) { s.gpu = "a100-sxm"; },
         "'model' wide-resnet101_8 on 'gpu' a100-sxm: no measured table gives the efficiency of "
         "convolutions on this card");
  expect([](SynthSpec& s) { s.gpu = "a100-pcie"; }, "or model one of: a40");
  expect([](SynthSpec& s) { s.tensor_parallel = 2; },
         "'tensor_parallel' 2: tensor parallelism splits");
  expect([](SynthSpec& s) { s.shape.sequence = 128; }, "'sequence' is a number of transformers");
  expect([](SynthSpec& s) { s.stages = 34; }, "more than the model's 33 residual blocks");
  expect([](SynthSpec& s) { s.partition = "4,5,4,4,4,4,5,4"; }, "the model's 33 layers");
  EXPECT_FALSE(FindWideResNet("gpt3-1.3b"));
  EXPECT_FALSE(FindTransformer("wide-resnet101_8"));
}

}  // namespace
}  // namespace perseus
