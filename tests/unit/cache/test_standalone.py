"""Libraries for C: what they say of themselves, results, errors; from C, Rust and Go; on two other machines under qemu."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from myia_relay import Float, Float64, LoweringError, Tensor, TypeError_, grad, relay, relay_model
from myia_relay.abstract.words import code_of
from myia_relay.backend.native import library
from myia_relay.backend.native.standalone import INCLUDE, TargetMachine
from myia_relay.model.lenet import lenet

from .cache_util import ROOT, python

EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "c" / "run_library.c"
MACHINES = {
    "aarch64": ("aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "armv7": ("armv7l-linux-gnueabihf", "arm-linux-gnueabihf-gcc", "qemu-arm", "/usr/arm-linux-gnueabihf"),
}
here = pytest.mark.skipif(
    not (shutil.which("gcc") and library.supported()), reason="needs gcc, and Linux on x86-64 for the linker"
)


@relay
def mixed(x: Tensor[Float64, ("n", 3)], n):  # noqa: F821
    if n < 0:
        raise ValueError(f"n is {n}, x begins with {x[0, 0]} or {x[0, 0]:.3f}")
    total = np.float64(0.0)
    for i in range(n):
        total += np.exp(x[i % len(x), 0]) + i**1.5
    return {"a": x.T @ x, "b": (total, n * 2, x[x[:, 0] > 0]), "even": n % 2 == 0}


@relay
def steps(n, x):
    return 1.0 if n == 0 else x * steps(n - 1, x) + 0.001 * n


@relay
def iterated(x, n):
    kept = [x]
    for i in range(n):
        kept.append(np.sin(kept[-1]) * x[i % 3])
    return kept[-1] + kept[n // 2], np.float32(kept[0][0]) * np.float32(2)


def summed(x, n):
    for _ in range(n):
        x = np.tanh(x) * x
    return np.sum(x)


@relay_model
def sequence(xs: Tensor[Float, (7, 5)]):
    ys, _ = relay.lstm(xs, num_hidden=6)
    return relay.linear(ys[-1], num_hidden=3)


def built(folder: Path, compiler: str, *arguments: str) -> str:
    program = str(folder / f"run{len(list(folder.iterdir()))}")
    flags = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", str(EXAMPLE)]
    subprocess.run([compiler, *flags, *arguments, "-o", program, "-lm"], check=True, timeout=120)
    return program


def run(folder: Path, command: list[str], *values) -> tuple[int, str, str, list[float]]:
    arguments = []
    for k, value in enumerate(values):
        np.asarray(value).tofile(folder / f"argument{k}")
        shape = ",".join(map(str, np.shape(value)))
        arguments.append(f"{folder / f'argument{k}'}:{shape}" if shape else str(folder / f"argument{k}"))
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    return (
        done.returncode,
        done.stderr.strip(),
        "\n".join(line for line in lines if line[0] == "#"),
        [float(line) for line in lines if line[0] != "#"],
    )


def flat(value) -> np.ndarray:
    if isinstance(value, dict):
        value = tuple(value.values())
    return np.concatenate([flat(v) for v in value]) if isinstance(value, tuple) else np.ravel(value)


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return functools.cache(lambda: built(tmp_path_factory.mktemp("runner"), "gcc", "-ldl"))


X = np.random.default_rng(0).normal(size=(4, 3))


@pytest.mark.sampled(2)
@here
@pytest.mark.parametrize(
    "f, values",
    [
        (mixed, (X, 5)),
        (mixed, (X[:2], 0)),
        (steps, (20000, 0.999)),
        (iterated, (X[0], 9)),
        (relay(grad(summed)), (X, 6)),
        (relay(lambda a, b: (a + b, -a, a / np.float32(3))), (np.int16(-7), np.float32(1.5))),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_shared_object_in_c(tmp_path, runner, f, values):
    relay.export_library(f, tmp_path / "f.so", *values)
    code, error, said, found = run(tmp_path, [runner(), str(tmp_path / "f.so")], *values)
    assert (code, error) == (0, "")
    assert np.allclose(found, flat(f(*values)), rtol=1e-12, atol=1e-12)
    assert said.startswith(f"# {f.__name__} for this machine, loaded in ")


@relay
def bought(book, rows, weights):
    total = 0.0
    for p in book:
        if p["side"] == "buy":
            total += p["price"] * p["n"]
    for k, row in enumerate(rows):
        for to, cost in row:
            total += weights[to] * cost + k
    return total


@here
def test_lists_are_columns_in_c(tmp_path, runner):
    """The layout that docs/deployment.md describes."""
    book = [{"side": "buy" if k % 2 else "a side of many letters", "price": 0.5 * k, "n": k} for k in range(7)]
    rows = [[(i, i * 1.5) for i in range(k % 4)] for k in range(6)]
    relay.export_library(bought, tmp_path / "f.so", book[:2], rows[:3], [1.0])
    flat_rows = [pair for row in rows for pair in row]
    inputs = {
        "book.length": np.array([7]),
        "book.side.code": np.array([code_of(p["side"]) for p in book]),
        "book.price": np.array([p["price"] for p in book]),
        "book.n": np.array([p["n"] for p in book]),
        "rows.length": np.array([6]),
        "rows.lengths": np.array([len(row) for row in rows]),
        "rows.0": np.array([to for to, _ in flat_rows]),
        "rows.1": np.array([cost for _, cost in flat_rows]),
        "weights": np.arange(5.0),
    }
    code, error, said, found = run(tmp_path, [runner(), str(tmp_path / "f.so")], *inputs.values())
    assert (code, error) == (0, "")
    assert found == [bought(book, rows, [0.0, 1.0, 2.0, 3.0, 4.0])]
    assert [line.split()[2].rstrip(":") for line in said.splitlines()[1:]][: len(inputs)] == list(inputs)


@here
def test_codes_of_strings_in_c(tmp_path):
    texts = ["", "a", "buy", "12345678", "a side of many letters", "\N{GREEK SMALL LETTER ALPHA}" * 5]
    source = "\n".join(
        [
            "#define MYIA_RELAY_IMPLEMENTATION",
            '#include "myia_relay.h"',
            "#include <stdio.h>\n#include <string.h>",
            "int main(int n, char **texts) {",
            "  for (int k = 1; k < n; k++) {",
            '    printf("%lld\\n", (long long)myia_relay_code(texts[k], strlen(texts[k])));',
            "  }",
            "  return 0;",
            "}",
        ]
    )
    (tmp_path / "codes.c").write_text(source)
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    subprocess.run(["gcc", *flags, "codes.c", "-o", "codes", "-lm", "-ldl"], cwd=tmp_path, check=True, timeout=120)
    said = subprocess.run([tmp_path / "codes", *texts], capture_output=True, text=True, check=True).stdout
    assert list(map(int, said.split())) == list(map(code_of, texts))


def doubled(xs):
    return [2 * x for x in xs]


def double(xs):
    for k in range(len(xs)):
        xs[k] *= 2


@pytest.mark.parametrize("function, advice", [(doubled, "return arrays"), (double, "let it return")])
def test_lists_of_the_program_are_refused_with_advice(tmp_path, function, advice):
    with pytest.raises(LoweringError, match=advice) as caught:
        relay.export_library(relay(function), tmp_path / "f.so", [1.0, 2.0])
    assert f"in {function.__name__}" in str(caught.value)


def cpp(folder: Path) -> str:
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", f"-I{INCLUDE}"]
    subprocess.run(["g++", "-x", "c++", *flags, str(EXAMPLE), "-o", "run", "-lm", "-ldl"], cwd=folder, check=True)
    return str(folder / "run")


def rust(folder: Path) -> str:
    shutil.copytree(EXAMPLES / "rust", folder / "rust", ignore=shutil.ignore_patterns("target"))
    env = {**os.environ, "MYIA_RELAY_INCLUDE": str(INCLUDE), "CARGO_TARGET_DIR": str(folder), "RUSTFLAGS": "-Dwarnings"}
    command = ["cargo", "build", "--quiet", "--offline", "--locked"]
    subprocess.run(command, cwd=folder / "rust", env=env, check=True, timeout=300)
    return str(folder / "debug" / "run_library")


def go(folder: Path) -> str:
    env = {**os.environ, "CGO_CFLAGS": f"-O2 -I{INCLUDE}", "GOPROXY": "off", "GOCACHE": str(folder / "cache")}
    command = ["go", "build", "-o", str(folder / "run"), "."]
    subprocess.run(command, cwd=EXAMPLES / "go", env=env, check=True, timeout=300)
    return str(folder / "run")


LANGUAGES = {"c": ("gcc", None), "c++": ("g++", cpp), "rust": ("cargo", rust), "go": ("go", go)}


def is_installed(tool: str) -> bool:
    """Whether a compiler is there and set up; rustup's `cargo` without a toolchain is not."""
    if shutil.which(tool) is None:
        return False
    return not subprocess.run([tool, "version" if tool == "go" else "--version"], capture_output=True).returncode


