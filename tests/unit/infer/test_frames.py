"""Values that leave a scope of inference."""

from myia_relay import relay
from myia_relay.infer.engine import frames


def entries(x, n):
    return {f"k{i}": x * i for i in range(n)}


def test_a_structure_that_grows_is_not_taken_apart_at_every_step(monkeypatch):
    true, counted = frames.Frame.leave, []
    monkeypatch.setattr(frames.Frame, "leave", lambda frame, value: counted.append(1) or true(frame, value))

    def leavings(n):
        counted.clear()
        assert relay(entries, static="n", executor="interpreter")(2.0, n) == entries(2.0, n)
        return len(counted)

    assert leavings(160) <= 2.5 * leavings(80)


def made(x, n):
    functions = {}
    for i in range(n):
        functions[i] = lambda y, i=i: y * i + x
    return sum(functions[i](x) for i in range(n))


def test_functions_in_a_structure_keep_what_they_captured():
    assert relay(made, static="n", executor="interpreter")(2.0, 5) == made(2.0, 5)
