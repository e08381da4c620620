// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLAN_TEMPORARY_DIRECTORY_H_
#define PERSEUS_TESTS_PLAN_TEMPORARY_DIRECTORY_H_

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace perseus {

// A new directory that goes away with the object.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "perseus-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string Path(std::string_view name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }

  void Put(std::string_view name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  // Returns its path.
  std::string PutSecret(std::string_view name, std::string_view bytes, int mode = 0600) const {
    Put(name, bytes);
    std::filesystem::permissions(Path(name), static_cast<std::filesystem::perms>(mode));
    return Path(name);
  }

  std::string Get(std::string_view name) const {
    std::ifstream stream(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // The names in it, sorted; hidden ones too.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace perseus

#endif  // PERSEUS_TESTS_PLAN_TEMPORARY_DIRECTORY_H_
