"""Every exported name of crate_nb: its signature, what its parameters, fields and results are, its errors, the equation above it, and where its notebook explains it."""

import ast, io, json, re, tokenize
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = {p.stem[3:]: p for p in sorted((ROOT / "nbs").glob("[0-9][0-9]_*.ipynb"))}


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
        own = [] if self.doc else [f"{self.module}.{self.name}: no summary"]
        return (
            own
            + [
                f"{self.module}.{self.name}: {p.name} is not documented"
                for p in self.parts
                if not p.doc
            ]
            + [g for m in self.members for g in m.gaps()]
        )


class Source:
    "A cell's code, with its comments by line."

    def __init__(self, code: str):
        self.code, self.tree, self.lines = code, ast.parse(code), code.splitlines()
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        self.comments = {
            t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT
        }

    def comment(self, line: int) -> str:
        "The comment at the end of a line, with lines of nothing but comment that go on below it, indented further than code would be."
        text = self.comments.get(line, "")
        while text and line < len(self.lines) and re.match(r"\s{20,}#", self.lines[line]):
            line += 1
            text += " " + self.comments[line]
        return text


def _summary(node) -> str:
    return " ".join((ast.get_docstring(node) or "").split())


def _errors(node, checks: dict[str, ast.AST]) -> list[str]:
    "The messages of the UserErrors that a function raises itself, or in a `check_` function that it calls."
    found = []
    for n in ast.walk(node):
        if (
            isinstance(n, ast.Raise)
            and isinstance(n.exc, ast.Call)
            and getattr(n.exc.func, "id", "") == "UserError"
        ):
            found.append(_message(n.exc.args[0]))
        if (
            isinstance(n, ast.Call)
            and (called := getattr(n.func, "id", "")) in checks
            and checks[called] is not node
        ):
            first = n.args[0] if n.args else None
            if called == "check_choice":
                found += (
                    [f"unknown {first.value} ...; allowed: ..."]
                    if isinstance(first, ast.Constant)
                    else []
                )
            else:
                found += _errors(checks[called], {})
    return list(
        dict.fromkeys(e for e in found if re.search(r"\w", e))
    )  # one that is put together elsewhere says nothing here


def _message(arg: ast.AST) -> str:
    "An error's text, with ... for what is filled in."
    if isinstance(arg, ast.Constant):
        return str(arg.value)
    if isinstance(arg, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "..." for v in arg.values)
    if isinstance(arg, ast.BinOp):
        return _message(arg.left) + _message(arg.right)
    return "..." if isinstance(arg, ast.IfExp) else ""


def _parts(node: ast.FunctionDef, src: Source) -> list[Part]:
    "The parameters of a function; one that comes without a comment shares none with its line's last."
    a = node.args
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)
    rows = (
        [(p, d, "") for p, d in zip(plain, defaults)]
        + ([(a.vararg, None, "*")] if a.vararg else [])
        + [(p, d, "") for p, d in zip(a.kwonlyargs, a.kw_defaults)]
        + ([(a.kwarg, None, "**")] if a.kwarg else [])
    )
    rows = [
        (p, d, star, (d or p).end_lineno) for p, d, star in rows if p.arg not in ("self", "cls")
    ]
    body = node.body[0].lineno
    last = {
        line: p.arg for p, _, _, line in rows
    }  # a comment belongs to the last parameter of its line
    result = node.returns.end_lineno if node.returns else None

    def doc(p, line):
        return src.comment(line) if last[line] == p.arg and line < body and line != result else ""

    def text(p, d, star):
        return (
            star
            + ast.unparse(p)
            + (
                ""
                if d is None
                else f"={ast.unparse(d)}"
                if p.annotation is None
                else f" = {ast.unparse(d)}"
            )
        )

    return [Part(p.arg, text(p, d, star), doc(p, line)) for p, d, star, line in rows]


