// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "synth/synth_testing.h"

namespace perseus {
namespace {

SynthSpec SampleSpec() {
  SynthSpec spec;
  spec.model = "gpt3-1.3b";
  spec.gpu = "a100-sxm";
  spec.stages = 4;
  spec.microbatch_size = 4;
  spec.microbatches = 16;
  spec.profile_path = "gpt3-1.3b-a100-sxm.csv";
  return spec;
}

double Total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Forward operations per token, attention scores left out, of shapes whose
// queries and values have these widths in every layer.
double ProjectionFlopsPerToken(const TransformerShape& shape, double score_width, double layers) {
  const ModelFlops flops = CountFlops(shape, 1);
  const auto tokens = static_cast<double>(shape.sequence);
  return (Total(flops.layers) + flops.head) / tokens - layers * 2 * tokens * score_width;
}

TEST(CountFlopsTest, MatchesNarayanansFormula) {
  // Equation 3 of Narayanan et al. 2021, with recomputation: 96 B s l h^2 (1 + s/6h + V/16lh),
  // in which forward, backward and recomputation are 4 forwards, 3 for the logits.
  const TransformerShape shape = FindTransformer("gpt3-175b").value();
  const double b = 3, s = 2048, l = 96, h = 12288, v = 51200;
  const ModelFlops flops = CountFlops(shape, 3);
  const double ours = 4 * Total(flops.layers) + 3 * flops.head;
  const double published = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(ours / published, 1.0, 1e-12);
}

TEST(CountFlopsTest, Gpt3TakesThePublishedOperationsFor300BillionTokens) {
  // Brown et al. 2020, table D.1: 3.14e23, attention scores not counted.
  const TransformerShape shape = FindTransformer("gpt3-175b").value();
  EXPECT_NEAR(3 * 300e9 * ProjectionFlopsPerToken(shape, 2 * 12288, 96), 3.14e23, 0.005e23);
}

TEST(CountFlopsTest, TwoOperationsPerActiveParameterAndToken) {
  // Parameters that take part in products, embedding left out.
  const auto parameters = [](const char* name) {
    const TransformerShape shape = FindTransformer(name).value();
    const double width = static_cast<double>(shape.heads * 2 * shape.head_dim) +
                         static_cast<double>(shape.heads * shape.rope_head_dim);
    return ProjectionFlopsPerToken(shape, width, static_cast<double>(shape.layers)) / 2;
  };
  EXPECT_NEAR(parameters("llama3-8b"), 8.03e9 - 128256.0 * 4096, 0.01e9);
  EXPECT_NEAR(parameters("llama3-70b"), 70.55e9 - 128256.0 * 8192, 0.01e9);
  EXPECT_NEAR(parameters("llama3-405b"), 405.85e9 - 128256.0 * 16384, 0.01e9);
  EXPECT_NEAR(parameters("qwen3-32b"), 32.76e9 - 151936.0 * 5120, 0.01e9);
  EXPECT_NEAR(parameters("bloom-176b"), 176.25e9, 0.2e9);  // Head and embedding are one.
  // 36.6 B activated of 671 B, output head included, embedding not.
  EXPECT_NEAR(parameters("deepseek-v3"), 36.6e9, 0.1e9);
}

TEST(CountFlopsTest, DecoderLayersOfT5AttendTwice) {
  const ModelFlops flops = CountFlops(FindTransformer("t5-3b").value(), 1);
  const double s = 512, h = 1024, inner = 4096, ffn = 16384;
  const double attention = 2 * s * (4 * h * inner) + 4 * s * s * inner;
  const double feed_forward = 2 * s * 2 * h * ffn;
  EXPECT_DOUBLE_EQ(flops.layers.front(), attention + feed_forward);
  EXPECT_DOUBLE_EQ(flops.layers.back(), 2 * attention + feed_forward);
  EXPECT_EQ(std::count(flops.layers.begin(), flops.layers.end(), flops.layers.back()), 24);
  // 2.85 B parameters, of which 33 M are the embedding, which is the head, too.
  const double parameters = (Total(flops.layers) + flops.head) / (2 * s) - 72 * 2 * s * inner;
  EXPECT_NEAR(parameters, 2.85e9, 0.01e9);
}

TEST(CountFlopsTest, FollowsMicrobatchAndMixture) {
  const TransformerShape shape = FindTransformer("deepseek-v3").value();
  const ModelFlops one = CountFlops(shape, 1);
  const ModelFlops two = CountFlops(shape, 2);
  EXPECT_DOUBLE_EQ(two.layers[10], 2 * one.layers[10]);
  EXPECT_DOUBLE_EQ(one.layers[0], one.layers[2]);
  // The dense first layers are as wide as nine experts; the router comes on top.
  EXPECT_NEAR(one.layers[3] - one.layers[2], 2.0 * 4096 * 7168 * 256, 1e6);
  EXPECT_GT(one.mtp, one.head + one.layers[10]);
}

TEST(SynthesizeTest, TimeFallsWithClockUntilThePowerCap) {
  for (const auto& [spec, cap_mhz] : {std::pair{Gpt175BSpec(), 1384}, {Bloom176BSpec(), 1492}}) {
    for (const auto& [key, rows] : Model(spec)) {
      double last_seconds = 1e9;
      double last_watts = 0;
      for (const auto& [mhz, row] : rows) {
        const double watts = row.joules / row.seconds;
        if (mhz - 15 < cap_mhz) {
          EXPECT_LT(row.seconds, last_seconds) << mhz;
          EXPECT_GT(watts, last_watts) << mhz;
        } else {
          EXPECT_EQ(row.seconds, last_seconds) << mhz;
          EXPECT_EQ(watts, last_watts) << mhz;
        }
        last_seconds = row.seconds;
        last_watts = watts;
      }
    }
  }
}

TEST(SynthesizeTest, EnergyIsLeastBetweenTheEnds) {
  const Table table = Model(SampleSpec());
  EXPECT_EQ(table.size(), 8U);
  for (const auto& [key, rows] : table) {
    const auto least = std::min_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return a.second.joules < b.second.joules;
    });
    EXPECT_GT(least->first, rows.begin()->first);
    EXPECT_LT(least->first, rows.rbegin()->first);
    EXPECT_LT(least->second.joules, 0.8 * rows.rbegin()->second.joules);
  }
}

