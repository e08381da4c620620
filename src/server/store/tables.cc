// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "perseus/plan.h"
#include "server/store/cells.h"
#include "server/store/columns.h"

namespace perseus::store {
namespace {

using soci::use;
using Big = long long;  // SOCI binds by reference and knows long long, not int64_t.

// In one statement. SQLite looks the names of values up one by one, so that more cost more.
constexpr std::size_t kMostRanks = 40;

// The columns of each table that are members of a fact.

constexpr std::array kJobColumns = {
    Of<&JobRecord::id>("id"),
    Of<&JobRecord::client_key>("client_key"),
    Of<&JobRecord::name>("name"),
    Of<&JobRecord::owner>("owner"),
    Of<&JobRecord::origin>("origin"),
    Of<&JobRecord::pipeline_parallel>("pipeline_parallel"),
    Of<&JobRecord::data_parallel>("data_parallel"),
    Of<&JobRecord::tensor_parallel>("tensor_parallel"),
    Of<&JobRecord::settings_json>("settings"),
    Of<&JobRecord::profile_csv>("profile"),
    Of<&JobRecord::profile_source>("profile_source"),
    Of<&JobRecord::blocking_power_watts>("blocking_power"),
    Of<&JobRecord::next_profile_csv>("next_profile"),
    Of<&JobRecord::next_blocking_power_watts>("next_blocking_power"),
    Of<&JobRecord::sweep_round>("sweep_round"),
    Of<&JobRecord::settled_round>("settled_round"),
    Of<&JobRecord::library_json>("library"),
    Of<&JobRecord::target>("target"),
    Of<&JobRecord::state>("state"),
    Of<&JobRecord::reason>("reason"),
    Of<&JobRecord::detection_json>("detection"),
    Of<&JobRecord::conditions_json>("conditions"),
    Of<&JobRecord::created_at_seconds>("created_at"),
    Of<&JobRecord::finished_at_seconds>("finished_at"),
};
constexpr std::array kHeadColumns = {
    Of<&JobHead::id>("j.id"),
    Of<&JobHead::client_key>("client_key"),
    Of<&JobHead::name>("name"),
    Of<&JobHead::origin>("origin"),
    Of<&JobHead::state>("state"),
    Of<&JobHead::created_at_seconds>("created_at"),
    Of<&JobHead::finished_at_seconds>("finished_at"),
    Of<&JobHead::revision>("revision"),
};
constexpr std::array kRankColumns = {
    Of<&RankRecord::job>("job"),           Of<&RankRecord::rank>("rank"),
    Of<&RankRecord::dp_rank>("dp_rank"),   Of<&RankRecord::pp_rank>("pp_rank"),
    Of<&RankRecord::tp_rank>("tp_rank"),   Of<&RankRecord::gpu_uuid>("gpu_uuid"),
    Of<&RankRecord::gpu_name>("gpu_name"), Of<&RankRecord::node>("node"),
    Of<&RankRecord::clocks_mhz>("clocks"),
};
constexpr std::array kMeasurementColumns = {
    Of<&Measurements::job>("job"),
    Of<&Measurements::rank>("rank"),
    Of<&Measurements::rows>("measured"),
    Of<&Measurements::blocking_power_watts>("blocking_power"),
    Of<&Measurements::blocking_power_std_watts>("blocking_power_std"),
    Of<&Measurements::waiting>("waiting"),
    Of<&Measurements::counter_period_seconds>("counter_period"),
    Of<&Measurements::sweep>("sweep"),
    Of<&Measurements::notes>("notes"),
    Of<&Measurements::done>("done"),
    Of<&Measurements::sweep_round>("sweep_round"),  // The last: WriteFact() gives it itself.
};
constexpr std::array kCurveColumns = {
    Of<&CurveRecord::job>("job"),
    Of<&CurveRecord::revision>("revision"),
    Of<&CurveRecord::frontier_json>("frontier"),
};
constexpr std::array kPlanColumns = {
    Of<&PlanRecord::id>("id"),
    Of<&PlanRecord::requested_time_seconds>("requested_time"),
    Of<&PlanRecord::knobs>("knobs"),
};
constexpr std::array kVersionColumns = {
    Of<&PlanVersion::job>("job"),       Of<&PlanVersion::version>("version"),
    Of<&PlanVersion::reason>("reason"), Of<&PlanVersion::at_seconds>("at"),
    Of<&PlanVersion::plan>("plan"),     Of<&PlanVersion::exceptions>("exceptions"),
};
constexpr std::array kStragglerColumns = {
    Of<&StragglerRecord::job>("job"),
    Of<&StragglerRecord::id>("id"),
    Of<&StragglerRecord::pipeline>("pipeline"),
    Of<&StragglerRecord::rank>("rank"),
    Of<&StragglerRecord::node>("node"),
    Of<&StragglerRecord::factor>("factor"),
    Of<&StragglerRecord::delay_seconds>("delay"),
    Of<&StragglerRecord::starts_at_seconds>("starts_at"),
    Of<&StragglerRecord::expires_at_seconds>("expires_at"),
};
constexpr std::array kIterationColumns = {
    Of<&IterationSummary::job>("job"),
    Of<&IterationSummary::plan_version>("plan_version"),
    Of<&IterationSummary::reports>("reports"),
    Of<&IterationSummary::total_seconds>("total_time"),
    Of<&IterationSummary::least_seconds>("least_time"),
    Of<&IterationSummary::most_seconds>("most_time"),
    Of<&IterationSummary::square_seconds2>("square_time"),
    Of<&IterationSummary::energy_reports>("energy_reports"),
    Of<&IterationSummary::total_joules>("total_energy"),
    Of<&IterationSummary::square_joules2>("square_energy"),
};
constexpr std::array kHistoryColumns = {
    Of<&HistoryRow::job>("job"),
    Of<&HistoryRow::resolution>("resolution"),
    Of<&HistoryRow::start>("start_at"),
    Of<&HistoryRow::ranks>("ranks"),
    Of<&HistoryRow::first_seconds>("first_at"),
    Of<&HistoryRow::last_seconds>("last_at"),
    Of<&HistoryRow::reports>("reports"),
    Of<&HistoryRow::total_seconds>("total_time"),
    Of<&HistoryRow::energy_reports>("energy_reports"),
    Of<&HistoryRow::joules>("energy"),
    Of<&HistoryRow::predicted_joules>("predicted"),
    Of<&HistoryRow::compared_joules>("compared"),
    Of<&HistoryRow::measured_saved_joules>("measured"),
    Of<&HistoryRow::times, &IterationTimes::iterations>("iterations"),
    Of<&HistoryRow::times, &IterationTimes::reports>("iteration_reports"),
    Of<&HistoryRow::times, &IterationTimes::seconds>("iteration_time"),
    Of<&HistoryRow::measured_times, &IterationTimes::iterations>("measured_iterations"),
    Of<&HistoryRow::measured_times, &IterationTimes::reports>("measured_reports"),
    Of<&HistoryRow::measured_times, &IterationTimes::seconds>("measured_time"),
    Of<&HistoryRow::measured_joules>("measured_energy"),
};
constexpr std::size_t kHistoryKeys = 3;  // The first of them.
constexpr std::array kProfileColumns = {
    Of<&ProfileRecord::id>("id"),
    Of<&ProfileRecord::job>("job"),
    Of<&ProfileRecord::model>("model"),
    Of<&ProfileRecord::layout>("layout"),
    Of<&ProfileRecord::metadata_json>("metadata"),
    Of<&ProfileRecord::profile_csv>("profile"),
    Of<&ProfileRecord::blocking_power_watts>("blocking_power"),
    Of<&ProfileRecord::conditions_json>("conditions"),
    Of<&ProfileRecord::created_at_seconds>("created_at"),
};

template <typename Row, std::size_t kSize>
Columns<Row> All(const std::array<Column<Row>, kSize>& columns) {
  return columns;
}

// Leaves a long text out of the selection.
std::string Without(std::string names, std::string_view name) {
  const std::string column = fmt::format(" {},", name);
  const std::size_t at = names.find(column);
  return at == std::string::npos ? names : names.replace(at, column.size(), " '',");
}

// SQL expression: the labels of this job as the table has them; empty text: none.
std::string LabelsOf(std::string_view job) {
  return fmt::format("COALESCE((SELECT labels FROM labels WHERE labels.job = {}), '')", job);
}

template <typename T>
bool Is(const Fact& fact) {
  return std::holds_alternative<T>(fact);
}

// Writes one fact.
class FactWriter {
 public:
  explicit FactWriter(soci::session& sql) : sql_(sql) {}

