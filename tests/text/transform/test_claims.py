# ruff: noqa: E501  (Relay text)
"""What passes do: texts before and after, and claims about them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from myia_relay import GradError, TypeError_, relay
from myia_relay.utils.errors import ValueError_

from .evaluator import evaluate, same
from .programs import FOLDL, LIST, MAP, POWER, PROGRAMS, f, i

T = relay.transform
F = np.float32


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """The result of every pass is checked."""
    monkeypatch.setenv("MYIA_RELAY_DEBUG", "1")


def after(text, *steps):
    return T.Sequential(steps)(relay.parse_text(text))


def main_of(module):
    return re.split(r"^def @", str(module), flags=re.M)[-1]


def count(module, name):
    return len(re.findall(rf"(?<![\w.%@/]){re.escape(name)}\(", str(module)))


GOLDEN = {
    "FoldConstant": (
        "def @main(%x: int32) { let %t = (%x, 2 * 3); if (1 < 2) { %t.0 + %t.1 } else { 0 } }",
        "def @main(%x: int32) { %x + 6 }",
    ),
    "EliminateCommonSubexpr": (
        "def @main(%x: float32) { (exp(%x + 1f), if (%x < 0f) { tanh(%x + 1f) } else { exp(%x + 1f) }) }",
        "def @main(%x: float32) { %0 = %x + 1f; %1 = exp(%0); (%1, if (%x < 0f) { tanh(%0) } else { %1 }) }",
    ),
    "DeadCodeElimination": (
        "def @main(%x: float32) { let %a = exp(%x); let %b = tanh(%a); let %r = ref(%x); %r := 1f; let %f = fn () { %f() }; ref_read(%r) }",
        "def @main(%x: float32) { let %r = ref(%x); %r := 1f; ref_read(%r) }",
    ),
    "Inline": (
        "def @sq(%x: int32, Inline=1) -> int32 { let %y = %x + 0; %y * %y }\ndef @main(%x: int32) { @sq(@sq(%x + 1)) }",
        "def @sq(%x: int32, Inline=1) -> int32 { let %y = %x + 0; %y * %y }\n"
        "def @main(%x: int32) { let %y = %x + 1 + 0; let %z = %y * %y + 0; %z * %z }",
    ),
    "ToANormalForm": (
        "def @main(%x: float32, %c: bool) { tanh(exp(%x) + 1f) * if (%c) { exp(tanh(%x)) } else { %x } }",
        "def @main(%x: float32, %c: bool) { let %a = exp(%x); let %b = %a + 1f; let %c1 = tanh(%b); "
        "let %d = if (%c) { let %e = tanh(%x); exp(%e) } else { %x }; %c1 * %d }",
    ),
    "ToGraphNormalForm": (
        "def @main(%x: float32) { let %a = exp(%x); let %b = tanh(%a); let %c = %b; %a + %c * %a }",
        "def @main(%x: float32) { %0 = exp(%x); %0 + tanh(%0) * %0 }",
    ),
    "LambdaLift": (
        "def @main(%z: int32) { let %g = fn (%a: int32) { %a * %z }; let %h = fn (%a: int32) { %a + 1 }; %g(%h(2)) }",
        "def @main_fn0(%z: int32, Closure=1) { fn (%a: int32) { %a * %z } }\ndef @main_fn1(%a: int32) { %a + 1 }\n"
        "def @main(%z: int32) { @main_fn0(%z)(@main_fn1(2)) }",
    ),
    "SimplifyExpr": (
        "def @main(%x: Tensor[(2, 3), float32]) { (%x * 1f + 0f, reshape(reshape(%x, newshape=[6]), newshape=[3, 2]), "
        "transpose(transpose(%x)), negative(negative(%x))) }",
        "def @main(%x: Tensor[(2, 3), float32]) { (%x, reshape(%x, newshape=[3, 2]), %x, %x) }",
    ),
    "InferType": (
        "def @main(%x: int32) { let %f = fn (%y: int32) { %y * 2 }; %f(%x) }",
        "def @main(%x: int32) -> int32 { let %f = fn (%y: int32) -> int32 { %y * 2 }; %f(%x) }",
    ),
    "PartialEvaluate": (
        POWER + "def @main(%x: float32) -> float32 { @power(%x, 3) }",
        "def @power(%x: float32, %n: int32) -> float32 { let %c = equal(%n, 0); if (%c) { 1f } else "
        "{ let %m = %n - 1; let %p = @power(%x, %m); %x * %p } }\n"
        "def @main(%x: float32) -> float32 { let %a = %x * 1f; let %b = %x * %a; %x * %b }",
    ),
    "FuseOps": (
        "def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { %0 = exp(%x); %1 = %0 + 1f; tanh(%1) * %1 }",
        "def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { %0 = fn (%p0: Tensor[(3), float32], Primitive=1) "
        "-> Tensor[(3), float32] { %1 = exp(%p0) + 1f; tanh(%1) * %1 }; %0(%x) }",
    ),
    "ToCPS": (
        "def @main(%n: int32) -> int32 { if (%n < 2) { %n } else { @main(%n - 1) + 1 } }",
        "def @main_cps[R](%n: int32, %k: fn (int32) -> R) -> R { if (%n < 2) { %k(%n) } else "
        "{ @main_cps(%n - 1, fn (%t) { %k(%t + 1) }) } }\n"
        "def @main(%n: int32) -> int32 { @main_cps(%n, fn (%r) { %r }) }",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_before_and_after(name):
    before, expected = GOLDEN[name]
    got = after(before, getattr(T, name)())
    assert got == relay.parse_text(expected), str(got)


def test_a_pass_that_changes_nothing_keeps_the_text():
    for text, _ in PROGRAMS.values():
        module = relay.parse_text(text)
        assert (
            str(after(text, T.DeadCodeElimination(), T.EliminateCommonSubexpr())).count("\n")
            <= str(module).count("\n") + 3
        )
    text = PROGRAMS["branches in the middle"][0]
    assert str(after(text, T.SimplifyExpr())) == str(relay.parse_text(text))


def test_attributes_of_functions_survive():
    text = 'def @f(%x: int32, Inline=1, note="a") -> int32 { %x }\ndef @main(%x: int32, kind=3) -> int32 { @f(%x) }'
    for name in T.__all__:
        if name not in ("Sequential", "Gradient"):
            got = str(getattr(T, name)()(relay.parse_text(text)))
            assert 'note="a"' in got and "kind=3" in got, name


# ---------------------------------------------------------------- sharing and effects


def test_reads_are_not_merged():
    text = "def @main() { let %r = ref(1); let %a = ref_read(%r); %r := 2; let %b = ref_read(%r); (%a, %b, ref(1), ref(1)) }"
    got = after(text, T.EliminateCommonSubexpr())
    assert count(got, "ref_read") == 2 and count(got, "ref") == 3


def test_references_are_not_merged_by_calls():
    text = "def @cell(%x: int32) -> ref(int32) { ref(%x) }\ndef @main() { let %a = @cell(1); let %b = @cell(1); %a := 2; ref_read(%b) }"
    assert evaluate(after(text, T.EliminateCommonSubexpr()), "main") == 1


def test_pure_calls_are_merged():
    text = "def @sq(%x: int32) -> int32 { %x * %x }\ndef @main(%x: int32) { @sq(%x) + @sq(%x) }"
    assert main_of(after(text, T.EliminateCommonSubexpr())).count("@sq(") == 1


def test_branches_do_not_share():
    text = "def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { exp(%x) * 2f } }"
    assert count(after(text, T.EliminateCommonSubexpr()), "exp") == 2


def test_values_of_other_types_are_not_merged():
    text = LIST + "def @main() { (Cons(1, Nil()), Cons(True, Nil())) }"
    after(text, T.EliminateCommonSubexpr())
    text = "type Either[A, B] { Left(A), Right(B), }\ndef @main(%x: int32) -> (Either[int32, bool], Either[int32, float32]) { (Left(%x), Left(%x)) }"
    assert count(after(text, T.EliminateCommonSubexpr()), "Left") >= 2


def test_a_call_through_a_pure_function_is_dead():
    text = LIST + MAP + "def @main(%l: List[int32]) { let %m = @map(fn (%x: int32) -> int32 { %x * %x }, %l); 1 }"
    assert "@map(" not in main_of(after(text, T.DeadCodeElimination()))


def test_a_call_through_a_writing_function_stays():
    text = (
        LIST
        + MAP
        + (
            "def @main(%l: List[int32]) { let %r = ref(0); "
            "let %m = @map(fn (%x: int32) -> int32 { let %u = ref_write(%r, %x); %x }, %l); ref_read(%r) }"
        )
    )
    assert "@map(" in main_of(after(text, T.DeadCodeElimination()))


def test_a_match_that_may_fail_stays():
    text = LIST + "def @main(%l: List[int32]) { let %h = match? (%l) { Cons(%h, _) => %h, }; 1 }"
    assert "match?" in main_of(after(text, T.DeadCodeElimination()))


def test_recursion_is_not_inlined():
    text = "def @f(%n: int32, Inline=1) -> int32 { if (%n < 1) { 0 } else { @g(%n - 1) } }\n"
    text += "def @g(%n: int32, Inline=1) -> int32 { @f(%n) + 1 }\ndef @main(%n: int32) { @f(%n) }"
    assert "@f(" in main_of(after(text, T.Inline()))


# ---------------------------------------------------------------- partial evaluation


def test_an_rnn_over_a_known_list_is_a_straight_line():
    got = main_of(after(PROGRAMS["rnn"][0], T.PartialEvaluate(), T.DeadCodeElimination()))
    assert got.count("tanh(") == 3 and not re.search(r"match|@foldl|fn |Cons", got)


def test_an_interpreter_disappears():
    got = main_of(after(PROGRAMS["an interpreter"][0], T.PartialEvaluate(), T.DeadCodeElimination()))
    assert not re.search(r"match|@eval|Num", got) and got.count("multiply(") == 2


def test_references_under_static_control_disappear():
    got = main_of(after(PROGRAMS["static loop with a reference"][0], T.PartialEvaluate(), T.DeadCodeElimination()))
    assert "ref" not in got and got.count("multiply(") == 3


def test_recursion_under_dynamic_control_stays_a_call():
    got = main_of(after(POWER + "def @main(%x: float32, %n: int32) { @power(%x, %n) }", T.PartialEvaluate()))
    assert got.count("@power(") == 1 and "if" not in got


def test_what_never_ends_is_left_to_run_time():
    text = "def @up(%n: int32) -> int32 { @up(%n + 1) }\ndef @main() -> int32 { @up(0) }"
    assert "@up(" in main_of(after(text, T.PartialEvaluate(limit=100)))


def test_functions_that_make_themselves_end():
    text = """def @again(%x: int32) -> fn (int32) -> int32 { fn (%y: int32) -> int32 { if (%y < 0) { %x } else { let %f = @again(%y); %f(%y - 1) } } }
