#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the code of operators in one place at a time, and sees that the test of the rule notices (docs/operators.md, "What must hold").

Works on a copy of the tree, as tests/fabric/mutations.py does; with --directory the copy and what is built there stay, for the next time. Ends in
"rule-mutations: N passed, N failed, 0 skipped"."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fabric"))

from mutations import OF_RULES, PAGE, Edit, Workshop, run, stale_edits  # noqa: E402


@dataclass(frozen=True)
class Check:
    """Tests of a file."""
    file: str
    program: str  # of GoogleTest, that has them; empty: the file is a script over weir-operator
    tests: str = ""  # a filter

    @property
    def target(self) -> str:
        return self.program or "app/weir-operator"

    @property
    def name(self) -> str:
        return f"`{self.file}`" + (f", `{self.tests.strip('*').rstrip('.')}`" if self.tests else "")

    def failures(self, workshop: Workshop) -> tuple[list[str], str]:
        """What fails, and all output."""
        if not self.program:
            done = run([sys.executable, str(workshop.tree / self.file), str(workshop.build)])
            failed = re.findall(r"^FAIL (.*)$", done.stdout, re.MULTILINE)
        else:
            done = run(["timeout", "300", str(workshop.build / self.program), f"--gtest_filter={self.tests}"])
            failed = re.findall(r"^\[  FAILED  \] (\S+)(?:, where.*)? \(\d+ ms\)$", done.stdout, re.MULTILINE)
        return failed or [f"exit status {done.returncode}"] * (done.returncode != 0), done.stdout + done.stderr


@dataclass(frozen=True)
class RuleMutation:
    name: str
    about: str
    check: Check
    edits: tuple[Edit, ...]


def of_kernels(name: str, tests: str) -> Check:
    return Check(f"tests/unit/{name}_test.cpp", "tests/unit/kernel_test", tests)


def rule(test: str) -> Check:
    return of_kernels("operator_rules", f"*OperatorRules.{test}*")


def order(test: str) -> Check:
    return of_kernels("operator_order", f"OrderOfRanks.{test}")


def digest(test: str) -> Check:
    return of_kernels("operator_digests", f"OperatorDigests.{test}")


def of_switch(suite: str) -> Check:
    return Check("tests/unit/by_operator_test.cpp", "tests/unit/stage_test", f"{suite}.*")


BY_NUMPY = Check("tests/operators/run.py", "")
PLACE, OTHERS = rule("APositionsResultDoesNotDependOnItsPlace"), rule("APositionsResultDoesNotDependOnOthers")
LATER, ALONE = rule("LaterRanksAreJoinedToTheResultOfEarlierOnes"), rule("AResultIsOfTheContributionsAlone")
LENGTH, TEXT, IDENTITY = rule("AResultIsAContributionOfTheSameLength"), rule("TheIdentityIsThatOfTheText"), rule("TheIdentityChangesNothingWhereverItStands")
FINISHED, NAN, WAYS = rule("AFinishedValueIsFinished"), rule("NanIsCanonicalInTheResult"), rule("AllWaysGiveTheSameBits")
RANDOM = of_kernels("random_operators", "RandomOperators.GiveTheSameBitsInAllWays")
NEVER, MATTERS = order("NeverMattersForTheseOfIntegersAlone"), order("MattersWhereAnotherOneGivesOtherBits")
AGREEMENT = Check("tests/unit/agreement_test.cpp", "tests/unit/rank_test", "Agreement.*")

FOLD = "lib/core/program/fold_program.cpp"
LOOPS = "lib/core/program/loops_impl.hpp"
PARSE = "lib/core/program/parse.cpp"
EMITTER = "lib/core/program/emitter.cpp"
OPERATOR = "lib/core/program/operator.cpp"
INCARNATIONS = "lib/datapath/conn/incarnations.cpp"
AGREE = "lib/host/rendezvous/agreement.cpp"
TEXTS = "config/operators/"

SWITCH_GRANTS = Edit(INCARNATIONS, "    if (granted(ring, entry) == nullptr) {", "    if (false) {")

