"""Programs on algebraic data types of many variants, of several families, and with fields that are unions without recursion."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Cell:
    head: int
    tail: Cell | None = None


# Nine variants, and a family of one between them; a field that is one of two classes without recursion.


class Code:
    pass


@dataclass(frozen=True)
class Halt(Code):
    pass


@dataclass(frozen=True)
class Push(Code):
    value: int
    next: Code


@dataclass(frozen=True)
class Plus(Code):
    next: Code


@dataclass(frozen=True)
class Minus(Code):
    next: Code


@dataclass(frozen=True)
class Times(Code):
    next: Code


@dataclass(frozen=True)
class Swap(Code):
    next: Code


@dataclass(frozen=True)
class Pop(Code):
    next: Code


@dataclass(frozen=True)
class Dup(Code):
    next: Code


@dataclass(frozen=True)
class Test(Code):
    zero: Code
    other: Code


def execute(c, stack: Cell | None):
    while not isinstance(c, Halt):
        match c:
            case Push(v, rest):
                stack, c = Cell(v, stack), rest
            case Plus(rest):
                stack, c = Cell(stack.head + stack.tail.head, stack.tail.tail), rest
            case Minus(rest):
                stack, c = Cell(stack.tail.head - stack.head, stack.tail.tail), rest
            case Times(rest):
                stack, c = Cell(stack.head * stack.tail.head, stack.tail.tail), rest
            case Swap(rest):
                stack, c = Cell(stack.tail.head, Cell(stack.head, stack.tail.tail)), rest
            case Pop(rest):
                stack, c = stack.tail, rest
            case Dup(rest):
                stack, c = Cell(stack.head, stack), rest
            case Test(zero, other):
                stack, c = stack.tail, zero if stack.head == 0 else other
    return stack


def compiled(n):
    """Code that leaves the factorial of n."""
    code = Halt()
    for _ in range(n - 1):
        code = Times(code)
    for k in range(n):
        code = Push(k + 1, code)
    return code


def both_families(n):
    return compiled(n), execute(compiled(n), Cell(7)), Test(compiled(1), Dup(Swap(Halt())))


@dataclass(frozen=True)
class Circle:
    radius: float


@dataclass(frozen=True)
class Square:
    side: float

    def area(self):
        return self.side * self.side


@dataclass(frozen=True)
class Picture:
    shape: Circle | Square
    at: Point | None
    next: Picture | None


def covered(p: Picture | None):
    s = 0.0
    while p is not None:
        match p.shape:
            case Circle(r):
                s += 3.0 * r * r
            case Square() as square:
                s += square.area()
        if p.at is not None:
            s += p.at.x
        p = p.next
    return s


def framed(p):
    return Picture(Square(2.0), Point(1.0, 2.0), Picture(p.shape, p.at, Picture(Circle(1.0), None, p))), p.shape, p.at


PICTURE = Picture(Circle(2.0), None, Picture(Square(3.0), Point(0.5, 0.25), None))
PROGRAM = Push(3, Push(4, Times(Dup(Test(Halt(), Push(2, Minus(Swap(Pop(Halt())))))))))

CASES = [
    (execute, (PROGRAM, Cell(8))), (execute, (compiled(5), None)), (both_families, (4,)), (compiled, (1,)),
    (covered, (PICTURE,)), (framed, (PICTURE,)), (framed, (PICTURE.next,)),
]  # fmt: skip