@pytest.mark.sampled(2)
@here
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_library_describes_itself_and_says_what_is_wrong(tmp_path, runner, language):
    tool, build = LANGUAGES[language]
    if not is_installed(tool):
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "program").mkdir()
    program = build(tmp_path / "program") if build else runner()
    library = str(tmp_path / "f.so")
    relay.export_library(mixed, library, X, 5)
    command = [program, library]
    code, _, said, found = run(tmp_path, command, X, 5)
    assert code == 0 and np.allclose(found, flat(mixed(X, 5)), rtol=1e-12, atol=1e-12)
    assert said.splitlines()[1:] == [
        "# argument x: float64[-1, 3]",
        "# argument n: int64[]",
        "# result a: float64[3, 3]",
        "# result b.0: float64[]",
        "# result b.1: int64[]",
        "# result b.2: float64[-1, 3]",
        "# result even: bool[]",
    ]
    line = mixed.__wrapped__.__code__.co_firstlineno + 3
    message = f"test_standalone.py:{line}: ValueError: n is -2, x begins with {X[0, 0]} or {X[0, 0]:.3f}"
    assert run(tmp_path, command, X, -2)[:2] == (11, message)
    assert run(tmp_path, command, X.T, 5)[:2] == (2, "axis 1 of x is 3 long, not 4")
    assert run(tmp_path, command, X.ravel(), 5)[:2] == (2, "x has 2 axes, not 1")
    assert run(tmp_path, [*command, str(tmp_path / "nothing")])[0] == 2
    (tmp_path / "short").write_bytes(bytes(16))
    assert run(tmp_path, [*command, f"{tmp_path / 'short'}:4,3", str(tmp_path / "short")])[0] == 2
    assert run(tmp_path, [program, str(EXAMPLE)])[0] == 1
    relay.export_library(steps, library, 3, 1.0)
    assert run(tmp_path, command, 10**7, 1.0)[0] == 4


