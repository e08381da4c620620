// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "server/store/cells.h"
#include "server/store/query.h"
#include "server/store/tables.h"

namespace perseus::store {
namespace {

using soci::into;
using soci::use;

// In one statement. SQLite looks the names of values up one by one, so that more cost more.
constexpr std::size_t kMostRanks = 40;

template <typename T>
bool Is(const Fact& fact) {
  return std::holds_alternative<T>(fact);
}

// Which marks go on. The row of them is locked until the end of the transaction,
// so that servers take turns with a job.
struct Step {
  int revision = 0;
  int rows = 0;
};

Step StepOf(std::span<const Request* const> requests) {
  Step step;
  for (const Request* const request : requests) {
    for (const Fact& fact : request->facts) {
      if (IsRow(fact)) {
        step.rows = 1;
      } else if (!IsUnmarked(fact)) {
        step.revision = 1;
      }
    }
    if (request->expected_revision) step.revision = 1;
  }
  return step;
}

Result<JobMarks> Conflict(const std::string& name, const std::string& job, bool is_expected) {
  if (!is_expected) {
    return MakeError(ErrorCode::kConflict, fmt::format("{}: there is no job {}", name, job));
  }
  return MakeError(ErrorCode::kConflict,
                   fmt::format("{}: job {} has changed meanwhile, or is gone", name, job));
}

// Takes the step and tells what is then; nullopt: there is no such row, or it was last raised by
// another instance of the database.
std::optional<JobMarks> BumpMarks(soci::session& sql, const Backend& backend,
                                  const std::string& job, const Step& step,
                                  std::optional<std::int64_t> expected) {
  JobMarks marks;
  marks.id = job;
  long long revision = 0;
  long long rows = 0;
  long long curve = 0;
  const long long expected_revision = expected.value_or(0);
  const std::string condition = expected ? " AND revision = :e" : "";
  const bool is_bumped = step.revision != 0 || step.rows != 0;
  // Held, too, where nothing goes on: the job must not go before the end.
  Query query(sql, is_bumped ? "UPDATE marks SET revision = revision + :a, row_revision = "
                               "row_revision + :b WHERE job = :j AND instance = " +
                                   std::string(backend.instance()) + condition +
                                   " RETURNING revision, row_revision, curve_revision"
                             : "SELECT revision, row_revision, curve_revision FROM marks "
                               "WHERE job = :j" +
                                   condition);
  if (is_bumped) query.Use(step.revision).Use(step.rows);
  query.Use(job);
  if (expected) query.Use(expected_revision);
  query.Into(revision).Into(rows).Into(curve);
  if (!query.Next()) return std::nullopt;
  marks.revision = revision;
  marks.rows = rows;
  marks.curve = curve;
  return marks;
}

// Moves the marks to a new history where another instance of the database raised them last; see
// JobMarks. Its number is the time, which none of a history that was lost had. False: no need.
bool BeginHistory(soci::session& sql, const Backend& backend, const std::string& job) {
  const std::string next = fmt::format(
      "((CASE WHEN revision >> {0} < CAST({1} AS BIGINT) THEN CAST({1} AS BIGINT) "
      "ELSE revision >> {0} END) + 1) << {0}",
      kHistoryBits, backend.now());
  long long revision = 0;
  Query query(sql,
              fmt::format("UPDATE marks SET revision = {0}, row_revision = {0}, instance = {1} "
                          "WHERE job = :j AND instance <> {1} RETURNING revision",
                          next, backend.instance()));
  query.Use(job).Into(revision);
  return query.Next();
}

}  // namespace

const std::string& JobOf(const Fact& fact) {
  return std::visit(
      [](const auto& known) -> const std::string& {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, JobRecord>) {
          return known.id;
        } else {
          return known.job;
        }
      },
      fact);
}

bool IsRow(const Fact& fact) { return Is<RankRecord>(fact) || Is<Measurements>(fact); }

bool IsUnmarked(const Fact& fact) {
  return Is<IterationSummary>(fact) || Is<HistoryRow>(fact) || Is<WorkWanted>(fact) ||
         Is<JobRecord>(fact);
}

