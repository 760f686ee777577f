"""Document paths (`a.b[0].c`): reads, writes and removes values, and projects items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.wire import AttributeValue, Item

# Names and list indexes, from the item inwards; the first is a name.
Path: TypeAlias = tuple[str | int, ...]
# The paths of a projection as a tree; None ends one: {"a": {"b": None, 0: None}}.
PathTree: TypeAlias = dict[str | int, Any]

_INVALID_FOR_UPDATE = "The document path provided in the update expression is invalid for update"


def read(item: Item, path: Path) -> AttributeValue | None:
    """Returns the value at a path, or None if the path does not exist."""
    value = item.get(path[0])  # type: ignore[arg-type]
    for step in path[1:]:
        if value is None:
            return None
        value = _step(value, step)
    return value


def write(item: Item, path: Path, value: AttributeValue) -> None:
    """Writes a value at a path, in place; a list index beyond the end appends.

    Raises InvalidRequestError if the path leads through a missing value.
    """
    container, last = _container(item, path)
    if isinstance(container, dict) or last < len(container):
        container[last] = value
    else:
        container.append(value)


def remove(item: Item, path: Path) -> None:
    """Removes the value at a path, in place; does nothing if the last step is missing.

    Raises InvalidRequestError if the path leads through a missing value.
    """
    container, last = _container(item, path)
    if isinstance(container, dict):
        container.pop(last, None)
    elif last < len(container):
        del container[last]


def path_tree(paths: Iterable[Path], parameter: str) -> PathTree:
    """Returns the paths as a tree.

    Raises InvalidRequestError if a path contains another one, or if two paths use one value as a
    map and as a list.
    """
    tree: PathTree = {}
    seen: list[Path] = []
    for path in paths:
        node: Any = tree
        for depth, step in enumerate(path):
            if node and type(step) is not type(next(iter(node))):
                raise InvalidRequestError(
                    f"Invalid {parameter}: Two document paths conflict with each other; must "
                    f"remove or rewrite one of these paths; {_pair(seen, path, depth)}"
                )
            is_last = depth == len(path) - 1
            if step in node and (is_last or node[step] is None):
                raise InvalidRequestError(
                    f"Invalid {parameter}: Two document paths overlap with each other; must "
                    f"remove or rewrite one of these paths; {_pair(seen, path, depth + 1)}"
                )
            node = node.setdefault(step, None if is_last else {})
        seen.append(path)
    return tree


def project(item: Item, tree: PathTree) -> Item:
    """Returns the parts of the item at the tree's paths; lists have only the named elements."""
    cut: Item = {}
    for name, below in tree.items():
        value = item.get(name)  # type: ignore[arg-type]
        kept = None if value is None else _project(value, below)
        if kept is not None:
            cut[str(name)] = kept
    return cut


def _project(value: AttributeValue, tree: PathTree | None) -> AttributeValue | None:
    if tree is None:
        return value
    is_list = isinstance(next(iter(tree)), int)
    kept = {}
    for step in sorted(tree) if is_list else tree:
        below = _step(value, step)
        cut = None if below is None else _project(below, tree[step])
        if cut is not None:
            kept[step] = cut
    if not kept:
        return None
    return {"L": list(kept.values())} if is_list else {"M": kept}


def _step(value: AttributeValue, step: str | int) -> AttributeValue | None:
    if isinstance(step, str):
        members: Item | None = value.get("M")
        return None if members is None else members.get(step)
    elements: list[AttributeValue] | None = value.get("L")
    return None if elements is None or step >= len(elements) else elements[step]


def _container(item: Item, path: Path) -> tuple[Any, Any]:
    if len(path) == 1:
        return item, path[0]
    parent = read(item, path[:-1])
    container = None if parent is None else parent.get("M" if isinstance(path[-1], str) else "L")
    if container is None:
        raise InvalidRequestError(_INVALID_FOR_UPDATE)
    return container, path[-1]


def _pair(seen: list[Path], path: Path, shared: int) -> str:
    other = next(one for one in seen if one[:shared] == path[:shared])
    return f"path one: [{_listed(other)}], path two: [{_listed(path)}]"


def _listed(path: Path) -> str:
    return ", ".join(f"[{step}]" if isinstance(step, int) else step for step in path)
