// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "perseus/plan_document.h"
#include "perseus/plan_file.h"

// Whatever is read as a plan must be written and read back to the same text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const perseus::Result<perseus::PlanDocument> plan = perseus::ParsePlanJson(text, "plan.json");
  if (!plan) return 0;
  const std::string written = perseus::FormatPlanJson(*plan);
  const perseus::Result<perseus::PlanDocument> again = perseus::ParsePlanJson(written, "plan.json");
  if (!again || perseus::FormatPlanJson(*again) != written) std::abort();
  if (!perseus::FormatZeusPlan(*plan)) perseus::ScheduleOf(*plan);
  return 0;
}
