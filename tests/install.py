#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the host library as on a machine without DPDK, installs it, and uses it as another project would.

Everything is in temporary folders. pkg-config sees only what the host library may need, so one dependency too many stops
the build. Ends in "install: N passed, N failed, N skipped".
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs/examples"
VERSION = re.search(r"^  version: '([\d.]+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)[1]
SONAME = "libweir.so.1"

HEADERS = ("weir.h", "weir.hpp")  # of include/weir/
TORCH_FILES = ("__init__.py", "c_api.py", "callbacks.py", "calls.py", "check.py", "closing.py", "collectives.py", "engines.py", "group.py",
               "inner_gloo.py", "meeting.py", "operators.py", "options.py", "order.py", "process_group.py", "registrations.py", "sparse.py", "staging.py", "tracer.py", "training.py", "uncompiled.py", "waiter.py")  # of weir_torch/
HOST_PROGRAMS = ("weir-nccl-check", "weir-operator", "weir-worker")
SWITCH_PROGRAMS = ("weir", "weir-manager", "weir-plan", "weir-replay", "weirctl")
COMPLETIONS = ("share/bash-completion/completions/weirctl", "share/zsh/site-functions/_weirctl")
# Where the whole tree is built, gRPC and both MPIs are there.
MODULES = ("libweir_switch.so", "openmpi/libweir_mpi.so", "mpich/libweir_mpi.so")
# What is written for those who use Weir.
PAGES = ("configuration", "control", "deployment", "drops", "fabric", "glossary", "host", "laboratory", "metrics", "mpi", "nccl", "operating", "operators", "planner",
         "planning", "prompt", "protocol", "pytorch", "regions", "transports", "troubleshooting")
# Without verbs, as the wheel has it: so it is compiled once.
ALLOWED_PACKAGES = ("fmt", "libisal", "libcrypto")
WITH_VERBS = ROOT / os.environ.get("WEIR_BUILD", "build") / f"lib/host/package/{SONAME}"  # the other tests'
ALLOWED_LIBRARIES = {"fmt", "isal", "crypto", "ibverbs", "stdc++", "gcc_s", "m", "c"}
# PEP 600: the libraries that a wheel may take from the system.
OF_THE_PLATFORM = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "libgcc_s.so.", "libstdc++.so.", "ld-linux-")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")

# An interface that is not there: the library must say so, by itself and in words.
EXAMPLE_ARGUMENTS = ("0", "2", "127.0.0.1:7471", "1", "weir-absent", "10.0.0.1")
EXAMPLE_SAYS = "interface weir-absent: not found"

CMAKE_PROJECT = """\
cmake_minimum_required(VERSION 3.13)
project(job C)
find_package(weir 9 QUIET)
if(weir_FOUND)
  message(FATAL_ERROR "found version ${weir_VERSION} when asked for 9")
endif()
find_package(weir %s REQUIRED)
add_executable(job all_reduce.c)
target_link_libraries(job PRIVATE weir::weir)
""" % VERSION

# Tells in C what weir_torch believes of weir.h, for a compiler to judge.
BELIEFS = """
import c_api
c_api.library.weir_version()  # loads all functions
print("#include <stddef.h>\\n#include <weir/weir.h>")
for names in (c_api.STATUS, c_api.DATA_TYPES, c_api.OPERATIONS, c_api.BY_OPERATOR, c_api.MEMORY_KINDS, c_api.TRANSPORTS, c_api.FALLBACKS,
              c_api.RING_COUNTS):
    for name, number in names.items():
        print(f'_Static_assert({name} == {number}u, "");')
for struct in c_api.STRUCTS:
    for name, _ in struct._fields_:
        field = getattr(struct, name)
        print(f'_Static_assert(offsetof({struct.NAME}, {name}) == {field.offset}, "");')
        print(f'_Static_assert(sizeof((({struct.NAME}*)0)->{name}) == {field.size}, "");')
for name, (_, *arguments) in c_api.PROTOTYPES.items():
    print(f"/* {name} has {len(arguments)} arguments */")
"""


class Mistake(Exception):
    """What was found, and what would be right."""


class Skip(Exception):
    """Why a check cannot be made here."""


def expect(holds: bool, mistake: str) -> None:
    if not holds:
        raise Mistake(mistake)


