// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/tree.h"
#include "emulate/straggler_text.h"
#include "fleet/site.h"
#include "job/job_fields.h"
#include "job/setting_text.h"
#include "perseus/emulator.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

// From the text of a site file to its tables. The table of a job: a part of it is the site's own,
// the rest that of a job file.
namespace perseus::fleet {
namespace {

// More than any site has: a typing error, or another unit.
constexpr double kMostSiteWatts = 1e12;
constexpr int kMostJobs = 100'000;

constexpr std::size_t kMaxSiteFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLimits = 10'000;
constexpr std::size_t kLongestName = 128;
constexpr NumberRange kEffectiveness = {.least = 1, .most = 10};
constexpr job::Quantity kInSiteWatts = {"watts", "40kW, 0.04MW or 40000W", kPowerUnits};
// About days, which perseus.analysis.fleet emulates.
constexpr std::string_view kEmulateTable = "emulate";
// The name of the whole site's limit.
constexpr std::string_view kSiteName = "site";

struct NamedObjective {
  FleetObjective objective;
  std::string_view name;
};
constexpr std::array<NamedObjective, 3> kObjectives = {
    {{FleetObjective::kThroughput, "throughput"},
     {FleetObjective::kMaxMin, "max-min"},
     {FleetObjective::kMaxMinTenants, "max-min-tenants"}}};

FleetObjective ReadObjective(const TreeCursor& found) {
  const std::string text = found.String();
  std::vector<std::string> names;
  for (const NamedObjective& each : kObjectives) {
    if (SameName(each.name, text)) return each.objective;
    names.emplace_back(each.name);
  }
  found.Fail(fmt::format("expected one of {}, found {}{}", fmt::join(names, ", "), Shown(text),
                         NearestHint(text, names)));
  return FleetObjective::kThroughput;
}

// A power, "40kW" or a number of watts. `above_zero`: 0 is refused, too.
double ReadWatts(const TreeCursor& found, bool above_zero) {
  const NumberRange range = {.least = 0, .most = kMostSiteWatts, .above_least = above_zero};
  if (!found.IsString()) return found.Number(range);
  const Result<double> watts = job::ParseQuantity(found.String(), range, kInSiteWatts);
  if (!watts) found.Fail(watts.error().message);
  return watts.value_or(0);
}

// A name of a job, a tenant or a limit, which may also become that of a folder.
std::string ReadName(const TreeCursor& found) {
  std::string name = found.String();
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/' || c == '\\';
  };
  if (name.empty() || name == "." || name == ".." || name.size() > kLongestName ||
      std::any_of(name.begin(), name.end(), is_bad)) {
    found.FailExpected(
        fmt::format("a name of 1 to {} bytes, without slashes, as of a folder", kLongestName));
  }
  return name;
}

JobPlace PlaceOf(const std::string& file, const TreeNode& node) {
  return {file, node.position.line, node.position.column};
}

// A limit that is above itself.
void CheckNoCircle(const SiteFile& site, const TreeCursor& list) {
  for (std::size_t start = 1; start < site.nodes.size(); ++start) {
    std::size_t at = start;
    for (std::size_t steps = 0; at != 0 && steps < site.nodes.size(); ++steps) {
      at = site.nodes[at].parent.value_or(0);
      if (at != start) continue;
      list.At(start - 1).Get("parent").Fail(
          fmt::format("a circle: going up from '{}' leads back to it; a limit's parent is the "
                      "larger one that feeds it",
                      site.nodes[start].name));
      return;
    }
  }
}

// Reads `[[limit]]` into the nodes of `site`, which has node 0 with its budget.
void ReadLimits(const TreeCursor& list, const std::string& file, SiteFile* site) {
  if (list.Size() > kMostLimits) {
    list.Fail(fmt::format("{} limits; at most {} are allowed", list.Size(), kMostLimits));
  }
  static constexpr std::string_view kKeys[] = {"name", "parent", "power"};
  std::map<std::string, std::size_t> index = {{std::string(kSiteName), 0}};
  for (std::size_t k = 0; k < list.Size(); ++k) {
    const TreeCursor table = list.At(k);
    table.AllowOnly(kKeys);
    const TreeCursor name = table.Get("name");
    PowerNode node;
    node.name = ReadName(name);
    node.limit_watts = ReadWatts(table.Get("power"), true);
    const auto [known, is_new] = index.emplace(node.name, site->nodes.size());
    if (!is_new) {
      name.Fail(known->second == 0
                    ? fmt::format("'{}' is the whole site, whose limit is 'power' above; give "
                                  "this limit another name",
                                  kSiteName)
                    : fmt::format("the limit '{}' is there already, in line {}; give each a name "
                                  "of its own",
                                  node.name, site->node_places[known->second].line));
    }
    site->node_places.push_back(PlaceOf(file, table.node()));
    site->nodes.push_back(std::move(node));
  }
  std::vector<std::string> names;
  names.reserve(index.size());
  for (const auto& each : index) names.push_back(each.first);
  for (std::size_t k = 0; k < list.Size(); ++k) {
    PowerNode& node = site->nodes[k + 1];
    node.parent = 0;
    const auto parent = list.At(k).Find("parent");
    if (!parent) continue;
    const std::string text = parent->String();
    const auto found = index.find(text);
    if (found == index.end()) {
      parent->Fail(fmt::format("there is no limit {}{}", Shown(text), NearestHint(text, names)));
    } else {
      node.parent = found->second;
    }
  }
  CheckNoCircle(*site, list);
}

constexpr std::string_view kJobKeys[] = {"name",         "job",         "plan",        "weight",
                                         "max_slowdown", "fixed_power", "least_power", "tenant",
                                         "stragglers",   "count",       "at",          "leave_out"};
constexpr std::string_view kJobCount = "dp";
constexpr NumberRange kWeight = {.least = 0, .most = 1e9, .above_least = true};
constexpr NumberRange kPart = {.least = 0, .most = 1, .above_least = true};
// Longer than any owner accepts.
constexpr double kMostSlowdown = 10;

bool IsOurs(std::string_view key) {
  return std::find(std::begin(kJobKeys), std::end(kJobKeys), key) != std::end(kJobKeys);
}

// Fields of a job file that stand in a site file. Where plans go and are is for the site to say.
bool IsOfJobFile(const job::Field& field) {
  return !field.condition() && field.key != "output" && field.key != "at";
}

// A share of 1.5 is more likely 1.5 % than 150 %, so that takes its sign.
double ReadSlowdown(const TreeCursor& found) {
  const NumberRange as_number = {.least = 0, .most = 1};
  if (!found.IsString()) {
    if (!found.IsNumber()) found.FailExpected("a share such as \"25%\"");
    const Result<double> share =
        job::CheckShare(found.IsNumber() ? std::get<double>(found.node().value) : 0, as_number);
    if (!share) found.Fail(share.error().message);
    return share.value_or(0);
  }
  const std::string text = found.String();
  const bool has_sign = text.find('%') != std::string::npos;
  const Result<double> share =
      job::ParseShare(text, has_sign ? NumberRange{.least = 0, .most = kMostSlowdown} : as_number);
  if (!share) found.Fail(share.error().message);
  return share.value_or(0);
}

double ReadPart(const TreeCursor& found) {
  if (!found.IsString()) return found.Number(kPart);
  const Result<double> share = job::ParseShare(found.String(), kPart);
  if (!share) found.Fail(share.error().message);
  return share.value_or(1);
}

// The members of a table that are of a job file.
TreeNode JobPart(const TreeNode& table) {
  TreeNode part;
  part.position = table.position;
  TreeNode::Table members;
  for (const TreeMember& member : std::get<TreeNode::Table>(table.value)) {
    if (!IsOurs(member.key)) members.push_back(member);
  }
  part.value = std::move(members);
  return part;
}

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

void JobTables::Read(const TreeCursor& table, SiteFile* site) {
  std::vector<std::string_view> keys(std::begin(kJobKeys), std::end(kJobKeys));
  for (const job::Field& field : job::Fields()) {
    if (IsOfJobFile(field)) keys.push_back(field.key);
  }
  keys.push_back(job::kConditionsTable);
  table.AllowOnly(keys);
  SiteJob job;
  job.name = ReadName(table.Get("name"));
  job.place = PlaceOf(file_, table.node());
  if (const auto found = table.Find("tenant")) job.tenant = ReadName(*found);
  if (const auto found = table.Find("weight")) job.weight = found->Number(kWeight);
  if (const auto found = table.Find("max_slowdown")) job.max_slowdown = ReadSlowdown(*found);
  if (const auto found = table.Find("fixed_power")) job.fixed_watts = ReadWatts(*found, false);
  if (const auto found = table.Find("least_power")) job.least_watts = ReadWatts(*found, false);
  if (const auto found = table.Find("leave_out")) job.is_left_out = found->Bool();
  if (const auto found = table.Find("at")) ReadWhere(*found, *site, &job);
  ReadSettings(table, &job);
  if (reader_.failed()) return;
  job.pipelines = job.settings.data_parallel.value_or(1);
  job.has_pipelines = job.settings.data_parallel.has_value();
  if (const auto found = table.Find("stragglers")) ReadStragglers(*found, &job);
  AddAll(table, std::move(job), site);
}

void JobTables::ReadSettings(const TreeCursor& table, SiteJob* job) {
  if (reader_.failed()) return;
  const std::function<std::string()> place = [&] { return TreePath(root_, table.node()); };
  const TreeNode part = JobPart(table.node());
  Result<JobFile> own = job::ReadJobTable(part, file_, place);
  if (!own) return reader_.FailWith(own.error());
  const auto folder = std::filesystem::path(file_).parent_path();
  const auto path_at = [&](const TreeCursor& found) {
    const std::string text = found.String();
    if (text.empty() || text.find('\0') != std::string::npos) found.FailExpected("a path");
    return (folder / text).string();
  };
  const auto of_file = table.Find("job");
  const auto of_plan = table.Find("plan");
  if (of_plan) {
    job->plan_folder = path_at(*of_plan);
    if (of_file) of_file->Fail("'plan' is given too; keep one of them");
    for (const TreeMember& member : std::get<TreeNode::Table>(part.value)) {
      if (member.key == kJobCount) continue;
      reader_.FailAt(member.key_position,
                     fmt::format("'{}' has no use beside 'plan', whose folder has it already; "
                                 "remove one of them",
                                 member.key));
    }
  } else if (of_file) {
    const std::string path = path_at(*of_file);
    if (reader_.failed()) return;
    auto known = files_.find(path);
    if (known == files_.end()) known = files_.emplace(path, ReadJobFile(path)).first;
    if (!known->second) {
      Error error = known->second.error();
      // Without a place of its own it is about the file, which this key names.
      if (error.line == 0) return of_file->Fail(error.message);
      return reader_.FailWith(std::move(error));
    }
    JobFile merged = *known->second;
    job::Merge(*own, &merged);
    for (const auto& each : own->places) merged.places[each.first] = each.second;
    own = std::move(merged);
    if (!own->profile) {
      of_file->Fail(fmt::format("{} names no profile; add one there, or here", path));
    }
  } else if (!own->profile && !(may_be_elsewhere_ && own->places.empty()) && !job->is_left_out) {
    table.Fail(fmt::format(
        "the job '{}' has no frontier; give 'job' (a job file), 'plan' (a folder of perseus plan) "
        "or 'profile'",
        job->name));
  }
  own->at.reset();
  own->output.reset();
  job->settings = *std::move(own);
}

void JobTables::ReadWhere(const TreeCursor& found, const SiteFile& site, SiteJob* job) const {
  const auto node_named = [&](const std::string& name) -> std::size_t {
    const auto at = std::find_if(site.nodes.begin(), site.nodes.end(),
                                 [&](const PowerNode& node) { return node.name == name; });
    if (at != site.nodes.end()) return static_cast<std::size_t>(at - site.nodes.begin());
    std::vector<std::string> names;
    for (const PowerNode& node : site.nodes) names.push_back(node.name);
    found.Fail(fmt::format("there is no limit {}{}", Shown(name), NearestHint(name, names)));
    return 0;
  };
  if (found.IsString()) {
    job->shares = {{.node = node_named(found.String()), .fraction = 1}};
    return;
  }
  const auto* parts = std::get_if<TreeNode::Table>(&found.node().value);
  if (parts == nullptr || parts->empty()) {
    found.FailExpected("the name of a limit, or parts such as { rack-1 = \"50%\", rack-2 = 0.5 }");
    return;
  }
  double sum = 0;
  for (const TreeMember& part : *parts) {
    const PowerShare share = {node_named(part.key), ReadPart(TreeCursor(&reader_, &part.node))};
    sum += share.fraction;
    job->shares.push_back(share);
  }
  constexpr double kRounding = 1e-9;
  if (std::abs(sum - 1) > kRounding) {
    found.Fail(fmt::format("the parts of '{}' are {:.6g} % together; they must be 100 %", job->name,
                           100 * sum));
  }
}

void JobTables::ReadStragglers(const TreeCursor& found, SiteJob* job) const {
  const auto read = [&](const TreeCursor& one) {
    const std::string text = one.String();
    if (reader_.failed()) return;
    const Result<Straggler> straggler = emulate::ParseStraggler(text);
    if (!straggler) return one.Fail(straggler.error().message);
    if (straggler->pipeline >= job->pipelines) {
      return one.Fail(fmt::format("pipeline={}, but the job has {} (dp); they count from 0",
                                  straggler->pipeline, job->pipelines));
    }
    job->stragglers.push_back(*straggler);
  };
  if (!found.IsList()) return read(found);
  for (std::size_t k = 0; k < found.Size(); ++k) read(found.At(k));
}

void JobTables::AddAll(const TreeCursor& table, SiteJob job, SiteFile* site) {
  int count = 1;
  const auto of_count = table.Find("count");
  if (of_count) count = of_count->Integer(1, kMostJobs);
  if (reader_.failed()) return;
  if (site->jobs.size() + static_cast<std::size_t>(count) > kMostJobs) {
    return (of_count ? *of_count : table)
        .Fail(
            fmt::format("with this there are over {} jobs, which is more than allowed", kMostJobs));
  }
  const TreeCursor name = table.Get("name");
  for (int k = 1; k <= count; ++k) {
    SiteJob each = job;
    each.group = job.name;
    if (of_count) each.name += fmt::format("-{}", k);
    const auto [known, is_new] = names_.emplace(each.name, job.place);
    if (!is_new) {
      return name.Fail(fmt::format(
          "the job '{}' is there already, in line {}; give each a name of its own, or one table "
          "with 'count' to jobs that are alike",
          each.name, known->second.line));
    }
    site->jobs.push_back(std::move(each));
  }
}

class SiteParser {
 public:
  SiteParser(const TreeNode& root, const std::string& name, bool jobs_may_be_missing)
      : root_(root), name_(name), jobs_may_be_missing_(jobs_may_be_missing), reader_(root, name) {}

