#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the pages with the tree: drop lists, folders, links, keys, commands, operations, words, mutations.

With --write, lists of operations, data types and collectives are first written anew from weir/ina.hpp. Ends in
"docs: N passed, …"."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "fabric"), str(ROOT / "tests" / "operators")]

from listings import listings, rows_of  # noqa: E402
from mutations import MUTATIONS, stale_edits  # noqa: E402
from rule_mutations import RULE_MUTATIONS  # noqa: E402


def read(name: str) -> str:
    return (ROOT / name).read_text()


def reasons_in_header(macro: str) -> list[tuple[str, str]]:
    body = read("include/weir/reasons.hpp").split(f"#define {macro}(X)")[1].split("\n\n")[0]
    return re.findall(r'X\((\w+),\s*"([^"]*)"\)', body)


def reasons_in_documentation() -> list[tuple[str, str]]:
    page = re.sub(r"^(\| `\w+` )\| [a-z, ]* (?=\|[^|]*\|[^|]*\|$)", r"\1", read("docs/drops.md"), flags=re.MULTILINE)
    return re.findall(r"^\| `(\w+)` \| ([^|]*?) \|", page, re.MULTILINE)


def check_reasons() -> list[str]:
    header = reasons_in_header("WEIR_DROP_REASONS") + reasons_in_header("WEIR_FOREIGN_REASONS")
    documented = reasons_in_documentation()
    return [f"docs/drops.md lacks or mistells {row}" for row in header if row not in documented] + \
           [f"docs/drops.md has {row}, which the header has not" for row in documented if row not in header]


def folder_of(file: Path) -> str:
    """The folder of a source file, as in the tables of rooms."""
    return "/".join(file.relative_to(ROOT / "lib").parts[:-1])


def room_of(folder: str) -> str:
    """As includes name it: the rooms of the hosts' wing with their wing."""
    return folder if folder.startswith("host/") else folder.partition("/")[2]


def folders_allowed() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `lib/([\w/]+)/` \|[^|]*\|([^|]*)\|", read("CONTRIBUTING.md"), re.MULTILINE)
    return {folder: {name.strip() for name in names.split(",") if name.strip()} for folder, names in rows}


def check_folders() -> list[str]:
    """Each folder of lib/ includes only folders that CONTRIBUTING.md's tables allow."""
    allowed = folders_allowed()
    mistakes = []
    for file in sorted((ROOT / "lib").rglob("*.[ch]pp")):
        folder = folder_of(file)
        if folder not in allowed:
            mistakes.append(f"CONTRIBUTING.md's tables lack lib/{folder}/")
            continue
        included = re.findall(r'#include "([\w/]+)/\w+\.hpp"', file.read_text())
        mistakes += [f"{file.relative_to(ROOT)} includes {name}/, which CONTRIBUTING.md does not allow lib/{folder}/"
                     for name in sorted(set(included) - allowed[folder] - {room_of(folder), "weir"})]
    return mistakes + ([] if len(allowed) > 10 else ["CONTRIBUTING.md's tables of rooms were not found"])


def anchors_of(page: Path) -> set[str]:
    """Of its headings, as forges and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(page: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = page.parent / file if file else page
    return found.exists() and (not anchor or found.suffix != ".md" or anchor in anchors_of(found))


def check_links() -> list[str]:
    mistakes = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^) ]+)\)", text):
            if "://" not in target and not is_there(page, target):
                mistakes.append(f"{page.relative_to(ROOT)} links to {target}, which is not there")
    return mistakes


def check_keys() -> list[str]:
    """docs/configuration.md has exactly the configuration's keys, word by word."""
    rows = r'(?:key|key_by|seconds|map|map_of_same|entries)<[\w:&]+>\(\s*"(\w+)",'
    known = set(re.findall(rows, read("lib/controlplane/config/fields.cpp")))
    table = read("docs/configuration.md")
    keys = [key for cell in re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE) for key in re.findall(r"`([^`]+)`", cell)]
    words = {word for key in keys for word in re.findall(r"\w+", key)}
    mistakes = [f"docs/configuration.md documents the key {word}, which fields.cpp does not know" for word in sorted(words - known)]
    return mistakes + [f"docs/configuration.md lacks the key {word} of fields.cpp" for word in sorted(known - words)]


def commands_in_code() -> dict[str, str]:
    """Each command of the prompt and its path in telemetry, or ""."""
    questions = re.findall(r'Question\{"([^"]+)",\s*"([^"]+)"', read("lib/controlplane/report/questions.cpp"))
    actions = re.findall(r'commands(?:_\.push_back|\.add)\(\s*\{(?:\.words = )?\{("[^}]+")\}',
                         read("lib/controlplane/command/commands.cpp") + read("app/weir_main.cpp"))
    return dict(questions) | {re.sub(r'",\s*"', " ", words).strip('"'): "" for words in actions}


