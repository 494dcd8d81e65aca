// What the tests of the pipeline share: small images, recipes, draws, and files that hold a worker until they are let
// go.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/pipeline/pipeline.h"
#include "support/temporary_folder.h"

namespace headrace::test {

using Bytes = std::vector<uint8_t>;
using Rows = std::vector<int64_t>;

inline constexpr std::chrono::seconds kLong{60};  // for what may take long and must not

/// Small JPEGs of many sizes and samplings, one of them gray and one progressive.
struct Images {
  static constexpr int kCount = 12;
  std::vector<Size> sizes;
  std::vector<Bytes> jpegs, pixels;  // pixels: RGBX
  std::shared_ptr<const BlobTable> table;

  static const Images& all();

 private:
  Images();
};

/// RandomCrop of 24 by 20 (draws: top, left), bytes as they are.
PipelineOptions crops(int threads);

/// RandomResizedCrop(32) and a flip, float32: 23 draws.
PipelineOptions training(int threads);

/// Colours shuffled, with an effect before the resize in every second sample, then a crop of 24 by 20, a flip and an
/// erased box, float32: 32 draws.
PipelineOptions retouched(int threads);

/// Draws that differ from sample to sample, and are the same every time.
std::vector<double> draws_of(const Rows& rows, int columns, uint32_t seed = 1);

/// Rows of Images::table.
Rows some_rows(int count, int first = 0);

std::shared_ptr<Batch> submit(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, const Rows& rows,
                              uint32_t seed = 1, uint8_t* memory = nullptr);

/// Waits as the consumer does, doing the work where there are no threads.
bool complete(Pipeline& pipeline, const Batch& batch);

Bytes contents(const Pipeline& pipeline, const Batch& batch);

/// What any pipeline has to deliver for these rows of Images::table.
Bytes expected(PipelineOptions options, const Rows& rows, uint32_t seed = 1);

std::shared_ptr<const BlobTable> table_of(const std::vector<std::string>& paths);

/// A named pipe: a worker that reads it is held until somebody writes.
class Gate {
 public:
  explicit Gate(const TemporaryFolder& folder);
  const std::string& path() const { return path_; }
  /// Lets the worker go on with these bytes; waits until it is there.
  void open(const Bytes& bytes) const;

 private:
  std::string path_;
};

/// Images as files, and a gate as row Images::kCount.
struct GatedFiles {
  GatedFiles();
  TemporaryFolder folder;
  Gate gate{folder};
  std::shared_ptr<const BlobTable> table;
};

}  // namespace headrace::test
