// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/copy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/active.h"
#include "server/store/backend.h"

namespace perseus::store {
namespace {

// Values of one INSERT: every SQLite takes 999.
constexpr std::size_t kMostValues = 900;
// Text of one INSERT, after which it is sent.
constexpr std::size_t kMostBytes = 1 << 20;
// The lease of a server that was killed ends in this time.
constexpr std::chrono::milliseconds kUsersPatience{static_cast<int>(1000 * kLeaseSeconds) + 500};
constexpr std::chrono::milliseconds kUsersPeriod{50};

enum class Kind : std::uint8_t { kText, kInteger, kReal };

struct CopiedColumn {
  std::string name;
  Kind kind = Kind::kText;
};

// The value of a column in one row; of its kind.
struct Cell {
  std::string text;
  long long integer = 0;
  double real = 0;
  soci::indicator indicator = soci::i_ok;
};
using Row = std::vector<Cell>;

// Others are of one store alone, and filled with its tables.
bool HoldsJobs(std::string_view table) { return table != kVersionTable && table != kActiveTable; }

Kind KindOf(const std::string& type, const std::string& column) {
  if (type == "text") return Kind::kText;
  if (type == "integer" || type == "bigint") return Kind::kInteger;
  if (type == "double precision") return Kind::kReal;
  throw soci::soci_error(
      fmt::format("the column {} has the type {}, which cannot be copied", column, type));
}

std::vector<CopiedColumn> ColumnsOf(soci::session& sql, const Backend& backend,
                                    const std::string& table) {
  std::vector<CopiedColumn> columns;
  std::string name;
  std::string type;
  Query query(sql, std::string(backend.columns()));
  query.Into(name).Into(type).Use(table);
  while (query.Next()) columns.push_back({name, KindOf(type, fmt::format("{}.{}", table, name))});
  return columns;
}

std::string NamesOfColumns(const std::vector<CopiedColumn>& columns) {
  std::vector<std::string_view> names;
  names.reserve(columns.size());
  for (const CopiedColumn& column : columns) names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void Into(Query* query, const std::vector<CopiedColumn>& columns, Row* row) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Cell& cell = (*row)[i];
    switch (columns[i].kind) {
      case Kind::kText:
        query->Into(cell.text, cell.indicator);
        break;
      case Kind::kInteger:
        query->Into(cell.integer, cell.indicator);
        break;
      case Kind::kReal:
        query->Into(cell.real, cell.indicator);
        break;
    }
  }
}

void Use(Query* query, const std::vector<CopiedColumn>& columns, Row* row) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Cell& cell = (*row)[i];
    switch (columns[i].kind) {
      case Kind::kText:
        query->Use(cell.text, cell.indicator);
        break;
      case Kind::kInteger:
        query->Use(cell.integer, cell.indicator);
        break;
      case Kind::kReal:
        query->Use(cell.real, cell.indicator);
        break;
    }
  }
}

std::size_t BytesOf(const Row& row) {
  std::size_t bytes = 0;
  for (const Cell& cell : row) bytes += cell.text.size();
  return bytes;
}

// The number of rows, and a sum over their cells, independent of their order.
struct Contents {
  std::int64_t rows = 0;
  std::uint64_t sum = 0;

  void Add(const std::vector<CopiedColumn>& columns, const Row& row) {
    std::string bytes;
    const auto append = [&](const auto& value) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Cell& cell = row[i];
      bytes += cell.indicator == soci::i_null ? 'n' : 'v';
      if (cell.indicator == soci::i_null) continue;
      switch (columns[i].kind) {
        case Kind::kText:
          append(cell.text.size());
          bytes += cell.text;
          break;
        case Kind::kInteger:
          append(cell.integer);
          break;
        case Kind::kReal:
          append(cell.real);
          break;
      }
    }
    ++rows;
    sum += std::hash<std::string>()(bytes);
  }

  friend bool operator==(const Contents&, const Contents&) = default;
};

