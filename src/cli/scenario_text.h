// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SCENARIO_TEXT_H_
#define PERSEUS_CLI_SCENARIO_TEXT_H_

#include <string>

#include "perseus/emulator.h"

namespace perseus::cli {

// "15 ms", "2 s", "1.5 h", "30 d".
std::string SpanOfTime(double seconds);

// Whether stragglers are named or come by chance.
bool HasStragglers(const EmulationSpec& spec);

// "noise of 1 % a computation; clocks in effect ...", with what is accepted.
std::string ConditionsInWords(const Conditions& conditions);

// What disturbs the job, in words: one sentence.
std::string ScenarioInWords(const EmulationSpec& spec);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SCENARIO_TEXT_H_
