// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/file.h"
#include "common/nearest_name.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "job/quantity_text.h"
#include "site/file/read_tables.h"
#include "site/site.h"

// The tables of a site file but those of its jobs.
namespace perseus::site {
namespace {

constexpr std::size_t kMaxSiteFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLimits = 10'000;
constexpr std::size_t kLongestName = 128;
constexpr NumberRange kEffectiveness = {.least = 1, .most = 10};
constexpr job::Quantity kInSiteWatts = {"watts", "40kW, 0.04MW or 40000W", kPowerUnits};
// What the limit of the whole site is called.
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

class SiteParser {
 public:
  SiteParser(const TreeNode& root, const std::string& name, const SiteReadOptions& options)
      : root_(root), name_(name), options_(options), reader_(root, name) {}

  Result<SiteFile> Parse() {
    const TreeCursor root = reader_.Root();
    static constexpr std::string_view kKeys[] = {"power", "objective", "pue",
                                                 "limit", "job",       kDaysTable};
    root.AllowOnly(kKeys);
    SiteFile site;
    site.path = name_;
    ReadTop(root, &site);
    if (const auto limits = root.Find("limit")) ReadLimits(*limits, name_, &site);
    JobTables tables(&reader_, root_, name_, options_.jobs_may_be_missing);
    if (const auto jobs = root.Find("job")) {
      for (std::size_t k = 0; k < jobs->Size() && !reader_.failed(); ++k) {
        tables.Read(jobs->At(k), &site);
      }
    }
    if (!reader_.failed() && site.jobs.empty() && !options_.jobs_may_be_missing) {
      reader_.FailAt(root.node().position,
                     "the site has no job; add a table [[job]] for each, with 'name' and 'job' "
                     "(a job file), 'plan' (a folder of perseus plan) or 'profile'");
    }
    if (const auto days = root.Find(kDaysTable)) {
      if (!std::holds_alternative<TreeNode::Table>(days->node().value)) {
        days->FailExpected(fmt::format("a table [{}]", kDaysTable));
      } else if (options_.days) {
        options_.days(*days);
      }
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
  const SiteReadOptions& options_;
  TreeReader reader_;
};

}  // namespace

double ReadWatts(const TreeCursor& found, bool above_zero) {
  const NumberRange range = {.least = 0, .most = kMostSiteWatts, .above_least = above_zero};
  if (!found.IsString()) return found.Number(range);
  const Result<double> watts = job::ParseQuantity(found.String(), range, kInSiteWatts);
  if (!watts) found.Fail(watts.error().message);
  return watts.value_or(0);
}

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

std::string_view ObjectiveName(FleetObjective objective) {
  for (const NamedObjective& each : kObjectives) {
    if (each.objective == objective) return each.name;
  }
  return "";
}

Result<SiteFile> ParseSiteFile(std::string_view text, const std::string& name,
                               const SiteReadOptions& options) {
  const bool is_json = std::filesystem::path(name).extension() == ".json";
  const Result<TreeNode> tree = is_json ? ParseJsonTree(text, name) : ParseTomlTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  return SiteParser(*tree, name, options).Parse();
}

Result<SiteFile> ReadSiteFile(const std::string& path, const SiteReadOptions& options) {
  const Result<std::string> text = ReadWholeFile(path, kMaxSiteFileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseSiteFile(*text, path, options);
}

}  // namespace perseus::site
