// SPDX-License-Identifier: BSD-3-Clause
#include "program/fuse.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace weir::program {
namespace {

using Steps = std::vector<Step>;

/// A part that only scales what is read: codes and scale are loaded, and nobody else wants them.
void fuse_load(Steps& steps) {
  if (steps.size() != 3) {
    return;
  }
  const Step codes = steps[0];
  const Step scale = steps[1];
  const Step product = steps[2];
  const bool scales = product.op == Op::mul_block || product.op == Op::mul_add_block;
  if (codes.op != Op::load || codes.per_block || scale.op != Op::load || !scales ||
      product.a != codes.to || product.b != scale.to) {
    return;
  }
  Step fused = product;
  fused.op = product.op == Op::mul_block ? Op::load_mul_block : Op::load_mul_add_block;
  fused.a = codes.a;
  fused.format = codes.format;
  steps = {scale, fused};
}

unsigned operands_of(Op op) {
  switch (op) {
  case Op::fma:
  case Op::select:
  case Op::mul_add_block:
    return 3;
  case Op::add:
  case Op::sub:
  case Op::mul:
  case Op::div:
  case Op::min:
  case Op::max:
  case Op::add_sat:
  case Op::sub_sat:
  case Op::bit_and:
  case Op::bit_or:
  case Op::bit_xor:
  case Op::shl:
  case Op::shr:
  case Op::less:
  case Op::less_equal:
  case Op::equal:
  case Op::not_equal:
  case Op::mul_block:
  case Op::div_block:
  case Op::div_block_store:
    return 2;
  default:
    return 1;
  }
}

bool reads(const Step& step, Operand at) {
  const unsigned operands = operands_of(step.op);
  return step.a == at || (operands > 1 && step.b == at) || (operands > 2 && step.c == at);
}

/// Whether a step of finish reads this register before another one writes it.
bool is_wanted(Operand at, Steps::const_iterator from, Steps::const_iterator end) {
  const auto writes = [at](const Step& step) {
    const bool stores = step.op == Op::store || step.op == Op::div_block_store;
    return !stores && step.to == at;
  };
  const auto next =
      std::find_if(from, end, [&](const Step& step) { return reads(step, at) || writes(step); });
  return next != end && reads(*next, at);
}

/// Of finish: a step and the next one, which alone uses its result.
template <typename Fuse>
void fuse_neighbours(Steps& steps, Op first, Op second, Fuse&& fused) {
  const auto is_first = [&](const Step& left, const Step& right) {
    return left.op == first && right.op == second && right.a == left.to;
  };
  const auto at = std::ranges::adjacent_find(steps, is_first);
  if (at == steps.end() || is_wanted(at->to, at + 2, steps.end())) {
    return;
  }
  *at = fused(*at, *(at + 1));
  steps.erase(at + 1);
}

Step largest_of_finite(const Step& magnitude, const Step& largest) {
  Step step = largest;
  step.op = Op::finite_block_max;
  step.a = magnitude.a;
  return step;
}

Step stored_quotient(const Step& quotient, const Step& store) {
  Step step = quotient;
  step.op = Op::div_block_store;
  step.to = store.to;
  step.format = store.format;
  return step;
}

} // namespace

void fuse(Code& code) {
  code.is_fused = true;
  fuse_load(code.start);
  fuse_load(code.fold);
  fuse_neighbours(code.finish, Op::finite_abs, Op::block_max, largest_of_finite);
  fuse_neighbours(code.finish, Op::div_block, Op::store, stored_quotient);
}

} // namespace weir::program
