// Decodes only the crops of a list of JPEG files with libjpeg-turbo: the upper limit of a loader's speed.
//
//   g++ -O3 -std=c++17 -pthread ceiling.cpp -o ceiling -ljpeg
//   ./ceiling LIST THREADS SECONDS CHECKED
//
// LIST holds lines of `path x y w h`. The first CHECKED crops are decoded once, untimed, for a checksum to compare with
// another decoder's. Then THREADS threads take lines from one counter, cyclically, for SECONDS.
// Prints one line of JSON.
//
// All rows go to one row of memory: writing them elsewhere is the loader's work, not the decoder's.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// jpeglib.h needs cstdio before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(tokens) #tokens

namespace {

struct Crop {
  std::string path;
  JDIMENSION x, y, w, h;
};

std::vector<Crop> read_list(const char* name) {
  std::ifstream lines(name);
  std::vector<Crop> crops;
  for (std::string line; std::getline(lines, line);) {
    // From the right, since a path may contain spaces.
    unsigned box[4];
    for (int i = 3; i >= 0; --i) {
      const size_t blank = line.rfind(' ');
      if (blank == std::string::npos) throw std::runtime_error("not `path x y w h`: " + line);
      box[i] = static_cast<unsigned>(std::stoul(line.substr(blank + 1)));
      line.resize(blank);
    }
    crops.push_back({line, box[0], box[1], box[2], box[3]});
  }
  if (crops.empty()) throw std::runtime_error(std::string("nothing in ") + name);
  return crops;
}

/// zlib's checksum, which the Python side computes as well.
class Adler32 {
 public:
  void add(const unsigned char* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      a_ = (a_ + bytes[i]) % 65521;
      b_ = (b_ + a_) % 65521;
    }
  }
  uint32_t value() const { return b_ << 16 | a_; }

 private:
  uint32_t a_ = 1, b_ = 0;
};

/// One per thread. Reuses its buffers and its decompressor for all files.
class Decoder {
 public:
  Decoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr info) { std::longjmp(reinterpret_cast<Errors*>(info->err)->out, 1); };
    errors_.base.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&info_);
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Returns false if the file cannot be read or decoded.
  bool decode(const Crop& crop, Adler32* sum = nullptr) {
    const size_t bytes = read_file(crop.path);
    if (bytes == 0) return false;
    if (setjmp(errors_.out)) {  // no object with a destructor lives between here and the end
      jpeg_abort_decompress(&info_);
      return false;
    }
    jpeg_mem_src(&info_, file_.data(), bytes);
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info_);
    // Fancy upsampling looks one pixel to the side, so the crop's edges need a neighbour to equal a full decode.
    const JDIMENSION wanted = crop.x > 0 ? crop.x - 1 : 0;
    const JDIMENSION end = std::min(crop.x + crop.w + 1, info_.output_width);
    JDIMENSION left = wanted, width = end - wanted;
    jpeg_crop_scanline(&info_, &left, &width);  // moves `left` down to a block's edge and widens to match
    if (crop.y > 0) jpeg_skip_scanlines(&info_, crop.y);
    if (row_.size() < 3 * size_t{width}) row_.resize(3 * size_t{width});
    JSAMPROW row = row_.data();
    for (JDIMENSION y = 0; y < crop.h; ++y) {
      jpeg_read_scanlines(&info_, &row, 1);
      if (sum) sum->add(row + 3 * size_t{crop.x - left}, 3 * size_t{crop.w});
    }
    jpeg_abort_decompress(&info_);
    return true;
  }

 private:
  struct Errors {
    jpeg_error_mgr base;
    std::jmp_buf out;
  };

  /// Bytes read; 0 on any failure.
  size_t read_file(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    struct stat about{};
    size_t size = fstat(file, &about) == 0 ? static_cast<size_t>(about.st_size) : 0, done = 0;
    if (file_.size() < size) file_.resize(size);
    while (done < size) {
      const ssize_t got = pread(file, file_.data() + done, size - done, static_cast<off_t>(done));
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    close(file);
    return done == size ? size : 0;
  }

  jpeg_decompress_struct info_{};
  Errors errors_{};
  std::vector<unsigned char> file_, row_;
};

struct Tally {
  size_t images = 0, undecoded = 0;
  double seconds = 0;
};

using Clock = std::chrono::steady_clock;

Tally run(const std::vector<Crop>& crops, unsigned threads, double seconds) {
  std::atomic<size_t> next{0};
  std::atomic<unsigned> waiting{threads};
  std::vector<Tally> tallies(threads);
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      Decoder decoder;
      Tally mine;
      for (size_t i = 0; i < 8; ++i) decoder.decode(crops[i % crops.size()]);  // grows the buffers
      for (--waiting; waiting > 0;) std::this_thread::yield();
      const auto start = Clock::now();
      while (mine.seconds < seconds) {
        ++(decoder.decode(crops[next++ % crops.size()]) ? mine.images : mine.undecoded);
        mine.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      }
      tallies[t] = mine;
    });
  }
  for (auto& thread : pool) thread.join();
  Tally all;
  for (const Tally& one : tallies) {
    all.images += one.images;
    all.undecoded += one.undecoded;
    all.seconds += one.seconds / threads;  // the mean, since threads end at different times
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) throw std::runtime_error("usage: ceiling LIST THREADS SECONDS CHECKED");
  const std::vector<Crop> crops = read_list(argv[1]);
  const unsigned threads = static_cast<unsigned>(std::stoul(argv[2]));
  const double seconds = std::stod(argv[3]);
  const size_t checked = std::min<size_t>(std::stoul(argv[4]), crops.size());
  Adler32 sum;
  Decoder decoder;
  for (size_t i = 0; i < checked; ++i) {
    if (!decoder.decode(crops[i], &sum)) throw std::runtime_error("cannot decode " + crops[i].path);
  }
  const Tally all = run(crops, threads, seconds);
  std::printf(
      "{\"images\": %zu, \"seconds\": %.6f, \"undecoded\": %zu, \"checked\": %zu, \"adler32\": %u, "
      "\"libjpeg_turbo\": \"%s\"}\n",
      all.images, all.seconds, all.undecoded, checked, sum.value(), TEXT_OF(LIBJPEG_TURBO_VERSION));
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ceiling: %s\n", error.what());
  return EXIT_FAILURE;
}
