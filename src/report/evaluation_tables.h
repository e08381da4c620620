// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_EVALUATION_TABLES_H_
#define PERSEUS_SRC_REPORT_EVALUATION_TABLES_H_

#include <string>

#include "perseus/sosp24.h"
#include "report/document.h"

namespace perseus::report {

// Numbers of the evaluation's pages. Percentages: "12.34"; differences carry
// their sign.
std::string Percent(double value);
std::string Points(double value);

// The slowdown is that of Figure 7.
bool IsFigure7(const Sosp24Straggler& row);
bool HasEnvPipe(const Sosp24Emulation& cell);
bool HasEnvPipe(const Sosp24Straggler& row);

Table Table6AtPublished(const Sosp24Evaluation& evaluation);
Table Table6AtMaxClocks(const Sosp24Evaluation& evaluation);
Table Figure7(const Sosp24Evaluation& evaluation);
Table Figure7EnvPipe(const Sosp24Evaluation& evaluation);
Table Figure8(const Sosp24Evaluation& evaluation);
Table EnvPipePolicy(const Sosp24Evaluation& evaluation);
Table Table3(const Sosp24Evaluation& evaluation);
Table Table4(const Sosp24Evaluation& evaluation);
Table ReplayErrors(const Sosp24Evaluation& evaluation);
Table Figure9(const Sosp24Job& job);
Table RunTimes(const Sosp24Evaluation& evaluation);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EVALUATION_TABLES_H_
