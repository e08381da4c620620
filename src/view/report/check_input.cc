// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/check_input.h"

#include <fmt/format.h>

#include <cstddef>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"

namespace perseus::report {
namespace {

tl::unexpected<Error> Missing(const char* field) {
  return tl::unexpected<Error>(
      {.code = ErrorCode::kInvalidInput,
       .message = fmt::format("the report has no '{}'; fill it in (ReportOf() does)", field),
       .field = field});
}

Result<void> CheckOf(const CostedPipeline& pipeline, const Plan* plan, const char* field,
                     bool needed) {
  if (plan == nullptr) return needed ? Result<void>(Missing(field)) : Result<void>();
  auto good = CheckPlan(pipeline, *plan);
  if (!good) {
    good.error().message = fmt::format("the report's '{}': {}", field, good.error().message);
    good.error().field = field;
  }
  return good;
}

Result<void> CheckOf(const CostedPipeline& pipeline, const Emulation& emulation) {
  for (const EmulatedPipeline& each : emulation.timeline.pipelines) {
    for (const EmulatedComputation& computation : each.computations) {
      if (computation.computation >= 0 && computation.computation < pipeline.dag.size() &&
          computation.knob >= 0 &&
          static_cast<std::size_t>(computation.knob) < pipeline.knobs.size()) {
        continue;
      }
      return InvalidInput(fmt::format(
          "the report's emulation runs computation {} at knob {}, which its pipeline has not; it "
          "is of another pipeline",
          computation.computation, computation.knob));
    }
  }
  return {};
}

}  // namespace

Result<void> CheckInput(const ReportInput& input, bool chosen) {
  if (input.profile == nullptr) return Missing("profile");
  if (input.pipeline == nullptr) return Missing("pipeline");
  if (input.frontier == nullptr) return Missing("frontier");
  const CostedPipeline& pipeline = *input.pipeline;
  if (auto good = pipeline.dag.Validate(); !good) return good;
  if (auto good = CheckOf(pipeline, input.baseline, "baseline", true); !good) return good;
  if (auto good = CheckOf(pipeline, input.chosen, "chosen", chosen); !good) return good;
  return CheckOf(pipeline, input.paper_plan, "paper_plan", chosen && input.conditions.has_value());
}

Result<void> CheckInput(const EmulationReportInput& input) {
  if (input.profile == nullptr) return Missing("profile");
  if (input.pipeline == nullptr) return Missing("pipeline");
  if (input.spec == nullptr) return Missing("spec");
  if (input.emulation == nullptr) return Missing("emulation");
  if (input.baseline == nullptr) return Missing("baseline");
  const CostedPipeline& pipeline = *input.pipeline;
  if (auto good = pipeline.dag.Validate(); !good) return good;
  if (auto good = CheckOf(pipeline, *input.emulation); !good) return good;
  return CheckOf(pipeline, *input.baseline);
}

}  // namespace perseus::report
