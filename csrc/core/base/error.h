// The exception for a sample that cannot be made: the stage that failed, and the reason.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace headrace {

enum class Stage : uint8_t { kRead, kHeader, kPlan, kDecode, kResize, kTransform };

inline const char* stage_name(Stage stage) {
  static constexpr const char* kNames[] = {"read", "header", "plan", "decode", "resize", "transform"};
  return kNames[static_cast<int>(stage)];
}

/// A sample cannot be made. In a pipeline Batch::attempt records it with its sample; elsewhere it reaches the caller.
class Error : public std::exception {
 public:
  Error(Stage stage, std::string reason, int os_errno = 0)
      : stage_(stage), os_errno_(os_errno), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  Stage stage() const noexcept { return stage_; }
  int os_errno() const noexcept { return os_errno_; }  // 0: no system call failed

 private:
  Stage stage_;
  int os_errno_;
  std::string reason_;
};

/// Not a failure: the file is not a clean, plain JPEG, so Pillow decodes or refuses it. explain() and stats() show
/// what() as the reason.
class NeedsPillow : public Error {
 public:
  using Error::Error;
};

}  // namespace headrace
