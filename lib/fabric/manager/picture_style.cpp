// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_svg.hpp"

namespace weir::manager {

/// Colours are written out where variables would do: converters of SVG do not know those.
std::string_view picture_style() {
  return R"css(.fabric { font-family: system-ui, sans-serif; font-size: 12px }
.fabric text { fill: #1a2230 }
.fabric .name { font-weight: 600 }
.fabric .small { font-size: 10px; fill: #4d5869 }
.fabric .box { fill: #ffffff; stroke: #7a8698; stroke-width: 1.2 }
.fabric .rail { stroke: #c3cad5; stroke-width: 1.5; fill: none }
.fabric .cable { stroke: #ccd3dc; fill: none }
.fabric .load { font-size: 10px; fill: #4d5869 }
.fabric .full { font-weight: 700; fill: #1a2230 }
.fabric .plate { fill: #ffffff }
.fabric .memory { fill: #dde3ea }
.fabric .used { fill: #5b7083 }
.fabric .hatch { stroke: #dde2e9; stroke-width: 2.5; fill: none }
.fabric .drained .box { fill: url(#hatch); stroke-dasharray: 5 3 }
.fabric .drained .cable { stroke-dasharray: 3 4 }
.fabric .trouble .box { fill: #fde8e6; stroke: #b3261e; stroke-width: 3 }
.fabric .trouble .cable { stroke: #b3261e; stroke-width: 2; stroke-dasharray: 7 5 }
.fabric .trouble .small, .fabric .trouble .load { fill: #8c1d18; font-weight: 600 }
.fabric .late .box { fill: #ffe29a; stroke: #7a5600; stroke-width: 2.5 }
.fabric .late text, .fabric .late .small { fill: #4a3400 }
.fabric .icon { fill: #1a2230; stroke: none }
.fabric .trouble .icon { fill: #b3261e }
.fabric .late .icon { fill: #7a5600 }
.fabric .cross { stroke: #b3261e; stroke-width: 3; fill: none }
.fabric .tree { fill: none; stroke-width: 2.6 }
.fabric .tag { fill: #ffffff; stroke-width: 1.4 }
.fabric .tiny { font-size: 8px; font-weight: 700 }
.fabric .number { font-size: 10px; font-weight: 700 }
.job-0 { stroke: #0062a8 } .job-1 { stroke: #b04a00; stroke-dasharray: 9 4 }
.job-2 { stroke: #006b57; stroke-dasharray: 2 3 } .job-3 { stroke: #86368c; stroke-dasharray: 10 3 2 3 }
.job-4 { stroke: #745800; stroke-dasharray: 16 4 } .job-5 { stroke: #006478; stroke-dasharray: 5 5 }
.job-6 { stroke: #a01a5b; stroke-dasharray: 12 3 2 3 2 3 } .job-7 { stroke: #4a5568; stroke-dasharray: 4 2 }
.fabric .tag { stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  .fabric text { fill: #e7ecf3 }
  .fabric .small, .fabric .load { fill: #aab6c6 }
  .fabric .box { fill: #1b2430; stroke: #76849a }
  .fabric .rail { stroke: #3b4758 }
  .fabric .cable { stroke: #3b4758 }
  .fabric .full { fill: #e7ecf3 }
  .fabric .plate { fill: #10161e }
  .fabric .memory { fill: #333f50 }
  .fabric .used { fill: #9db0c6 }
  .fabric .hatch { stroke: #2b3645 }
  .fabric .trouble .box { fill: #43171a; stroke: #ff8a80 }
  .fabric .trouble .cable { stroke: #ff8a80 }
  .fabric .trouble .small, .fabric .trouble .load { fill: #ffb4ab }
  .fabric .late .box { fill: #4d3800; stroke: #ffcb47 }
  .fabric .late text, .fabric .late .small { fill: #ffe5a0 }
  .fabric .icon { fill: #e7ecf3 }
  .fabric .trouble .icon { fill: #ff8a80 }
  .fabric .late .icon { fill: #ffcb47 }
  .fabric .cross { stroke: #ff8a80 }
  .fabric .tag { fill: #10161e }
  .job-0 { stroke: #6bbcff } .job-1 { stroke: #ffa05c } .job-2 { stroke: #57d6ae } .job-3 { stroke: #dc9fe3 }
  .job-4 { stroke: #e6c453 } .job-5 { stroke: #5fd0e4 } .job-6 { stroke: #ff8bbd } .job-7 { stroke: #b6c1d1 }
}
)css";
}

} // namespace weir::manager
