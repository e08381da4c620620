// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A library to be preloaded (LD_PRELOAD) that remembers what a power cut would
// leave of the folder POWER_LOSS_ROOT: of each file its bytes, and of each folder
// its names, as they were when the program last flushed it. It keeps them in the
// folder POWER_LOSS_KEPT as "f-INODE" (the bytes) and "d-INODE" (a line "TYPE INODE
// NAME" for each name); support/power_loss.h reads that. What is there when the
// program starts counts as flushed. With POWER_LOSS_LIES set the disk lies: it says
// that it has flushed, and has not.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace {

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Disk {
 public:
  Disk() : root_(Setting("POWER_LOSS_ROOT")), kept_(Setting("POWER_LOSS_KEPT")) {
    if (!root_.empty()) KeepTree(root_);
    lies_ = !Setting("POWER_LOSS_LIES").empty();
  }

  // False: it is not of the folder.
  bool Flush(int fd) {
    const std::lock_guard lock(mutex_);
    std::array<char, 4096> path = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (root_.empty() || ::readlink(link.c_str(), path.data(), path.size() - 1) < 0) return false;
    const std::string name(path.data());
    if (name != root_ && name.rfind(root_ + "/", 0) != 0) return false;
    if (!lies_) Keep(fd);
    return true;
  }

 private:
  [[noreturn]] static void Fail(const char* what) {
    std::perror(what);
    std::abort();
  }

  void Keep(int fd) {
    struct stat status = {};
    if (::fstat(fd, &status) != 0) Fail("power loss: fstat");
    Hold("/proc/self/fd/" + std::to_string(fd), status.st_ino);
    const bool is_folder = S_ISDIR(status.st_mode);
    const std::string name = (is_folder ? "/d-" : "/f-") + std::to_string(status.st_ino);
    const std::string bytes = is_folder ? NamesOf(fd) : BytesOf(fd);
    // Whole or not at all, as the program may be killed here.
    const std::string next = kept_ + "/next";
    const int out = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t size = ::write(out, bytes.data() + done, bytes.size() - done);
      if (size <= 0) Fail("power loss: write");
      done += static_cast<std::size_t>(size);
    }
    if (::close(out) != 0 || ::rename(next.c_str(), (kept_ + name).c_str()) != 0) {
      Fail("power loss: rename");
    }
  }

  static std::string BytesOf(int fd) {
    // Not by name where it can be helped: closing a second descriptor would end SQLite's locks.
    const bool is_readable = (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const int in = is_readable ? fd : ::open(link.c_str(), O_RDONLY | O_CLOEXEC);
    std::string bytes;
    static std::array<char, 1 << 16> buffer;
    while (true) {
      const ssize_t size =
          ::pread(in, buffer.data(), buffer.size(), static_cast<off_t>(bytes.size()));
      if (size < 0) Fail("power loss: read");
      if (size == 0) break;
      bytes.append(buffer.data(), static_cast<std::size_t>(size));
    }
    if (in != fd) ::close(in);
    return bytes;
  }

  std::string NamesOf(int fd) {
    const std::string folder = "/proc/self/fd/" + std::to_string(fd);
    DIR* const entries = ::opendir(folder.c_str());
    if (entries == nullptr) Fail("power loss: opendir");
    std::string names;
    while (const dirent* const entry = ::readdir(entries)) {
      const std::string name = entry->d_name;
      if (name == "." || name == ".." || (entry->d_type != DT_DIR && entry->d_type != DT_REG)) {
        continue;
      }
      Hold(folder + "/" + name, entry->d_ino);
      names += (entry->d_type == DT_DIR ? "d " : "f ") + std::to_string(entry->d_ino) + " " + name;
      names += "\n";
    }
    ::closedir(entries);
    return names;
  }

  void KeepTree(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status = {};
    if (fd < 0 || ::fstat(fd, &status) != 0) Fail("power loss: open");
    Keep(fd);
    if (S_ISDIR(status.st_mode)) {
      DIR* const entries = ::opendir(path.c_str());
      while (const dirent* const entry = ::readdir(entries)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") KeepTree(path + "/" + name);
      }
      ::closedir(entries);
    }
    ::close(fd);
  }

  // So that no new file gets its number.
  void Hold(const std::string& path, ino_t number) {
    if (held_.insert(number).second) ::open(path.c_str(), O_PATH | O_CLOEXEC);
  }

  const std::string root_;
  const std::string kept_;
  bool lies_ = false;
  std::mutex mutex_;
  std::set<ino_t> held_;
};

Disk& TheDisk() {
  static Disk disk;
  return disk;
}

// Before the program changes anything.
[[maybe_unused]] const Disk& begun = TheDisk();

int FlushOr(const char* name, int fd) {
  if (TheDisk().Flush(fd)) return 0;
  const auto real = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, name));
  return real(fd);
}

}  // namespace

extern "C" {
int fsync(int fd) { return FlushOr("fsync", fd); }
int fdatasync(int fd) { return FlushOr("fdatasync", fd); }
}
