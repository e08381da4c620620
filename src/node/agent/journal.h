// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_JOURNAL_H_
#define PERSEUS_AGENT_JOURNAL_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "perseus/result.h"

namespace perseus::agent {

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

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_JOURNAL_H_