# By rule, as docs/operators.md has them; what stands last is no rule of that table.
RULES: dict[str, tuple[RuleMutation, ...]] = {
    "a left fold in the order of ranks, from the contributions alone, position by position": (
        RuleMutation("fold-order", "ranks are folded from the last to the first", LATER, (
            Edit(FOLD, "const_cast<std::byte*>(inputs[i])", "const_cast<std::byte*>(inputs[count - 1 - i])"),)),
        RuleMutation("fold-order-blocks", "the same, of blocks alone", BY_NUMPY, (
            Edit(FOLD, "const_cast<std::byte*>(inputs[i])", "const_cast<std::byte*>(inputs[code_.is_block() ? count - 1 - i : i])"),)),
        RuleMutation("fold-scales", "blocks of later tiles have the first ones' scales", PLACE, (
            Edit(FOLD, "packet + units * code_.code_bytes + first * scale_bytes, scale_bytes", "packet + units * code_.code_bytes, scale_bytes"),)),
        RuleMutation("fold-neighbour", "two blocks have one largest value", OTHERS, (
            Edit(LOOPS, "const auto* const block = a + size_t{b} * kBlock;", "const auto* const block = a + size_t{b / 2} * 2 * kBlock;"),)),
        RuleMutation("fold-registers", "constants are those of the thread's first program", ALONE, (
            Edit(FOLD, "  begin_tile(tile, units, 0);\n", "  thread_local bool are_there = false;\n  if (std::exchange(are_there, true)) {\n    return;\n  }\n"
                 "  begin_tile(tile, units, 0);\n"),
            Edit(FOLD, "#include <cstring>\n", "#include <cstring>\n#include <utility>\n"))),
        RuleMutation("fold-accumulator", "the first rank is joined to what the register has", ALONE, (
            Edit(FOLD, "run(i == 0 ? code_.start : code_.fold, tile);", "run(i == 0 && count > 1 ? code_.start : code_.fold, tile);"),)),
    ),
    "the result is again a contribution, of the same length and format": (
        RuleMutation("result-rest", "what no unit has stays as it was", LENGTH, (
            Edit(FOLD, "  std::memset(packet + used, 0, bytes - used);\n", "  std::memset(packet + used, 0, (bytes - used) / 16);\n"),)),
        RuleMutation("result-longer", "a byte behind the packet is written", LENGTH, (
            Edit(FOLD, "std::memset(packet + used, 0, bytes - used);", "std::memset(packet + used, 0, bytes - used + 1);"),)),
        RuleMutation("result-flags", "the flags of one rank are lost", LENGTH, (Edit(FOLD, "    flags |= theirs;", "    flags = theirs;"),)),
        RuleMutation("result-copies", "copies lack what no unit has", LENGTH, (
            Edit(FOLD, "std::memcpy(copies.to[i], out, bytes);", "std::memcpy(copies.to[i], out, code_.units(bytes) * code_.unit_bytes);"),)),
    ),
    "whether the order of ranks matters is derived from the text, never declared": (
        RuleMutation("order-unseen", "it always matters", NEVER, (Edit(PARSE, "      are_integers && !has_temporaries &&", "      false && are_integers && !has_temporaries &&"),)),
        RuleMutation("order-floats", "sums of floats count as those of integers", NEVER, (
            Edit(PARSE, "      are_integers && !has_temporaries &&", "      (are_integers || true) && !has_temporaries &&"),)),
        RuleMutation("order-minus", "a difference counts as a sum", MATTERS, (
            Edit(PARSE, 'std::array<std::string_view, 7> joining{"+",', 'std::array<std::string_view, 8> joining{"-", "+",'),)),
        RuleMutation("order-flags", "flags of start and fold are not looked at", MATTERS, (Edit(PARSE, "    flags_early_ |= phase != Phase::finish;\n", ""),)),
        RuleMutation("order-value", "what is joined may be another value than what start takes", order("NeverMattersWhereItIsDerived"), (
            Edit(PARSE, "           tree.parts[1].text() == started_[name][0].text() &&\n", ""),)),
        RuleMutation("order-declared", "a line may say something of the order", order("IsNeverDeclared"), (
            Edit(PARSE, "    const std::size_t due = sections.size();\n", '    if (head == "order") {\n      continue;\n    }\n    const std::size_t due = sections.size();\n'),)),
    ),
    "identity joined to x, from either side, is x finished; or `identity none`": (
        RuleMutation("identity-text", "maxloc's identity has index 0", TEXT, (Edit(TEXTS + "maxloc.weir", "i 0xffffffff", "i 0"),)),
        RuleMutation("identity-ties", "of equal values maxloc takes the later index", IDENTITY, (
            Edit(TEXTS + "maxloc.weir", "select(ties == 1, min(at, i), at)", "select(ties == 1, i, at)"),)),
        RuleMutation("identity-codes", "of a block's codes the first alone gets the identity", TEXT, (
            Edit(PARSE, "const unsigned values = is_codes ? code_.block : 1;", "const unsigned values = is_codes ? 1 : 1;"),)),
        RuleMutation("identity-none", "complex-product has 1 as identity", TEXT, (
            Edit(TEXTS + "complex-product.weir", "identity none", "identity re 0x3f800000 im 0"),)),
        RuleMutation("identity-zero", "sums of -0 are 0", IDENTITY, (
            Edit(LOOPS, "  if constexpr (kIsFloat<T>) {\n    return a + b;\n  }", "  if constexpr (kIsFloat<T>) {\n    return a + b + 0;\n  }"),)),
        RuleMutation("identity-side", "the trial joins it from the left alone", BY_NUMPY, (
            Edit("lib/core/program/trial.cpp", "  expect_same(fold(program, std::array<const std::byte*, 2>{x, identity.data()}), alone, rule);\n", ""),)),
    ),
    "finish of a finished value is that value": (
        RuleMutation("finish-wraps", "valid-sum's count comes back to 0", FINISHED, (
            Edit(TEXTS + "valid-sum.weir", "count = add_sat(count, n)", "count = count + n"),)),
        RuleMutation("finish-small", "nvfp4-sum's scales have no lower end", FINISHED, (
            Edit(TEXTS + "nvfp4-sum.weir", "max(block_max(abs(acc)) / 6, 0.015625)", "block_max(abs(acc)) / 6"),)),
        RuleMutation("finish-binade", "a block's scale is half of what its largest value needs", FINISHED, (
            Edit(TEXTS + "mxfp4-sum.weir", "floor_log2(m) - 2", "floor_log2(m) - 3"),)),
        RuleMutation("finish-subnormals", "subnormal codes are rounded as others", FINISHED, (
            Edit(LOOPS, "const uint32_t exponent = binade < first ? first : binade;", "const uint32_t exponent = binade;"),)),
    ),
    "NaN is canonical in the result": (
        RuleMutation("nan-stored", "what is stored keeps its NaN", NAN, (
            Edit(LOOPS, "return static_cast<Stored>(canonical(value));", "return static_cast<Stored>(value);"),)),
        RuleMutation("nan-direct", "the same where a fold is one step", NAN, (
            Edit(LOOPS, "sum[v] = sum[v] != sum[v] ? nan : sum[v];", "sum[v] = sum[v] == nan ? nan : sum[v];"),)),
        RuleMutation("nan-sign", "NaN of narrow floats keeps a sign", NAN, (Edit(LOOPS, "  return is_nan ? nan : code;", "  return is_nan ? nan | (code & kFormat.sign) : code;"),)),
    ),
    "all CPU levels, fused and single steps give the same bits": (
        RuleMutation("level-nan", "one level takes NaN of E4M3 for a number", WAYS, (
            Edit(LOOPS, "    halves |= ((halves & nan) == nan) & std::int16_t{0x7fff};\n", "    halves |= ((halves & nan) == nan) & std::int16_t{0};\n"),)),
        RuleMutation("fused-quotient", "fused, each quotient is a product", WAYS, (Edit(LOOPS, "return is_power || bits == 0x00400000;", "return is_power || bits != 0;"),)),
        RuleMutation("fused-minus", "fused, what is scaled and taken away is added", RANDOM, (
            Edit(EMITTER, 'const bool adds_scaled = sign == "+" &&', 'const bool adds_scaled = (sign == "+" || sign == "-") &&'),)),
    ),
    "same number, different code": (
        RuleMutation("digest-text", "a digest is not of the identity's bits", digest("TellTextsApartThatDifferInACharacter"), (
            Edit(PARSE, "joined(head(3).words), joined(head(4).words));", 'joined(head(3).words), "");'),)),
        RuleMutation("digest-results", "a digest is of the text alone", digest("TellResultsApartThatDifferInABit"), (
            Edit("lib/core/program/digest.cpp", "EVP_DigestUpdate(context.get(), results.data(), results.size())", "EVP_DigestUpdate(context.get(), results.data(), 0)"),)),
        RuleMutation("digest-flushed", "a text is tried in the caller's float mode", digest("AreOfCodeThatKeepsSubnormals"), (
            Edit(OPERATOR, "  const op::DefaultFloatEnvironment environment;\n  FoldProgram program(parse(text)", "  FoldProgram program(parse(text)"),)),
        RuleMutation("kernel-untried", "a kernel stands for a text without a trial", of_kernels("block_sums", "*StandsIn.OnlyIfItGivesTheSameBits*"), (
            Edit("lib/core/program/stand_in.cpp", "results_of(data, kernel) == results;", "results_of(data, kernel).size() == results.size();"),)),
        RuleMutation("ranks-unlike", "ranks do not compare digests", AGREEMENT, (Edit(AGREE, "if (theirs != ours.digest()) {", "if (false) {"),)),
        RuleMutation("ranks-unnamed", "a rank names its own digest as the other's", AGREEMENT, (
            Edit(AGREE, "other_, program::to_string(theirs), own_,", "other_, program::to_string(ours.digest()), own_,"),)),
        RuleMutation("hellos-unlike", "hellos with other tables make a set", of_switch("ByOperator"), (
            Edit(INCARNATIONS, "return a == b || a.is_empty() || b.is_empty();", "return a.number == b.number || a.is_empty() || b.is_empty();"),)),
        RuleMutation("switch-unlike", "what the switch lacks stays in the table", of_switch("ByOperator"), (SWITCH_GRANTS,)),
        RuleMutation("tree-unlike", "the same, of one switch of a tree", of_switch("TreeByOperator"), (SWITCH_GRANTS,)),
    ),
}
RULE_MUTATIONS = [mutation for of_rule in RULES.values() for mutation in of_rule]