// One of the two stores, with a connection and at most one transaction, which is rolled back
// unless it is committed.
class Side {
 public:
  explicit Side(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    if (is_begun_) static_cast<void>(Try([&] { *session_ << "ROLLBACK"; }));
  }

  // Runs `work`, which may throw as SOCI does.
  Result<void> Try(const std::function<void()>& work) {
    try {
      work();
      return {};
    } catch (const std::exception& exception) {
      return tl::unexpected(backend_->FaultOf(exception).error);
    }
  }

  Result<void> Connect() {
    const auto holder = backend_->Lock();
    if (!holder) return tl::unexpected(holder.error());
    if (*holder) return InUse(**holder);
    return Try([&] { session_ = backend_->Connect(); });
  }

  // Servers wait for its end before they use the store.
  Result<void> Begin() {
    return Try([&] {
      *session_ << backend_->BeginToMigrate();
      is_begun_ = true;
    });
  }

  Result<void> Commit() {
    try {
      *session_ << backend_->Commit();
      is_begun_ = false;
      return {};
    } catch (const std::exception& exception) {
      Fault fault = backend_->FaultOf(exception);
      if (fault.kind != FaultKind::kLost) return tl::unexpected(std::move(fault.error));
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: the connection was lost at the end, so that it is not "
                                   "known whether the copy was written; copy again: a store that "
                                   "is not empty is refused",
                                   name()));
    }
  }

  // No server has it: waits for the end of a lease.
  Result<void> CheckUnused() {
    const auto until = std::chrono::steady_clock::now() + kUsersPatience;
    while (true) {
      std::optional<std::string> user;
      Result<void> asked = Try([&] {
        const std::vector<std::string> tables = Tables(*session_, *backend_);
        const bool is_there = std::find(tables.begin(), tables.end(), kActiveTable) != tables.end();
        if (is_there && backend_->is_remote()) user = ActiveServer(*session_, *backend_);
      });
      if (!asked || !user) return asked;
      if (std::chrono::steady_clock::now() > until) return InUse(*user);
      std::this_thread::sleep_for(kUsersPeriod);
    }
  }

  const Backend& backend() const { return *backend_; }
  const std::string& name() const { return backend_->name(); }
  soci::session& sql() { return *session_; }

 private:
  tl::unexpected<Error> InUse(const std::string& user) const {
    return MakeError(ErrorCode::kIo, fmt::format("{}: the store is in use by {}; stop the servers",
                                                 name(), user.empty() ? "a server" : user));
  }

  const std::shared_ptr<const Backend> backend_;
  std::unique_ptr<soci::session> session_;
  bool is_begun_ = false;
};

// Reads the rows of a table, one after the other.
class Reader {
 public:
  Reader(Side* side, const std::string& table, const std::vector<CopiedColumn>& columns)
      : columns_(columns),
        row_(columns.size()),
        query_(side->sql(), fmt::format("SELECT {} FROM {}", NamesOfColumns(columns), table)) {
    Into(&query_, columns_, &row_);
  }

  // The next row, until the next call; null: there is none.
  const Row* Next() {
    if (!query_.Next()) return nullptr;
    contents_.Add(columns_, row_);
    return &row_;
  }
  const Contents& contents() const { return contents_; }

 private:
  const std::vector<CopiedColumn>& columns_;
  Row row_;
  Query query_;
  Contents contents_;
};

void InsertRows(Side* side, const std::string& table, const std::vector<CopiedColumn>& columns,
                std::vector<Row>* rows) {
  std::string text = fmt::format("INSERT INTO {} ({}) VALUES ", table, NamesOfColumns(columns));
  std::size_t value = 0;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    text += i == 0 ? "(" : ", (";
    for (std::size_t j = 0; j < columns.size(); ++j) {
      text += fmt::format("{}:v{}", j == 0 ? "" : ", ", value++);
    }
    text += ")";
  }
  Query query(side->sql(), text);
  for (Row& row : *rows) Use(&query, columns, &row);
  query.Execute();
}

class Copier {
 public:
  Copier(Side* from, Side* to) : from_(*from), to_(*to) {}