def _function(module, node, src, checks, owner="") -> Entry:
    kind = (
        "function"
        if not owner
        else "property"
        if any("property" in ast.unparse(d) for d in node.decorator_list)
        else "method"
    )
    commands = any(
        "command" in ast.unparse(d) or "group" in ast.unparse(d) for d in node.decorator_list
    )  # click's: the options are documented where they are declared
    line = node.returns.end_lineno if node.returns else node.lineno
    return Entry(
        module,
        owner + node.name,
        kind,
        _summary(node),
        [] if commands else _parts(node, src),
        ast.unparse(node.returns) if node.returns else "",
        src.comment(line) if node.returns and line < node.body[0].lineno else "",
        _errors(node, checks),
    )


def _class(module, node, src, checks) -> Entry:
    fields = [
        Part(n.target.id, ast.unparse(n), src.comment(n.end_lineno) or src.comment(n.lineno))
        for n in node.body
        if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")
    ]
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    init = next((_parts(n, src) for n in functions if n.name == "__init__"), [])
    autograd = {"Function"} & {ast.unparse(b).split(".")[-1] for b in node.bases}
    members = [
        _function(module, n, src, checks, node.name + ".")
        for n in functions
        if not n.name.startswith("_") and not autograd
    ]
    errors = [e for n in functions if n.name.startswith("_") for e in _errors(n, checks)]
    return Entry(
        module, node.name, "class", _summary(node), init or fields, errors=errors, members=members
    )


def _data(module, node, src) -> list[Entry]:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    value = (
        ""
        if isinstance(target, ast.Tuple)
        or node.value is None
        or not 2 < len(ast.unparse(node.value)) <= 60
        else ast.unparse(node.value)
    )
    names = [
        n.id
        for n in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(n, ast.Name) and not n.id.startswith("_")
    ]
    if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar":
        return []
    return [
        Entry(
            module,
            n,
            "data",
            src.comment(node.lineno) or src.comment(node.end_lineno),
            returns=ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else "",
            value=value,
        )
        for n in names
    ]


def _exports(path: Path):
    "The exported cells of a notebook, each with its heading and the display formulas of the text just above it."
    heading, formulas, out = "", [], []
    for c in json.loads(path.read_text())["cells"]:
        text = "".join(c["source"])
        if c["cell_type"] == "markdown":
            if found := re.findall(r"(?m)^#+ (.+)$", text):
                heading, formulas = found[-1], []
            formulas += re.findall(r"\$\$(.+?)\$\$", text, re.S)
        elif re.match(r"#\| export", text):
            out.append((Source(text), heading, formulas))
            formulas = []
    return out


def entries() -> dict[str, list[Entry]]:
    "Module -> its exported names, in their order; all from the notebooks, and nothing imported."
    cells = {m: _exports(p) for m, p in MODULES.items()}
    checks = {
        n.name: n
        for cs in cells.values()
        for src, _, _ in cs
        for n in src.tree.body
        if isinstance(n, ast.FunctionDef) and n.name.startswith("check_")
    }
    out = {}
    for module, found in cells.items():
        out[module] = []
        for src, heading, formulas in found:
            for n in src.tree.body:
                if getattr(n, "name", "").startswith("_"):
                    continue
                for e in (
                    [_function(module, n, src, checks)]
                    if isinstance(n, ast.FunctionDef)
                    else [_class(module, n, src, checks)]
                    if isinstance(n, ast.ClassDef)
                    else _data(module, n, src)
                    if isinstance(n, (ast.Assign, ast.AnnAssign))
                    else []
                ):
                    e.section, e.equations = heading, formulas
                    out[module].append(e)
    return out


def gaps() -> list[str]:
    "Everything that is exported and not documented."
    return [g for es in entries().values() for e in es for g in e.gaps()]


if __name__ == "__main__":
    found = entries()
    print("\n".join(gaps()) or f"{sum(len(es) for es in found.values())} names, all documented")
