"""Random programs of nested control flow, as text. Loops are bounded by fuel; any variable may be unbound."""

NAMES = ("a", "b", "c", "d")


class Writer:
    """Writes one function; `draw(n)` gives a number in range(n)."""

    def __init__(self, draw, closures=False):
        self.draw = draw
        self.closures = closures
        self.defined = []
        self.lines = []
        self.budget = 4 + draw(22)
        self.loops = 0
        self.bound = ["x", "y"]

    def name(self):
        return NAMES[self.draw(len(NAMES))]

    def atom(self):
        kind = self.draw(10)
        if kind < 3:
            return ("x", "y", "t")[kind]
        if kind < 4:
            return str(self.draw(7) - 3)
        # Mostly names that have been bound somewhere above, sometimes any.
        pool = self.bound if self.draw(8) else NAMES
        return pool[self.draw(len(pool))]

    def expr(self, depth=0):
        if self.closures and self.defined and self.draw(5) == 0:
            return f"{self.defined[self.draw(len(self.defined))]}()"
        kind = self.draw(11)
        if depth > 1 or kind < 3:
            return self.atom()
        a, b = self.expr(depth + 1), self.expr(depth + 1)
        if kind < 7:
            return f"({a} {('+', '-', '*')[self.draw(3)]} {b}) % 101"
        if kind == 7:
            return f"({a} if {self.test()} else {b})"
        if kind == 8:
            return f"({a} {('and', 'or')[self.draw(2)]} {b})"
        if kind == 9:
            name = self.name()
            return f"({name} := {a})"
        return f"log({a})"

    def test(self):
        kind = self.draw(5)
        if kind == 0:
            return f"{self.atom()} % 2 == 0"
        if kind == 1:
            return f"{self.atom()} < {self.atom()} <= {self.atom()}"
        if kind == 2:
            return f"not {self.atom()}"
        return f"{self.expr(1)} {('<', '>', '==', '!=')[self.draw(4)]} {self.expr(1)}"

    def block(self, depth, indent):
        for _ in range(1 + self.draw(4)):
            self.statement(depth, indent)

    def line(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, depth, indent):
        self.budget -= 1
        if self.closures and self.draw(5) == 0:
            return self.closure(indent)
        kind = self.draw(20)
        if depth > 4 or self.budget < 0 or kind < 7:
            name = self.name()
            if self.draw(4) == 0:
                self.line(indent, f"{name} += {self.expr()}")
            else:
                self.line(indent, f"{name} = {self.expr()}")
            self.bound.append(name)
        elif kind < 11:
            self.line(indent, f"if {self.test()}:")
            self.block(depth + 1, indent + 1)
            while self.draw(4) == 0:
                self.line(indent, f"elif {self.test()}:")
                self.block(depth + 1, indent + 1)
            if self.draw(2):
                self.line(indent, "else:")
                self.block(depth + 1, indent + 1)
        elif kind < 14:
            self.loop(depth, indent)
        elif kind < 16 and self.loops:
            self.line(indent, ("break", "continue")[self.draw(2)])
        elif kind == 16:
            self.line(indent, f"return {self.expr()}" if self.draw(4) else "return")
        elif kind == 17:
            self.line(
                indent,
                f"a, b = b, {self.expr()}"
                if self.draw(2)
                else f"(c, *d) = ({self.expr()}, t)\n" + "    " * indent + "d = d[0]",
            )
        elif kind == 18:
            self.line(indent, f"if {self.test()}:")
            self.line(indent + 1, f"raise KeyError({self.draw(9)})")
        else:
            self.line(indent, f"log({self.expr()})")

    def closure(self, indent):
        name = ("f", "g", "h")[self.draw(3)]
        kind = self.draw(6)
        known, self.closures = self.closures, self.draw(3) == 0
        if kind < 3:
            self.line(indent, f"def {name}():")
            self.line(indent + 1, "fuel()")
            self.line(indent + 1, f"return {self.expr(1).replace(':=', '==')}")
        elif kind < 5 or not self.defined:
            self.line(indent, f"{name} = lambda: fuel() or {self.expr(2).replace(':=', '==')}")
        else:
            self.line(indent, f"{name} = {self.defined[self.draw(len(self.defined))]}")
        self.closures = known
        self.defined.append(name)

    def loop(self, depth, indent):
        kind = self.draw(4)
        if kind < 2:
            target = ("i", "j", self.name())[self.draw(3)]
            self.line(indent, f"for {target} in range({self.atom()} % 4):")
            if target in NAMES:
                self.bound.append(target)
        else:
            self.line(indent, f"t = {self.draw(5)}")
            test = ("t > 0", "True", f"t > 0 and {self.test()}", f"(t := t - 1) > 0 and {self.test()}")[self.draw(4)]
            self.line(indent, f"while {test}:")
            # Loops without end are cut by fuel, which raises in the same iteration on both sides.
            self.line(indent + 1, "fuel()")
            self.line(indent + 1, "t = t - 1")
        self.loops += 1
        self.block(depth + 1, indent + 1)
        self.loops -= 1
        if self.draw(3) == 0:
            self.line(indent, "else:")
            self.block(depth + 1, indent + 1)

    def text(self):
        self.lines = ["def program(x, y):", "    t = 3"]
        for name in NAMES:
            if self.draw(3):
                self.line(1, f"{name} = {self.draw(9)}")
                self.bound.append(name)
        self.block(0, 1)
        self.block(0, 1)
        self.line(1, "if x > 1000:")  # never, but it makes all names local
        self.line(2, "a = b = c = d = 0")
        if self.closures:
            self.line(2, "f = g = h = None")
        if self.draw(2):
            self.line(1, f"return ({', '.join(['x', 't', *sorted(set(self.bound))])},)")
        return "\n".join(self.lines) + "\n"
