"""Every exported name of crate_nb, from its notebooks.

Of each: its signature, what its parameters, fields and results are, its errors, the equation above
it, and where its notebook explains it. Nothing is imported.
"""

import ast, io, json, re, tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("objective", "models", "training", "study")
_NBS = ROOT / "nbs"
_LIBRARY = [_NBS / "core.ipynb", *(p for w in WINGS for p in sorted((_NBS / w).glob("*.ipynb")))]
MODULES = {  # objective.rates -> its notebook
    ".".join(p.relative_to(_NBS).with_suffix("").parts): p for p in [*_LIBRARY, _NBS / "cli.ipynb"]
}


def cells_of(notebook: Path) -> list[dict]:
    "The cells of a notebook."
    return json.loads(notebook.read_text())["cells"]


def first_text(notebook: Path) -> str:
    "A notebook's first text: title, sentence, introduction."
    texts = (c["source"] for c in cells_of(notebook) if c["cell_type"] == "markdown")
    return "".join(next(texts))


def sentence(notebook: Path) -> str:
    "The sentence below a notebook's title; nothing if it has none."
    quote = re.search(r"(?m)^> (.+(?:\n> .+)*)", first_text(notebook))
    return " ".join(quote[1].replace("\n> ", " ").split()) if quote else ""


@dataclass
class Part:
    "A parameter or a field."

    name: str
    text: str  # its signature: name, annotation, default
    doc: str


@dataclass
class Entry:
    "What a reference page says of one name."

    module: str
    name: str  # Class.method for a method
    kind: str  # function, class, method, property, data
    doc: str = ""
    parts: list[Part] = field(default_factory=list)
    returns: str = ""  # annotation
    returned: str = ""  # what it is: shape, units
    errors: list[str] = field(default_factory=list)
    section: str = ""  # heading in the notebook
    equations: list[str] = field(default_factory=list)
    value: str = ""  # of a short constant
    members: list["Entry"] = field(default_factory=list)

    def gaps(self) -> list[str]:
        "What is not documented."
        name = f"{self.module}.{self.name}"
        found = [] if self.doc else [f"{name}: no summary"]
        found += [f"{name}: {p.name} is not documented" for p in self.parts if not p.doc]
        for member in self.members:
            found += member.gaps()
        return found


class Source:
    "A cell's code, with its comments by line."

    def __init__(self, code: str):
        self.code, self.tree, self.lines = code, ast.parse(code), code.splitlines()
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        self.comments = {
            t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT
        }

    def comment(self, line: int) -> str:
        "The comment at the end of a line."
        return self.comments.get(line, "")

    def above(self, line: int) -> str:
        "The lines right above a line that are nothing but comment, as one text."
        text = []
        while line > 1 and self.lines[line - 2].lstrip().startswith("# "):
            line -= 1
            text.insert(0, self.comments[line])
        return " ".join(text)


# ---------------------------------------------------------------- what the code says


def _beside(src: Source, node: ast.stmt) -> str:
    "The comment of a constant or a field: on its last or first line, or right above."
    return src.comment(node.end_lineno) or src.comment(node.lineno) or src.above(node.lineno)


def _summary(node) -> str:
    "A docstring in one line."
    return " ".join((ast.get_docstring(node) or "").split())


def _message(arg: ast.AST) -> str:
    "An error's text, with ... for what is filled in."
    if isinstance(arg, ast.Constant):
        return str(arg.value)
    if isinstance(arg, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "..." for v in arg.values)
    if isinstance(arg, ast.BinOp):
        return _message(arg.left) + _message(arg.right)
    return "..." if isinstance(arg, ast.IfExp) else ""


def _raised(node) -> list[str]:
    "The message of a statement that raises a UserError."
    call = node.exc if isinstance(node, ast.Raise) else None
    is_ours = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "UserError"
    return [_message(call.args[0])] if is_ours else []


def _refused(node, checks: dict[str, ast.AST]) -> list[str]:
    "The messages of a call of a `check_` function."
    called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    if called not in checks:
        return []
    if called != "check_choice":
        return _errors(checks[called], {})
    what = node.args[0] if node.args else None
    is_known = isinstance(what, ast.Constant)
    return [f"unknown {what.value} ...; allowed: ..."] if is_known else []


def _errors(node, checks: dict[str, ast.AST]) -> list[str]:
    "The UserErrors of a function: its own, and those of the `check_` functions that it calls."
    others = {name: check for name, check in checks.items() if check is not node}
    found = []
    for n in ast.walk(node):
        found += _raised(n) + _refused(n, others)
    # a message without a word is put together elsewhere, and says nothing here
    return list(dict.fromkeys(e for e in found if re.search(r"\w", e)))


