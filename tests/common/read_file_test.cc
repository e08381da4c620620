// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>

#include "common/file.h"
#include "common/temporary_directory.h"

namespace perseus {
namespace {

constexpr std::size_t kLimit = 1 << 20;

std::string ReadError(const std::string& path, std::size_t limit = kLimit) {
  const Result<std::string> bytes = ReadWholeFile(path, limit);
  return bytes ? "read " + std::to_string(bytes->size()) + " bytes" : bytes.error().message;
}

TEST(ReadWholeFile, GivesEveryByte) {
  const TemporaryDirectory directory;
  std::string bytes(300'000, 'x');
  bytes[7] = '\0';
  bytes[200'000] = '\n';
  directory.Put("file", bytes);
  const Result<std::string> read = ReadWholeFile(directory.Path("file"), kLimit);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(*read == bytes);
}

TEST(ReadWholeFile, ReadsUpToTheLimitAndNotBeyond) {
  const TemporaryDirectory directory;
  directory.Put("file", "12345");
  EXPECT_EQ(ReadError(directory.Path("file"), 5), "read 5 bytes");
  EXPECT_EQ(ReadError(directory.Path("file"), 4),
            directory.Path("file") +
                ": is larger than the 4 bytes that such a file may have; is it the right file?");
}

TEST(ReadWholeFile, RefusesAGiantFileWithoutReadingIt) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  ASSERT_EQ(::truncate(directory.Path("file").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadError(directory.Path("file")),
            directory.Path("file") +
                ": is larger than the 1 MiB that such a file may have; is it the right file?");
}

// Files of /proc state a size of 0.
TEST(ReadWholeFile, DoesNotTrustTheStatedSize) {
  const Result<std::string> read = ReadWholeFile("/proc/self/status", kLimit);
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->empty());
  const Result<std::string> bounded = ReadWholeFile("/proc/self/status", 10);
  ASSERT_FALSE(bounded.has_value());
  EXPECT_EQ(bounded.error().code, ErrorCode::kInvalidInput);
}

TEST(ReadWholeFile, ReadsAnEmptyFile) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  EXPECT_EQ(ReadError(directory.Path("file")), "read 0 bytes");
}

TEST(ReadWholeFile, SaysWhatIsInTheWay) {
  const TemporaryDirectory directory;
  directory.Put("file", "");
  EXPECT_EQ(ReadError(""), "the name of the file to read is empty");
  EXPECT_EQ(ReadError(directory.Path("none")),
            directory.Path("none") + ": cannot read: there is no such file; check the path");
  EXPECT_EQ(ReadError(directory.Path("file/below")),
            directory.Path("file/below") + ": cannot read: there is no such file; check the path");
  EXPECT_EQ(ReadError(directory.Path()),
            directory.Path() + ": cannot read: it is a directory; name a file in it");
  EXPECT_EQ(ReadError("/dev/zero"),
            "/dev/zero: cannot read: it is a device; expected a regular file");
  ASSERT_EQ(::symlink("loop", directory.Path("loop").c_str()), 0);
  EXPECT_EQ(ReadError(directory.Path("loop")),
            directory.Path("loop") + ": cannot read: its symbolic links lead in a circle");
}

// A pipe without a writer would make a plain open() wait for ever.
TEST(ReadWholeFile, DoesNotWaitForAPipe) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo(directory.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(
      ReadError(directory.Path("pipe")),
      directory.Path("pipe") + ": cannot read: it is a pipe; save its contents to a file first");
}

class ReadWholeFileOrPipeTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0); }

  // The text that is read while `bytes` are written in two parts with a pause between.
  Result<std::string> ReadWhatIsWritten(const std::string& bytes, std::size_t limit = kLimit) {
    std::thread writer([&] {
      const int fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      Write(fd, bytes.substr(0, bytes.size() / 2));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Write(fd, bytes.substr(bytes.size() / 2));
      ::close(fd);
    });
    Result<std::string> read = ReadWholeFileOrPipe(path_, limit);
    writer.join();
    return read;
  }

  static void Write(int fd, const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
      if (count < 0) return;  // The reader has had enough.
      done += static_cast<std::size_t>(count);
    }
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.Path("pipe");
};

// More than a pipe holds at once.
TEST_F(ReadWholeFileOrPipeTest, GivesEveryByteOfAPipe) {
  const std::string bytes(300'000, 'x');
  const Result<std::string> read = ReadWhatIsWritten(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == bytes);
}

TEST_F(ReadWholeFileOrPipeTest, IsBounded) {
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  const Result<std::string> read = ReadWhatIsWritten(std::string(300'000, 'x'), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
}

TEST_F(ReadWholeFileOrPipeTest, DoesNotWaitForEver) {
  const Result<std::string> read = ReadWholeFileOrPipe(path_, kLimit);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("into which nobody writes"), std::string::npos);
}

TEST_F(ReadWholeFileOrPipeTest, ReadsFilesAndRefusesDirectoriesAndDevices) {
  directory_.Put("file", "12345");
  EXPECT_EQ(ReadWholeFileOrPipe(directory_.Path("file"), kLimit).value_or(""), "12345");
  EXPECT_FALSE(ReadWholeFileOrPipe(directory_.Path(), kLimit));
  EXPECT_FALSE(ReadWholeFileOrPipe("/dev/zero", kLimit));
}

TEST(ReadWholeFile, SaysThatPermissionIsMissing) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  const TemporaryDirectory directory;
  directory.Put("file", "secret");
  ASSERT_EQ(::chmod(directory.Path("file").c_str(), 0), 0);
  EXPECT_EQ(ReadError(directory.Path("file")),
            directory.Path("file") +
                ": cannot read: permission denied; make the file readable for this user");
}

}  // namespace
}  // namespace perseus
