// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_EMULATION_ANSWERS_H_
#define PERSEUS_CLI_QUESTIONS_EMULATION_ANSWERS_H_

#include <string>

#include "cli/framework/terminal.h"
#include "cli/questions/emulation_summary.h"

namespace perseus::cli {

// The plans that answer --power-budget and --deadline. Precondition: asked.
std::string PowerBudgetSentence(const EmulationSummary& summary);
std::string DeadlineSentence(const EmulationSummary& summary);

// What the clock calls cost by change_price. Precondition: given.
std::string PriceOfChangesSentence(const EmulationSummary& summary);

// The answers to all questions that were asked, for a terminal; empty where
// none was.
std::string FormatAnswers(const EmulationSummary& summary, const Style& style);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_EMULATION_ANSWERS_H_
