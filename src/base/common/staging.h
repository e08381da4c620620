// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_STAGING_H_
#define PERSEUS_COMMON_STAGING_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "perseus/result.h"

// Files and folders under temporary names (".plan.json.perseus-123-0.new"), which are renamed when
// they are complete. Their writer locks them. If one is not locked, its writer was killed, and the
// next writer removes it.
namespace perseus {

// The errors of writing, as sentences.
tl::unexpected<Error> CannotWrite(const std::string& path, const std::string& reason);
std::string WriteFailure(int error);

// The beginning of temporary names for `name`: "." and `name`, shortened if necessary.
std::string StemOf(const std::string& name);

// A file or folder under a temporary name; removed unless it is renamed.
class Staged {
 public:
  // `stem` begins the name: ".plan.json". Errors name `target`, which it is for.
  static Result<Staged> MakeFile(const std::string& folder, const std::string& stem,
                                 const std::string& target);
  static Result<Staged> MakeFolder(const std::string& folder, const std::string& stem,
                                   const std::string& target);

  Staged(Staged&& other) noexcept
      : name_(std::exchange(other.name_, {})),
        descriptor_(std::move(other.descriptor_)),
        is_folder_(other.is_folder_) {}
  Staged& operator=(Staged&&) = delete;
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged();

  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // Returns errno; 0: success.
  int RenameTo(const std::string& target);

 private:
  Staged(std::string name, FileDescriptor descriptor, bool is_folder)
      : name_(std::move(name)), descriptor_(std::move(descriptor)), is_folder_(is_folder) {}
  static Result<Staged> Make(const std::string& folder, const std::string& stem,
                             const std::string& target, bool is_folder);

  std::string name_;  // Empty once renamed.
  FileDescriptor descriptor_;
  bool is_folder_ = false;
};

// Whether `name` still refers to the open file. Another process may have removed or renamed it
// before it was locked.
bool IsStillThere(const std::string& name, int descriptor);

// Removes files of killed writers in `folder` whose names begin with `stem`.
void SweepStaged(const std::string& folder, const std::string& stem);

// Removes a folder of files. Best effort.
void RemoveFolder(const std::string& folder);

// The names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> NamesIn(const std::string& folder);

}  // namespace perseus

#endif  // PERSEUS_COMMON_STAGING_H_
