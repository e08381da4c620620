// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_SCHEDULE_NAMES_H_
#define PERSEUS_PIPELINE_SCHEDULE_NAMES_H_

#include <string>
#include <string_view>

namespace perseus::pipeline {

// "unknown schedule 'x'; did you mean ...?; known are ...".
std::string UnknownScheduleName(std::string_view name);

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_SCHEDULE_NAMES_H_