def @main(%n: int32) { let %f = @again(1); (%f(%n), %f) }"""
    module = relay.parse_text(text)
    got = T.PartialEvaluate()(module)
    assert evaluate(module, "main", i(3))[0] == evaluate(got, "main", i(3))[0]


def test_a_doubling_chain_of_calls_is_bounded():
    lines = ["def @f0(%x: int32) -> int32 { %x + 1 }"]
    lines += [f"def @f{n}(%x: int32) -> int32 {{ @f{n - 1}(%x) + @f{n - 1}(%x) }}" for n in range(1, 25)]
    got = after("\n".join(lines) + "\ndef @main(%x: int32) { @f24(%x) }", T.PartialEvaluate(limit=200))
    assert len(str(got)) < 200_000


def test_a_dynamic_branch_is_taken_once():
    text = "def @main(%c: bool, %x: int32) { let %p = if (%c) { (%x, 1) } else { (2, %x) }; %p.0 + %p.1 }"
    assert main_of(after(text, T.PartialEvaluate())).count("if (") == 1


# ---------------------------------------------------------------- fusion

CONV = "nn.conv2d({}, {}, padding=[1, 1, 1, 1], channels=3, kernel_size=[3, 3])"
IMAGE = "%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(3, 3, 3, 3), float32], %v: Tensor[(3, 3, 3, 3), float32]"


def primitives(module):
    return [p.split("};")[0] for p in str(module).split("Primitive=1")[1:]]


def test_one_heavy_operator_in_each_group():
    text = f"def @main({IMAGE}) {{ nn.relu({CONV.format('nn.relu(' + CONV.format('%x', '%w') + ')', '%v')}) }}"
    groups = primitives(after(text, T.FuseOps()))
    assert len(groups) == 2 and all(g.count("nn.conv2d(") == g.count("nn.relu(") == 1 for g in groups)


def test_a_diamond_behind_a_convolution_is_fused():
    text = f"def @main({IMAGE}) {{ %0 = {CONV.format('%x', '%w')}; %1 = tanh(%0); %2 = sigmoid(%0); %1 * %2 }}"
    assert len(primitives(after(text, T.FuseOps()))) == 1


def test_two_convolutions_are_not_joined_by_a_sum():
    text = f"def @main({IMAGE}) {{ {CONV.format('%x', '%w')} + {CONV.format('%x', '%v')} }}"
    groups = primitives(after(text, T.FuseOps()))
    assert sorted(g.count("nn.conv2d(") for g in groups) == [1, 1]


def test_nothing_follows_a_reduction():
    text = "def @main(%x: Tensor[(4, 3), float32]) { exp(sum(tanh(%x), axis=[1])) }"
    groups = primitives(after(text, T.FuseOps()))
    assert len(groups) == 2 and "tanh(" in groups[0] and "sum(" in groups[0] and "exp(" in groups[1]


def test_what_is_used_elsewhere_ends_a_group():
    text = "def @main(%x: Tensor[(3), float32]) { let %a = exp(%x); (%a, tanh(%a)) }"
    assert len(primitives(after(text, T.FuseOps()))) == 2


def test_groups_are_limited():
    text = "def @main(%x: float32) { " + "tanh(" * 20 + "%x" + ")" * 20 + " }"
    assert len(primitives(after(text, T.FuseOps(max_fuse_depth=5)))) == 4


def test_a_fused_module_is_not_fused_again():
    once = after(GOLDEN["FuseOps"][0], T.FuseOps())
    assert str(T.FuseOps()(once)) == str(once)


# ---------------------------------------------------------------- convolutions


def numbers(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=F).reshape(shape)


def keeps(text, args, *steps):
    module = relay.parse_text(text)
    got = T.Sequential(steps)(module)
    assert same(evaluate(module, "main", *args), evaluate(got, "main", *args), 1e-4)
    return got


def test_a_scale_behind_a_convolution_is_folded():
    text = f"def @main({IMAGE}, %s: Tensor[(3, 1, 1), float32], %b: Tensor[(3), float32]) {{ sum(nn.bias_add({CONV.format('%x', '%w')}, %b) * %s) }}"
    args = (numbers(1, 3, 4, 4), numbers(3, 3, 3, 3), numbers(3, 3, 3, 3), numbers(3, 1, 1), numbers(3))
    got = keeps(text, args, T.FoldScaleAxis())
    assert not re.search(r"multiply\(nn\.(bias_add|conv2d)", str(got)) and "multiply(%w" in str(got)


def test_a_scale_passes_relu_only_if_it_is_positive():
    args = (numbers(1, 3, 4, 4), numbers(3, 3, 3, 3), numbers(3, 3, 3, 3))
    positive = keeps(f"def @main({IMAGE}) {{ nn.relu({CONV.format('%x', '%w')}) * 2f }}", args, T.FoldScaleAxis())
    negative = keeps(f"def @main({IMAGE}) {{ nn.relu({CONV.format('%x', '%w')}) * -2f }}", args, T.FoldScaleAxis())
    assert "multiply(nn.relu" not in str(positive) and "multiply(nn.relu" in str(negative)


def test_a_scale_before_a_convolution_is_folded():
    text = f"def @main({IMAGE}, %s: Tensor[(3, 1, 1), float32]) {{ {CONV.format('%x * %s', '%w')} }}"
    args = (numbers(1, 3, 4, 4), numbers(3, 3, 3, 3), numbers(3, 3, 3, 3), numbers(3, 1, 1))
    assert "multiply(%x" not in str(keeps(text, args, T.FoldScaleAxis()))


def test_a_result_that_is_used_elsewhere_is_not_scaled():
    text = f"def @main({IMAGE}) {{ %0 = {CONV.format('%x', '%w')}; (%0 * 2f, %0) }}"
    args = (numbers(1, 3, 4, 4), numbers(3, 3, 3, 3), numbers(3, 3, 3, 3))
    assert "multiply(%0, 2f)" in str(keeps(text, args, T.FoldScaleAxis()))


BRANCHES = (
    "def @main(%x: Tensor[(1, 2, 4, 4), float32], %a: Tensor[(3, 2, 1, 1), float32], %b: Tensor[(2, 2, 1, 1), float32], "
    "%c: Tensor[(4, 2, 1, 1), float32]) { concatenate((nn.relu(nn.conv2d(%x, %a)), nn.conv2d(%x, %b), tanh(nn.conv2d(%x, %c))), axis=1) }"
)
BRANCH_ARGS = (numbers(1, 2, 4, 4), numbers(3, 2, 1, 1), numbers(2, 2, 1, 1), numbers(4, 2, 1, 1))


def test_parallel_convolutions_are_one():
    assert count(keeps(BRANCHES, BRANCH_ARGS, T.CombineParallelConv2D()), "nn.conv2d") == 1
    assert count(keeps(BRANCHES, BRANCH_ARGS, T.CombineParallelConv2D(min_num_branches=4)), "nn.conv2d") == 3


def test_convolutions_of_each_other_are_not_parallel():
    text = (
        "def @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(2, 2, 1, 1), float32]) { "
        + "nn.conv2d(" * 3
        + "%x"
        + ", %w)" * 3
        + " }"
    )
    assert count(after(text, T.CombineParallelConv2D(min_num_branches=2)), "nn.conv2d") == 3


def test_layouts_are_transformed_at_the_ends():
    text = f"def @main({IMAGE}, %b: Tensor[(3), float32]) {{ let %y = nn.relu(nn.bias_add({CONV.format('%x', '%w')}, %b)); {CONV.format('%y', '%v')} + %y }}"
    args = (numbers(1, 3, 4, 4), numbers(3, 3, 3, 3), numbers(3, 3, 3, 3), numbers(3))
    got = keeps(text, args, T.AlterOpLayout())
    assert str(got).count('src_layout="NCHW"') == 1 and str(got).count('dst_layout="NCHW"') == 1
    assert str(got).count('data_layout="NHWC"') == 2 and "%x: Tensor[(1, 3, 4, 4), float32]" in str(got)
    other = keeps(text, args, T.AlterOpLayout("CHWN", "IHWO"))
    assert str(other).count('data_layout="CHWN"') == 2
    with pytest.raises(ValueError_, match="letters"):
        T.AlterOpLayout("NHW")


# ---------------------------------------------------------------- continuations, closures


def test_no_call_is_waited_for():
    for title in ("branches in the middle", "map", "fibonacci", "rnn", "currying", "while"):
        got = after(PROGRAMS[title][0], T.ToCPS())
        workers = [d for d in re.split(r"^def @", str(got), flags=re.M) if re.match(r"\w+_cps", d)]
        assert workers and not any(re.search(r"=\s*[%@]\w+\(", d) for d in workers), title


def test_functions_in_data_are_refused():
    with pytest.raises(TypeError_, match="type parameter"):
        after("type Box { Box(fn (int32) -> int32), }\ndef @main() { Box(fn (%x: int32) -> int32 { %x }) }", T.ToCPS())


def test_closures_become_definitions():
    got = after(LIST + MAP + FOLDL + PROGRAMS["adders"][0], T.LambdaLift())
    assert "fn (" not in main_of(got).replace("fn (int32)", "") and "Closure=1" in str(got)


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize(
    ("text", "args", "value", "gradients"),
    [
        ("def @main(%x: float32) -> float32 { %x * %x * %x }", (2.0,), 8.0, (12.0,)),
        ('def @main(%x: float32, %n: int32) -> float32 { %x * cast(%n, dtype="float32") }', (2.0, 3), 6.0, (3.0, 0)),
        (POWER + "def @main(%x: float32, %n: int32) -> float32 { @power(%x, %n) }", (1.5, 4), 1.5**4, (13.5, 0)),
        ("def @main(%p: (float32, float32)) { tanh(%p.0) * %p.1 }", ((0.0, 3.0),), 0.0, ((3.0, 0.0),)),
        (
            LIST
            + MAP
            + "def @sum(%l: List[float32]) -> float32 { match (%l) { Cons(%h, %t) => %h + @sum(%t), Nil => 0f, } }\n"
            "def @main(%x: float32) -> float32 { @sum(@map(fn (%y: float32) -> float32 { %x * %x * %y }, Cons(1f, Cons(2f, Cons(%x, Nil))))) }",
            (2.0,),
            20.0,
            (24.0,),
        ),
        (
            "def @main(%x: float32, %n: int32) -> float32 { let %r = ref(%x); let %loop = fn (%i: int32) -> () { if (%i < %n) "
            "{ let %u = ref_write(%r, ref_read(%r) * %x); %loop(%i + 1) } else { () } }; let %u = %loop(0); ref_read(%r) }",
            (2.0, 3),
            16.0,
            (32.0, 0),
        ),
        ("def @main(%x: float32, %c: bool) { if (%c) { sin(%x) } else { %x * %x } }", (3.0, False), 9.0, (6.0, False)),
    ],
)
def test_gradients(text, args, value, gradients):
    def typed(x):
        kinds = {float: F, int: np.int32, bool: np.bool_}
        return tuple(map(typed, x)) if isinstance(x, tuple) else kinds[type(x)](x)

    got = evaluate(after(text, T.Gradient()), "main", *typed(args))
    assert same(got, (F(value), typed(gradients)), 1e-5)


def test_gradients_of_any_order():
    text = "def @main(%x: float32) -> float32 { %x * %x * %x * %x }"
    for order, expected in ((1, 32.0), (2, 48.0), (3, 48.0), (4, 24.0)):
        assert evaluate(after(text, T.Gradient(order)), "main", F(2)) == (F(16), (F(expected),))


def test_gradients_of_operators_without_a_rule():
    text = "def @main(%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(2, 3, 3, 3), float32]) { sum(nn.max_pool2d(nn.conv2d(%x, %w), pool_size=[2, 2])) }"
    got = after(text, T.Gradient())
    x, w = numbers(1, 3, 4, 4), numbers(2, 3, 3, 3)
    _, (dx, dw) = evaluate(got, "main", x, w)
    module = relay.parse_text(text)
    for k, (a, d) in enumerate(((x, dx), (w, dw))):
        step = np.zeros_like(a)
        step.flat[5] = 1e-2
        plus, minus = ([a + s if k == 0 else x, a + s if k == 1 else w] for s in (step, -step))
        slope = (evaluate(module, "main", *plus) - evaluate(module, "main", *minus)) / 2e-2
        assert np.isclose(slope, d.flat[5], rtol=1e-2)


def test_straight_lines_have_straight_gradients():
    text = "def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) { sum(tanh(%x * %w) + %x) }"
    got = main_of(after(text, T.Gradient()))
    assert "ref" not in got and "fn" not in got


def test_gradients_that_do_not_exist():
    with pytest.raises(GradError, match="no float"):
        after("def @main(%x: int32) -> int32 { %x }", T.Gradient())
    with pytest.raises(GradError, match="neither"):
        after(LIST + "def @main(%x: float32) { Cons(%x, Nil) }", T.Gradient())
    with pytest.raises(GradError, match="has none"):
        after("def @f(%x: float32) { %x }", T.Gradient())
    with pytest.raises(ValueError_, match="positive"):
        T.Gradient(0)


def test_a_recursive_main_keeps_its_value():
    text = "def @main(%x: float32) -> float32 { if (%x < 1f) { %x * 3f } else { %x * @main(%x - 1f) } }\ndef @g(%x: float32) { @main(%x) }"
    got = after(text, T.Gradient())
    assert same(evaluate(got, "main", F(1.5)), (F(1.5 * 1.5), (F(6 * 1.5 - 3),)), 1e-5)
    assert same(evaluate(got, "g", F(1.5)), F(2.25), 1e-6)


# ---------------------------------------------------------------- options and errors


def test_signed_zeros():
    text = "def @main(%x: float32) { %x + 0f }"
    assert count(after(text, T.SimplifyExpr()), "add") == 0
    assert count(after(text, T.SimplifyExpr(signed_zeros=True)), "add") == 1
    assert count(after("def @main(%x: float32) { %x + -0f }", T.SimplifyExpr(signed_zeros=True)), "add") == 0


def test_shapes_that_an_operand_widens_are_kept():
    text = "def @main(%x: Tensor[(3), float32]) { %x * Constant(1, (2, 3), float32) }"
    assert count(after(text, T.SimplifyExpr()), "multiply") == 1


def test_passes_take_modules():
    with pytest.raises(TypeError_, match="module"):
        T.FoldConstant()("def @main() { 1 }")


def test_many_bindings():
    lines = "".join(f"let %x{n} = %x{n - 1} * 2f + 1f;\n" for n in range(1, 400))
    text = f"def @main(%x0: float32) {{ {lines} %x399 }}"
    for name in T.__all__:
        if name not in ("Sequential", "Gradient"):
            getattr(T, name)()(relay.parse_text(text))


def test_deep_operands_and_scopes():
    text = f"def @main(%x: int32) {{ {' + '.join(['%x'] * 3000)} }}"
    module = after(text, T.ToANormalForm(), T.EliminateCommonSubexpr(), T.ToGraphNormalForm())
    assert count(module, "add") == 2999
    deep = "if (%x < 0) { 0 } else { " * 300 + "%x" + " }" * 300
    after(f"def @main(%x: int32) {{ {deep} }}", T.EliminateCommonSubexpr(), T.PartialEvaluate(), T.ToCPS())
    assert f(1) == 1