  void operator()(const JobRecord& job) const {
    Insert(sql_, "jobs", All(kJobColumns), job);
    sql_ << "INSERT INTO revisions (job, revision) VALUES (:j, 1)", use(job.id);
    if (!job.labels.empty()) (*this)(LabelsChange{.job = job.id, .labels = job.labels});
  }

  void operator()(const StateChange& change) const {
    const std::string state(JobStateName(change.state));
    const double finished_at = change.state == JobState::kFinished ? change.at_seconds : 0;
    // The first time counts.
    sql_ << "UPDATE jobs SET finished_at = CASE WHEN state = 'finished' AND finished_at > 0 AND "
            "state = :s THEN finished_at ELSE :f END, state = :t, reason = :r WHERE id = :i",
        use(state), use(finished_at), use(state), use(change.reason), use(change.job);
    if (change.profile_csv) Set("profile", *change.profile_csv, change.job);
    if (change.blocking_power_watts) {
      Set("blocking_power", CellOf(*change.blocking_power_watts), change.job);
    }
    if (change.profile_source) Set("profile_source", *change.profile_source, change.job);
    if (change.sweep_round) Set("sweep_round", *change.sweep_round, change.job);
    if (change.next_profile_csv) {
      Set("next_profile", *change.next_profile_csv, change.job);
      Set("next_blocking_power", CellOf(change.next_blocking_power_watts), change.job);
    }
    if (change.next == StateChange::Next::kAdopt) {
      sql_ << "UPDATE jobs SET profile = next_profile, blocking_power = next_blocking_power "
              "WHERE id = :i",
          use(change.job);
    }
    if (change.next != StateChange::Next::kKeep) {
      sql_ << "UPDATE jobs SET next_profile = '', next_blocking_power = '', "
              "settled_round = sweep_round WHERE id = :i",
          use(change.job);
    }
  }