SHAPES = r"""
#define MYIA_RELAY_IMPLEMENTATION
#include "myia_relay.h"

int main(int argc, char **argv) {
    myia_relay_program *p;
    double x[12] = {0};
    int64_t n = 1;
    static const int64_t shapes[][2] = {{-4, 3}, {4, -3}, {INT64_MIN, 3}, {INT64_MAX, 3}, {INT64_MAX / 24 + 1, 3},
                                        {INT64_C(1) << 61, 3}, {INT64_C(1) << 62, 3}, {0, 3}, {4, 3}};
    if (argc < 2 || myia_relay_load(argv[1], &p)) return 1;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        myia_relay_array in[2] = {{x, NULL, 2, shapes[k]}, {&n, NULL, 0, NULL}}, out[5] = {{0}};
        int code = myia_relay_run(p, in, out);
        printf("%d %s\n", code, myia_relay_message(p));
    }
    myia_relay_close(p);
    return 0;
}
"""

DAMAGE = r"""
#define MYIA_RELAY_IMPLEMENTATION
#include "myia_relay.h"
#include <unistd.h>

static uint64_t state = 88172645463325252u;
static uint64_t below(uint64_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
}

int main(int argc, char **argv) {
    static unsigned char whole[1 << 20], damaged[1 << 20];
    FILE *file = fopen(argv[1], "rb");
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    int loaded = 0;
    for (int k = 0; argc > 3 && k < atoi(argv[2]); k++) {
        size_t left = size, at = below(size), length = 1 + below(size - at < 64 ? size - at : 64);
        memcpy(damaged, whole, size);
        switch (k % 5) {
        case 0: damaged[at] ^= 1 << below(8); break;
        case 1: for (size_t i = 0; i < length; i++) damaged[at + i] = (unsigned char)below(256); break;
        case 2: left = at; break;
        case 3: memset(damaged + at, k % 2 ? 0 : 255, size - at); break;
        case 4: memmove(damaged + at, damaged + at + length, size - at - length), left = size - length; break;
        }
        if (left == size && !memcmp(whole, damaged, size)) continue;
        file = fopen(argv[3], "wb");
        fwrite(damaged, 1, left, file);
        fclose(file);
        myia_relay_program *p;
        int code = myia_relay_load(argv[3], &p);
        if (code == MYIA_RELAY_OK) loaded++, myia_relay_close(p);
        else if (code != MYIA_RELAY_NO_LIBRARY || !*myia_relay_message(NULL)) loaded++;
        unlink(argv[3]);
    }
    printf("%d\n", loaded);
    return 0;
}
"""


