// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/commands.h"
#include "cli/node/doctor_examination.h"
#include "cli/node/doctor_report.h"

namespace perseus::cli {

Result<Printout> RunDoctor(const DoctorFlags& flags, const Style& style) {
  const Result<Examination> examination = ExamineNode(flags);
  if (!examination) return tl::unexpected(examination.error());
  Printout printout(flags.json ? ExaminationJson(*examination)
                               : FormatExamination(*examination, style));
  printout.is_refusal = !examination->can_follow_plans();
  return printout;
}

}  // namespace perseus::cli