  void operator()(const RankRecord& rank) const { WriteRanks(sql_, {&rank}); }

  void operator()(const Measurements& measured) const {
    // Rows of a sweep that is over are refused: that NULL breaks a constraint.
    Insert(sql_, "measurements", All(kMeasurementColumns).first(kMeasurementColumns.size() - 1),
           measured,
           {.names = "number, sweep_round, ",
            .places = "(SELECT COALESCE(MAX(number), 0) + 1 FROM measurements WHERE job = :k), "
                      "(SELECT CASE WHEN sweep_round = :ro THEN sweep_round END FROM jobs WHERE id "
                      "= :i), ",
            .use = [&](Query* query) {
              query->Use(measured.job).Use(measured.sweep_round).Use(measured.job);
            }});
  }

  void operator()(const CurveRecord& curve) const {
    Insert(sql_, "curves", All(kCurveColumns), curve,
           {.rest = "ON CONFLICT (job) DO UPDATE SET revision = excluded.revision, frontier = "
                    "excluded.frontier"});
    sql_ << "DELETE FROM plans WHERE job = :j", use(curve.job);
    for (const PlanRecord& plan : curve.plans) {
      Insert(sql_, "plans", All(kPlanColumns), plan,
             {.names = "job, ", .places = ":j, ", .use = [&](Query* query) {
                query->Use(curve.job);
              }});
    }
  }

  void operator()(const PlanVersion& version) const {
    Insert(sql_, "versions", All(kVersionColumns), version);
    sql_ << "DELETE FROM versions WHERE job = :j AND version <= (SELECT version FROM versions "
            "WHERE job = :k ORDER BY version DESC LIMIT 1 OFFSET :n)",
        use(version.job), use(version.job), use(kMostStoredVersions);
  }

  void operator()(const TargetChange& change) const { Set("target", change.target, change.job); }
  void operator()(const DetectionChange& change) const {
    Set("detection", change.detection_json, change.job);
  }
  void operator()(const ConditionsChange& change) const {
    Set("conditions", change.conditions_json, change.job);
  }

