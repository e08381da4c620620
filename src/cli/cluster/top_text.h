// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_TOP_TEXT_H_
#define PERSEUS_CLI_CLUSTER_TOP_TEXT_H_

#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/framework/terminal.h"

namespace perseus::cli {

// Whether jobs can be sorted by it.
bool IsTopOrder(std::string_view order);

// Sorts a list of jobs as the server told it. Jobs without the figure come last.
void SortJobs(std::string_view order, nlohmann::ordered_json* jobs);

// One table of jobs, in their order. `now_seconds`: time of day; figures of iterations that ended
// long before are left out. `most_rows`: jobs beyond are counted in a line of their own.
std::string TopTable(const nlohmann::ordered_json& jobs, const Style& style, double now_seconds,
                     std::size_t most_rows = std::numeric_limits<std::size_t>::max());

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_TOP_TEXT_H_
