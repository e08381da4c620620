// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SERVER_EXAMINATION_H_
#define PERSEUS_CLI_CLUSTER_SERVER_EXAMINATION_H_

#include <string>
#include <vector>

#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "perseus/result.h"

namespace perseus::cli {

// The findings on a server and its jobs. A plain value.
struct ServerExamination {
  std::string server;   // As asked for.
  std::string version;  // Of the server; empty: it did not say.
  long long jobs = 0;   // Unfinished ones that were looked at.
  std::vector<Finding> findings;

  // Whether no finding is a fault.
  bool is_well() const { return CountOfLevel(findings, FindingLevel::kFault) == 0; }
};

// Asks a server what docs/how-to/runbook.md looks at: whether it answers, its store, certificate
// and limits, and what its jobs complain of. Changes nothing. A server that cannot be asked is a
// finding. Errors: kInvalidInput (a URL, token file or certificate file that is none).
Result<ServerExamination> ExamineServer(const ServerFlags& flags);

std::string FormatServerExamination(const ServerExamination& examination, const Style& style);
std::string ServerExaminationJson(const ServerExamination& examination);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SERVER_EXAMINATION_H_