def commands_in_documentation() -> dict[str, str]:
    table = read("docs/prompt.md").split("| command | telemetry | shows or does |")[1].split("\n\n")[0].replace("\\|", "¦")
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*)\|", table, re.MULTILINE)
    return {command.replace("¦", "|"): path.strip(" `")
            for commands, path in rows for command in re.findall(r"`([^`]+)`", commands)}


def check_commands() -> list[str]:
    """docs/prompt.md has exactly the prompt's commands, with their paths in telemetry."""
    coded, documented = commands_in_code(), commands_in_documentation()
    mistakes = [f"docs/prompt.md lacks or mistells `{command}`, in telemetry {path or 'nothing'}"
                for command, path in coded.items() if documented.get(command) != path]
    mistakes += [f"docs/prompt.md has `{command}`, which the prompt has not"
                 for command in documented if command not in coded]
    return mistakes + ([] if len(coded) > 10 else ["hardly any command was found in the code"])


def check_torch_options() -> list[str]:
    """docs/pytorch.md has exactly the variables that weir_torch reads, in its table."""
    fields = read("lib/host/torch/weir_torch/options.py").split("class Options:")[1].split("def ")[0]
    due = {f"WEIR_{name.upper()}" for name in re.findall(r"^    (\w+): ", fields, re.MULTILINE)} | {"WEIR_LIBRARY"}
    table = read("docs/pytorch.md").split("| variable |")[1].split("\n\n")[0]
    told = set(re.findall(r"`(WEIR_\w+)`", table))
    return [f"docs/pytorch.md lacks {name}, or the backend does not know it" for name in sorted(due ^ told)] + \
           ([] if len(due) > 5 else ["hardly any option was found in options.py"])


def check_mpi_options() -> list[str]:
    """docs/mpi.md has exactly the variables that the interposer reads, in its table; config/mpi.conf has none besides."""
    due = set(re.findall(r'variable<&Settings::\w+>\("(WEIR_\w+)"', read("lib/host/mpi/settings.cpp")))
    told = set(re.findall(r"`(WEIR_\w+)`", read("docs/mpi.md").split("| variable |")[1].split("\n\n")[0]))
    strange = set(re.findall(r"^# (WEIR_\w+)=", read("config/mpi.conf"), re.MULTILINE)) - due
    return [f"docs/mpi.md lacks {name}, or the interposer does not know it" for name in sorted(due ^ told)] + \
           [f"config/mpi.conf has {name}, which the interposer does not know" for name in sorted(strange)] + \
           ([] if len(due) > 5 else ["hardly any variable was found in settings.cpp"])


def check_nccl_options() -> list[str]:
    """docs/nccl.md has exactly the variables that NCCL's plug-in reads, in its table."""
    code = "".join(file.read_text() for file in sorted((ROOT / "lib/host/nccl").glob("*.cpp")))
    due = set(re.findall(r'(?:variable|read_number)\("(WEIR_\w+)"', code))
    told = set(re.findall(r"`(WEIR_\w+)`", read("docs/nccl.md").split("| variable |")[1].split("\n\n")[0]))
    return [f"docs/nccl.md lacks {name}, or the plug-in does not know it" for name in sorted(due ^ told)] + \
           ([] if len(due) > 5 else ["hardly any variable was found in lib/host/nccl"])


TORCH_KINDS = {"text": "str", "word": "str", "files": "tuple[str, ...]", "u8": "Optional[int]", "u32": "Optional[int]",
               "rings": "Union[tuple[int, ...], str, None] u32"}  # annotations


def guest_variables(guest: str) -> list[tuple[str, str, str, str]]:
    """Of lib/host/variables: name, kind, what holds without it, the words that are allowed."""
    rows = re.findall(r'Variable\{"(WEIR_\w+)", Kind::(\w+), "([^"]*)", "([^"]*)", ([\w |]+)\}',
                      read("lib/host/variables/variables.hpp"))
    return [(name, kind, usual, allowed) for name, kind, usual, allowed, guests in rows if f"k{guest}" in guests.split(" | ")]


def torch_variables() -> list[tuple[str, str, str, str]]:
    """The same, as weir_torch has them in Python."""
    tree, words, most = ast.parse(read("lib/host/torch/weir_torch/options.py")), {}, {}
    for name, listed in re.findall(r"^(TRANSPORTS|FALLBACKS) = (\{.*\})", read("lib/host/torch/weir_torch/c_api.py"), re.MULTILINE):
        words[name] = ", ".join(word.rpartition("_")[2].lower() for word in ast.literal_eval(listed))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MOST":
            most = {name: value for name, value in re.findall(r"'(\w+)': 2 \*\* (\d+) - 1", ast.unparse(node.value))}
    options = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Options")
    found = []
    for field in options.body:
        if isinstance(field, ast.AnnAssign) and field.value is not None:
            name, kind, usual = ast.unparse(field.target), ast.unparse(field.annotation), ast.literal_eval(field.value)
            allowed = words.get({"transport": "TRANSPORTS", "fallback": "FALLBACKS"}.get(name, ""), "")
            kind += " u" + most.get(name, "32") if "int" in kind else ""
            found.append((f"WEIR_{name.upper()}", kind, usual or "", allowed))
    return found


