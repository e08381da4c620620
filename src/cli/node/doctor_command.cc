// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "cli/cluster/server_examination.h"
#include "cli/commands.h"
#include "cli/node/doctor_conditions.h"
#include "cli/node/doctor_examination.h"
#include "cli/node/doctor_report.h"

namespace perseus::cli {
namespace {

Result<Printout> ReportOnServer(const DoctorFlags& flags, const Style& style) {
  if (flags.set_clocks || !flags.agent_socket.empty()) {
    return InvalidInput(fmt::format("{} is for a node, and --server for a server: give one of them",
                                    flags.set_clocks ? "--set-clocks" : "--socket"));
  }
  const Result<ServerExamination> examination = ExamineServer(flags.server);
  if (!examination) return tl::unexpected(examination.error());
  Printout printout(flags.json ? ServerExaminationJson(*examination)
                               : FormatServerExamination(*examination, style));
  printout.is_refusal = !examination->is_well();
  return printout;
}

}  // namespace

Result<Printout> RunDoctor(const DoctorFlags& flags, const Style& style) {
  if (!flags.server.server.empty() && !flags.output_file.empty()) {
    return InvalidInput("-o takes what --set-clocks measures on a node: leave out --server");
  }
  if (!flags.server.server.empty()) return ReportOnServer(flags, style);
  if (!flags.server.token_file.empty() || !flags.server.ca_file.empty()) {
    return InvalidInput(
        fmt::format("{} is for a server: give its address with --server URL",
                    flags.server.token_file.empty() ? "--ca-file" : "--token-file"));
  }
  if (!flags.output_file.empty() && !flags.set_clocks) {
    return InvalidInput(
        "-o takes what --set-clocks measures: give that, too (as root, on a node without jobs)");
  }
  if (!flags.output_file.empty()) {
    if (auto good = CheckOutputFile(flags.output_file, {}); !good) {
      return tl::unexpected(good.error());
    }
  }
  Result<Examination> examination = ExamineNode(flags);
  if (!examination) return tl::unexpected(examination.error());
  if (!flags.output_file.empty()) {
    const Result<void> written = WriteConditions(flags.output_file, &*examination);
    if (!written) return tl::unexpected(written.error());
  }
  Printout printout(flags.json ? ExaminationJson(*examination)
                               : FormatExamination(*examination, style));
  printout.is_refusal = !examination->can_follow_plans();
  return printout;
}

}  // namespace perseus::cli