  // Both are one database, which would wait for itself.
  Result<void> CheckApart() {
    if (!from_.backend().is_remote() || !to_.backend().is_remote()) return {};
    long long first = 0;
    long long second = 0;
    const auto ask = [](Side* side, long long* instance) {
      return side->Try([&] {
        side->sql() << fmt::format("SELECT {}", side->backend().instance()), soci::into(*instance);
      });
    };
    if (auto asked = ask(&from_, &first); !asked) return asked;
    if (auto asked = ask(&to_, &second); !asked) return asked;
    if (first != second) return {};
    return InvalidInput(
        fmt::format("{}: --from and --to name the same store; name another one", to_.name()));
  }

  // Brings the source to the tables of this program, until it is rolled back.
  Result<void> PrepareSource() {
    if (auto begun = from_.Begin(); !begun) return begun;
    if (auto unused = from_.CheckUnused(); !unused) return unused;
    Result<bool> is_store = false;
    auto asked = from_.Try([&] { is_store = CheckIsStore(from_.sql(), from_.backend()); });
    if (!asked) return asked;
    if (!is_store) return tl::unexpected(is_store.error());
    if (!*is_store) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: there is no store in it, so there is "
                                                   "nothing to copy; name the servers' store",
                                                   from_.name()));
    }
    return MigrateSide(&from_);
  }

  Result<void> PrepareTarget() {
    if (auto begun = to_.Begin(); !begun) return begun;
    if (auto unused = to_.CheckUnused(); !unused) return unused;
    if (auto migrated = MigrateSide(&to_); !migrated) return migrated;
    return to_.Try([&] { tables_ = Tables(to_.sql(), to_.backend()); });
  }

  Result<void> CheckTargetIsEmpty() {
    for (const std::string& table : tables_) {
      if (!HoldsJobs(table)) continue;
      long long rows = 0;
      auto counted = to_.Try(
          [&] { to_.sql() << fmt::format("SELECT COUNT(*) FROM {}", table), soci::into(rows); });
      if (!counted) return counted;
      if (rows == 0) continue;
      return MakeError(
          ErrorCode::kIo,
          fmt::format("{}: the store is not empty (its table {} has {} rows), and a copy would "
                      "mix with what it holds; name an empty database, or a file that is not there",
                      to_.name(), table, rows));
    }
    return {};
  }

  Result<CopiedTable> CopyTable(const std::string& table) {
    std::vector<CopiedColumn> columns;
    auto asked = to_.Try([&] { columns = ColumnsOf(to_.sql(), to_.backend(), table); });
    if (!asked) return tl::unexpected(asked.error());
    const Result<Contents> read = CopyRows(table, columns);
    if (!read) return tl::unexpected(read.error());
    Contents written;
    auto compared = to_.Try([&] {
      Reader reader(&to_, table, columns);
      while (reader.Next() != nullptr) continue;
      written = reader.contents();
    });
    if (!compared) return tl::unexpected(compared.error());
    if (written == *read) return CopiedTable{table, written.rows};
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: the table {} does not read back as it was written ({} rows "
                                 "of {}); nothing was copied",
                                 to_.name(), table, written.rows, read->rows));
  }

  Result<StoreCopy> CopyAll(const std::function<void(const std::string& table)>& on_table) {
    StoreCopy copy{.from = from_.name(), .to = to_.name(), .tables = {}, .left_out = {}};
    auto asked = from_.Try([&] {
      for (std::string& table : Tables(from_.sql(), from_.backend())) {
        const bool is_ours = std::find(tables_.begin(), tables_.end(), table) != tables_.end();
        if (!is_ours) copy.left_out.push_back(std::move(table));
      }
    });
    if (!asked) return tl::unexpected(asked.error());
    for (const std::string& table : tables_) {
      if (!HoldsJobs(table)) continue;
      if (on_table) on_table(table);
      Result<CopiedTable> copied = CopyTable(table);
      if (!copied) return tl::unexpected(copied.error());
      copy.tables.push_back(*std::move(copied));
    }
    return copy;
  }

 private:
  static Result<void> MigrateSide(Side* side) {
    Result<void> migrated;
    auto run = side->Try([&] { migrated = Migrate(side->sql(), side->backend()); });
    return run ? migrated : run;
  }

  Result<Contents> CopyRows(const std::string& table, const std::vector<CopiedColumn>& columns) {
    std::optional<Reader> reader;
    if (auto opened = from_.Try([&] { reader.emplace(&from_, table, columns); }); !opened) {
      return tl::unexpected(opened.error());
    }
    bool is_over = false;
    while (!is_over) {
      std::vector<Row> rows;
      std::size_t bytes = 0;
      auto read = from_.Try([&] {
        while ((rows.size() + 1) * columns.size() <= kMostValues && bytes < kMostBytes) {
          const Row* const row = reader->Next();
          is_over = row == nullptr;
          if (is_over) break;
          bytes += BytesOf(*row);
          rows.push_back(*row);
        }
      });
      if (!read) return tl::unexpected(read.error());
      if (rows.empty()) break;
      auto written = to_.Try([&] { InsertRows(&to_, table, columns, &rows); });
      if (!written) {
        return MakeError(written.error().code,
                         fmt::format("{}; this was the table {}, and nothing was copied",
                                     written.error().message, table));
      }
    }
    return reader->contents();
  }

  Side& from_;
  Side& to_;
  std::vector<std::string> tables_;  // Of this program, in an order in which they can be filled.
};

