// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_JOB_TABLE_H_
#define PERSEUS_JOB_JOB_TABLE_H_

#include <functional>
#include <string>

#include "common/tree.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

namespace perseus::job {

// The settings in a table that is a part of a larger file: the keys of a job file, and nothing
// else. `name` stands for the path of that file: in messages, and where relative paths begin.
// `place` is the path of the table in it ("job[2]").
Result<JobFile> ReadJobTable(const TreeNode& table, const std::string& name,
                             const std::function<std::string()>& place);

// Whether these settings mean the same pipeline and costs, so that one planner serves both. Where
// plans should be, how many pipelines there are and where files go does not count.
bool SamePipeline(const JobFile& a, const JobFile& b);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_JOB_TABLE_H_
