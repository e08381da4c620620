// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_MESSAGES_H_
#define PERSEUS_SERVER_API_MESSAGES_H_

#include <span>

#include "server/domain/schema.h"
#include "server/runtime/managed_job.h"
#include "server/store/facts.h"

// Messages that several files of the API use, and the lists of all for the OpenAPI document.
namespace perseus::server {

extern const Message<store::StragglerRecord> kStraggler;
extern const Message<store::ProfileRecord> kProfileRecord;  // Without CSV: as in lists.
extern const Message<WatchSettings> kDetectionSettings;
extern const Message<WatchView> kDetection;
extern const Message<ComparisonBlocks> kComparisonNow;
extern const Message<JobView> kSavings;
// The job's entry in a list: without settings, stragglers and iterations.
extern const Message<JobView> kJobSummary;
extern const Message<JobView> kJob;

// Of healthz and readyz.
struct Health {
  std::string_view status;
  std::string message = {};
};
extern const Message<Health> kHealth;

// The settings of a new job that are not fields of job files.
const AnyMessage& JobSettingsSchema();

// Bodies and answers of one file of the API each; messages inside these are found from them.
using Messages = std::span<const AnyMessage* const>;
Messages JobMessages();
Messages RankMessages();
Messages NodeMessages();
Messages TimelineMessages();
Messages HistoryMessages();
Messages PlanMessages();
Messages ZeusMessages();

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_MESSAGES_H_
