"""Operators and methods on constants, within bounds: whatever would grow without end stays an expression."""

import ast
from typing import TYPE_CHECKING, Any

from reproducer.engines.source.references import Unknown, is_constant

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_TEXT = 1 << 16
MOST_ITEMS = 10_000
LARGEST_BITS = 128


def weight(value: Any) -> int:
    """How many items a value has in all, counted up to a bound."""
    left, count = [value], 0
    while left and count <= MOST_ITEMS:
        each = left.pop()
        count += 1
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            left += each
    return count


def joined(parts: list[str]) -> str:
    """Texts one after the other; ValueError where the whole is too long."""
    if sum(len(each) for each in parts) > LONGEST_TEXT:
        raise ValueError
    return "".join(parts)


def arithmetic(operator: ast.operator, left: float, right: float) -> Any:
    """A number from two; ValueError or KeyError where it is too large, or no operator that is followed."""
    if isinstance(operator, ast.Pow | ast.LShift):
        if not (isinstance(left, int) and isinstance(right, int) and 0 <= right <= LARGEST_BITS):
            raise ValueError
        if left.bit_length() * max(right, 1) > 4 * LARGEST_BITS:
            raise ValueError
        return left**right if isinstance(operator, ast.Pow) else left << right
    operations: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
        ast.Add: lambda a, b: a + b,
        ast.Sub: lambda a, b: a - b,
        ast.Mult: lambda a, b: a * b,
        ast.Div: lambda a, b: a / b,
        ast.FloorDiv: lambda a, b: a // b,
    }
    return operations[type(operator)](left, right)


def compared(operator: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether a comparison holds; TypeError where a side is not known."""
    if isinstance(operator, ast.Is | ast.IsNot):
        if right is not None or isinstance(left, Unknown):
            raise TypeError
        return (left is None) is isinstance(operator, ast.Is)
    if isinstance(operator, ast.In | ast.NotIn):
        if not is_constant(left) or not (isinstance(right, dict) or is_constant(right)):
            raise TypeError
        return (left in right) is isinstance(operator, ast.In)
    if not is_constant(left) or not is_constant(right):
        raise TypeError
    operations: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
        ast.Eq: lambda a, b: a == b,
        ast.NotEq: lambda a, b: a != b,
        ast.Gt: lambda a, b: a > b,
        ast.GtE: lambda a, b: a >= b,
        ast.Lt: lambda a, b: a < b,
        ast.LtE: lambda a, b: a <= b,
    }
    return operations[type(operator)](left, right)


def text_method(text: str, name: str, arguments: list[Any]) -> Any:
    """What a method of a text gives; TypeError where it is none that is followed."""
    if name in ("lower", "upper", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "split", "startswith"):
        return getattr(text, name)(*arguments)
    if name == "replace" and len(arguments) == 2 and all(isinstance(each, str) for each in arguments):  # noqa: PLR2004
        if text.count(arguments[0]) * len(arguments[1]) > LONGEST_TEXT:
            raise ValueError
        return text.replace(*arguments)
    raise TypeError