TEST(SynthesizeTest, UnitsAreSecondsAndJoulesOfOneGpu) {
  const Table table = Model(Gpt175BSpec());
  const Row row = table.at({0, "forward"}).at(1410);
  const double layer_flops = CountFlops(FindTransformer("gpt3-175b").value(), 1).layers[0];
  const double flops_per_second = 12 * layer_flops / 8 / row.seconds;
  EXPECT_GT(flops_per_second, 0.70 * 311.87e12);
  EXPECT_LT(flops_per_second, 0.76 * 311.87e12);
  EXPECT_NEAR(row.joules / row.seconds, 476, 0.01);

  SynthSpec half = Gpt175BSpec();
  half.tensor_parallel = 4;
  EXPECT_NEAR(Model(half).at({0, "forward"}).at(1410).seconds, 2 * row.seconds, 1e-9);
  EXPECT_NEAR(Model(half).at({0, "forward"}).at(1410).joules, 2 * row.joules, 1e-6);
}

TEST(SynthesizeTest, RecomputationAddsAForwardOfTheLayers) {
  SynthSpec spec = Gpt175BSpec();
  const Table plain = Model(spec);
  spec.recompute = true;
  const Table again = Model(spec);
  for (const int mhz : {855, 1140, 1410}) {
    EXPECT_NEAR(again.at({7, "backward"}).at(mhz).seconds,
                plain.at({7, "backward"}).at(mhz).seconds +
                    plain.at({0, "forward"}).at(mhz).seconds,  // As many layers, no head.
                1e-9);
    EXPECT_EQ(again.at({7, "forward"}).at(mhz).seconds, plain.at({7, "forward"}).at(mhz).seconds);
  }
}

TEST(SynthesizeTest, EfficiencyIsTheForwardsShareOfThePeak) {
  SynthSpec spec = Gpt175BSpec();
  const double fitted = Model(spec).at({0, "forward"}).at(1140).seconds;
  spec.efficiency = 0.3753;  // Half of the fitted 0.7506.
  EXPECT_NEAR(Model(spec).at({0, "forward"}).at(1140).seconds, 2 * fitted, 1e-9);
}

TEST(SynthesizeTest, BalancedPartitionIsTheBestOfAll) {
  SynthSpec spec = SampleSpec();
  spec.clock_step_mhz = 555;  // Few rows: it is the partition that counts.
  const SynthResult balanced = Synthesize(spec).value();
  double best = 1e9;
  for (int a = 1; a < 24; ++a) {
    for (int b = 1; a + b < 24; ++b) {
      for (int c = 1; a + b + c < 24; ++c) {
        spec.partition = std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) +
                         "," + std::to_string(24 - a - b - c);
        best = std::min(best, Synthesize(spec).value().imbalance);
      }
    }
  }
  EXPECT_NEAR(balanced.imbalance, best, 1e-9);
  spec.partition = "uniform";
  const SynthResult uniform = Synthesize(spec).value();
  EXPECT_EQ(uniform.stages[0].layers, 6);
  EXPECT_GT(uniform.imbalance, best);
}