def what_failed(failed: list[str]) -> str:
    """The first, without the words that the test's name has already."""
    if not failed:
        return "**survives**"
    return re.sub(r"^.*/(?=\D)", "", failed[0]) + (", and others" if len(failed) > 1 else "")


def examine(workshop: Workshop, mutation: RuleMutation) -> str:
    """What failed, as a cell of the table; or that it survives."""
    originals = workshop.edit(list(mutation.edits))
    try:
        workshop.compile(mutation.check.target)
        failed, _ = mutation.check.failures(workshop)
    finally:
        for path, text in originals.items():
            path.write_text(text)
    return what_failed(failed)


def section(found: dict[str, str]) -> str:
    lines = [
        OF_RULES,
        "",
        "`tests/operators/rule_mutations.py` writes this part: for each rule that must hold of operators ([operators.md](operators.md#what-must-hold))",
        "it breaks the code in one place at a time, or a shipped text, and runs the test of the rule, which must fail.",
    ]
    for name, mutations in RULES.items():
        lines += ["", f"**{name[0].upper()}{name[1:]}**", "", "| mutation | what is broken | test | what failed |", "|---|---|---|---|"]
        lines += [f"| `{one.name}` | {one.about} | {one.check.name} | {found[one.name]} |" for one in mutations]
    return "\n".join([*lines, ""])