def compiled(folder: Path, source: str, *flags: str) -> str:
    (folder / "program.c").write_text(source)
    warnings = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    command = ["gcc", *warnings, *flags, str(folder / "program.c"), "-o", str(folder / "program"), "-lm", "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return str(folder / "program")


@here
def test_shapes_that_no_array_has(tmp_path):
    library = tmp_path / "f.so"
    relay.export_library(mixed, library, X, 5)
    command = [compiled(tmp_path, SHAPES), str(library)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert found[:3] == [
        "2 axis 0 of x cannot be -4 long",
        "2 axis 1 of x cannot be -3 long",
        f"2 axis 0 of x cannot be {-(2**63)} long",
    ]
    assert found[3:7] == ["2 x has more elements than there is memory"] * 4
    assert found[7].endswith("ZeroDivisionError: integer modulo by zero") and found[8:] == ["0 "]


def load_damaged(tmp_path, count: int) -> None:
    relay.export_library(mixed, tmp_path / "f.so", X, 5)
    command = [compiled(tmp_path, DAMAGE), str(tmp_path / "f.so"), str(count), str(tmp_path / "damaged.so")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "0\n")


@here
def test_damaged_libraries_are_refused(tmp_path):
    load_damaged(tmp_path, 500)
    with pytest.raises(ValueError, match=r"f\.so: "):
        relay.load_compiled(tmp_path / "f.so")


@here
@pytest.mark.campaign
def test_many_damaged_libraries_are_refused(tmp_path):
    load_damaged(tmp_path, 20_000)


@here
def test_a_damaged_static_library_is_refused(tmp_path):
    """What is linked has no file to look at: the description is."""
    relay.export_library(mixed, tmp_path / "f.a", X, 5)
    whole = (tmp_path / "f.a").read_bytes()
    program = "int main(void) { myia_relay_program *p; return myia_relay_linked(&p); }"
    source = f'#define MYIA_RELAY_IMPLEMENTATION\n#include "myia_relay.h"\n{program}\n'
    begin = whole.index(b"MYIARLY1")
    for at, code in ((None, 0), (begin + 9, 1), (begin + 24, 1), (begin + 60, 1), (whole.index(b"float64", begin), 1)):
        damaged = whole if at is None else whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :]
        (tmp_path / "f.a").write_bytes(damaged)
        command = [
            compiled(
                tmp_path,
                source,
                "-DMYIA_RELAY_STATIC",
                "-Wl,--whole-archive",
                str(tmp_path / "f.a"),
                "-Wl,--no-whole-archive",
            )
        ]
        assert subprocess.run(command, timeout=120).returncode == code, at


def machine(name: str) -> tuple[str, str, str, str]:
    target, compiler, emulator, root = MACHINES[name]
    if missing := [tool for tool in (compiler, emulator) if shutil.which(tool) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed")
    return target, compiler, emulator, root


@pytest.mark.parametrize("kind", ["a", "so"])
@pytest.mark.parametrize("name", MACHINES)
def test_other_machines(tmp_path, name, kind):
    target, compiler, emulator, root = machine(name)
    model = relay.create_model(lenet, seed=1, init=0.1)
    recurrent = relay.create_model(sequence, seed=2, init=0.3)
    rng = np.random.default_rng(1)
    image = rng.normal(size=(1, 28, 28)).astype(np.float32)
    words = rng.normal(size=(7, 5)).astype(np.float32)
    simd = ["-mfpu=neon-vfpv4"] if name == "armv7" else []
    program = built(tmp_path, compiler, *simd, "-ldl") if kind == "so" else ""
    for f, values in ((model, (image,)), (recurrent, (words,)), (mixed, (X, 5)), (steps, (20000, 0.999))):
        library = tmp_path / f"f.{kind}"
        relay.export_library(f, library, *values, target=target)
        if kind == "a":
            program = built(tmp_path, compiler, *simd, "-DMYIA_RELAY_STATIC", str(library))
        command = [emulator, "-L", root, program, *([str(library)] if kind == "so" else [])]
        code, error, _, found = run(tmp_path, command, *values)
        assert (code, error) == (0, "")
        assert np.allclose(found, flat(f(*values)), rtol=1e-5, atol=1e-5)
        if f is mixed:
            assert run(tmp_path, command, X, -2)[0] == 11
            assert "n is -2" in run(tmp_path, command, X, -2)[1]
        if f is steps:
            assert run(tmp_path, command, 10**7, 1.0)[0] == 4


VECTOR = {"aarch64": r"\tf(mla|mul|add)\s+v", "armv7": r"\tv(fma|mla|mul|add)\.f32\s+q"}
SCALAR = {"aarch64": r"\tf(madd|mul|add)\s+s", "armv7": r"\tv(fma|mla|mul|add)\.f32\s+s"}


@pytest.mark.parametrize("name", MACHINES)
def test_networks_use_the_vectors_of_arm(tmp_path, name):
    """The products and sums of LeNet and of an LSTM are vectors, in their code and in the header's."""
    target, compiler, _, _ = machine(name)
    disassemble = [compiler.replace("gcc", "objdump"), "-d", "--no-show-raw-insn"]
    if shutil.which(disassemble[0]) is None:
        pytest.skip(f"{disassemble[0]} not installed")
    for model in (relay.create_model(lenet), relay.create_model(sequence)):
        relay.export_library(model, tmp_path / "f.so", target=target)
        code = subprocess.run([*disassemble, str(tmp_path / "f.so")], capture_output=True, text=True, check=True).stdout
        assert len(re.findall(VECTOR[name], code)) > 50 and not re.findall(SCALAR[name], code)
    simd = ["-mfpu=neon-vfpv4"] if name == "armv7" else ["-O3"]
    program = built(tmp_path, compiler, *simd, "-ldl")
    code = subprocess.run([*disassemble, program], capture_output=True, text=True, check=True).stdout
    for function in ("scipy_cblas_sgemm", "scipy_cblas_sgemv"):
        body = re.search(rf"<{function}>:\n(.*?)\n\n", code, re.DOTALL)
        inner = "".join(re.findall(r"<myia_relay_(?:tile|dot|add)_s>:\n.*?\n\n", code, re.DOTALL))
        assert body and re.findall(VECTOR[name], body[1] + inner)


def test_what_c_has_not_is_refused(tmp_path):
    for f, values, message in (
        (relay(lambda a: np.linalg.inv(a)), (np.eye(3),), "LAPACK"),
        (relay(lambda a, n: [a * i for i in range(n)]), (2.0, 3), "returns a list"),
        (relay(lambda a: a), (np.float16(1),), "float16 number"),
    ):
        with pytest.raises(LoweringError, match=message):
            relay.export_library(f, tmp_path / "f.a", *values)
    for path, target, error in (
        ("f.dll", None, TypeError_),
        ("f.so", "riscv64-linux-gnu", LoweringError),
        ("f.a", "my machine", LoweringError),
    ):
        with pytest.raises(error):
            relay.export_library(steps, tmp_path / path, 3, 1.0, target=target)
    with pytest.raises(TypeError_, match="not function"):
        relay.export_library(summed, tmp_path / "f.a", X, 3)
    assert not list(tmp_path.iterdir())


def test_machines():
    assert TargetMachine.of("x86_64-linux-gnu -mcpu=x86-64-v3 -mattr=+avx2,-fma") == TargetMachine(
        "x86_64-linux-gnu", "x86-64-v3", ("+avx2", "-fma")
    )
    assert TargetMachine.of("armv7l-linux-gnueabihf").attributes() == {
        "mtriple": "armv7l-unknown-linux-gnueabihf",
        "mattr": ["+neon", "+vfp4"],
        "mfloat-abi": "hard",
    }


TRAINS = """
import sys
from myia_relay import Float, Tensor, relay
from myia_relay.model.lenet import lenet

@relay
def loss(x: Tensor[Float, (1, 28, 28)], y: Tensor[Float, 10]):
    return relay.softmax_cross_entropy(lenet(x), y)

train, test = relay.datasets.digits()
model = relay.create_model(lenet, seed=0)
relay.fit(model, loss, train[:64], epochs=2, batch_size=16, optimizer=relay.optim.adam(model, lr=1e-3), verbose=False)
model.save(f"{sys.argv[1]}/lenet.safetensors")
test[5].x.tofile(f"{sys.argv[1]}/image")
model(test[5].x).tofile(f"{sys.argv[1]}/scores")
"""
SHIPS = """
import sys
from myia_relay import relay
from myia_relay.model.lenet import lenet

model = relay.load_model(lenet, f"{sys.argv[1]}/lenet.safetensors")
relay.export_model(model).save(f"{sys.argv[1]}/python.so")
for name, target in zip(sys.argv[2::2], sys.argv[3::2]):
    relay.export_library(model, f"{sys.argv[1]}/{name}.so", target=target or None)
"""
RUNS = """
import sys
import numpy as np
from myia_relay import relay

image = np.fromfile(f"{sys.argv[1]}/image", np.float32).reshape(1, 28, 28)
relay.load_compiled(f"{sys.argv[1]}/python.so")(image).tofile(f"{sys.argv[1]}/found")
"""


@here
def test_a_trained_model_goes_everywhere(tmp_path, runner):
    """Trained in one process, saved, loaded and exported by another, run by Python, by C, and on two other machines."""
    python(TRAINS, str(tmp_path))
    machines = [name for name in MACHINES if all(map(shutil.which, MACHINES[name][1:3]))]
    names = [word for name in machines for word in (name, MACHINES[name][0])]
    python(SHIPS, str(tmp_path), "here", "", *names)
    python(RUNS, str(tmp_path))
    scores = np.fromfile(tmp_path / "scores", np.float32)
    assert np.allclose(np.fromfile(tmp_path / "found", np.float32), scores, rtol=1e-5, atol=1e-5)
    image = np.fromfile(tmp_path / "image", np.float32).reshape(1, 28, 28)
    commands = [[runner(), str(tmp_path / "here.so")]]
    for name in machines:
        _, compiler, emulator, root = MACHINES[name]
        program = built(tmp_path, compiler, *(["-mfpu=neon-vfpv4"] if name == "armv7" else []), "-ldl")
        commands.append([emulator, "-L", root, program, str(tmp_path / f"{name}.so")])
    for command in commands:
        code, error, _, found = run(tmp_path, command, image)
        assert (code, error) == (0, "")
        assert np.allclose(found, scores, rtol=1e-5, atol=1e-5)
