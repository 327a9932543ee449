"""What is mutated, and which fast tests judge it.

Modules are named by a package and a file's stem, tests by the end of their path below `tests`: files may move within their package
without a change here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "myia_relay"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Area:
    """Modules that belong together.

    Attributes:
        modules: folder -> stems of modules.
        tests: stems of test files, below `tests`.
    """

    name: str
    modules: dict[str, str]
    tests: str

    def module_paths(self) -> list[Path]:
        return [_find(PACKAGE / folder, stem) for folder, stems in self.modules.items() for stem in stems.split()]

    def test_paths(self) -> list[Path]:
        return [_find(TESTS, stem) for stem in self.tests.split()]


def _find(folder: Path, stem: str) -> Path:
    """The one file of this name below a folder; `folder/stem` where several folders have one."""
    name = stem.rpartition("/")[2]
    found = [p for p in folder.rglob(f"{name}.py") if p.with_suffix("").as_posix().endswith(f"/{stem}")]
    if len(found) != 1:
        raise FileNotFoundError(f"{stem}.py below {folder}: {len(found)} files")
    return found[0]


AREAS = (
    Area(
        "ranges",
        {"opt": "ranges intervals scalar_evolution polynomials check_elimination"},
        "test_intervals test_range_conditions test_range_facts test_range_operations opt/test_ranges test_polynomials",
    ),
    Area(
        "in place",
        {"backend/tvm": "inplace", "opt": "delay_updates"},
        "test_delay_updates test_donated_arguments test_native_inplace test_update_parts",
    ),
    Area(
        "sharing",
        {"infer": "sharing", "frontend": "ownership"},
        "errors/test_sharing unit/infer/test_sharing programs/test_aliases programs/test_changed_arguments "
        "programs/test_shared_entries",
    ),
    Area("references", {"backend/tvm": "references lists list_blocks"}, "test_native_lists"),
    Area("plan", {"backend/tvm": "plan"}, "test_plan"),
    Area(
        "cache",
        {"cache": "key describe paths", "infer": "dependencies"},
        "unit/cache/test_key unit/cache/test_describe unit/cache/test_paths unit/cache/test_programs unit/cache/test_export "
        "unit/infer/test_dependencies",
    ),
    Area(
        "derivatives",
        {
            "ad": "reverse/reverse forward/forward cotangents activity reverse/control",
            "prims": "elementwise reduction broadcast shape indexing linalg",
        },
        "unit/ad/test_reverse unit/ad/test_forward unit/ad/test_small_programs prims/test_registry prims/test_forward "
        "prims/test_axes prims/test_symbolic test_reference_values",
    ),
    Area(
        "batches",
        {"ad": "batch/batch batch/control", "prims": "rules/batching"},
        "test_batch_of_programs unit/ad/test_batch unit/ad/test_small_programs prims/test_registry",
    ),
    Area(
        "algebra",
        {"opt": "algebra rewrite/rules like_terms"},
        "test_plain_rules test_rule_values test_optimize test_like_terms",
    ),
    Area("exact", {"backend/tvm": "exact exact_int"}, "test_exact test_exact_ints"),
)