  void operator()(const StragglerRecord& straggler) const {
    Insert(sql_, "stragglers", All(kStragglerColumns), straggler,
           {.rest = "ON CONFLICT (job, id) DO UPDATE SET factor = excluded.factor"});
    const Big id = straggler.id;
    sql_ << "UPDATE jobs SET last_straggler = :i WHERE id = :j AND last_straggler < :k", use(id),
        use(straggler.job), use(id);
  }

  void operator()(const StragglerGone& gone) const {
    const Big id = gone.id;
    sql_ << "DELETE FROM stragglers WHERE job = :j AND id = :i", use(gone.job), use(id);
  }

  void operator()(const IterationSummary& summary) const {
    Insert(sql_, "iterations", All(kIterationColumns), summary,
           {.rest = "ON CONFLICT (job, plan_version) DO UPDATE SET " +
                    Joined(All(kIterationColumns).subspan(2), "{0} = excluded.{0}")});
  }

  void operator()(const HistoryRow& row) const {
    const Columns<HistoryRow> columns = All(kHistoryColumns);
    Cells<HistoryRow> keys(columns.first(kHistoryKeys));
    Cells<HistoryRow> figures(columns.subspan(kHistoryKeys));
    Big one = 0;
    Query update(sql_, fmt::format("UPDATE history SET {} WHERE job = :j AND resolution = :r AND "
                                   "start_at = :a RETURNING 1",
                                   Joined(columns.subspan(kHistoryKeys), "{0} = :c{1}")));
    figures.Use(row, &update);
    keys.Use(row, &update);
    update.Into(one);
    if (update.Next()) return;
    // Name and owner stay when the job goes. Only here: they lie beside the job's long texts.
    Insert(sql_, "history", columns, row,
           {.names = "name, owner, ",
            .places = "(SELECT name FROM jobs WHERE id = :i), (SELECT owner FROM jobs WHERE id = "
                      ":o), ",
            .use = [&](Query* query) { query->Use(row.job).Use(row.job); }});
  }

  void operator()(const LabelsChange& change) const {
    if (change.labels.empty()) {
      sql_ << "DELETE FROM labels WHERE job = :i", use(change.job);
      return;
    }
    const std::string labels = CellOf(change.labels);
    sql_ << "INSERT INTO labels (job, labels) VALUES (:i, :l) "
            "ON CONFLICT (job) DO UPDATE SET labels = excluded.labels",
        use(change.job), use(labels);
  }

  void operator()(const ProfileRecord& profile) const {
    Insert(sql_, "profiles", All(kProfileColumns), profile,
           {.rest = "ON CONFLICT (id) DO NOTHING"});
    sql_ << "DELETE FROM profiles WHERE id NOT IN "
            "(SELECT id FROM profiles ORDER BY created_at DESC, id LIMIT :n)",
        use(kMostStoredProfiles);
  }

  void operator()(const ProfileConditions& measured) const {
    sql_ << "UPDATE profiles SET conditions = :c WHERE id = :i", use(measured.conditions_json),
        use(measured.profile);
  }

  // Its days stay, for accounts, and the labels by which they go.
  void operator()(const JobGone& gone) const {
    const int day = static_cast<int>(Resolution::kDay);
    sql_ << "DELETE FROM history WHERE job = :i AND resolution < :r", use(gone.job), use(day);
    sql_ << "DELETE FROM labels WHERE job = :i AND NOT EXISTS (SELECT 1 FROM history WHERE "
            "job = :h)",
        use(gone.job), use(gone.job);
    sql_ << "DELETE FROM jobs WHERE id = :i", use(gone.job);
  }

