// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_FILE_READ_TABLES_H_
#define PERSEUS_SITE_FILE_READ_TABLES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/tree_reader.h"
#include "perseus/job_file.h"
#include "perseus/result.h"
#include "site/site.h"

namespace perseus::site {

// More than any site has: a typing error, or another unit.
inline constexpr double kMostSiteWatts = 1e12;
inline constexpr int kMostJobs = 100'000;

// A power, "40kW" or a number of watts. `above_zero`: 0 is refused, too.
double ReadWatts(const TreeCursor& found, bool above_zero);

// A name of a job, a tenant or a limit, which may also become that of a folder.
std::string ReadName(const TreeCursor& found);

JobPlace PlaceOf(const std::string& file, const TreeNode& node);

// Reads `[[limit]]` into the nodes of `site`, which has node 0 with its budget.
void ReadLimits(const TreeCursor& list, const std::string& file, SiteFile* site);

// Reads `[[job]]`. The limits are there already.
class JobTables {
 public:
  // Both must outlive it. `root` is for places in messages.
  JobTables(TreeReader* reader, const TreeNode& root, const std::string& file,
            bool may_be_elsewhere)
      : reader_(*reader), root_(root), file_(file), may_be_elsewhere_(may_be_elsewhere) {}

  void Read(const TreeCursor& table, SiteFile* site);

 private:
  void ReadSettings(const TreeCursor& table, SiteJob* job);
  void ReadWhere(const TreeCursor& found, const SiteFile& site, SiteJob* job) const;
  void ReadStragglers(const TreeCursor& found, SiteJob* job) const;
  void AddAll(const TreeCursor& table, SiteJob job, SiteFile* site);

  TreeReader& reader_;
  const TreeNode& root_;
  const std::string& file_;
  const bool may_be_elsewhere_;
  std::map<std::string, Result<JobFile>> files_;  // By path.
  std::map<std::string, JobPlace> names_;
};

}  // namespace perseus::site

#endif  // PERSEUS_SITE_FILE_READ_TABLES_H_
