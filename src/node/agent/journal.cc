// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/journal.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/file.h"
#include "common/numbers.h"
#include "common/word_hash.h"

namespace perseus::agent {
namespace {

// Why an agent cannot have made this open file. Empty: it may be written.
std::string WhyNotOurs(const FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return SystemMessage(errno);
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return fmt::format("it belongs to another user (uid {})", status.st_uid);
  }
  // A hard link could lead to any file of root.
  if (status.st_nlink > 1) return "it has a second name (hard link)";
  return "";
}

constexpr std::string_view kHeader = "perseus-agent-journal 1";
constexpr std::size_t kMaxJournalBytes = std::size_t{1} << 20;

std::string_view NextLine(std::string_view* text) {
  const std::size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return line;
}

std::optional<std::string> After(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  return std::string(line.substr(word.size()));
}

std::string ReadBootId() {
  // Not a regular file of known size for all kernels: read as a pipe would be.
  const FileDescriptor file = OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY);
  char text[64];
  const ssize_t size = file.valid() ? ::read(file.get(), text, sizeof(text)) : -1;
  if (size <= 0) return "unknown";
  std::string_view id(text, static_cast<std::size_t>(size));
  return std::string(NextLine(&id));
}

Error NoJournal(const std::string& path, const std::string& reason) {
  return {ErrorCode::kIo,
          fmt::format("{}: {}; without its journal the agent could not give clocks back after it "
                      "was killed, so choose a place that it can write (--journal FILE)",
                      path, reason)};
}

constexpr std::string_view kMayBeLocked = "locked";
constexpr std::string_view kIsFree = "free  ";

// "locked 1234\n": whether the clock may be locked, and the process that has the GPU.
std::string TextOf(const FileDescriptor& file) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

std::string PathFor(const std::string& folder, std::string uuid) {
  for (char& c : uuid) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return fmt::format("{}/{}.lock", folder, uuid);
}

tl::unexpected<Error> NoClaim(const std::string& path, const std::string& reason) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: {}; agents keep each other from GPUs by this file, so choose a "
                               "folder that all of this machine can write (--gpu-locks DIR)",
                               path, reason));
}

tl::unexpected<Error> HasAnother(const std::string& path, const std::string& uuid,
                                 const FileDescriptor& file) {
  const std::string text = TextOf(file);
  const std::size_t begin = text.find_first_of("0123456789");
  const std::size_t end = text.find_first_not_of("0123456789", begin);
  const std::string process = begin == std::string::npos
                                  ? ""
                                  : fmt::format(" (process {})", text.substr(begin, end - begin));
  return MakeError(ErrorCode::kConflict,
                   fmt::format("another agent{} owns GPU {}, as {} says; stop that agent first, or "
                               "start this one with --observe",
                               process, uuid, path));
}

}  // namespace

Result<void> MakeFolderFor(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return MakeError(ErrorCode::kIo, error.message());
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return MakeError(ErrorCode::kIo, SystemMessage(errno));
  }
  if (::geteuid() != 0) return {};
  const char* fault = nullptr;
  if (status.st_uid != 0) {
    fault = "does not belong to root";
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
    fault = "can be written by users other than root";
  }
  if (fault == nullptr) return {};
  return MakeError(ErrorCode::kIo,
                   fmt::format("the folder {} {}, so that others could replace what root writes "
                               "there",
                               folder.string(), fault));
}

std::string FormatJournal(const JournalText& journal) {
  std::string text = fmt::format("{}\nboot {}\n", kHeader, journal.boot);
  for (const std::string& uuid : journal.gpus) text += fmt::format("locked {}\n", uuid);
  // It tells torn and edited files, not attackers; only root can write here.
  return text + fmt::format("sum {:016x}\n", Fnv1a(text));
}

Result<JournalText> ParseJournal(std::string_view text, const std::string& name) {
  const auto corrupt = [&](std::string_view what) {
    return InvalidInput(fmt::format("{}: {}", name, what));
  };
  std::string_view rest = text;
  if (NextLine(&rest) != kHeader) return corrupt("does not begin like a journal of the agent");
  const std::optional<std::string> boot = After(NextLine(&rest), "boot ");
  if (!boot) return corrupt("line 2 does not say which boot it belongs to");
  JournalText journal;
  journal.boot = *boot;
  while (!rest.empty() && rest.starts_with("locked ")) {
    journal.gpus.insert(*After(NextLine(&rest), "locked "));
  }
  // Whatever else differs, the checksum or the order of lines does.
  if (FormatJournal(journal) != text) return corrupt("is incomplete or was changed");
  return journal;
}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      boot_(std::move(other.boot_)),
      lock_(std::move(other.lock_)),
      found_(std::move(other.found_)),
      corruption_(std::move(other.corruption_)),
      unwritable_(std::move(other.unwritable_)),
      gpus_(std::move(other.gpus_)) {}

