// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "common/cells.h"
#include "common/csv_records.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "site/days/days_file.h"

namespace perseus::site {
namespace {

struct ValueColumn {
  std::string_view name;
  SeriesKind kind;
  double joules;  // For which the value is.
};
constexpr ValueColumn kValueColumns[] = {{"price_per_kwh", SeriesKind::kPrice, kJoulesOfKwh},
                                         {"price_per_mwh", SeriesKind::kPrice, kJoulesOfMwh},
                                         {"co2_g_per_kwh", SeriesKind::kCarbon, kJoulesOfKwh}};

// Days since 1970-01-01 in the Gregorian calendar.
std::int64_t DayNumber(std::int64_t year, int month, int day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

// "2026-11-25T13:00", with seconds and a zone or without: seconds since 1970. Without a zone: UTC.
std::optional<double> ParseTime(std::string_view text) {
  const auto digits = [&text](std::size_t at, std::size_t count) {
    return at + count <= text.size() ? ParseInteger<int>(text.substr(at, count)) : std::nullopt;
  };
  const auto year = digits(0, 4);
  const auto month = digits(5, 2);
  const auto day = digits(8, 2);
  const auto hour = digits(11, 2);
  const auto minute = digits(14, 2);
  if (!year || !month || !day || !hour || !minute || text[4] != '-' || text[7] != '-' ||
      (text[10] != 'T' && text[10] != ' ') || text[13] != ':') {
    return std::nullopt;
  }
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 ||
      *hour < 0 || *minute < 0) {
    return std::nullopt;
  }
  double seconds = static_cast<double>(DayNumber(*year, *month, *day)) * 86400.0 + *hour * 3600.0 +
                   *minute * 60.0;
  std::string_view rest = text.substr(16);
  if (rest.starts_with(':')) {
    const auto second = rest.size() >= 3 ? ParseInteger<int>(rest.substr(1, 2)) : std::nullopt;
    if (!second || *second < 0 || *second > 60) return std::nullopt;
    seconds += *second;
    rest.remove_prefix(3);
  }
  if (rest.empty() || rest == "Z") return seconds;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':') {
    return std::nullopt;
  }
  const auto hours = ParseInteger<int>(rest.substr(1, 2));
  const auto minutes = ParseInteger<int>(rest.substr(4, 2));
  if (!hours || !minutes) return std::nullopt;
  const double offset = *hours * 3600.0 + *minutes * 60.0;
  return rest[0] == '+' ? seconds - offset : seconds + offset;
}

class SeriesParser {
 public:
  SeriesParser(std::string_view text, const std::string& name, SeriesKind kind)
      : text_(text), name_(name), kind_(kind), records_(text) {}

  Result<StepSeries> Parse() {
    if (auto good = ReadHeader(); !good) return tl::unexpected(good.error());
    StepSeries series;
    while (true) {
      Result<bool> more = Next();
      if (!more) return tl::unexpected(more.error());
      if (!*more) break;
      if (auto good = ReadRow(&series); !good) return tl::unexpected(good.error());
    }
    if (series.empty()) return Fail(0, "it has no rows; give at least one time with its value");
    const double first = series.front().seconds;
    for (SeriesStep& step : series) step.seconds -= first;
    return series;
  }

 private:
  tl::unexpected<Error> Fail(std::size_t offset, const std::string& message) const {
    const TextPosition at = PositionOf(text_, offset);
    return InvalidAt(name_, static_cast<int>(at.line), static_cast<int>(at.column), message);
  }
  Result<bool> Next() {
    const Parsed<bool> more = records_.Next(&record_);
    if (!more) return Fail(more.error().offset, more.error().message);
    return *more;
  }

  std::string Names() const {
    return kind_ == SeriesKind::kPrice ? "price_per_kwh or price_per_mwh" : "co2_g_per_kwh";
  }

  Result<void> ReadHeader() {
    const Result<bool> more = Next();
    if (!more) return tl::unexpected(more.error());
    const auto expected = [this](std::size_t offset, std::string_view found) {
      return Fail(offset, fmt::format("expected two columns, 'time_h' (hours) or 'time' (ISO 8601) "
                                      "and {}, found {}",
                                      Names(), found));
    };
    if (!*more) return expected(0, "nothing");
    if (record_.cells.size() != 2) {
      return expected(record_.offset, fmt::format("{} columns", record_.cells.size()));
    }
    const std::string_view time = record_.cells[0].text;
    if (time != "time_h" && time != "time") {
      return expected(record_.cells[0].offset, Shown(time));
    }
    is_iso_ = time == "time";
    for (const ValueColumn& each : kValueColumns) {
      if (each.kind == kind_ && each.name == record_.cells[1].text) column_ = &each;
    }
    if (column_ == nullptr) {
      return expected(record_.cells[1].offset, Shown(record_.cells[1].text));
    }
    return {};
  }

  Result<void> ReadRow(StepSeries* series) const {
    if (record_.cells.size() != 2) {
      return Fail(record_.offset, fmt::format("expected 2 cells, found {}", record_.cells.size()));
    }
    const CsvCell& time = record_.cells[0];
    SeriesStep step;
    if (is_iso_) {
      const std::optional<double> seconds = ParseTime(time.text);
      if (!seconds) {
        return Fail(time.offset, fmt::format("expected a time such as 2026-11-25T13:00Z, found {}",
                                             Shown(time.text)));
      }
      step.seconds = *seconds;
    } else {
      const Parsed<double> hours = ParseQuantity(time, "time_h", Minimum::kZero);
      if (!hours) return Fail(hours.error().offset, hours.error().message);
      step.seconds = *hours * 3600;
    }
    const Number value = ParseNumber(record_.cells[1].text);
    if (value.kind != NumberKind::kFinite) {
      return Fail(record_.cells[1].offset,
                  fmt::format("{}: expected a number, found {}", column_->name,
                              Shown(record_.cells[1].text)));
    }
    step.value = value.value / column_->joules;
    if (!series->empty() && !(step.seconds > series->back().seconds)) {
      return Fail(time.offset,
                  "this time is not after that of the row before; sort the rows by "
                  "time and leave out doubles");
    }
    series->push_back(step);
    return {};
  }

  std::string_view text_;
  const std::string& name_;
  SeriesKind kind_;
  CsvRecords records_;
  CsvRecord record_;
  bool is_iso_ = false;
  const ValueColumn* column_ = nullptr;
};

}  // namespace

Result<StepSeries> ParseSeries(std::string_view text, const std::string& name, SeriesKind kind) {
  return SeriesParser(text, name, kind).Parse();
}

}  // namespace perseus::site
