// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "support/power_loss.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace perseus {
namespace {

namespace fs = std::filesystem;

ino_t InodeOf(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) throw std::runtime_error(path + " is gone");
  return status.st_ino;
}

// The lines that the layer would write of `folder` now.
std::string NamesNow(const std::string& folder) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    names += (entry.is_directory() ? "d " : "f ") + std::to_string(InodeOf(path)) + " " +
             entry.path().filename().string() + "\n";
  }
  return names;
}

std::string TextOf(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// `folder` as it is named now; empty: it is no more, and only the kept names count.
void RestoreFolder(const std::string& kept, ino_t number, const std::string& folder,
                   const std::string& to) {
  const bool are_all = !folder.empty();
  std::istringstream names(are_all ? NamesNow(folder)
                                   : TextOf(kept + "/d-" + std::to_string(number)));
  std::string type;
  ino_t entry = 0;
  std::string name;
  while (names >> type >> entry && names.ignore() && std::getline(names, name)) {
    const std::string target = to + "/" + name;
    if (type == "d") {
      fs::create_directory(target);
      RestoreFolder(kept, entry, are_all ? folder + "/" + name : "", target);
    } else {
      std::ofstream(target, std::ios::binary) << TextOf(kept + "/f-" + std::to_string(entry));
    }
  }
}

}  // namespace

int PowerLoss::RunUntil(int steps, bool disk_lies) const {
  std::array<int, 2> ends = {};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 1);
    ::setenv("POWER_LOSS_ROOT", root_.Path().c_str(), 1);
    ::setenv("POWER_LOSS_KEPT", kept_.Path().c_str(), 1);
    ::setenv("POWER_LOSS_OUT", std::to_string(ends[1]).c_str(), 1);
    if (disk_lies) ::setenv("POWER_LOSS_LIES", "1", 1);
    ::setenv("LD_PRELOAD", PERSEUS_POWER_LOSS_LAYER, 1);
    ::setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    ::execl("/proc/self/exe", "power_loss_test", "--gtest_also_run_disabled_tests",
            ("--gtest_filter=" + test_).c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  int done = 0;
  int last = 0;
  while (last < steps && ::read(ends[0], &done, sizeof done) == sizeof done) last = done;
  ::kill(child, SIGKILL);
  while (::read(ends[0], &done, sizeof done) == sizeof done) last = done;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return last;
}

void PowerLoss::Restore(Names names, const std::string& folder) const {
  RestoreFolder(kept_.Path(), InodeOf(root_.Path()), names == Names::kAll ? root_.Path() : "",
                folder);
}

std::string PowerLossRoot() { return std::getenv("POWER_LOSS_ROOT"); }

void TellDone(int step) {
  const int out = std::atoi(std::getenv("POWER_LOSS_OUT"));
  if (::write(out, &step, sizeof step) != sizeof step) ::_exit(1);
}

}  // namespace perseus