TEST(SynthesizeTest, PartitionsMayHaveSpacesAroundCommas) {
  SynthSpec spec = SampleSpec();
  spec.partition = "7, 7 ,6,4";
  const auto result = Synthesize(spec);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stages[1].layers, 7);
  // As a command takes it.
  EXPECT_NE(result->command.find(" --partition 7,7,6,4"), std::string::npos) << result->command;
}

TEST(SynthesizeTest, UnevenLayersAreBalancedByTime) {
  SynthSpec spec;
  spec.model = "t5-3b";
  spec.gpu = "a40";
  spec.stages = 4;
  const SynthResult result = Synthesize(spec).value();
  EXPECT_GT(result.stages.front().layers, result.stages.back().layers);
  EXPECT_LT(result.imbalance, 1.1);
}

TEST(SynthesizeTest, OwnNumbersStandForAModel) {
  SynthSpec spec = SampleSpec();
  const SynthResult named = Synthesize(spec).value();
  spec.model.clear();
  spec.shape.layers = 24;
  spec.shape.hidden = 2048;
  spec.shape.heads = 16;
  spec.shape.vocabulary = 51200;
  spec.shape.sequence = 2048;
  const SynthResult numbers = Synthesize(spec).value();
  EXPECT_EQ(numbers.flops_per_microbatch, named.flops_per_microbatch);
  EXPECT_EQ(numbers.command,
            "perseus synth --layers 24 --hidden 2048 --heads 16 --vocabulary 51200 --sequence 2048 "
            "--gpu a100-sxm --stages 4 --microbatch-size 4 --microbatches 16");
}

TEST(SynthesizeTest, ClocksAreTheGpusOrASubrange) {
  const Table all = Model(Bloom176BSpec());
  const auto& rows = all.at({0, "forward"});
  EXPECT_EQ(rows.size(), 60U);
  EXPECT_EQ(rows.begin()->first, 855);
  EXPECT_EQ(rows.rbegin()->first, 1740);
  SynthSpec spec = Bloom176BSpec();
  spec.min_clock_mhz = 1000;
  spec.clock_step_mhz = 60;
  const Table table = Model(spec);
  const auto& some = table.at({0, "forward"});
  EXPECT_EQ(some.size(), 13U);
  EXPECT_EQ(some.begin()->first, 1020);
  EXPECT_EQ(some.at(1740).seconds, rows.at(1740).seconds);
  EXPECT_NE(Synthesize(spec)->command.find(" --min-clock 1000 --clock-step 60"), std::string::npos);
}