def output_of(*command: object, cwd: Path | None = None, environment: dict[str, str] | None = None,
              status: int = 0) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except FileNotFoundError as error:
        raise Mistake(f"{words[0]} is not there") from error
    expect(done.returncode == status, f"{' '.join(words)}: status {done.returncode}, should be {status}\n{done.stdout}")
    return done.stdout


def options_of_tests() -> list[str]:
    return output_of(ROOT / "tools/prepare", "options").splitlines()


def cache_of_tests(tree: Path) -> dict[str, str]:
    """What is compiled for the tests is not compiled again below this tree, with their options and where there is a compiler cache. It
    sees that what meson put together is alike when it has preprocessed that."""
    return {"CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "locale", "CCACHE_NODEPEND": "1"}


@dataclass(frozen=True)
class Installation:
    folder: Path  # for whatever a check makes
    prefix: Path
    build: Path

    @property
    def library(self) -> Path:
        found = sorted(self.prefix.rglob(SONAME))
        expect(len(found) == 1, f"found {len(found)} files {SONAME} below the prefix; should be 1")
        return found[0]

    @property
    def packages(self) -> dict[str, str]:
        """The environment in which pkg-config sees what the library may need."""
        return {"PKG_CONFIG_LIBDIR": str(self.folder / "packages"), "PKG_CONFIG_PATH": ""}

    def pkg_config(self, *arguments: str) -> str:
        """As where no other package has a .pc file."""
        environment = {"PKG_CONFIG_LIBDIR": str(self.library.parent / "pkgconfig"), "PKG_CONFIG_PATH": ""}
        return output_of("pkg-config", *arguments, "weir", environment=environment).strip()


def link_allowed_packages(folder: Path) -> None:
    folder.mkdir()
    for package in ALLOWED_PACKAGES:
        found = subprocess.run(["pkg-config", "--variable=pcfiledir", package], capture_output=True, text=True)
        if found.returncode == 0:
            (folder / f"{package}.pc").symlink_to(Path(found.stdout.strip()) / f"{package}.pc")


def install(folder: Path, build: Path) -> Installation:
    made = Installation(folder, folder / "prefix", build)
    link_allowed_packages(folder / "packages")
    # Meson asks CMake for what pkg-config does not know.
    native = folder / "native.ini"
    native.write_text("[binaries]\ncmake = '/there/is/no/cmake'\n")
    output_of("meson", "setup", made.build, "-Dswitch=disabled", f"--prefix={made.prefix}", "--native-file", native, *options_of_tests(),
              cwd=ROOT, environment=made.packages)
    output_of("ninja", "-C", made.build, environment=cache_of_tests(ROOT))
    output_of("meson", "install", "-C", made.build, "--no-rebuild", environment={"DESTDIR": ""})
    return made


def torch_files(made: Installation) -> set[str]:
    folders = [folder.relative_to(made.prefix) for folder in made.prefix.rglob("weir_torch")]
    expect(len(folders) == 1, f"found folders {folders} for weir_torch; should be 1")
    return {str(folders[0] / name) for name in TORCH_FILES}


def check_files(made: Installation) -> None:
    lib = made.library.parent.relative_to(made.prefix)
    due = {f"bin/{program}" for program in HOST_PROGRAMS} | {f"include/weir/{header}" for header in HEADERS} | {
        f"{lib}/{name}" for name in ("libweir.so", SONAME, f"{SONAME}.0.0", "pkgconfig/weir.pc",
                                     "cmake/weir/weir-config.cmake", "cmake/weir/weir-config-version.cmake", "libnccl-net-weir.so")}
    due |= torch_files(made) | {f"share/man/man1/{program}.1" for program in HOST_PROGRAMS} | {"share/doc/weir/LICENSE"}
    found = {str(file.relative_to(made.prefix)) for file in made.prefix.rglob("*") if not file.is_dir() and file.parent.name != "__pycache__"}
    expect(found == due, f"installed too much: {sorted(found - due)}; too little: {sorted(due - found)}")


def installed_by(build: Path) -> set[str]:
    """Where meson puts files, below the prefix of this build directory."""
    options = json.loads(output_of("meson", "introspect", "--buildoptions", build))
    prefix = next(option["value"] for option in options if option["name"] == "prefix")
    files = json.loads(output_of("meson", "introspect", "--installed", build))
    return {str(Path(file).relative_to(prefix)) for file in files.values()}


def check_whole_tree(made: Installation) -> None:
    """With the switch, only its own files are installed besides; -Dtorch=false takes the Python files away."""
    whole = made.folder / "whole tree"
    output_of("meson", "setup", whole, "-Dtorch=false", f"--prefix={made.prefix}", cwd=ROOT)
    besides = installed_by(whole) - installed_by(made.build)
    due = {f"bin/{program}" for program in SWITCH_PROGRAMS} | set(COMPLETIONS) | {
        "share/man/man1/weir-plan.1", "share/man/man1/weir-replay.1", "share/man/man1/weirctl.1", "share/man/man5/weir.yaml.5", "share/man/man8/weir.8", "share/man/man8/weir-manager.8",
        "lib/systemd/system/weir.service", "lib/systemd/system/weir-manager.service", "lib/sysusers.d/weir.conf", "lib/udev/rules.d/60-weir.rules",
        "libexec/weir/weir-gate", *(f"libexec/weir/slurm/{file.stem}" for file in (ROOT / "tools/slurm").glob("*.in")), f"{made.library.parent.relative_to(made.prefix)}/wireshark/plugins/weir.lua",
        *(f"{made.library.parent.relative_to(made.prefix)}/weir/{name}" for name in MODULES)}
    due |= {f"share/doc/weir/examples/{entry.name}" for entry in (ROOT / "config").iterdir()
            if entry.is_dir() or entry.suffix == ".yaml"}
    due |= {"share/doc/weir/README.md"} | {f"share/doc/weir/docs/{name}.md" for name in PAGES}
    expect(besides == due, f"found, besides the host library: {sorted(besides)}; should be {sorted(due)}")
    lacking = installed_by(made.build) - installed_by(whole)
    expect(lacking == torch_files(made), f"-Dtorch=false takes away {sorted(lacking)}; should be all of weir_torch")


def declared_functions(made: Installation) -> set[str]:
    names: set[str] = set()
    for header in made.prefix.rglob("*.h"):
        code = re.sub(r"/\*.*?\*/|//[^\n]*|^#(\\\n|[^\n])*", "", header.read_text(), flags=re.DOTALL | re.MULTILINE)
        names |= set(re.findall(r"\b(weir_\w+)\s*\(", code))
    return names


def check_exports(made: Installation) -> None:
    found = {line.split()[-1] for line in output_of("nm", "-D", "--defined-only", made.library).splitlines()}
    due = declared_functions(made)
    expect(len(due) > 10, f"found functions {sorted(due)} in the headers; should be all of the C API")
    expect(found == due, f"exported, but in no header: {sorted(found - due)}; not exported: {sorted(due - found)}")


def dynamic_entries(file: Path, tag: str) -> list[str]:
    return re.findall(rf"\({tag}\).*\[(.*)\]", output_of("readelf", "--wide", "--dynamic", file))


def needed_libraries(file: Path) -> set[str]:
    """By their short names, and without the loader: whether it is listed depends on the optimization."""
    names = {re.sub(r"^lib|\.so.*", "", name) for name in dynamic_entries(file, "NEEDED")}
    return {name for name in names if not name.startswith("ld-linux")}


def check_dynamic_sections(made: Installation) -> None:
    found = dynamic_entries(made.library, "SONAME")
    expect(found == [SONAME], f"SONAME: found {found}; should be {SONAME}")
    expect("ibverbs" not in needed_libraries(made.library), "the library needs ibverbs, which was not to be found")
    for file in (made.library, *(made.prefix / "bin" / program for program in HOST_PROGRAMS), *filter(Path.exists, [WITH_VERBS])):
        paths = dynamic_entries(file, "RPATH") + dynamic_entries(file, "RUNPATH")
        expect(not paths, f"{file.name}: found search paths {paths}; should be none")
        strange = needed_libraries(file) - ALLOWED_LIBRARIES
        expect(not strange, f"{file.name}: found needed libraries {sorted(strange)}; allowed: {sorted(ALLOWED_LIBRARIES)}")


def check_nccl_plug_in(made: Installation) -> None:
    """It has NCCL's names alone, needs nothing of NCCL or CUDA, and stays in memory."""
    plug_in = made.library.parent / "libnccl-net-weir.so"
    found = {line.split()[-1] for line in output_of("nm", "-D", "--defined-only", plug_in).splitlines()}
    due = {f"nccl{kind}Plugin_v{version}" for kind in ("Net", "CollNet") for version in range(8, 13)}
    expect(found == due, f"exported: {sorted(found)}; should be {sorted(due)}")
    strange = needed_libraries(plug_in) - {"weir"} - ALLOWED_LIBRARIES
    expect(not strange, f"found needed libraries {sorted(strange)}; allowed: libweir and {sorted(ALLOWED_LIBRARIES)}")
    expect("NODELETE" in output_of("readelf", "--wide", "--dynamic", plug_in), "NCCL may unload it, and it has threads")


def check_headers(made: Installation) -> None:
    """Each header can be the first that a file includes, with no other package's headers to be found."""
    languages = {".h": (("cc", "-xc", "-std=c99"), ("c++", "-xc++", "-std=c++20")),
                 ".hpp": (("c++", "-xc++", "-std=c++20"),)}
    flags = made.pkg_config("--cflags").split()
    for header in HEADERS:
        source = made.folder / "header_alone.txt"
        source.write_text(f'#include "weir/{header}"\n')
        for compiler in languages[Path(header).suffix]:
            output_of(*compiler, *STRICT, *flags, "-fsyntax-only", source)


def expect_run(program: Path, library: Path) -> None:
    """The program finds this library, calls it, and prints the library's error."""
    environment = {"LD_LIBRARY_PATH": str(library.parent)}
    resolved = re.findall(rf"{re.escape(SONAME)} => (.*) \(", output_of("ldd", program, environment=environment))
    expect(resolved == [str(library)], f"{program.name} runs with {resolved}; should be {library}")
    said = output_of(program, *EXAMPLE_ARGUMENTS, environment=environment, status=1)
    expect(EXAMPLE_SAYS in said, f"{program.name} said {said!r}; should be {EXAMPLE_SAYS!r}")


def check_program(made: Installation, example: str, *compiler: str) -> None:
    program = made.folder / f"program {compiler[0]}"
    source = shutil.copy2(EXAMPLES / example, made.folder)
    output_of(*compiler, *STRICT, source, *made.pkg_config("--cflags", "--libs").split(), "-o", program)
    expect_run(program, made.library)


def check_c99(made: Installation) -> None:
    check_program(made, "all_reduce.c", "cc", "-std=c99")


def check_c99_operators(made: Installation) -> None:
    source = shutil.copy2(EXAMPLES / "by_operator.c", made.folder)
    program, text = made.folder / "by_operator", ROOT / "config/operators/mxfp8-e4m3-sum.weir"
    output_of("cc", "-std=c99", *STRICT, source, *made.pkg_config("--cflags", "--libs").split(), "-o", program)
    said = output_of(program, "0", "1", "127.0.0.1:7472", "1", "lo", "127.0.0.1", text, environment={"LD_LIBRARY_PATH": str(made.library.parent)})
    expect("1 by way of the" in said, f"a group of one said {said!r}")


def check_cpp20(made: Installation) -> None:
    check_program(made, "all_reduce.cpp", "c++", "-std=c++20")


def check_cmake(made: Installation) -> None:
    """Also that the installed tree may move, into a folder with a blank in its name."""
    if shutil.which("cmake") is None:
        raise Skip("there is no cmake")
    moved = made.folder / "moved prefix"
    shutil.copytree(made.prefix, moved, symlinks=True)
    project = made.folder / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    shutil.copy2(EXAMPLES / "all_reduce.c", project)
    output_of("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={moved}")
    output_of("cmake", "--build", project / "build")
    expect_run(project / "build/job", moved / made.library.relative_to(made.prefix))


def argument_counts(made: Installation) -> dict[str, int]:
    header = re.sub(r"/\*.*?\*/", "", (made.prefix / "include/weir/weir.h").read_text(), flags=re.DOTALL)
    declared = re.findall(r"\b(weir_\w+)\(([^()]*)\);", header)
    return {name: 0 if arguments == "void" else arguments.count(",") + 1 for name, arguments in declared}


def check_torchs_copy_of_the_header(made: Installation) -> None:
    """weir_torch has names, numbers, fields and functions of weir.h once more, because Python reads no C."""
    folder = next(made.prefix.rglob("weir_torch"))
    beliefs = output_of(sys.executable, "-B", "-c", BELIEFS, cwd=folder,
                        environment={"WEIR_LIBRARY": str(made.library)})
    source = made.folder / "beliefs.c"
    source.write_text(beliefs)
    output_of("cc", "-std=c11", *made.pkg_config("--cflags").split(), "-fsyntax-only", source)
    believed = {name: int(count) for name, count in re.findall(r"(\w+) has (\d+) arguments", beliefs)}
    due = argument_counts(made)
    wrong = {name: count for name, count in believed.items() if due[name] != count}
    expect(len(believed) > 10 and not wrong, f"numbers of arguments: found {wrong or believed}; should be {due}")


def check_wheel(made: Installation) -> None:
    """tools/wheel: what is in it has the digests of its list, needs nothing of other packages, and is loaded from where pip
    puts it."""
    wheel = Path(output_of(ROOT / "tools/wheel", made.folder / "wheels", "--build", made.build, environment=made.packages).strip())
    expect(re.fullmatch(rf"weir_torch-{VERSION}-py3-none-manylinux_2_\d\d_\w+\.whl", wheel.name), f"found {wheel.name}")
    place = made.folder / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    listed = {}
    for line in next(place.glob("*.dist-info/RECORD")).read_text().splitlines():
        name, digest, _ = line.split(",")
        listed[name] = digest
    found = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}
    expect(found == set(listed), f"listed, but not there, or the other way round: {sorted(found ^ set(listed))}")
    wrong = [name for name, digest in listed.items() if digest and digest != f"sha256={url_digest(place / name)}"]
    expect(not wrong, f"found other bytes than listed: {wrong}")
    package = place / "weir_torch"
    libraries = {file.name for file in package.glob("*.so*")}
    for library in libraries:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", package / library)))
        expect(not {name for name in needed if not name.startswith(OF_THE_PLATFORM)} - libraries, f"{library} needs {needed}")
    said = output_of(sys.executable, "-B", "-c", "import c_api; print(c_api.library.weir_version().decode(), c_api.library_file())",
                     cwd=package)
    expect(said.split() == [VERSION, str(package / SONAME)], f"found {said}")