Result<JobMarks> WriteRequests(soci::session& sql, const Backend& backend,
                               std::string_view server_id, std::span<const Request* const> requests,
                               std::set<const Request*>* late) {
  const std::vector<Fact>& first = requests.front()->facts;
  const std::string& job = JobOf(first.front());
  const std::optional<std::int64_t> expected = requests.front()->expected_revision;
  // Only then there are marks.
  const bool is_new = Is<JobRecord>(first.front());
  if (is_new) WriteFact(sql, backend, server_id, first.front());
  const Step step = StepOf(requests);
  std::optional<JobMarks> marks = BumpMarks(sql, backend, job, step, expected);
  if (!marks && BeginHistory(sql, backend, job)) {
    // What was decided on a revision of another history is decided again.
    if (expected) return Conflict(backend.name(), job, true);
    marks = BumpMarks(sql, backend, job, step, {});
  }
  if (!marks) {
    // One that is not there is as gone as it should be.
    if (Is<JobGone>(first.back()) && !expected) return JobMarks{.id = job};
    return Conflict(backend.name(), job, expected.has_value());
  }
  std::vector<const RankRecord*> ranks;
  std::vector<const Request*> in_time;
  for (const Request* const request : requests) {
    // The job's row is locked now, so no other server can write anything newer before this
    // transaction ends, even if this process is stopped here for a while.
    if (!request->IsInTime()) {
      if (is_new) WriteFact(sql, backend, server_id, JobGone{job});
      late->insert(request);
      continue;
    }
    in_time.push_back(request);
    for (const Fact& fact : request->facts) {
      if (is_new && &fact == &first.front()) continue;
      if (const auto* const rank = std::get_if<RankRecord>(&fact)) {
        ranks.push_back(rank);
        continue;
      }
      WriteFact(sql, backend, server_id, fact);
      if (Is<CurveRecord>(fact)) marks->curve = marks->revision;
      if (Is<JobGone>(fact)) marks = JobMarks{.id = job};
    }
  }
  WriteRanks(sql, ranks);
  // The marks went on for the late ones, too, which changed nothing. Nobody has seen that yet.
  const Step taken = StepOf(in_time);
  if (taken.revision < step.revision || taken.rows < step.rows) {
    marks =
        BumpMarks(sql, backend, job,
                  {.revision = taken.revision - step.revision, .rows = taken.rows - step.rows}, {});
  }
  return marks.value_or(JobMarks{.id = job});
}

void WriteRanks(soci::session& sql, const std::vector<const RankRecord*>& ranks) {
  // A statement must not meet one row twice.
  std::map<int, const RankRecord*> last;
  for (const RankRecord* const rank : ranks) last[rank->rank] = rank;
  for (auto begin = last.begin(); begin != last.end();) {
    auto end = begin;
    std::vector<std::string> clocks;
    clocks.reserve(kMostRanks);
    std::string text =
        "INSERT INTO ranks (job, rank, dp_rank, pp_rank, tp_rank, gpu_uuid, gpu_name, node, "
        "clocks) VALUES ";
    for (; end != last.end() && clocks.size() < kMostRanks; ++end) {
      const std::size_t i = clocks.size();
      text += fmt::format("{0}(:j{1}, :r{1}, :d{1}, :p{1}, :t{1}, :u{1}, :g{1}, :n{1}, :c{1})",
                          i == 0 ? "" : ", ", i);
      clocks.push_back(FormatIntegers(end->second->clocks_mhz));
    }
    // A rank that another server has let in at another position is refused: that NULL
    // breaks a constraint.
    text +=
        " ON CONFLICT (job, rank) DO UPDATE SET dp_rank = CASE WHEN ranks.dp_rank = "
        "excluded.dp_rank AND ranks.pp_rank = excluded.pp_rank AND ranks.tp_rank = "
        "excluded.tp_rank THEN ranks.dp_rank ELSE NULL END, gpu_uuid = excluded.gpu_uuid, "
        "gpu_name = excluded.gpu_name, node = excluded.node, clocks = excluded.clocks";
    Query query(sql, text);
    for (std::size_t i = 0; begin != end; ++begin, ++i) {
      const RankRecord& rank = *begin->second;
      query.Use(rank.job).Use(rank.rank).Use(rank.dp_rank).Use(rank.pp_rank).Use(rank.tp_rank);
      query.Use(rank.gpu_uuid).Use(rank.gpu_name).Use(rank.node).Use(clocks[i]);
    }
    query.Execute();
  }
}

}  // namespace perseus::store
