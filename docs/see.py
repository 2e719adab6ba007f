"""The page *See what CRATE sees*: a trained model that runs in a browser.

usage: python docs/see.py BOOK           write the page into a built book
       python docs/see.py --check BOOK   try it in a headless Chromium, against `layerwise_srr`
"""

import base64, hashlib, html, http.server, json, re, shutil, subprocess, sys, tarfile, tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "data" / "models" / "crate-conv"
RUNTIME = "onnxruntime-web@1.22.0"  # of npm
DIGEST = "Ud/+EBo6mhuaQWt/OjaOk0iNWjXqJoeeMFr6xQEERZdIZH2OWpGzuujz7lfuOBjUa6TEE/sc4nb7Da5dNL34fg=="
FILES = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
CROPS = {  # name -> photograph of scikit-learn or Matplotlib, left, top, side in pixels
    "flower": ("flower.jpg", 120, 0, 420),
    "temple": ("china.jpg", 110, 0, 427),
    "roof": ("china.jpg", 300, 60, 160),
    "petals": ("flower.jpg", 230, 60, 180),
    "admiral": ("grace_hopper.jpg", 60, 20, 380),
}


def can_see() -> bool:
    "Whether the page can be built here."
    return bool(find_spec("onnxscript") and shutil.which("npm"))


def fetch_runtime(folder: Path):
    "The files of onnxruntime-web, checked against their digest."
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(
            ["npm", "pack", "--silent", RUNTIME], cwd=tmp, check=True, capture_output=True
        )
        (archive,) = Path(tmp).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != DIGEST:
            raise RuntimeError(f"{RUNTIME} has another digest: {digest}")
        with tarfile.open(archive) as packed:
            for name in FILES:
                content = packed.extractfile(f"package/dist/{name}")
                (folder / name).write_bytes(content.read())


def write_pictures(folder: Path) -> list[tuple[str, str]]:  # file and name
    "Squares of photographs that come with scikit-learn and Matplotlib."
    from matplotlib.cbook import get_sample_data
    from PIL import Image
    from sklearn.datasets import load_sample_image

    pictures = []
    for name, (source, left, top, side) in CROPS.items():
        own = source == "grace_hopper.jpg"
        photo = (
            Image.open(get_sample_data(source))
            if own
            else Image.fromarray(load_sample_image(source))
        )
        square = photo.crop((left, top, left + side, top + side)).resize((128, 128))
        square.convert("RGB").save(folder / f"{name}.png")
        pictures.append((f"{name}.png", name))
    return pictures


def write_see(book: Path):
    "Write the page and what it loads."
    import numpy as np
    from crate_nb import export_onnx, from_pretrained

    folder = book / "see"
    folder.mkdir(exist_ok=True)
    fetch_runtime(folder)
    model = from_pretrained(MODEL)
    export_onnx(model, folder / "model.onnx", attention=True)
    u = np.stack([layer.u.detach().numpy() for layer in model.layers])  # (L, K, d, p)
    (folder / "subspaces.bin").write_bytes(u.astype("<f4").tobytes())
    a, about = model.architecture, model.about
    known = dict(size=a.image_size, mean=about.mean, std=about.std, classes=about.classes)
    known |= dict(depth=a.depth, heads=a.heads, dim=a.dim, p=u.shape[-1], side=a.grid[0])
    known["pictures"] = write_pictures(folder)
    (folder / "model.json").write_text(json.dumps(known))
    shutil.copy(ROOT / "docs" / "see" / "see.js", folder)
    shutil.copy(ROOT / "docs" / "see" / "see.html", book)


class Server(http.server.SimpleHTTPRequestHandler):
    "Serves a book; see/wait, which holds up the browser's dump, is answered after see/done."

    done = Event()

    def do_GET(self):
        if self.path.endswith("/done"):
            self.done.set()
        if self.path.endswith("/wait"):
            self.done.wait(120)
        super().do_GET()

    def log_message(self, *_):
        pass


def check(book: Path):
    "Compare what the page finds with what PyTorch finds on the same pixels."
    import numpy as np, torch
    from crate_nb import from_pretrained, layerwise_srr

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=book))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/see.html#test"
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    options = "--headless --no-sandbox --disable-gpu --timeout=120000 --dump-dom".split()
    options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # no network
    dom = subprocess.run([browser, *options, address], capture_output=True, text=True, timeout=300)
    said = re.search(r'<p id="status"[^>]*>(.*?)</p>', dom.stdout)
    text = re.search(r'<pre id="found">(.*?)</pre>', dom.stdout, re.S)
    assert text and text[1], f"the page found nothing; it says: {said and said[1]}"
    found = json.loads(html.unescape(text[1]))
    model = from_pretrained(MODEL)
    size = model.architecture.image_size
    pixels = torch.tensor(found["pixels"], dtype=torch.uint8).view(1, size, size, 3)
    x = model.about.standardise(pixels.permute(0, 3, 1, 2))
    with torch.no_grad():
        np.testing.assert_allclose(found["logits"], model(x)[0], atol=1e-3)
    terms = layerwise_srr(model, [x])
    for name in ("rate", "subspace_rate", "l0", "srr"):
        page = [row[name] for row in found["layers"]]
        np.testing.assert_allclose(page, terms[name], rtol=1e-3, err_msg=name)
    print(
        f"the page agrees with PyTorch on logits and SRR of {len(terms)} layers; it says: {said[1]}"
    )
    server.shutdown()


if __name__ == "__main__":
    check(Path(sys.argv[2])) if sys.argv[1] == "--check" else write_see(Path(sys.argv[1]))
