"""Changes of what a structure holds, in many small programs: one that CPython would show elsewhere is refused.

Each program makes a structure, gives a part of it a further name, and changes an entry. CPython says what is right: a program that
is accepted has its result. And it says whether a change is seen: it is if the program has another result where all that is changed
is copied before. What nothing sees is accepted, but for those programs of which that cannot be told from names and types.
"""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.property.oracle import function_of


def ident(x):
    return x


def first(x, y):
    return x


def doubled(x):
    return x + x


def fresh(x):
    """A value of which no two parts are the same object."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, dict):
        return {k: fresh(v) for k, v in x.items()}
    return type(x)(map(fresh, x)) if isinstance(x, list | tuple) else x


NAMES = {"ident": ident, "first": first, "doubled": doubled, "fresh": fresh}

# What makes `xs`, of three rows or more, from a row of R and others of S, T and I (that of the number i); and further names.
MAKES = {
    "xs = [R, S, T]": "",
    "row = R; xs = [row, S, T]": "row",
    "row = R; xs = [row, row, S]": "row",
    "xs = [I for i in range(n)]": "",
    "row = R; xs = [row for _ in range(n)]": "row",
    "xs = [R] * 3": "",
    "ys = [R, S, T]; xs = ys": "ys",
    "ys = [R, S, T]; xs = ys[:]": "ys",
    "ys = [R, S, T]; xs = ys + [S]": "ys",
    "ys = [R, S, T]; xs = list(ys)": "ys",
    "ys = [R, S, T]; xs = ys.copy()": "ys",
    "ys = [R, S, T]; xs = [*ys, S]": "ys",
    "ys = [R, S, T]; xs = [y for y in ys]": "ys",
    "ys = [R, S, T]; xs = [y.copy() for y in ys]": "ys",
    "ys = [R, S, T]; xs = [doubled(y) for y in ys]": "ys",
    "ys = [R, S, T]; xs = [ident(y) for y in ys]": "ys",
    "xs = [ident(R), ident(S), ident(T)]": "",
    "row = R; xs = [first(row, S), first(S, row), T]": "row",
    "ys = [R, S]; xs = [T]; xs.extend(ys)": "ys",
    "ys = [R, S]; xs = [T]; xs += ys": "ys",
    "xs = [R]; xs.append(S); xs.append(T)": "",
    "row = R; xs = [S, T]; xs.append(row)": "row",
    "row = R; xs = [S, T]; xs.insert(0, row)": "row",
    "row = R; xs = [S, T]; xs[0] = row": "row",
    "row = R; xs = [S, T]; xs[0] = row; xs[1] = row": "row",
    "xs = []; for i in range(n): xs.append(I)": "",
    "xs = []; row = R; for i in range(n): xs.append(row)": "row",
    "xs = []; row = R; for i in range(n): row = I; xs.append(row)": "row",
    "xs = []; row = R; for i in range(n): xs.append(row); row = I": "row",
    "row = R; xs = [S, T]; if n > 2: xs[0] = row": "row",
    "row = R; if n > 2: xs = [row, S, T]; else: xs = [S, T]": "row",
    "row = R; if n > 2: xs = [S, T]; else: xs = [row, row]": "row",
    "xs = [R, S, T]; if n > 2: xs[0] = xs[1]": "",
    "xs = {'a': R, 'b': S, 'c': T}": "",
    "row = R; xs = {'a': row, 'b': S, 'c': row}": "row",
    "ys = {'a': R, 'b': S}; xs = dict(ys)": "ys",
    "ys = {'a': R, 'b': S}; xs = {**ys, 'c': T}": "ys",
    "ys = {'a': R, 'b': S}; xs = {k: v for k, v in ys.items()}": "ys",
    "ys = np.ones((3, 2)); xs = [ys[0], ys[1], S]": "ys",
    "ys = np.ones((3, 2)); xs = [y for y in ys]": "ys",
    "ys = np.ones((3, 2)); xs = [y * 2.0 for y in ys]": "ys",
    "xs = [p[0], p[1], S]": "",
    "xs = [p[0] * 2.0, p[1], S]": "",
    "xs = [ident(p[0]), ident(S), first(R, p[1])]": "",
    "xs = [g, S, T]": "",
    "xs = [S, np.asarray(g), T]": "",
    "xs = [S, g.copy(), T]": "",
    "ys = [[R, S], [S, T]]; xs = ys[0]": "ys",
    "ys = [[R, S], [S, T]]; xs = [y[0] for y in ys]": "ys",
    "ys = [[I for i in range(n)] for _ in range(n)]; xs = ys[1]": "ys",
    "ys = [R, S]; zs = [ys, ys]; xs = zs[0]": "ys, zs",
    "ys = [R, S]; zs = (ys, n); xs = zs[0]": "zs",
    "ys = [R, S]; get = lambda: ys; xs = get()": "ys",
    "xs = [S]; row = R; for i in range(n): if i > 0: xs.append(row)": "row",
    "xs = [S]; row = R; for i in range(n): if i > 0: xs.append(row); if i > 1: row = I": "row",
    "xs = [S]; for i in range(n): if i > 0: xs.append(I)": "",
    "xs = [S]; for i in range(n): row = I; if i > 0: xs.append(row)": "",
    "xs = [S]; row = R; for i in range(n): row = row + row; if i > 0: xs.append(row)": "row",
    "xs = [S]; for i in range(n): row = I; for _ in range(2): xs.append(row)": "",
    "xs = [S]; for i in range(n): for _ in range(2): xs.append(I)": "",
}
# What gives a part of it a name, and whether that is kept.
ALIASES = {
    "": "",
    "k = xs[0]": "k",
    "k = xs[1]": "k",
    "k = xs": "k",
    "k = [xs[0]]": "k",
    "k = (n, xs)": "k",
    "k = ident(xs[0])": "k",
    "k = xs[0]; k = xs[0].copy()": "k",
    "k = xs[0]; k = k + k": "k",
    "k = R; for i in range(n): k = xs[0]": "k",
    "k = R; for _ in range(n): k = xs[0]; j = k.copy()": "",
}
LISTS = {"R": "[1, 2]", "S": "[3, 4]", "T": "[5, 6]", "I": "[i, i]"}
ARRAYS = {"R": "np.zeros(2)", "S": "np.ones(2)", "T": "np.ones(2)", "I": "np.ones(2) * i"}
# What is changed: the name that it is reached by is behind the semicolon.
CHANGES = [
    (LISTS, "F; xs[0].append(n)", "xs"),
    (LISTS, "F; xs[0] += [n]", "xs"),
    (LISTS, "F; xs[1][0] = n", "xs"),
    (LISTS, "for i in range(2): F; xs[i].append(n)", "xs"),
    (LISTS, "j = xs[0]; F; j.append(n)", "j"),
    (LISTS, "for j in [0, 1]: F; xs[j][0] += n", "xs"),
    (LISTS, "F; xs.append(T)", "xs"),
    (LISTS, "for j in xs: F; j.append(n)", "j"),
    (LISTS, "j = xs.pop(); F; j.append(n)", "j"),
    (ARRAYS, "F; xs[0] += 1.0", "xs"),
    (ARRAYS, "for j in xs: F; j[0] = n", "j"),
    (ARRAYS, "F; xs[0][1] = n", "xs"),
    (ARRAYS, "j = xs[0]; F; j[0] = n", "j"),
    (ARRAYS, "for i in range(2): F; xs[i] *= 2.0", "xs"),
]


def lines_of(text: str) -> str:
    """Statements of one line, in lines of their own; what follows a colon is its block, to the end or to `else`."""
    out, depth = [], 0
    for part in text.split("; "):
        if part.startswith("else"):
            depth -= 1
        head, colon, rest = part.partition(": ") if part.startswith(("for", "if", "else")) else (part, "", "")
        out.append("    " * depth + head + colon.strip())
        if colon:
            depth += 1
            out.append("    " * depth + rest)
    return "\n".join(out)


def programs(make: str):
    """Programs that make a structure so: the text of each, and of one that copies before it changes."""
    offset = list(MAKES).index(make)
    for number, (rows, change, changed) in enumerate(CHANGES):
        for k, (alias, kept) in enumerate(ALIASES.items()):
            if alias and (k + number + offset) % 6:
                continue
            returned = ", ".join(filter(None, ["xs", MAKES[make], kept]))
            for names in [returned, "xs"] if (number + offset) % 2 and returned != "xs" else [returned]:
                yield [
                    text_of(
                        [make, alias, change.replace("F; ", f"{changed} = fresh({changed}); " if copy else "")],
                        names,
                        rows,
                    )
                    for copy in (False, True)
                ]


def text_of(parts: list[str], names: str, rows: dict[str, str]) -> str:
    body = "\n".join([*map(lines_of, parts), f"return {names},"])
    for letter, row in rows.items():
        body = re.sub(rf"\b{letter}\b", row, body)
    if "'a'" in body:
        body = body.replace("xs[0]", "xs['a']").replace("xs[1]", "xs['b']")
    return "def program(n, p):\n" + textwrap.indent(body, "    ") + "\n"


def result(program) -> str:
    """What a program returns, and what has become of its argument and of a global."""
    p = np.arange(6.0).reshape(3, 2)
    return repr((program(3, p), p, program.__globals__["g"]))


def verdicts(make: str) -> str:
    """For each program: s is one whose change is seen, and that is refused; ? one that is refused though it is not; t one that is
    refused for its types; and . one that is accepted."""
    out = ""
    for number, texts in enumerate(programs(make)):
        run, copying = (
            function_of(text, f"<{k} {number} of {make}>", {**NAMES, "g": np.ones(2)}) for k, text in enumerate(texts)
        )
        try:
            want = result(run)
        except (AttributeError, KeyError, IndexError, TypeError):  # what cannot be combined
            continue
        run.__globals__["g"] = np.ones(2)
        seen = want != result(copying)
        compiled = relay(run, executor="interpreter")
        try:
            got = repr((compiled(3, p := np.arange(6.0).reshape(3, 2)), p, run.__globals__["g"]))
        except CompileError as error:
            out += "t" if "in place" not in str(error) else "s" if seen else "?"
            continue
        assert got == want, texts[0]
        out += "."
    return out


VERDICTS = {
    "xs = [R, S, T]":
        ".s.s..?..s.s.sss.s.....sss???.s.s.sss.s...ss.s.",
    "row = R; xs = [row, S, T]":
        "s.s.sss?.?.?.sssssssssss..s.sss??????sssssssssssssss???",
    "row = R; xs = [row, row, S]":
        "ssssssssssssssssssssssss...ssssss???sssssssssssssss??????",
    "xs = [I for i in range(n)]":
        "tststt?t.?...tssss.s..s...sss?????.ssss.s.sssss.s.",
    "row = R; xs = [row for _ in range(n)]":
        "ssssssssssssssssssssssss...ssssssssssssssssssssssss??????",
    "xs = [R] * 3":
        "sssssssssssssssssssss.?...sssssssssssssssssssss??",
    "ys = [R, S, T]; xs = ys":
        "sss.s.???s.s.s.ssss.s.s.ssssss???s.s.s.ssss.s.s.sss.s.",
    "ys = [R, S, T]; xs = ys[:]":
        "s?s?sss??????sssssssssss..s.ssss?s?s?ssssssssssssssssss",
    "ys = [R, S, T]; xs = ys + [S]":
        "ssss.s.s.???s.s.s.sss.s.???ssssss???s.s.s.sss.s.ssss.s.s.",
    "ys = [R, S, T]; xs = list(ys)":
        "s.s.s.sss?.?.?.sssssssss..s...ssss?s?s?ssssssssssssssssss",
    "ys = [R, S, T]; xs = ys.copy()":
        "ssss.s.s.??s.s.ssss.s.s.???sssssssss.s.ssss.s.s.ssss.s.s.",
    "ys = [R, S, T]; xs = [*ys, S]":
        "s.s.s.ss?.?.ssssssssssss......ss????ssssssssssssssssssss",
    "ys = [R, S, T]; xs = [y for y in ys]":
        "sss?s????s?s?s?ssss?s?s?..ssssssss?s?s?ssss?s?s?sss?s?",
    "ys = [R, S, T]; xs = [y.copy() for y in ys]":
        "..s..s...?.?..s.ssssss.s..s.sss??????.??ssssss.sssss.?.",
    "ys = [R, S, T]; xs = [doubled(y) for y in ys]":
        ".s...s.s..?...s...ss..s....ssssss???..s...ss..s.sss..s.?.",
    "ys = [R, S, T]; xs = [ident(y) for y in ys]":
        "s?s?s?sss??????sssssssss..s...ssss?s?s?ssssssssssssssssss",
    "xs = [ident(R), ident(S), ident(T)]":
        "????s??????s?sss?s?s?...sssss???s?sss?s?s?sss?????",
    "row = R; xs = [first(row, S), first(S, row), T]":
        "s?s?s?ss????ssssssssssss......ss????ssssssssssssssssss??",
    "ys = [R, S]; xs = [T]; xs.extend(ys)":
        "?s?.s.ssss.s.s.ssss.s.s...sssssss?.s.s.sss?.s.?.ss?.s.",
    "ys = [R, S]; xs = [T]; xs += ys":
        "?.s.?s?s.s.s.sssssssssss?.s.ssss?s?s????ssssss?sssss?s?",
    "xs = [R]; xs.append(S); xs.append(T)":
        ".s..s.s..?..s...ss.s....sssss???.s...ss.s.sss.s.?.",
    "row = R; xs = [S, T]; xs.append(row)":
        "?.s.s.????.?.?.?sssss?s?..s...ssss?s?s??sssss?s?ssssss?s?",
    "row = R; xs = [S, T]; xs.insert(0, row)":
        "ssss.s.s.??s.s.ssss.s.s....ssssss??s.s.ssss.s.s.sss?.?.?.",
    "row = R; xs = [S, T]; xs[0] = row":
        "s.s.s.ss?.s.ssssssssssss......ss????ssssssssssssssssss??",
    "row = R; xs = [S, T]; xs[0] = row; xs[1] = row":
        "ssssssssssssssssssssssss..ssssssssssssssssssssssss????",
    "xs = []; for i in range(n): xs.append(I)":
        "tsttst.s.?.tstsssss.s.s.sss?????.?.sssss.ssss.?.",
    "xs = []; row = R; for i in range(n): xs.append(row)":
        "ssssssssssssssssssssssss...ssssssssssssssssssssssss??????",
    "xs = []; row = R; for i in range(n): row = I; xs.append(row)":
        "?tstst????.?.?.?sssss?s?..s...ssss?s?s??sssss?s?ssssss?s?",
    "xs = []; row = R; for i in range(n): xs.append(row); row = I":
        "?????s???????s?sss??s?s?...ssssss????s?sss??s?s?sss??????",
    "row = R; xs = [S, T]; if n > 2: xs[0] = row":
        "s.s.s.ss?.s.ssssssssssss......ss????ssssssssssssssssss??",
    "row = R; if n > 2: xs = [row, S, T]; else: xs = [S, T]":
        "ssstst???stststssss.s.s...ssss???s.s.s.ssss.s.s.ss?.s.",
    "row = R; if n > 2: xs = [S, T]; else: xs = [row, row]":
        "??s??s???s????s?ssssss?s..s.sss?????????ssssss?sssss?s?",
    "xs = [R, S, T]; if n > 2: xs[0] = xs[1]":
        "ssssssss???ssssssssss...sssss???ssssssssssssssssss",
    "xs = {'a': R, 'b': S, 'c': T}":
        ".s.s..?..?...sss.s.s.sssss",
    "row = R; xs = {'a': row, 'b': S, 'c': row}":
        "sssssssss??ssssssssssssssss",
    "ys = {'a': R, 'b': S}; xs = dict(ys)":
        "s.s.s.ss?.?.ssssssssssssssssss",
    "ys = {'a': R, 'b': S}; xs = {**ys, 'c': T}":
        "sss.s.???ssss.s.s.s.s.s.ss",
    "ys = {'a': R, 'b': S}; xs = {k: v for k, v in ys.items()}":
        "s.s.sss?.?.?.sssssssssssssss",
    "ys = np.ones((3, 2)); xs = [ys[0], ys[1], S]":
        "s?s?s?ssss?s?...???s?s?s?sss?s?ssss?s?s?",
    "ys = np.ones((3, 2)); xs = [y for y in ys]":
        "ssss?s?s?sssttstttssssssssssssssssss",
    "ys = np.ones((3, 2)); xs = [y * 2.0 for y in ys]":
        "ttsttt.?..s.s.ttt..s.sss..s.s.sss..s...",
    "xs = [p[0], p[1], S]":
        "ssssssss.....???ssssssssssssssssss",
    "xs = [p[0] * 2.0, p[1], S]":
        "?s?ssssssss..????s?s?sss?s???sssss",
    "xs = [ident(p[0]), ident(S), first(R, p[1])]":
        "sss?????ss.s.?????ssssssssssssssss",
    "xs = [g, S, T]":
        "sssss.?.sss...???ssssssssssssssssss",
    "xs = [S, np.asarray(g), T]":
        ".s.s....sssssssssss.s...??????ssss?s?ssssssss",
    "xs = [S, g.copy(), T]":
        "....s.....sss.s.s....??.s.sss.s.s.sss.s...",
    "ys = [[R, S], [S, T]]; xs = ys[0]":
        "s.s.s.ss?.?.sssssssssssss.s.s.ss????ssssssssssssssssssss",
    "ys = [[R, S], [S, T]]; xs = [y[0] for y in ys]":
        "sss?s????s?s?s?ssss?s?s?..ssssssss?s?s?ssss?s?s?sss?s?",
    "ys = [[I for i in range(n)] for _ in range(n)]; xs = ys[1]":
        "s?s?ssss?s?s?ssssssssssss?s?sss??????ssssssssssssssssss",
    "ys = [R, S]; zs = [ys, ys]; xs = zs[0]":
        "ssss.s.s.???s.s.s.sss.s.sssssssss?s?s.s.s.sss.s.ssss.s.s.",
    "ys = [R, S]; zs = (ys, n); xs = zs[0]":
        "s?s?s?sss??????ssssssssss?s?s?sss??????ssssssssssssssssss",
    "ys = [R, S]; get = lambda: ys; xs = get()":
        "ssss?s?s???s?s?ssss?s?s?sssssssss??s?s?ssss?s?s?ssss?s?s?",
    "xs = [S]; row = R; for i in range(n): if i > 0: xs.append(row)":
        "??s????sssssssssssssssss......ssssss?s?ssssss???ssssss?s",
    "xs = [S]; row = R; for i in range(n): if i > 0: xs.append(row); if i > 1: row = I":
        "?s??s?ssssssssssssssssss..sssssss??s?s?sss??s???ss??s?",
    "xs = [S]; for i in range(n): if i > 0: xs.append(I)":
        "tsttst.s.?.tstsssss.s.s.sss?????.?.sssss.ssss.s.",
    "xs = [S]; for i in range(n): row = I; if i > 0: xs.append(row)":
        "tsttstst.s.tstttss.s....sssss???.s...ss.s.sss.s.s.",
    "xs = [S]; row = R; for i in range(n): row = row + row; if i > 0: xs.append(row)":
        "?.s.s.????.?.?.?sssss?s?..s...ssss?s?s??sssss?s?ssssss???",
    "xs = [S]; for i in range(n): row = I; for _ in range(2): xs.append(row)":
        "????s???sssssssssssss...sssssss?s?sss?s?s?sss?s???",
    "xs = [S]; for i in range(n): for _ in range(2): xs.append(I)":
        "tsttttt.s.tstsssss.s......ss???.s.sssss.?.sssss.s",
}  # fmt: skip
"""The verdicts on the programs that make a structure so, in order; one that is refused for no need may well be accepted one day."""


@pytest.mark.sampled(20)
@pytest.mark.parametrize("make", MAKES)
def test_what_is_seen_is_refused_and_what_nothing_sees_is_accepted(make):
    found = verdicts(make)
    assert len(found) == len(VERDICTS[make])
    worse = [k for k, (now, then) in enumerate(zip(found, VERDICTS[make])) if then == "." != now]
    assert not worse, [list(programs(make))[k][0] for k in worse]