Result<Journal> Journal::Open(const std::string& path) {
  Journal journal;
  journal.path_ = path;
  journal.boot_ = ReadBootId();
  if (auto made = MakeFolderFor(path); !made) {
    return tl::unexpected(NoJournal(path, made.error().message));
  }
  const Result<bool> was_here = journal.Lock();
  if (!was_here) return tl::unexpected(was_here.error());
  journal.Read(*was_here);
  {
    const MutexLock lock(journal.mutex_);
    journal.gpus_ = journal.found_;
  }
  // A corrupt one stays as it is until Replace. One that names GPUs stays, too: their clocks
  // wait to be given back, and should not wait for a disk.
  if (journal.corruption_ || journal.unwritable_) return journal;
  const auto written = journal.found_.empty() ? journal.Write(journal.found_) : CheckWritable(path);
  if (!written) journal.unwritable_ = NoJournal(path, written.error().message);
  return journal;
}

// True: there was a lock, so an agent has been here before.
Result<bool> Journal::Lock() {
  const std::string lock_path = path_ + ".lock";
  lock_ = OpenFile(lock_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  const bool was_here = !lock_.valid() && errno == EEXIST;
  if (was_here) lock_ = OpenFile(lock_path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!lock_.valid()) {
    unwritable_ = NoJournal(lock_path, SystemMessage(errno));
    // To give clocks back, a lock that can only be read is as good.
    lock_ = OpenFile(lock_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } else if (const std::string fault = WhyNotOurs(lock_); !fault.empty()) {
    unwritable_ = NoJournal(lock_path, fault);
  }
  if (!lock_.valid()) lock_ = OpenFile(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return was_here;
  if (errno != EWOULDBLOCK) {
    unwritable_ = NoJournal(lock_path, SystemMessage(errno));
    return was_here;
  }
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: another agent has this journal; stop it first ('perseus agent "
                               "status' shows it)",
                               path_));
}

void Journal::Read(bool was_here) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path_, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    // Its lock stays for ever, and so does the journal: somebody took it away.
    if (was_here) corruption_ = fmt::format("{}: is gone, though its lock is there", path_);
    return;
  }
  if (std::filesystem::is_symlink(status)) {
    corruption_ = fmt::format("{}: is a symbolic link, which no agent makes", path_);
    return;
  }
  // One that the disk does not give names any GPU, as a torn one does.
  const Result<std::string> text = ReadWholeFile(path_, kMaxJournalBytes);
  const Result<JournalText> parsed =
      text ? ParseJournal(*text, path_) : tl::unexpected(text.error());
  if (!parsed) {
    corruption_ = parsed.error().message;
  } else if (parsed->boot == boot_) {
    found_ = parsed->gpus;
  }
}

Result<void> Journal::Write(const std::set<std::string>& gpus) const {
  return WriteFileAtomically(path_, FormatJournal({boot_, gpus}));
}

Result<void> Journal::Replace(const std::set<std::string>& uuids) {
  const MutexLock lock(mutex_);
  // A second name, or a copy where there are none: the file itself stays until the new one takes
  // its place, or an agent that starts meanwhile would find nothing locked.
  const std::string kept = path_ + ".corrupt";
  std::error_code error;
  std::filesystem::remove(kept, error);
  std::filesystem::create_hard_link(path_, kept, error);
  if (error) std::filesystem::copy_file(path_, kept, error);
  if (auto written = Write(uuids); !written) return written;
  gpus_ = uuids;
  return {};
}

Result<void> Journal::Add(const std::string& uuid) {
  const MutexLock lock(mutex_);
  if (gpus_.contains(uuid)) return {};
  std::set<std::string> gpus = gpus_;
  gpus.insert(uuid);
  if (auto written = Write(gpus); !written) return written;
  gpus_ = std::move(gpus);
  return {};
}

Result<void> Journal::Remove(const std::string& uuid) {
  const MutexLock lock(mutex_);
  std::set<std::string> gpus = gpus_;
  gpus.erase(uuid);
  if (auto written = Write(gpus); !written) return written;
  gpus_ = std::move(gpus);
  return {};
}

Result<GpuClaim> GpuClaim::Take(const std::string& folder, const std::string& uuid) {
  const std::string path = PathFor(folder, uuid);
  if (auto made = MakeFolderFor(path); !made) return NoClaim(path, made.error().message);
  while (true) {
    FileDescriptor file = OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (!file.valid()) return NoClaim(path, SystemMessage(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return HasAnother(path, uuid, file);
      return NoClaim(path, SystemMessage(errno));
    }
    // The process that had it before may have removed it.
    if (!LeadsTo(path, file.get())) continue;
    if (const std::string fault = WhyNotOurs(file); !fault.empty()) return NoClaim(path, fault);
    GpuClaim claim(path, std::move(file));
    claim.Mark(TextOf(claim.file_).starts_with(kMayBeLocked));
    return claim;
  }
}

GpuClaim::~GpuClaim() {
  if (file_.valid() && !marked_) ::unlink(path_.c_str());
}

void GpuClaim::Mark(bool marked) {
  marked_ = marked;
  const std::string text = fmt::format("{} {:<10}\n", marked ? kMayBeLocked : kIsFree, ::getpid());
  static_cast<void>(::pwrite(file_.get(), text.data(), text.size(), 0));
}

}  // namespace perseus::agent
