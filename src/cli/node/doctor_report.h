// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_DOCTOR_REPORT_H_
#define PERSEUS_CLI_NODE_DOCTOR_REPORT_H_

#include <string>

#include "cli/framework/terminal.h"
#include "cli/node/doctor_examination.h"

namespace perseus::cli {

// For people: a table of the GPUs, the findings, and the answer.
std::string FormatExamination(const Examination& examination, const Style& style);

// "20.1 ms".
std::string Milliseconds(double seconds);

// For programs (docs/how-to/doctor.md).
std::string ExaminationJson(const Examination& examination);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_DOCTOR_REPORT_H_
