"""Graphs as pictures: everything is drawn once, nothing overlaps, what belongs together is together."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.debug.layout import DrawnBox, arrange


def nested(x, n):
    scale = 2.0

    def inner(y):
        return np.tanh(y) * scale

    total = np.zeros(3)
    for i in range(n):
        if i % 2 == 0:
            total = total + inner(x)
        else:
            total = total - x
    return np.sum(total)


@pytest.fixture(scope="module", params=["parsed", "inferred", "differentiated", "optimized", "lowered"])
def view(request):
    f = relay(nested) if request.param == "parsed" else grad(relay(nested))
    return f.ir(np.ones(3), 4, stage=request.param)


def test_every_node_is_drawn_with_its_type_and_line(view):
    names = {a["name"] for g in json.loads(view.to_json())["graphs"] for a in (*g["parameters"], *g["applications"])}
    titles = [t.text for t in ElementTree.fromstring(view.to_svg()).iter("{http://www.w3.org/2000/svg}title")]
    assert {re.match(r"%([^:\n]*)", t)[1] for t in titles} == names and len(titles) == len(names)
    assert any(re.search(r"test_show\.py:\d+ in nested:  total = ", t) for t in titles)
    assert "<svg" in view._repr_html_()


def test_dot_has_the_same_nodes_and_balanced_clusters(view):
    text = view.to_dot()
    bare = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    assert bare.count("{") == bare.count("}") and bare.count("subgraph cluster_") == len(
        json.loads(view.to_json())["graphs"]
    )
    assert len(re.findall(r"^n\d+ \[", text, re.M)) == len(re.findall("<title>", view.to_svg()))


def test_json_says_what_applies_what():
    graphs = {g["name"]: g for g in json.loads(grad(relay(nested)).ir(np.ones(3), 4).to_json())["graphs"]}
    loops = [a for g in graphs.values() for a in g["applications"] if a["function"] == "for_loop"]
    assert [a["part"] for a in loops] == ["forward", "backward"] and all(a["graphs"][0] in graphs for a in loops)
    tanh = next(a for g in graphs.values() for a in g["applications"] if a["function"] == "tanh")
    assert tanh["kernel"] is not None and tanh["type"] == "float64[3]"
    assert tanh["line"] == nested.__code__.co_firstlineno + 4 and tanh["file"].endswith("test_show.py")


def test_boxes_are_apart_and_inside_of_what_holds_them():
    inner = [DrawnBox(("i", k), 30.0 + 7 * k, 20.0) for k in range(6)]
    outer = [DrawnBox(("o", k), 50.0, 20.0) for k in range(7)]
    outer[3].inside, outer[3].head = inner, 25.0
    root = DrawnBox("root", inside=outer)
    edges = [(("o", a), ("o", b)) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 5), (5, 6))]
    edges += [(("i", a), ("i", b)) for a, b in ((0, 2), (1, 2), (2, 5))] + [(("o", 0), ("i", 4)), (("i", 5), ("o", 6))]
    arrange(root, edges)
    for around in (root, outer[3]):
        for k, a in enumerate(around.inside):
            assert around.x <= a.x and a.x + a.width <= around.x + around.width
            assert around.y + around.head <= a.y and a.y + a.height <= around.y + around.height
            for b in around.inside[k + 1 :]:
                assert a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
    places = {b.key: b for b in root.walk()}
    for a, b in edges:
        if a[0] == b[0]:
            assert places[a].y + places[a].height <= places[b].y
