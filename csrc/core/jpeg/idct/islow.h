// The factors of the accurate inverse DCT (Loeffler, Ligtenberg and Moschytz), in 13-bit fixed point as libjpeg has
// them.
#pragma once

namespace headrace {

inline constexpr int kIslowBits = 13;     // of the factors' fractions
inline constexpr int kColumnsShift = 11;  // after the pass over columns, whose results keep two more bits
inline constexpr int kRowsShift = 18;     // after the pass over rows: these two bits, and the factor 8 of the DCT
inline constexpr int kF0298 = 2446, kF0390 = 3196, kF0541 = 4433, kF0765 = 6270, kF0899 = 7373, kF1175 = 9633,
                     kF1501 = 12299, kF1847 = 15137, kF1961 = 16069, kF2053 = 16819, kF2562 = 20995, kF3072 = 25172;

}  // namespace headrace