  Result<SiteFile> Parse() {
    const TreeCursor root = reader_.Root();
    static constexpr std::string_view kKeys[] = {"power", "objective", "pue",
                                                 "limit", "job",       kEmulateTable};
    root.AllowOnly(kKeys);
    SiteFile site;
    site.path = name_;
    ReadTop(root, &site);
    if (const auto limits = root.Find("limit")) ReadLimits(*limits, name_, &site);
    JobTables tables(&reader_, root_, name_, jobs_may_be_missing_);
    if (const auto jobs = root.Find("job")) {
      for (std::size_t k = 0; k < jobs->Size() && !reader_.failed(); ++k) {
        tables.Read(jobs->At(k), &site);
      }
    }
    if (!reader_.failed() && site.jobs.empty() && !jobs_may_be_missing_) {
      reader_.FailAt(root.node().position,
                     "the site has no job; add a table [[job]] for each, with 'name' and 'job' "
                     "(a job file), 'plan' (a folder of perseus plan) or 'profile'");
    }
    if (const auto days = root.Find(kEmulateTable)) {
      if (!std::holds_alternative<TreeNode::Table>(days->node().value)) {
        days->FailExpected(fmt::format("a table [{}]", kEmulateTable));
      }
      site.emulate = days->node();
    }
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return site;
  }

