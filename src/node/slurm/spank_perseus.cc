// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's option --perseus[=RUN], a plug-in of sbatch, salloc, srun and each task
// (docs/how-to/slurm.md). A task then finds the server, the agent and the name of its run in its
// environment. What the user has set himself stays.
//
// No function here returns an error: Slurm would end the task, and Perseus never stops training.
// It has no prolog and no epilog, whose faults drain a node: the agent gives clocks back when it
// sees its client's process end.
//
// https://slurm.schedmd.com/spank.html (Slurm 22.05)

extern "C" {  // Its list of functions has no linkage of its own.
#include <slurm/spank.h>
}

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kAgentSocket = "/run/perseus/agent.sock";  // Clients' default.
constexpr std::string_view kUnix = "unix:";

// The line of plugstack.conf.
struct Settings {
  std::string server = "unix:/run/perseus-relay/server.sock";
  std::string token_file;
  std::string agent{kAgentSocket};
  std::string wrong;  // A word of the line that nobody knows.
};

bool Take(std::string_view word, std::string_view key, std::string& value) {
  if (word.substr(0, key.size()) != key) return false;
  value = word.substr(key.size());
  return true;
}

Settings SettingsOf(int count, char** words) {
  Settings settings;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (!Take(word, "server=", settings.server) &&
        !Take(word, "token_file=", settings.token_file) && !Take(word, "agent=", settings.agent)) {
      settings.wrong = word;
    }
  }
  return settings;
}

// The option's text is Slurm's to print, from the moment that it is registered.
std::array<char, 8> option_name{"perseus"};
std::array<char, 4> option_value{"RUN"};
std::array<char, 96> option_usage{
    "follow a plan of GPU clocks (Perseus); runs of one name RUN share their job and plan"};
spank_option option{option_name.data(), option_value.data(), option_usage.data(), 2, 0, nullptr};

// Names are part of the job's key at the server.
bool IsRunName(std::string_view name) {
  return name.size() <= 128 && std::all_of(name.begin(), name.end(), [](unsigned char each) {
           return each > ' ' && each < 127 && each != '"' && each != '\\';
         });
}

// Why nobody listens at `path`; 0: somebody does. Never waits.
int FaultOfSocket(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  path.copy(address.sun_path, path.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return errno;
  const int failed =
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int fault = failed == 0 || errno == EAGAIN ? 0 : errno;  // EAGAIN: its queue is full.
  close(connection);
  return fault;
}

std::string NameOfNode() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "this node";
  return std::string("node ") + name.data();
}

std::string Variable(spank_t spank, const char* name) {
  std::array<char, 4096> value{};
  if (spank_getenv(spank, name, value.data(), static_cast<int>(value.size())) != ESPANK_SUCCESS) {
    return {};
  }
  return value.data();
}

// One sentence in the task's error stream for each thing that is missing on its node.
void SayWhatIsMissing(spank_t spank, const Settings& settings) {
  const std::string node = NameOfNode();
  if (!settings.wrong.empty()) {
    slurm_spank_log(
        "perseus: plugstack.conf on %s says '%s', which is none of server=, token_file= and "
        "agent=: the administrator should mend it",
        node.c_str(), settings.wrong.c_str());
  }
  if (Variable(spank, "PERSEUS_DEVICE") == "agent:" + settings.agent) {
    if (const int fault = FaultOfSocket(settings.agent); fault != 0) {
      slurm_spank_log(
          "perseus: nobody can set clocks on %s, so training runs without a plan there: no agent "
          "at %s (%s); the administrator should run 'perseus doctor' on it",
          node.c_str(), settings.agent.c_str(), std::strerror(fault));
    }
  }
  const std::string server = Variable(spank, "PERSEUS_SERVER");
  if (server.substr(0, kUnix.size()) == kUnix) {
    const std::string path = server.substr(kUnix.size());
    if (const int fault = FaultOfSocket(path); fault != 0) {
      slurm_spank_log(
          "perseus: no way to the server from %s, so training runs without a plan there: no relay "
          "at %s (%s); the administrator should start perseus-relay on it",
          node.c_str(), path.c_str(), std::strerror(fault));
    }
  }
}

void SetDefault(spank_t spank, const char* name, const std::string& value) {
  if (!value.empty()) spank_setenv(spank, name, value.c_str(), 0);
}

}  // namespace

extern "C" {

// Declare the constants of SPANK_PLUGIN extern: C++ would hide them from Slurm's loader.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(perseus, 1)

int slurm_spank_init(spank_t spank, int /*count*/, char** /*words*/) {
  spank_option_register(spank, &option);
  return 0;
}

// As the user, in each task before its program starts.
int slurm_spank_task_init(spank_t spank, int count, char** words) {
  char* run = nullptr;
  if (spank_option_getopt(spank, &option, &run) != ESPANK_SUCCESS) return 0;
  const Settings settings = SettingsOf(count, words);
  SetDefault(spank, "PERSEUS_SERVER", settings.server);
  SetDefault(spank, "PERSEUS_TOKEN_FILE", settings.token_file);
  SetDefault(spank, "PERSEUS_DEVICE", "agent:" + settings.agent);
  int task = 0;
  const bool first = spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task == 0;
  if (first) SayWhatIsMissing(spank, settings);
  if (run == nullptr || *run == '\0') return 0;  // The run is Slurm's job and step.
  if (IsRunName(run)) {
    SetDefault(spank, "PERSEUS_RUN", run);
  } else if (first) {
    slurm_spank_log(
        "perseus: --perseus=RUN: a run's name has at most 128 printable characters, no space, "
        "quote or backslash; this job is known by its number");
  }
  return 0;
}

}  // extern "C"
