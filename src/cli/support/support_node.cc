// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What this machine says: system, environment, GPUs, agent, configuration, logs.

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "agent/protocol.h"
#include "cli/command_line.h"
#include "cli/node/node.h"
#include "cli/support/support_files.h"
#include "common/file.h"
#include "common/nearest_name.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBundledBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLogBytes = std::size_t{1} << 20;  // Of its end.

// What is ours, or what the driver and libpq obey. All others are nobody's business.
bool IsRelevant(std::string_view variable) {
  constexpr std::array<std::string_view, 7> kBeginnings = {"PERSEUS_", "CUDA_", "NVIDIA_", "SLURM_",
                                                           "PG",       "NCCL_", "LC_"};
  const bool is_relevant = std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](auto beginning) {
    return variable.starts_with(beginning);
  });
  return is_relevant || variable.starts_with("LANG=");
}

// A file of /proc, whose size is not known before.
std::string FirstLines(const std::string& path, std::size_t most) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, most);
  return text ? *text : "";
}

// The end of a log, which may be larger than the memory. It begins with a whole line: of a secret,
// not half of it stays.
Result<std::string> EndOfLog(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = fs::file_size(path, none);
  if (none || size <= kMostLogBytes) return ReadWholeFile(path, kMostLogBytes);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(size - kMostLogBytes));
  std::string text(kMostLogBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return MakeError(ErrorCode::kIo, "it cannot be read: " + Shown(path));
  const std::size_t line = text.find('\n');
  text.erase(0, line == std::string::npos ? line : line + 1);
  return text;
}

// "/etc/perseus/a.conf" as the name of a file in the bundle.
std::string NameOf(std::string_view folder, const std::string& path) {
  std::string name(path);
  std::replace(name.begin(), name.end(), '/', '_');
  constexpr std::size_t kMost = 80;
  if (name.size() > kMost) name.erase(0, name.size() - kMost);
  return fmt::format("{}/{}", folder, name);
}

// Those that a package, or docs/how-to/cluster.md, makes.
std::vector<std::string> InstalledConfigs() {
  std::vector<std::string> found;
  std::error_code none;
  for (const char* const service : {"agent", "relay", "server"}) {
    const std::string unit = fmt::format("/etc/systemd/system/perseus-{}.service", service);
    for (const std::string& path : {fmt::format("/etc/default/perseus-{}", service), unit}) {
      if (fs::exists(path, none)) found.push_back(path);
    }
    for (fs::directory_iterator at(unit + ".d", none), end; !none && at != end;
         at.increment(none)) {
      if (at->path().extension() == ".conf") found.push_back(at->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void AddSystem(SupportFiles* files) {
  std::string text = fmt::format("perseus {}\n", Version());
  struct utsname kernel = {};
  if (::uname(&kernel) == 0) {
    text += fmt::format("{} {} {} {}\n", kernel.sysname, kernel.release, kernel.version,
                        kernel.machine);
  }
  text +=
      fmt::format("{} processors, {} MiB of memory, user {}\n", ::sysconf(_SC_NPROCESSORS_ONLN),
                  ::sysconf(_SC_PHYS_PAGES) / 1024 * ::sysconf(_SC_PAGE_SIZE) / 1024, ::geteuid());
  std::error_code none;
  const fs::space_info space = fs::space(".", none);
  if (!none) text += fmt::format("{} MiB free in this folder\n", space.available >> 20);
  text += FirstLines("/etc/os-release", 1 << 14);
  files->Add("system.txt", text);
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (IsRelevant(*variable)) variables.emplace_back(*variable);
  }
  std::sort(variables.begin(), variables.end());
  text.clear();
  for (const std::string& variable : variables) text += variable + "\n";
  files->Add("environment.txt", text);
}

void AddNode(const SupportBundleFlags& flags, SupportFiles* files) {
  DoctorFlags doctor;
  doctor.driver = flags.driver;
  doctor.agent_socket = flags.agent_socket;
  doctor.seconds = 1;
  files->AddResult("node/doctor.json", NodeJson(doctor));
  const std::string socket =
      flags.agent_socket.empty() ? std::string(agent::kDefaultSocketPath) : flags.agent_socket;
  const Result<agent::StatusAnswer> status = AskAgentStatus(socket, "perseus support-bundle");
  if (status) {
    files->Add("node/agent.json", AgentStatusJson(*status));
  } else {
    files->AddMissing("node/agent.json", status.error().message);
  }
}

void AddConfiguration(const SupportBundleFlags& flags, SupportFiles* files) {
  std::vector<std::string> configs = InstalledConfigs();
  configs.insert(configs.end(), flags.configs.begin(), flags.configs.end());
  for (const std::string& path : configs) {
    files->AddResult(NameOf("config", path), ReadWholeFile(path, kMostBundledBytes));
  }
  for (const std::string& path : flags.logs) {
    files->AddResult(NameOf("log", path), EndOfLog(path));
  }
}

}  // namespace perseus::cli
