// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/code.hpp"

namespace weir::program {

/// Makes one step of neighbours for which the loops have one, so that what is between them lies in
/// no register of a tile. The bits stay.
void fuse(Code& code);

} // namespace weir::program
