// Passes the rows of one image on to several sinks, to each the rows and columns of its own box.
#pragma once

#include <vector>

#include "core/base/geometry.h"

namespace headrace {

/// Before the first row, call clear(), then add() for each sink. Not thread-safe.
class Tee final : public RowSink {
 public:
  /// Forgets the sinks of the last image.
  void clear() { parts_.clear(); }
  /// Adds a sink that takes the rows of `box`, a part of the image that is not empty. `sink` must live until the last
  /// row is pushed.
  void add(Box box, RowSink& sink);
  /// The smallest box that holds those of all sinks: its rows must be pushed.
  Box box() const { return box_; }
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  struct Part {
    Box box;
    RowSink* sink;
  };

  std::vector<Part> parts_;
  Box box_;
  int next_ = 0;  // row of the image that is pushed next
};

}  // namespace headrace
