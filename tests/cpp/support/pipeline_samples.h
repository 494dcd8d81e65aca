// Shared by the tests of the pipeline: small images, recipes, draws, and files that block a worker until the test
// opens them.
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

inline constexpr std::chrono::seconds kLong{1200};  // ends a test that hangs; no verdict: waits are far shorter

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

/// Waits as the consumer does; without threads it does the work first.
bool complete(Pipeline& pipeline, const Batch& batch);

Bytes contents(const Pipeline& pipeline, const Batch& batch);

/// The bytes that every pipeline must deliver for these rows of Images::table.
Bytes expected(PipelineOptions options, const Rows& rows, uint32_t seed = 1);

std::shared_ptr<const BlobTable> table_of(const std::vector<std::string>& paths);

/// A named pipe: a worker that reads it is blocked until the test writes.
class Gate {
 public:
  explicit Gate(const TemporaryFolder& folder);
  const std::string& path() const { return path_; }
  /// Waits until a worker reads, and gives it these bytes.
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
