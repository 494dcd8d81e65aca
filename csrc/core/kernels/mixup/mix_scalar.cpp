// The inner loops of mixing for any processor: the reference.
#include <cstddef>

#include "core/kernels/mixup/mix_loops.h"
#include "core/kernels/mixup/mix_math.h"

namespace headrace {

const MixLoops kScalarMixing{{mix_with<Float16>, mix_with<Bfloat16>, mix_with<float>, mix_with<double>},
                             {mix_pair<Float16>, mix_pair<Bfloat16>, mix_pair<float>, mix_pair<double>}};

}  // namespace headrace
