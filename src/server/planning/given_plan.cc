// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/given_plan.h"

#include <string>
#include <vector>

#include "common/file.h"
#include "formats/zeus_plan.h"
#include "perseus/computation.h"
#include "perseus/plan_file.h"

namespace perseus::server {

Result<GivenPlan> GivenPlan::Read(const std::string& path) {
  Result<std::string> text = ReadWholeFile(path, kMaxZeusPlanFileBytes);
  if (!text) return tl::unexpected(text.error());
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (*text)[first] == '{') {
    const Result<PlanDocument> plan = ParsePlanJson(*text, path);
    if (!plan) return tl::unexpected(plan.error());
    // The one way from a plan to Zeus' instructions, which names the parts that these cannot hold.
    text = FormatZeusPlan(*plan);
    if (!text) return tl::unexpected(text.error());
  }
  const Result<formats::ZeusPlan> plan = formats::ParseZeusPlan(*text, path);
  if (!plan) return tl::unexpected(plan.error());
  GivenPlan given;
  for (const auto& rank : *plan) {
    std::vector<ZeusStep>& steps = given.ranks_.emplace_back();
    for (const formats::ZeusInstruction& instruction : rank) {
      steps.push_back({std::string(ComputationTypeName(instruction.type)), instruction.clock_mhz});
    }
  }
  return given;
}

bool GivenPlan::Fits(const Shape& shape) const {
  const auto rows = static_cast<std::int64_t>(ranks_.size());
  return rows == shape.pipeline_parallel || rows == shape.world_size();
}

const std::vector<ZeusStep>& GivenPlan::StepsOf(const Shape& shape, int rank, int pp_rank) const {
  const bool is_by_pipeline_rank =
      static_cast<std::int64_t>(ranks_.size()) == shape.pipeline_parallel;
  return ranks_[static_cast<std::size_t>(is_by_pipeline_rank ? pp_rank : rank)];
}

}  // namespace perseus::server
