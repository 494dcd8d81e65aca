// Makes progressive JPEGs of given coefficients, with scans in any order that the standard allows.
#include "progressive/progressive_samples.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

// Each of these headers needs those before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace headrace::test {
namespace {

int draw(std::minstd_rand& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

}  // namespace

std::vector<ScanScript> random_script(std::minstd_rand& random, int components) {
  // The scans of one band, first to last; and of the DC values. They are shuffled, in this order within each.
  std::vector<std::vector<ScanScript>> bands;
  const auto add = [&](std::vector<int> members, int first, int last) {
    std::vector<ScanScript>& scans = bands.emplace_back();
    int low = draw(random, 0, 3);
    scans.push_back({members, first, last, 0, low});
    for (; low > 0; --low) scans.push_back({members, first, last, low, low - 1});
  };
  std::vector<int> all;
  for (int c = 0; c < components; ++c) all.push_back(c);
  if (draw(random, 0, 1) == 0)
    add(all, 0, 0);
  else
    for (const int c : all) add({c}, 0, 0);
  std::vector<ScanScript> script;
  for (const auto& scans : bands) script.push_back(scans.front());  // before all AC coefficients
  std::vector<std::vector<ScanScript>> queues;
  for (auto& scans : bands) queues.emplace_back(scans.begin() + 1, scans.end());
  bands.clear();
  for (const int c : all)
    for (int first = 1; first < 64;) {
      const int last = draw(random, 0, 2) == 0 ? 63 : draw(random, first, 63);
      add({c}, first, last);
      first = last + 1;
    }
  queues.insert(queues.end(), bands.begin(), bands.end());
  for (;;) {
    std::erase_if(queues, [](const auto& queue) { return queue.empty(); });
    if (queues.empty() || script.size() > 60) return script;
    auto& queue = queues[static_cast<size_t>(draw(random, 0, static_cast<int>(queues.size()) - 1))];
    script.push_back(queue.front());
    queue.erase(queue.begin());
  }
}

std::vector<uint8_t> make_progressive(std::minstd_rand& random, const ProgressiveOptions& options,
                                      const std::vector<ScanScript>& script) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  const int components = static_cast<int>(options.h.size());
  cinfo.image_width = static_cast<JDIMENSION>(options.width);
  cinfo.image_height = static_cast<JDIMENSION>(options.height);
  cinfo.input_components = components;
  cinfo.in_color_space = components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
  jpeg_set_defaults(&cinfo);
  std::vector<jpeg_scan_info> scans;
  for (const ScanScript& scan : script) {
    jpeg_scan_info& to = scans.emplace_back();
    to = {static_cast<int>(scan.components.size()), {}, scan.first, scan.last, scan.high, scan.low};
    std::copy(scan.components.begin(), scan.components.end(), to.component_index);
  }
  cinfo.scan_info = scans.data();
  cinfo.num_scans = static_cast<int>(scans.size());
  cinfo.restart_interval = static_cast<unsigned>(options.restart_interval);
  cinfo.optimize_coding = TRUE;
  const j_common_ptr common = reinterpret_cast<j_common_ptr>(&cinfo);
  const int max_h = *std::max_element(options.h.begin(), options.h.end());
  const int max_v = *std::max_element(options.v.begin(), options.v.end());
  std::vector<jvirt_barray_ptr> arrays;
  const auto blocks = [](int pixels, int factor, int most) {  // whole MCUs
    const int mcus = (pixels + 8 * most - 1) / (8 * most);
    return static_cast<JDIMENSION>(mcus * factor);
  };
  for (size_t c = 0; c < options.h.size(); ++c) {
    cinfo.comp_info[c].h_samp_factor = options.h[c];
    cinfo.comp_info[c].v_samp_factor = options.v[c];
    arrays.push_back(cinfo.mem->request_virt_barray(
        common, JPOOL_IMAGE, TRUE, blocks(options.width, options.h[c], max_h),
        blocks(options.height, options.v[c], max_v), static_cast<JDIMENSION>(options.v[c])));
  }
  cinfo.mem->realize_virt_arrays(common);
  for (size_t c = 0; c < options.h.size(); ++c)
    for (JDIMENSION y = 0; y < blocks(options.height, options.v[c], max_v); ++y) {
      const JBLOCKARRAY line = cinfo.mem->access_virt_barray(common, arrays[c], y, 1, TRUE);
      for (JDIMENSION x = 0; x < blocks(options.width, options.h[c], max_h); ++x) {
        JCOEF* const block = line[0][x];
        block[0] = static_cast<JCOEF>(draw(random, -options.most, options.most));
        // Some blocks are empty, so that the ends of bands come in runs.
        const int density = draw(random, 0, 2) == 0 ? options.density : draw(random, 0, 1) * options.density / 4;
        for (int k = 1; k < 64; ++k) {
          const int most = draw(random, 0, 1) == 0 ? options.most : 1;
          block[k] = draw(random, 1, 100) <= density ? static_cast<JCOEF>(draw(random, -most, most)) : JCOEF{0};
        }
      }
    }
  jpeg_write_coefficients(&cinfo, arrays.data());
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::vector<uint8_t> jpeg(memory, memory + size);
  std::free(memory);
  return jpeg;
}

}  // namespace headrace::test