TEST(SynthesizeTest, SaysThatItIsModelledAndHow) {
  const SynthResult result = Synthesize(SampleSpec()).value();
  EXPECT_EQ(result.profile_csv.rfind("# MODELLED, not measured", 0), 0U);
  EXPECT_NE(result.profile_csv.find("# Made by: " + result.command + "\n"), std::string::npos);
  EXPECT_NE(result.job_toml.find("profile = \"gpt3-1.3b-a100-sxm.csv\"\n"), std::string::npos);
  EXPECT_NE(result.job_toml.find("blocking_power = 83.64\n"), std::string::npos);
  SynthSpec odd = SampleSpec();
  odd.profile_path = "a\"b\\c\n.csv";
  EXPECT_NE(Synthesize(odd)->job_toml.find(R"(profile = "a\"b\\c\u000a.csv")"), std::string::npos);
}

TEST(SynthesizeTest, EveryModelOnEveryGpu) {
  for (const std::string& model : SynthModelNames()) {
    for (const std::string& gpu : SynthGpuNames()) {
      SynthSpec spec;
      spec.model = model;
      spec.gpu = gpu;
      spec.stages = 8;
      spec.tensor_parallel = 2;
      spec.microbatch_size = 8;
      if (FindWideResNet(model)) {
        spec.tensor_parallel = 1;
        if (gpu != "a40") continue;
      }
      const Result<SynthResult> result = Synthesize(spec);
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_GE(result->imbalance, 1);
      // The heads of the small BERTs are more than an eighth of the model.
      const bool small = model == "bert-base" || model == "bert-large";
      EXPECT_LT(result->imbalance, small ? 8 : 2) << model;
    }
  }
}

TEST(SynthesizeTest, RefusesWithASentence) {
  const auto expect = [](auto change, const std::string& part) {
    SynthSpec spec = SampleSpec();
    change(spec);
    const std::string message = ErrorOf(spec);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect([](SynthSpec& s) { s.model = "gpt3-1.4b"; }, "did you mean 'gpt3-1.3b'?");
  expect([](SynthSpec& s) { s.model = "wide-resnet101"; }, "did you mean 'wide-resnet101_8'?");
  expect([](SynthSpec& s) { s.model = ""; }, "'layers' is missing");
  expect([](SynthSpec& s) { s.gpu = "a1oo-sxm"; }, "did you mean 'a100-sxm'?");
  expect([](SynthSpec& s) { s.gpu = "H100"; }, "no public source gives its blocking power");
  expect([](SynthSpec& s) { s.gpu = "b200"; }, "voltage knee");
  expect([](SynthSpec& s) { s.gpu = "a100"; }, "say which card");
  expect([](SynthSpec& s) { s.gpu = std::string(100000, '\x01'); }, "no such GPU");
  expect([](SynthSpec& s) { s.stages = 25; }, "more than the model's 24 layers");
  expect([](SynthSpec& s) { s.stages = 0; }, "'stages' 0 is out of range");
  expect([](SynthSpec& s) { s.stages = -4; }, "'stages' -4 is out of range");
  expect([](SynthSpec& s) { s.virtual_stages = 3; }, "does not divide 'stages' 4");
  expect([](SynthSpec& s) { s.tensor_parallel = 3; }, "does not divide the model's 16");
  expect([](SynthSpec& s) { s.microbatch_size = 0; }, "'microbatch_size' 0");
  expect([](SynthSpec& s) { s.microbatches = -1; }, "'microbatches' -1");
  expect([](SynthSpec& s) { s.shape.hidden = -1; }, "'hidden' -1 is out of range");
  expect([](SynthSpec& s) { s.shape.layers = INT64_MAX; }, "'layers' 9223372036854775807");
  expect([](SynthSpec& s) { s.shape.kv_heads = 5; }, "'kv_heads' 5 must divide");
  expect([](SynthSpec& s) { s.shape.heads = 4096; }, "a head needs a width");
  expect([](SynthSpec& s) { s.shape.ffn_matrices = 4; }, "expected 2 (plain) or 3");
  expect([](SynthSpec& s) { s.shape.experts = 8; }, "'active_experts' 0");
  expect([](SynthSpec& s) { s.shape.active_experts = 2; }, "give 'experts', too");
  expect([](SynthSpec& s) { s.shape.q_lora_rank = 2; }, "give 'kv_lora_rank', too");
  expect([](SynthSpec& s) { s.shape.encoder_layers = 25; }, "neither can be more");
  expect([](SynthSpec& s) { s.efficiency = 1.5; }, "'efficiency' 1.5");
  expect([](SynthSpec& s) { s.efficiency = std::nan(""); }, "'efficiency' nan");
  expect([](SynthSpec& s) { s.partition = "6,6,6"; }, "lists 3 stages, but 'stages' is 4");
  expect([](SynthSpec& s) { s.partition = "6,6,6,7"; }, "does not add up to the model's 24");
  expect([](SynthSpec& s) { s.partition = "6,6,6,"; }, "neither 'uniform' nor 'balanced'");
  expect([](SynthSpec& s) { s.partition = "6,6,12,0"; }, "'0' is neither");
  expect([](SynthSpec& s) { s.partition = "best"; }, "'best' is neither");
  expect([](SynthSpec& s) { s.schedule = "1f1b\"\nx=1"; }, "'schedule'");
  expect([](SynthSpec& s) { s.min_clock_mhz = 210; }, "modelled from 855 to 1410 MHz");
  expect([](SynthSpec& s) { s.max_clock_mhz = 1500; }, "modelled from 855 to 1410 MHz");
  expect([](SynthSpec& s) { s.max_clock_mhz = INT64_MIN; }, "modelled from 855 to 1410 MHz");
  expect([](SynthSpec& s) { s.max_clock_mhz = 1400; }, "every 15 MHz below");
  expect([](SynthSpec& s) { s.clock_step_mhz = 20; }, "a multiple of 15 MHz");
  expect([](SynthSpec& s) { s.clock_step_mhz = -15; }, "'clock_step_mhz' -15");
}

TEST(SynthSampleTest, CommittedSampleIsWhatTheCommandMakes) {
  const std::filesystem::path examples = std::filesystem::path(PERSEUS_SOURCE_DIR) / "examples";
  const SynthResult result = Synthesize(SampleSpec()).value();
  EXPECT_EQ(ReadAll(examples / "gpt3-1.3b-a100-sxm.csv"), result.profile_csv);
  EXPECT_EQ(ReadAll(examples / "gpt3-1.3b-a100-sxm.toml"), result.job_toml);
}

}  // namespace
}  // namespace perseus