 private:
  void ReadTop(const TreeCursor& root, SiteFile* site) {
    PowerNode& whole = site->nodes.front();
    whole.name = kSiteName;
    const TreeCursor power = root.Get("power");
    whole.limit_watts = ReadWatts(power, true);
    site->node_places.front() = PlaceOf(name_, power.node());
    if (const auto found = root.Find("objective")) site->objective = ReadObjective(*found);
    if (const auto found = root.Find("pue")) {
      site->power_usage_effectiveness = found->Number(kEffectiveness);
    }
  }

  const TreeNode& root_;
  const std::string& name_;
  bool jobs_may_be_missing_;
  TreeReader reader_;
};

}  // namespace

std::string_view ObjectiveName(FleetObjective objective) {
  for (const NamedObjective& each : kObjectives) {
    if (each.objective == objective) return each.name;
  }
  return "";
}

Result<SiteFile> ParseSiteFile(std::string_view text, const std::string& name,
                               bool jobs_may_be_missing) {
  const bool is_json = std::filesystem::path(name).extension() == ".json";
  const Result<TreeNode> tree = is_json ? ParseJsonTree(text, name) : ParseTomlTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  return SiteParser(*tree, name, jobs_may_be_missing).Parse();
}

Result<SiteFile> ReadSiteFile(const std::string& path, bool jobs_may_be_missing) {
  const Result<std::string> text = ReadWholeFile(path, kMaxSiteFileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseSiteFile(*text, path, jobs_may_be_missing);
}

}  // namespace perseus::fleet
