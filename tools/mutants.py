"""Break the library on purpose, one place at a time: the fast tests have to notice.

Usage::

    make mutants
    .venv/bin/python tools/mutants.py [NAME ...]

The tree is copied to a scratch folder, where every mutation is applied by itself. It is caught if
some test of ``pytest -m "not slow"`` fails. The exit code is 1 if a mutation is not caught, if it
keeps the tests from running at all, or if the text it replaces does not occur exactly once.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CORE = "src/sievesvm/_core/"
TESTS = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0"]


class Mutation(NamedTuple):
    name: str
    file: str
    old: str  # occurs exactly once in the file
    new: str

    @property
    def native(self) -> bool:
        return self.file.startswith(CORE)


MUTATIONS = [
    Mutation(
        "margin removed",
        "src/sievesvm/problem.py",
        "return product_error(self.source, self.basis)",
        "return 0.0",
    ),
    Mutation(
        "sign of the cut flipped",
        CORE + "bounds.hpp",
        "const double gh = K.h_m * f.m + K.h_z * f.zeta + K.h_x * extra;",
        "const double gh = -(K.h_m * f.m + K.h_z * f.zeta + K.h_x * extra);",
    ),
    Mutation(  # erratum 1: the product with theta1 inside the factor (1/lam2 - 1/lam1)/2
        "bracket",
        "src/sievesvm/screening.py",
        "return region._replace(h_m=1.0, h_z=-step,",
        "tau *= 0.5 * (1.0 / lam - 1.0 / lam1)\n"
        "    return region._replace(tau=tau, h_m=1.0, h_z=-step,",
    ),
    Mutation(
        "dependence believed",
        "src/sievesvm/certify.py",
        "if not (whole and np.array_equal(others @ factors, Z[:, k])):",
        "if False:",
    ),
    Mutation(
        "NaN-unsafe comparison",
        "src/sievesvm/screening.py",
        "np.flatnonzero(~(relative < 1.0))",
        "np.flatnonzero(relative >= 1.0)",
    ),
    Mutation(
        "zeta not centred",
        "src/sievesvm/problem.py",
        "zeta = zeta - self.stats.mean[chosen] * vector.sum()",
        "pass",
    ),
    Mutation(  # a proof would hold however far the point has gone since
        "odometer stands still",
        CORE + "ledger.hpp",
        "travelled_.two += pace_.two;",
        "",
    ),
    Mutation(
        "room without a unit",
        CORE + "ledger.hpp",
        " || !(unit_.two > 0)) return kDue;",
        ") return kDue;",
    ),
    Mutation(
        "far features never brought near",
        CORE + "ledger.hpp",
        "if (!is_far(order_[i])) std::swap(order_[i], order_[near_++]);",
        "{}",
    ),
    Mutation(  # the feasibility rule of look-ahead
        "reach ignored",
        CORE + "ledger.hpp",
        "reach_ = std::min<int64_t>(reach_, until_[j]);",
        "",
    ),
]


class Fault(Exception):
    """The mutation proves nothing: its text is not there, or the result does not run."""


class Tree:
    """A copy of the working tree, built in place, so that only C++ needs a build."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.build_folder = folder / "build"
        listed = self._run(ROOT, "git", "ls-files", "-co", "--exclude-standard", "-z").stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():  # listed, but deleted, otherwise
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        nanobind = self._run(ROOT, sys.executable, "-m", "nanobind", "--cmake_dir").stdout.strip()
        self._cmake(
            "-S",
            str(self.root),
            "-B",
            str(self.build_folder),
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dnanobind_DIR={nanobind}",
        )
        self.build()

    def build(self) -> None:
        self._cmake("--build", str(self.build_folder), "--parallel")
        self._cmake("--install", str(self.build_folder), "--prefix", str(self.root / "src"))

    def first_failure(self) -> str | None:
        """The first test that fails; None if none does."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # a change within one second would go unseen
        }
        command = [sys.executable, "-m", "pytest", *TESTS]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True
        )
        failed = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
        if done.returncode == 0:
            return None
        if done.returncode == 1 and failed:
            return failed[1]
        raise Fault(f"the tests do not run\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def _cmake(self, *arguments: str) -> None:
        self._run(self.root, sys.executable, "-m", "cmake", *arguments)

    @staticmethod
    def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            output = (done.stdout + done.stderr)[-3000:]
            raise Fault(f"{' '.join(command[:4])} ... failed\n{output}")
        return done


def catch(tree: Tree, mutation: Mutation) -> str | None:
    """Apply the mutation, run the tests, and take it back. Returns the test that caught it."""
    file = tree.root / mutation.file
    original = file.read_text()
    found = original.count(mutation.old)
    if found != 1:
        raise Fault(f"its text occurs {found} times in {mutation.file}, not once")
    try:
        file.write_text(original.replace(mutation.old, mutation.new))
        if mutation.native:
            tree.build()
        return tree.first_failure()
    finally:
        file.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description="Do the fast tests notice a broken library?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations to try (default: all)")
    names = parser.parse_args().names
    if unknown := set(names) - {mutation.name for mutation in MUTATIONS}:
        parser.error(f"no such mutation: {', '.join(sorted(unknown))}")
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]

    with tempfile.TemporaryDirectory(prefix="sievesvm-mutants-") as folder:
        print("building a copy and running its fast tests ...", flush=True)
        tree = Tree(Path(folder))
        if failure := tree.first_failure():
            print(f"the tests fail without any mutation: {failure}")
            return 1
        missed = 0
        print(f"{'mutation':26} {'seconds':>7}  caught by")
        # Those in Python first: a change of C++ taken back would have to be built once more.
        for mutation in sorted(chosen, key=lambda mutation: mutation.native):
            start = time.perf_counter()
            try:
                verdict = catch(tree, mutation)
            except Fault as fault:
                verdict, missed = f"FAULT: {fault}", missed + 1
            if verdict is None:
                verdict, missed = "NOTHING", missed + 1
            seconds = time.perf_counter() - start
            print(f"{mutation.name:26} {seconds:7.1f}  {verdict}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
