// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_LABELS_H_
#define PERSEUS_COMMON_LABELS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "perseus/result.h"

// Labels of a job: names with values, by which lists and accounts tell jobs apart. The rules are
// those that Kubernetes has for labels, without the longer prefix and the empty value.
namespace perseus {

using JobLabels = std::map<std::string, std::string, std::less<>>;

inline constexpr std::size_t kMostLabels = 16;      // Of a job.
inline constexpr std::size_t kMostLabelBytes = 63;  // Of a name or a value.

// kInvalidInput, with one sentence, for a name or a value that is not allowed.
Result<void> CheckLabelName(std::string_view name);
Result<void> CheckLabel(std::string_view name, std::string_view value);
// Also checks how many there are.
Result<void> CheckLabels(const JobLabels& labels);

// Reads "team=vision", or with another separator "team:vision", and checks it.
Result<std::pair<std::string, std::string>> ParseLabel(std::string_view text, char separator = '=');

// "project=x, team=vision", by name.
std::string LabelsText(const JobLabels& labels, std::string_view separator = ", ");

}  // namespace perseus

#endif  // PERSEUS_COMMON_LABELS_H_