  // Writes as many ranks as possible in one statement. If a rank occurs twice, its last record
  // counts.
  static void WriteRanks(soci::session& sql, const std::vector<const RankRecord*>& ranks) {
    // A statement must not meet one row twice.
    std::map<int, const RankRecord*> last;
    for (const RankRecord* const rank : ranks) last[rank->rank] = rank;
    for (auto begin = last.begin(); begin != last.end();) {
      std::vector<Cells<RankRecord>> cells;
      std::string text = fmt::format("INSERT INTO ranks ({}) VALUES ", NamesOf(All(kRankColumns)));
      auto end = begin;
      for (; end != last.end() && cells.size() < kMostRanks; ++end) {
        text += fmt::format("{}({})", cells.empty() ? "" : ", ",
                            Joined(All(kRankColumns), fmt::format(":r{}c{{1}}", cells.size())));
        cells.emplace_back(All(kRankColumns));
      }
      // A rank does not move: that NULL breaks a constraint.
      text +=
          " ON CONFLICT (job, rank) DO UPDATE SET dp_rank = CASE WHEN ranks.dp_rank = "
          "excluded.dp_rank AND ranks.pp_rank = excluded.pp_rank AND ranks.tp_rank = "
          "excluded.tp_rank THEN ranks.dp_rank ELSE NULL END, gpu_uuid = excluded.gpu_uuid, "
          "gpu_name = excluded.gpu_name, node = excluded.node, clocks = excluded.clocks";
      Query query(sql, text);
      for (Cells<RankRecord>& each : cells) each.Use(*begin++->second, &query);
      query.Execute();
    }
  }

 private:
  template <typename T>
  void Set(const char* column, const T& value, const std::string& job) const {
    sql_ << fmt::format("UPDATE jobs SET {} = :v WHERE id = :i", column), use(value), use(job);
  }

  soci::session& sql_;
};

bool IsThere(soci::session& sql, const std::string& job) {
  int one = 0;
  Query query(sql, "SELECT 1 FROM revisions WHERE job = :j");
  query.Use(job).Into(one);
  return query.Next();
}

// Nullopt: there is no such job.
std::optional<std::int64_t> RaiseRevision(soci::session& sql, const std::string& job) {
  Big revision = 0;
  Query query(sql,
              "UPDATE revisions SET revision = revision + 1 WHERE job = :j RETURNING revision");
  query.Use(job).Into(revision);
  if (!query.Next()) return std::nullopt;
  return revision;
}

// Whether a text of the fact, of those that come from outside, has a character of code 0.
struct NulFinder {
  static bool Has(const std::string& text) { return text.find('\0') != std::string::npos; }
  template <typename Row>
  static bool Has(Columns<Row> columns, const Row& row) {
    Value value;
    return std::any_of(columns.begin(), columns.end(), [&](const Column<Row>& column) {
      if (column.type != CellType::kText) return false;
      column.get(row, &value);
      return Has(value.text);
    });
  }

