// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_CHECKS_H_
#define PERSEUS_SRC_TRACE_TRACE_CHECKS_H_

#include <string>
#include <vector>

#include "perseus/note.h"
#include "perseus/profile.h"
#include "trace/recording.h"

namespace perseus::trace {

// What is odd or implausible in a recording: starts and durations that are probably not in seconds,
// by their size, beside each other, and beside the times of a profile (null: there is none).
// `source` is the recording's file.
std::vector<Note> CheckRecording(const Recording& recording, const Profile* profile,
                                 const std::string& source);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_CHECKS_H_