// A SQLite file that a copy makes; removed unless the copy is done.
class NewFile {
 public:
  NewFile() = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_.empty()) return;
    std::error_code none;
    for (const char* const end : {"", "-wal", "-shm", ".lock"}) {
      std::filesystem::remove(file_ + end, none);
    }
  }
  void Set(std::string file) { file_ = std::move(file); }

 private:
  std::string file_;
};

Result<void> CheckSpecs(const std::string& from, const std::string& to) {
  const auto source = SqliteFileOf(from);
  const auto target = SqliteFileOf(to);
  std::error_code none;
  const bool is_same_file = source && target && !source->empty() &&
                            std::filesystem::weakly_canonical(*source, none) ==
                                std::filesystem::weakly_canonical(*target, none);
  if (from == to || is_same_file) {
    return InvalidInput("--from and --to name the same store; name another one");
  }
  if (auto good = CheckSpec(from); !good) return good;
  if (auto good = CheckSpec(to); !good) return good;
  if (source && !std::filesystem::exists(*source, none)) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: there is no such file, so there is nothing to copy; name the "
                                 "servers' store",
                                 *source));
  }
  return {};
}

}  // namespace

Result<StoreCopy> CopyStore(const std::string& from, const std::string& to,
                            const std::function<void(const std::string& table)>& on_table) {
  if (auto good = CheckSpecs(from, to); !good) return tl::unexpected(good.error());
  Result<std::shared_ptr<const Backend>> source = OpenBackend(from);
  if (!source) return tl::unexpected(source.error());
  const std::optional<std::string> file = SqliteFileOf(to);
  std::error_code none;
  const bool is_new = file && !std::filesystem::exists(*file, none);
  Result<std::shared_ptr<const Backend>> target = OpenBackend(to);
  if (!target) return tl::unexpected(target.error());
  NewFile made;  // Outlives the connection to it.
  if (is_new) made.Set(*file);
  Side from_side(*std::move(source));
  Side to_side(*std::move(target));
  Copier copier(&from_side, &to_side);
  Result<void> ready = from_side.Connect();
  if (ready) ready = to_side.Connect();
  if (ready) ready = copier.CheckApart();
  if (ready) ready = copier.PrepareSource();
  if (ready) ready = copier.PrepareTarget();
  if (ready) ready = copier.CheckTargetIsEmpty();
  if (!ready) return tl::unexpected(ready.error());
  Result<StoreCopy> copy = copier.CopyAll(on_table);
  if (!copy) return copy;
  if (auto committed = to_side.Commit(); !committed) return tl::unexpected(committed.error());
  made.Set("");
  return copy;
}

}  // namespace perseus::store