  bool operator()(const JobRecord& job) const { return Has(All(kJobColumns), job); }
  bool operator()(const RankRecord& rank) const { return Has(All(kRankColumns), rank); }
  bool operator()(const Measurements& rows) const { return Has(All(kMeasurementColumns), rows); }
  bool operator()(const ProfileRecord& profile) const { return Has(All(kProfileColumns), profile); }
  bool operator()(const StragglerRecord& each) const { return Has(All(kStragglerColumns), each); }
  bool operator()(const CurveRecord& curve) const { return Has(All(kCurveColumns), curve); }
  bool operator()(const StateChange& change) const {
    return Has(change.job) || Has(change.reason) ||
           (change.profile_csv && Has(*change.profile_csv));
  }
  bool operator()(const TargetChange& change) const { return Has(change.target); }
  bool operator()(const DetectionChange& change) const { return Has(change.detection_json); }
  bool operator()(const ConditionsChange& change) const { return Has(change.conditions_json); }
  template <typename T>
  bool operator()(const T& /*fact*/) const {
    return false;
  }
};

Error DamageOf(const std::string& name, const std::string& job, std::string_view table) {
  return {kDamaged, fmt::format("{}: job {} is damaged: table {} holds what Perseus never wrote; "
                                "delete the job, or restore a copy of the store",
                                name, job, table)};
}

// Throws OddCell, as the next function does.
void ReadRecord(soci::session& sql, StoredJob* stored) {
  Cells<JobRecord> cells{All(kJobColumns)};
  Big last_straggler = 0;
  std::string labels;
  Query query(sql, fmt::format("SELECT {}, last_straggler, {} FROM jobs WHERE id = :i",
                               NamesOf(All(kJobColumns)), LabelsOf("jobs.id")));
  const std::string id = stored->job.id;
  query.Use(id);
  cells.Into(&query);
  query.Into(last_straggler).Into(labels);
  if (!query.Next()) return;
  cells.Complete(&stored->job, "jobs");
  if (!ReadCell(labels, &stored->job.labels)) throw OddCell{"labels"};
  // Empty: the settings say it.
  const std::string& target = stored->job.target;
  if (!target.empty() && !ParsePlanTarget(target)) throw OddCell{"jobs"};
  stored->last_straggler = last_straggler;
}

void ReadAll(soci::session& sql, StoredJob* stored) {
  const std::string id = stored->job.id;
  ReadRecord(sql, stored);
  auto versions =
      SelectOf(sql, "versions", All(kVersionColumns), id, "ORDER BY version DESC LIMIT 1");
  if (!versions.empty()) stored->version = std::move(versions.front());
  stored->stragglers = SelectOf(sql, "stragglers", All(kStragglerColumns), id, "ORDER BY id");
  stored->ranks = SelectOf(sql, "ranks", All(kRankColumns), id, "ORDER BY rank");
  stored->measurements =
      SelectOf(sql, "measurements", All(kMeasurementColumns), id, "ORDER BY number");
  auto curves = SelectOf(sql, "curves", All(kCurveColumns), id, "");
  if (!curves.empty()) {
    stored->curve = std::move(curves.front());
    stored->curve->plans = SelectOf(sql, "plans", All(kPlanColumns), id, "ORDER BY id");
  }
  stored->iterations =
      SelectOf(sql, "iterations", All(kIterationColumns), id, "ORDER BY plan_version");
  stored->history = SelectOf(sql, "history", All(kHistoryColumns), id,
                             "AND start_at = (SELECT MAX(start_at) FROM history h WHERE h.job = "
                             "history.job AND h.resolution = history.resolution)");
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

bool IsChange(const Fact& fact) {
  return !IsRow(fact) && !Is<IterationSummary>(fact) && !Is<HistoryRow>(fact) &&
         !Is<JobRecord>(fact);
}

Result<void> CheckRequest(const Backend& backend, const Request& request) {
  const std::vector<Fact>& facts = request.facts;
  if (facts.empty()) return InvalidInput("a request without facts");
  const std::string& job = JobOf(facts.front());
  if (!std::all_of(facts.begin(), facts.end(),
                   [&](const Fact& fact) { return JobOf(fact) == job; })) {
    return InvalidInput("a request with facts about more than one job");
  }
  // SOCI would cut the text there without a word.
  if (backend.is_remote() && std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
        return std::visit(NulFinder(), fact);
      })) {
    return InvalidInput(
        fmt::format("a text of job {} has a character of code 0, which PostgreSQL cannot hold; "
                    "leave it out",
                    job));
  }
  return {};
}

Revision WriteRequests(soci::session& sql, const std::string& name,
                       std::span<const Request* const> requests) {
  const FactWriter writer(sql);
  const Fact& first = requests.front()->facts.front();
  const std::string& job = JobOf(first);
  bool is_change = false;
  for (const Request* const request : requests) {
    is_change |= std::any_of(request->facts.begin(), request->facts.end(), IsChange);
  }
  std::optional<std::int64_t> revision = 0;
  if (Is<JobRecord>(first)) {
    std::visit(writer, first);
    revision = 1;
  }
  if (is_change) revision = RaiseRevision(sql, job);
  if (!is_change && !Is<JobRecord>(first) && !IsThere(sql, job)) revision.reset();
  if (!revision) {
    // One that is not there is as gone as it should be.
    if (Is<JobGone>(first)) return 0;
    return MakeError(ErrorCode::kConflict, fmt::format("{}: there is no job {}", name, job));
  }
  std::vector<const RankRecord*> ranks;
  for (const Request* const request : requests) {
    for (const Fact& fact : request->facts) {
      if (const auto* const rank = std::get_if<RankRecord>(&fact)) {
        ranks.push_back(rank);
      } else if (!Is<JobRecord>(fact)) {
        std::visit(writer, fact);
      }
    }
  }
  FactWriter::WriteRanks(sql, ranks);
  return *revision;
}

Result<std::optional<StoredJob>> ReadJob(soci::session& sql, const std::string& name,
                                         const std::string& id) {
  StoredJob stored;
  stored.job.id = id;
  Big revision = 0;
  sql << "SELECT revision FROM revisions WHERE job = :j", use(id), soci::into(revision);
  if (!sql.got_data()) return std::nullopt;
  stored.revision = revision;
  try {
    ReadAll(sql, &stored);
  } catch (const OddCell& odd) {
    return tl::unexpected(DamageOf(name, id, odd.table));
  }
  return stored;
}

std::vector<JobHead> ReadHeads(soci::session& sql) {
  std::vector<JobHead> heads;
  Cells<JobHead> cells{All(kHeadColumns)};
  std::string labels;
  // CROSS: SQLite begins with the jobs then, whose index has them in order.
  Query query(sql, fmt::format("SELECT {}, {} FROM jobs j CROSS JOIN revisions r WHERE r.job = "
                               "j.id ORDER BY j.created_at, j.id",
                               NamesOf(All(kHeadColumns)), LabelsOf("j.id")));
  cells.Into(&query);
  query.Into(labels);
  while (query.Next()) {
    JobHead& head = heads.emplace_back();
    try {
      cells.Complete(&head, "jobs");
      if (!ReadCell(labels, &head.labels)) throw OddCell{"labels"};
    } catch (const OddCell&) {
      head.state = JobState::kRegistering;  // Its id and key are read: whoever loads it is told.
    }
  }
  return heads;
}

std::vector<ProfileRecord> ReadProfiles(soci::session& sql, const ProfileQuery& wanted) {
  std::vector<ProfileRecord> all;
  Cells<ProfileRecord> cells{All(kProfileColumns)};
  const bool is_one = !wanted.id.empty() || !wanted.layout.empty();
  const std::string names = NamesOf(All(kProfileColumns));
  std::string text =
      fmt::format("SELECT {} FROM profiles", is_one ? names : Without(names, "profile"));
  if (!wanted.id.empty()) text += " WHERE id = :i";
  if (!wanted.layout.empty()) text += " WHERE layout = :l";
  text += " ORDER BY created_at DESC, id";
  Query query(sql, text + (is_one ? " LIMIT 1" : ""));
  if (!wanted.id.empty()) query.Use(wanted.id);
  if (!wanted.layout.empty()) query.Use(wanted.layout);
  cells.Into(&query);
  while (query.Next()) {
    ProfileRecord profile;
    try {
      cells.Complete(&profile, "profiles");
    } catch (const OddCell&) {
      continue;  // A row that cannot be read is as good as none.
    }
    all.push_back(std::move(profile));
  }
  return all;
}

std::vector<NamedHistoryRow> ReadHistory(soci::session& sql, const HistoryQuery& wanted) {
  std::vector<NamedHistoryRow> rows;
  NamedHistoryRow named;
  std::string labels;
  const int resolution = static_cast<int>(wanted.resolution);
  const Big since = wanted.since;
  const Big until = wanted.until;
  Cells<HistoryRow> cells{All(kHistoryColumns)};
  Query query(sql, fmt::format("SELECT name, owner, {}, {} FROM history WHERE resolution = :r AND "
                               "start_at >= :s AND start_at < :u{} ORDER BY job, start_at LIMIT {}",
                               LabelsOf("history.job"), NamesOf(All(kHistoryColumns)),
                               wanted.job.empty() ? "" : " AND job = :j", wanted.most + 1));
  query.Use(resolution).Use(since).Use(until);
  if (!wanted.job.empty()) query.Use(wanted.job);
  query.Into(named.name).Into(named.owner).Into(labels);
  cells.Into(&query);
  while (query.Next()) {
    cells.Complete(&named.row, "history");
    // Labels that cannot be read are as good as none: an account lacks no job.
    if (!ReadCell(labels, &named.labels)) named.labels.clear();
    rows.push_back(named);
  }
  return rows;
}

std::int64_t DeleteHistory(soci::session& sql, Resolution resolution, std::int64_t start,
                           std::int64_t most) {
  const int number = static_cast<int>(resolution);
  const Big before = start;
  const Big limit = most;
  Big deleted = 0;
  Big one = 0;
  Query query(sql,
              "DELETE FROM history WHERE (job, resolution, start_at) IN (SELECT job, resolution, "
              "start_at FROM history WHERE resolution = :r AND start_at < :b ORDER BY start_at "
              "LIMIT :l) RETURNING 1");
  query.Use(number).Use(before).Use(limit).Into(one);
  while (query.Next()) ++deleted;
  return deleted;
}

}  // namespace perseus::store
