// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_JOURNAL_H_
#define PERSEUS_AGENT_JOURNAL_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "perseus/result.h"

// State that outlives a killed agent: its journal, and its claims on GPUs.
namespace perseus::agent {

// Makes the folder of the file `path` if it is missing. If this process is root, fails if other
// users could replace a file in that folder. (/tmp is allowed: there only owners can.)
Result<void> MakeFolderFor(const std::string& path);

inline constexpr const char* kDefaultJournalPath = "/var/lib/perseus/agent.journal";

struct JournalText {
  std::string boot;            // /proc/sys/kernel/random/boot_id when the file was written.
  std::set<std::string> gpus;  // UUIDs of GPUs whose clocks may be locked.
};

// A journal as a few lines of text with a checksum. ParseJournal() fails if any byte differs from
// what FormatJournal() writes.
std::string FormatJournal(const JournalText& journal);
Result<JournalText> ParseJournal(std::string_view text, const std::string& name);

// A file with the GPUs whose clocks the agent may have changed. If the agent is killed, the next
// one gives these clocks back. The file is replaced as a whole and flushed to disk before Add()
// returns. Thread-safe; a caller may wait while another one writes to disk.
class Journal {
 public:
  // Makes the directory if it is missing. Locks the journal, so that a second agent cannot open it
  // as long as this object lives. kIo: another agent has it, or it cannot be made.
  static Result<Journal> Open(const std::string& path);

  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal() = default;

  // The GPUs in the file when it was opened. Empty if the machine was booted since it was written,
  // because that unlocks all clocks.
  const std::set<std::string>& found() const { return found_; }
  // If set, why the file is not as an agent wrote it (for example: it is missing but its lock file
  // exists, or it is a link). Any GPU may then have a locked clock.
  const std::optional<std::string>& corruption() const { return corruption_; }
  // If set, why the file cannot be written (for example: a read-only file system). The clocks that
  // it names can be given back, but no clock may be locked.
  const std::optional<Error>& unwritable() const { return unwritable_; }

  // Replaces a corrupt file: exactly these GPUs may have locked clocks. Keeps a copy of the old
  // file as FILE.corrupt. If this fails, the corrupt file is unchanged.
  Result<void> Replace(const std::set<std::string>& uuids);

  // Call Add() before the first change of a GPU's clock, and Remove() after it was given back. If
  // writing fails, Add() changes nothing. Remove() then leaves the GPU in the file, and the next
  // agent gives its clock back once more, which does no harm.
  Result<void> Add(const std::string& uuid);
  Result<void> Remove(const std::string& uuid);

 private:
  Journal() = default;
  Result<bool> Lock();
  void Read(bool was_here);
  Result<void> Write(const std::set<std::string>& gpus) const;

  std::string path_;
  std::string boot_;
  FileDescriptor lock_;
  std::set<std::string> found_;
  std::optional<std::string> corruption_;
  std::optional<Error> unwritable_;

  Mutex mutex_;
  std::set<std::string> gpus_ PERSEUS_GUARDED_BY(mutex_);  // As in the file.
};

// All agents of a machine use this folder, even if their sockets and journals differ.
inline constexpr const char* kDefaultGpuLocks = "/run/perseus/gpus";

// A GPU that this agent owns. The claim is a file named after the GPU, which the kernel keeps
// locked until the process ends. The file also records whether the clock may be locked, in case the
// journal is lost. It is removed with the claim unless the clock must still be given back. Not
// thread-safe.
class GpuClaim {
 public:
  // kConflict: another agent owns the GPU. kIo: the file cannot be made, or is not an agent's.
  static Result<GpuClaim> Take(const std::string& folder, const std::string& uuid);

  GpuClaim(GpuClaim&& other) noexcept = default;
  GpuClaim& operator=(GpuClaim&&) = delete;
  ~GpuClaim();

  // Whether the clock may be locked, by this agent or by an earlier one that was killed.
  bool marked() const { return marked_; }
  // Best effort: the journal is the authority.
  void Mark(bool marked);

 private:
  GpuClaim(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  bool marked_ = false;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_JOURNAL_H_