def url_digest(file: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()


def check_version(made: Installation) -> None:
    said = made.pkg_config("--modversion")
    expect(said == VERSION, f"pkg-config says version {said}; should be {VERSION}")
    library = ctypes.CDLL(str(made.library))
    library.weir_version.restype = ctypes.c_char_p
    said = library.weir_version().decode()
    expect(said == VERSION, f"weir_version() says {said!r}; should be {VERSION}")
    for program in HOST_PROGRAMS:
        said = output_of(made.prefix / "bin" / program, "--version")
        expect(said == f"{program} {VERSION}\n", f"--version says {said!r}; should be {program} {VERSION}")


def check_worker_without_dpdk(made: Installation) -> None:
    said = output_of(made.prefix / "bin/weir-worker", "--rank", "0", "--world", "2", "--rendezvous", "127.0.0.1:7471",
                     "--ip", "10.0.0.1", "--size", "1KiB", "--device", "net_memif0,role=client", status=1)
    due = "device net_memif0,role=client: this build has no DPDK"
    expect(due in said, f"weir-worker said {said!r}; should be {due!r}")


CHECKS: tuple[Callable[[Installation], None], ...] = (
    check_files, check_whole_tree, check_exports, check_dynamic_sections, check_nccl_plug_in, check_headers, check_c99, check_c99_operators, check_cpp20,
    check_cmake, check_torchs_copy_of_the_header, check_wheel, check_version, check_worker_without_dpdk,
)


def verdict(name: str, body: Callable[[], object]) -> str:
    started = time.monotonic()
    why = ""
    try:
        body()
        word = "passed"
    except Skip as reason:
        word, why = "skipped", f": {reason}"
    except Mistake as mistake:
        word, why = "FAILED", f": {mistake}"
    print(f"  {word:7} {name}  {time.monotonic() - started:.1f} s{why}", flush=True)
    return word


def summary(stage: str, words: Sequence[str]) -> int:
    """Says how many passed; the stage's status."""
    failed = words.count("FAILED")
    print(f"{stage}: {words.count('passed')} passed, {failed} failed, {words.count('skipped')} skipped")
    return 1 if failed else 0


def main() -> int:
    with (tempfile.TemporaryDirectory(prefix="weir-install-") as name,
          tempfile.TemporaryDirectory(prefix="build-install-", dir=ROOT) as build):
        made: list[Installation] = []
        words = [verdict("build and install", lambda: made.append(install(Path(name), Path(build))))]
        words += [verdict(check.__name__.removeprefix("check_").replace("_", " "), lambda: check(made[0]))
                  for check in CHECKS if made]
    return summary("install", words)


if __name__ == "__main__":
    sys.exit(main())