def write_page(found: dict[str, str]) -> None:
    PAGE.write_text(PAGE.read_text().partition(OF_RULES)[0].rstrip() + "\n\n" + section(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutation", metavar="NAME", action="append", help="only this one; no page is written")
    parser.add_argument("--directory", type=Path, help="where the copy and its build stay")
    options = parser.parse_args()
    chosen = [mutation for mutation in RULE_MUTATIONS if not options.mutation or mutation.name in options.mutation]
    if mistakes := stale_edits(chosen):
        print("\n".join(mistakes))
        return 1
    with tempfile.TemporaryDirectory(prefix="weir-rules-") as directory:
        workshop = Workshop(options.directory or Path(directory), *{mutation.check.target for mutation in chosen})
        for check in dict.fromkeys(mutation.check for mutation in chosen):
            failed, output = check.failures(workshop)
            if failed:
                print(f"{check.name} fails without any mutation:\n{output[-3000:]}")
                return 1
        found = {}
        for mutation in chosen:
            found[mutation.name] = examine(workshop, mutation)
            print(f"{mutation.name}: {found[mutation.name]}", flush=True)
    if not options.mutation:
        write_page(found)
    survivors = list(found.values()).count(what_failed([]))
    print(f"rule-mutations: {len(found) - survivors} passed, {survivors} failed, 0 skipped")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