def _arguments(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.AST | None, str]]:
    "A function's parameters but self and cls: (parameter, default, stars)."
    a = node.args
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)
    rows = [(p, d, "") for p, d in zip(plain, defaults)]
    if a.vararg:
        rows.append((a.vararg, None, "*"))
    rows += [(p, d, "") for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg:
        rows.append((a.kwarg, None, "**"))
    return [row for row in rows if row[0].arg not in ("self", "cls")]


def _signature(parameter: ast.arg, default: ast.AST | None, stars: str) -> str:
    "A parameter with its annotation and its default."
    text = stars + ast.unparse(parameter)
    if default is None:
        return text
    equals = "=" if parameter.annotation is None else " = "
    return f"{text}{equals}{ast.unparse(default)}"


def _parts(node: ast.FunctionDef, src: Source) -> list[Part]:
    "The parameters of a function; a comment belongs to the last parameter of its line."
    rows = _arguments(node)
    lines = [(default or parameter).end_lineno for parameter, default, _ in rows]
    last = {line: parameter.arg for line, (parameter, _, _) in zip(lines, rows)}
    body = node.body[0].lineno
    result = node.returns.end_lineno if node.returns else None

    def doc(parameter, line):
        is_its_own = last[line] == parameter.arg and line < body and line != result
        return src.comment(line) if is_its_own else ""

    return [Part(row[0].arg, _signature(*row), doc(row[0], line)) for row, line in zip(rows, lines)]


# ---------------------------------------------------------------- entries


def _decorated(node: ast.FunctionDef, *words: str) -> bool:
    "Whether a decorator of a function has one of some words in it."
    return any(word in ast.unparse(d) for d in node.decorator_list for word in words)


def _kind(node: ast.FunctionDef, owner: str) -> str:
    "What a function is."
    if not owner:
        return "function"
    return "property" if _decorated(node, "property") else "method"


def _returned(node: ast.FunctionDef, src: Source) -> str:
    "The comment beside a function's result."
    line = node.returns.end_lineno if node.returns else None
    return src.comment(line) if line and line < node.body[0].lineno else ""


def _function(module, node, src, checks, owner="") -> Entry:
    "The entry of a function, or of a method of `owner`."
    # the options of a command of click are documented where they are declared
    is_command = _decorated(node, "command", "group")
    return Entry(
        module,
        owner + node.name,
        _kind(node, owner),
        doc=_summary(node),
        parts=[] if is_command else _parts(node, src),
        returns=ast.unparse(node.returns) if node.returns else "",
        returned=_returned(node, src),
        errors=_errors(node, checks),
    )


def _fields(node: ast.ClassDef, src: Source) -> list[Part]:
    "The public fields of a class."
    return [
        Part(n.target.id, ast.unparse(n), _beside(src, n))
        for n in node.body
        if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")
    ]


def _class(module, node, src, checks) -> Entry:
    "The entry of a class: the parameters of its `__init__`, or its fields; and its methods."
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    private = [n for n in functions if n.name.startswith("_")]
    public = [n for n in functions if n not in private]
    init = next((_parts(n, src) for n in private if n.name == "__init__"), [])
    if "Function" in [ast.unparse(b).split(".")[-1] for b in node.bases]:
        public = []  # torch calls the methods of an autograd.Function
    return Entry(
        module,
        node.name,
        "class",
        doc=_summary(node),
        parts=init or _fields(node, src),
        errors=[e for n in private for e in _errors(n, checks)],
        members=[_function(module, n, src, checks, f"{node.name}.") for n in public],
    )


def _data(module, node, src) -> list[Entry]:
    "The entries of an assignment."
    is_annotated = isinstance(node, ast.AnnAssign)
    target = node.target if is_annotated else node.targets[0]
    is_tuple = isinstance(target, ast.Tuple)
    value = ast.unparse(node.value) if node.value else ""
    if value.startswith("TypeVar("):
        return []
    names = [n.id for n in (target.elts if is_tuple else [target]) if isinstance(n, ast.Name)]
    return [
        Entry(
            module,
            name,
            "data",
            doc=_beside(src, node),
            returns=ast.unparse(node.annotation) if is_annotated else "",
            value=value if 2 < len(value) <= 60 and not is_tuple else "",
        )
        for name in names
        if not name.startswith("_")
    ]


def _entries(module, node, src, checks) -> list[Entry]:
    "The entries of a statement of an exported cell."
    if getattr(node, "name", "").startswith("_"):
        return []
    if isinstance(node, ast.FunctionDef):
        return [_function(module, node, src, checks)]
    if isinstance(node, ast.ClassDef):
        return [_class(module, node, src, checks)]
    return _data(module, node, src) if isinstance(node, ast.Assign | ast.AnnAssign) else []


def _exports(path: Path) -> list[tuple[Source, str, list[str]]]:
    "A notebook's exported cells, each with its heading and the display formulas just above it."
    heading, formulas, out = "", [], []
    for c in cells_of(path):
        text = "".join(c["source"])
        if c["cell_type"] == "markdown":
            if headings := re.findall(r"(?m)^#+ (.+)$", text):
                heading, formulas = headings[-1], []
            formulas += re.findall(r"\$\$(.+?)\$\$", text, re.S)
        elif re.match(r"#\| export", text):
            out.append((Source(text), heading, formulas))
            formulas = []
    return out


def _checks(cells: dict[str, list]) -> dict[str, ast.FunctionDef]:
    "All functions whose name says that they check something."
    nodes = (n for found in cells.values() for src, _, _ in found for n in src.tree.body)
    functions = (n for n in nodes if isinstance(n, ast.FunctionDef))
    return {n.name: n for n in functions if n.name.startswith("check_")}


def _of_module(module: str, found: list, checks: dict[str, ast.AST]) -> Iterator[Entry]:
    "The entries of a module, in their order."
    for src, heading, formulas in found:
        for node in src.tree.body:
            for e in _entries(module, node, src, checks):
                e.section, e.equations = heading, formulas
                yield e


def entries() -> dict[str, list[Entry]]:
    "Module -> its exported names, in their order; all from the notebooks, and nothing imported."
    cells = {m: _exports(p) for m, p in MODULES.items()}
    checks = _checks(cells)
    return {m: list(_of_module(m, found, checks)) for m, found in cells.items()}


def gaps() -> list[str]:
    "Everything that is exported and not documented."
    return [g for es in entries().values() for e in es for g in e.gaps()]


if __name__ == "__main__":
    found = entries()
    print("\n".join(gaps()) or f"{sum(len(es) for es in found.values())} names, all documented")
