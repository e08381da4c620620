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

// What a journal file says.
struct JournalText {
  std::string boot;            // /proc/sys/kernel/random/boot_id when it was written.
  std::set<std::string> gpus;  // UUIDs of GPUs whose clocks may be locked.
};

// Few lines of text with a checksum. ParseJournal fails on any byte that
// differs from what FormatJournal wrote.
std::string FormatJournal(const JournalText& journal);
Result<JournalText> ParseJournal(std::string_view text, const std::string& name);

// The GPUs whose clocks the agent may have changed, on disk, so that an agent
// that was killed gives them back when it starts again. The file is replaced as
// a whole and flushed to the disk before Add returns. Thread-safe; a caller may
// wait for another one's write to the disk.
class Journal {
 public:
  // Makes the directory where it is missing, and locks the journal against a
  // second agent for as long as the object lives. Errors (kIo): another agent
  // has it; there is none, and none can be made.
  static Result<Journal> Open(const std::string& path);

  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal() = default;

  // What was in the file when it was opened, unless the machine has been booted
  // since, which unlocks all clocks.
  const std::set<std::string>& found() const { return found_; }
  // Why the file is not what an agent wrote, where it is not (it is gone, but its lock is there;
  // it is a link): any GPU may have a locked clock.
  const std::optional<std::string>& corruption() const { return corruption_; }
  // Why it cannot be written, where that is known already (a file system that is read-only):
  // the clocks that it names can be given back, none may be locked.
  const std::optional<Error>& unwritable() const { return unwritable_; }

  // Says that the clocks of just these GPUs may be locked: after a corrupt file, of which
  // a copy is kept as FILE.corrupt. Where this fails the corrupt file is still there.
  Result<void> Replace(const std::set<std::string>& uuids);

  // Before the first change of a GPU's clock, and after it was given back. Where
  // the disk refuses, Add changes nothing; Remove keeps the GPU in the file, which
  // costs one needless restore at the next start.
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
