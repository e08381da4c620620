// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "metrics/families.h"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "perseus/version.h"

namespace perseus::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Family(const char* name, const char* help, MetricType type) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

MetricFamily Single(MetricFamily family, double value) {
  AddValue(&family, value);
  return family;
}

}  // namespace

MetricFamily Counter(const char* name, const char* help) {
  return Family(name, help, MetricType::Counter);
}

MetricFamily Gauge(const char* name, const char* help) {
  return Family(name, help, MetricType::Gauge);
}

void AddValue(MetricFamily* family, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

MetricFamily Counter(const char* name, const char* help, double value) {
  return Single(Counter(name, help), value);
}

MetricFamily Gauge(const char* name, const char* help, double value) {
  return Single(Gauge(name, help), value);
}

MetricFamily BuildInfo(const char* name, Labels labels) {
  MetricFamily family = Gauge(name, "1, with the version.");
  labels.insert(labels.begin(), {"version", PERSEUS_VERSION_STRING});
  AddValue(&family, 1, std::move(labels));
  return family;
}

std::string Text(Families families) {
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

namespace {

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The fields of /proc/self/stat behind the name of the program, in which there may be spaces: the
// first is the third field of proc(5).
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

std::optional<double> FieldOf(const std::vector<std::string>& fields, std::size_t number) {
  constexpr std::size_t kFirst = 3;
  if (number - kFirst >= fields.size()) return std::nullopt;
  std::istringstream text(fields[number - kFirst]);
  double value = 0;
  return text >> value ? std::optional(value) : std::nullopt;
}

// When the machine began, seconds since 1970.
std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator begin("/proc/self/fd", error);
  if (error) return std::nullopt;
  double count = 0;
  for (auto each = begin; each != end(begin); each.increment(error)) {
    if (error) return std::nullopt;
    ++count;
  }
  return count - 1;  // The folder itself was open meanwhile.
}

}  // namespace

Families ProcessFamilies() {
  constexpr std::size_t kStartTicks = 22;
  constexpr std::size_t kVirtualBytes = 23;
  constexpr std::size_t kResidentPages = 24;
  const std::vector<std::string> fields = StatFields();
  Families families;
  const auto gauge = [&](const char* name, const char* help, std::optional<double> value) {
    if (value) families.push_back(Gauge(name, help, *value));
  };
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    families.push_back(Counter("process_cpu_seconds_total",
                               "Time that the process computed, user and system.",
                               SecondsOf(used.ru_utime) + SecondsOf(used.ru_stime)));
  }
  gauge("process_virtual_memory_bytes", "Virtual memory.", FieldOf(fields, kVirtualBytes));
  if (const auto pages = FieldOf(fields, kResidentPages)) {
    gauge("process_resident_memory_bytes", "Resident memory.",
          *pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  gauge("process_open_fds", "Open files and sockets.", OpenFiles());
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    gauge("process_max_fds", "Files and sockets that may be open.",
          static_cast<double>(limit.rlim_cur));
  }
  const auto boot = BootTime();
  const auto ticks = FieldOf(fields, kStartTicks);
  if (boot && ticks) {
    gauge("process_start_time_seconds", "When the process began, seconds since 1970.",
          *boot + *ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  return families;
}

}  // namespace perseus::metrics
