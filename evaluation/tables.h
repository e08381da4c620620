// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_TABLES_H_
#define PERSEUS_EVALUATION_TABLES_H_

#include <string>

#include "evaluation/sosp24.h"
#include "report/document.h"

namespace perseus::sosp24 {

// Numbers of the evaluation's pages. Percentages: "12.34"; differences carry
// their sign.
std::string Percent(double value);
std::string Points(double value);

// The slowdown is that of Figure 7.
bool IsFigure7(const Sosp24Straggler& row);
bool HasEnvPipe(const Sosp24Emulation& cell);
bool HasEnvPipe(const Sosp24Straggler& row);

report::Table Table6AtPublished(const Sosp24Evaluation& evaluation);
report::Table Table6AtMaxClocks(const Sosp24Evaluation& evaluation);
report::Table Figure7(const Sosp24Evaluation& evaluation);
report::Table Figure7EnvPipe(const Sosp24Evaluation& evaluation);
report::Table Figure8(const Sosp24Evaluation& evaluation);
report::Table EnvPipePolicy(const Sosp24Evaluation& evaluation);
report::Table Table3(const Sosp24Evaluation& evaluation);
report::Table Table4(const Sosp24Evaluation& evaluation);
report::Table ReplayErrors(const Sosp24Evaluation& evaluation);
report::Table Figure9(const Sosp24Job& job);
report::Table RunTimes(const Sosp24Evaluation& evaluation);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_TABLES_H_
