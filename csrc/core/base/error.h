// The one exception of the core: which stage failed, why, and what the user can do about it.
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

/// A sample that cannot be made. Thrown inside the core only; the pipeline catches it per sample and adds which sample.
class Error : public std::exception {
 public:
  Error(Stage stage, std::string reason, int os_errno = 0)
      : stage_(stage), os_errno_(os_errno), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  Stage stage() const noexcept { return stage_; }
  int os_errno() const noexcept { return os_errno_; }  // 0 unless the operating system refused

 private:
  Stage stage_;
  int os_errno_;
  std::string reason_;
};

/// Not a failure: the file is for Pillow to judge (not a clean, plain JPEG). `what()` is the reason shown by
/// explain/stats.
class NeedsPillow : public Error {
 public:
  using Error::Error;
};

}  // namespace headrace
