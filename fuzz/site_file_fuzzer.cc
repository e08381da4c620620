// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a site file: a site whose numbers are in their ranges, or one sentence with its
// place.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleet/site.h"

namespace {

void Check(const perseus::fleet::SiteFile& site) {
  for (std::size_t n = 1; n < site.nodes.size(); ++n) {
    // Every limit leads to the site.
    std::size_t at = n;
    std::size_t steps = 0;
    while (at != 0) {
      if (!site.nodes[at].parent || ++steps > site.nodes.size()) std::abort();
      at = *site.nodes[at].parent;
    }
    if (!(site.nodes[n].limit_watts > 0)) std::abort();
  }
  for (const perseus::fleet::SiteJob& job : site.jobs) {
    double sum = 0;
    for (const perseus::PowerShare& share : job.shares) {
      if (share.node >= site.nodes.size()) std::abort();
      sum += share.fraction;
    }
    if (!job.shares.empty() && std::abs(sum - 1) > 1e-6) std::abort();
    if (job.name.empty() || !(job.weight > 0) || job.pipelines < 1 || !(job.fixed_watts >= 0) ||
        !(job.max_slowdown.value_or(0) >= 0)) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool has_server = data[0] == 's';
  const auto site = perseus::fleet::ParseSiteFile(text, "site", has_server);
  if (site) {
    Check(*site);
  } else if (site.error().message.empty() || site.error().line < 1) {
    std::abort();
  }
  return 0;
}
