// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_LABEL_TEXTS_H_
#define PERSEUS_SERVER_API_LABEL_TEXTS_H_

#include <map>
#include <optional>
#include <string>

#include "common/labels.h"
#include "common/tree_reader.h"
#include "http/message.h"
#include "server/base/failure.h"

// Labels of jobs in bodies and queries.
namespace perseus::server {

using LabelChanges = std::map<std::string, std::optional<std::string>>;

// Reads {"team": "vision", "project": null} from `labels`, without checking what is allowed.
LabelChanges ReadLabels(const TreeCursor& labels);
// Those that are set, if they are allowed.
Outcome<JobLabels> NewLabelsOf(const LabelChanges& changes);

// The labels that a job must have, from the parameter `label`: "team:vision,project:x". Empty: any.
Outcome<JobLabels> WantedLabels(const http::Request& request);
// Whether `labels` has all of `wanted`.
bool HasLabels(const JobLabels& labels, const JobLabels& wanted);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_LABEL_TEXTS_H_