def check_variables() -> list[str]:
    """MPI, NCCL and PyTorch read the variables that the table of all guests has for them; PyTorch, in Python, alike."""
    due = {"Mpi": set(re.findall(r'variable<&Settings::\w+>\("(WEIR_\w+)"', read("lib/host/mpi/settings.cpp"))),
           "Nccl": set(re.findall(r'variable\("(WEIR_\w+)"', "".join(
               file.read_text() for file in sorted((ROOT / "lib/host/nccl").glob("*.cpp")))))}
    unlike = [f"lib/host/variables: {name} is not what k{guest} reads" for guest, names in due.items()
              for name in sorted(names ^ {row[0] for row in guest_variables(guest)})]
    wanted = [(name, TORCH_KINDS[kind] + (f" {kind.rstrip('s')}" if kind.startswith("u") else ""), usual, allowed)
              for name, kind, usual, allowed in guest_variables("Torch")]
    told = torch_variables()
    unlike += [f"weir_torch/options.py has {row}, lib/host/variables has not" for row in told if row not in wanted]
    unlike += [f"lib/host/variables has {row}, weir_torch/options.py has not" for row in wanted if row not in told]
    return unlike + ([] if len(wanted) > 10 else ["hardly any variable was found in lib/host/variables"])


def check_operations() -> list[str]:
    """Whoever lists operations, data types or collectives in another language, or for people, lists those of weir/ina.hpp.
    PyTorch has only some of the types."""
    types = rows_of("WEIR_DATA_TYPES")
    ours = read("lib/host/torch/weir_torch/c_api.py").split("DATA_TYPES = {")[1].split("}")[0]
    unlike = [f"weir_torch/c_api.py: WEIR_{name} is not {number}" for name, number in re.findall(r'"WEIR_(\w+)": (\d+)', ours)
              if types.index(name.lower()) != int(number)]
    few = [] if len(types) > 10 and len(rows_of("WEIR_OPERATIONS")) > 5 else ["hardly any operation or type was found in ina.hpp"]
    return [mistake for listing in listings() for mistake in listing.mistakes()] + unlike + few


def words_of(table: str) -> list[str]:
    """The first column, word by word. A word with its use in brackets has other uses, so it counts as none."""
    cells = [re.sub(r"\([^|]*\)", "()", cell) for cell in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)]
    words = [word.strip("` ") for cell in cells for word in cell.split(",")]
    return [word for word in words if "()" not in word and word not in ("word", "not")]


def named_types() -> dict[str, str]:
    """The types of lib/ and app/, each with a file."""
    declaration = re.compile(r"\b(?:class|struct|union|enum class) (\w+)(?: final)?(?= *[:{])|\busing (\w+) =")
    files = [file for folder in ("lib", "app") for file in sorted((ROOT / folder).rglob("*.[ch]pp"))]
    return {"".join(found): str(file.relative_to(ROOT)) for file in files
            for found in declaration.findall(re.sub(r"//.*", "", file.read_text()))}


def check_glossary() -> list[str]:
    """A word has one row, and no type has the name of a word that the last table bans."""
    used, banned = map(words_of, read("docs/glossary.md").split("## Words we do not use"))
    types = named_types()
    mistakes = [f"docs/glossary.md has {word} in {used.count(word)} rows" for word in sorted(set(used)) if used.count(word) > 1]
    mistakes += [f"docs/glossary.md bans {word}, and explains it" for word in banned if word in used]
    for word in banned:
        name = "".join(part.capitalize() for part in re.split("[ _]", word))
        if name in types:
            mistakes.append(f"{types[name]} has the type {name}; docs/glossary.md bans the word")
    return mistakes + ([] if len(banned) > 20 and len(types) > 500 else ["hardly any banned word or type was found"])


def check_mutations() -> list[str]:
    """The mutations of the simulation and of operators still fit the code, and docs/mutations.md tells of each."""
    mutations = [*MUTATIONS, *RULE_MUTATIONS]
    told = re.findall(r"^\| `([\w-]+)` \|", read("docs/mutations.md"), re.MULTILINE)
    return stale_edits(mutations) + [f"docs/mutations.md has {told.count(mutation.name)} times `{mutation.name}`"
                                     for mutation in mutations if told.count(mutation.name) != 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the lists of operations, data types and collectives anew")
    if parser.parse_args().write:
        for listing in listings():
            listing.write()
    failed = 0
    checks = [check_reasons, check_folders, check_links, check_keys, check_commands, check_torch_options, check_mpi_options,
              check_nccl_options, check_variables, check_operations, check_glossary, check_mutations]
    for check in checks:
        mistakes = check()
        failed += bool(mistakes)
        for mistake in mistakes:
            print(f"{check.__name__}: {mistake}")
    print(f"docs: {len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
