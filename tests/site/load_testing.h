// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SITE_LOAD_TESTING_H_
#define PERSEUS_TESTS_SITE_LOAD_TESTING_H_

#include <string>
#include <utility>

#include "perseus/result.h"
#include "site/site.h"

namespace perseus::site {

// The site of a text, as if it were in the folder of the sample job.
inline Result<Site> Load(const std::string& text) {
  Result<SiteFile> file = ParseSiteFile(text, "examples/s.toml");
  if (!file) return tl::unexpected(file.error());
  return LoadSite(*std::move(file));
}

}  // namespace perseus::site

#endif  // PERSEUS_TESTS_SITE_LOAD_TESTING_H_
