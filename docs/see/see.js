// See what CRATE sees: a classifier runs in this page, and nothing leaves it.
// @ts-check

/**
 * What docs/see.py knows of the model.
 * @typedef {{size: number, mean: number[], std: number[], classes: string[], depth: number,
 *   heads: number, dim: number, p: number, side: number, pictures: string[][]}} Model
 */
/** @typedef {{rate: number, subspace_rate: number, l0: number, srr: number}} Terms */

const EPS = 0.5; // distortion
const LAM = 0.1; // weight of the non-zeros
const MOST_PIXELS = 50e6;

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);
/** @param {string} text */
const say = (text) => ($("status").textContent = text);

/** @type {Model} */
let model;
/** @type {any} */
let session;
/** @type {Float32Array} */
let subspaces; // (L, K, d, p)
/** @type {any} */
let found = null; // outputs for the present picture
let selected = 0; // token: 0 is the class token, then patches row by row

/**
 * 1/2 log det(I + scale A A^T) of a matrix (rows, columns), by its smaller Gram matrix.
 * @param {Float64Array} a @param {number} rows @param {number} columns @param {number} scale
 */
function halfLogDet(a, rows, columns, scale) {
  const wide = rows <= columns;
  const n = wide ? rows : columns;
  const m = wide ? columns : rows;
  const at = wide
    ? (/** @type {number} */ i, /** @type {number} */ k) => a[i * columns + k]
    : (/** @type {number} */ i, /** @type {number} */ k) => a[k * columns + i];
  const chol = new Float64Array(n * n);
  let sum = 0;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let dot = 0;
      for (let k = 0; k < m; k++) dot += at(i, k) * at(j, k);
      let value = scale * dot + (i === j ? 1 : 0);
      for (let k = 0; k < j; k++) value -= chol[i * n + k] * chol[j * n + k];
      chol[i * n + j] = i === j ? Math.sqrt(value) : value / chol[j * n + j];
    }
    sum += Math.log(chol[i * n + i]);
  }
  return sum;
}

/**
 * R, R^c, non-zeros and SRR of a layer's tokens.
 * @param {Float32Array} z (N, d) @param {number} layer from 0 @returns {Terms}
 */
function termsOf(z, layer) {
  const { dim: d, heads, p } = model;
  const n = z.length / d;
  const rate = halfLogDet(Float64Array.from(z), n, d, d / (n * EPS ** 2));
  let subspaceRate = 0;
  for (let k = 0; k < heads; k++) {
    const u = subspaces.subarray((layer * heads + k) * d * p, (layer * heads + k + 1) * d * p);
    const v = new Float64Array(n * p);
    for (let i = 0; i < n; i++)
      for (let j = 0; j < d; j++)
        for (let c = 0; c < p; c++) v[i * p + c] += z[i * d + j] * u[j * p + c];
    subspaceRate += halfLogDet(v, n, p, p / (n * EPS ** 2));
  }
  const l0 = z.reduce((count, value) => count + (value !== 0 ? 1 : 0), 0);
  return { rate, subspace_rate: subspaceRate, l0, srr: subspaceRate - rate + LAM * l0 };
}

/**
 * The central square of a picture, at the model's size: RGB bytes, row by row.
 * @param {ImageBitmap} picture @returns {Uint8Array}
 */
function pixelsOf(picture) {
  const side = Math.min(picture.width, picture.height);
  const small = document.createElement("canvas");
  small.width = small.height = model.size;
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  context.imageSmoothingQuality = "high";
  const left = (picture.width - side) / 2;
  const top = (picture.height - side) / 2;
  context.drawImage(picture, left, top, side, side, 0, 0, model.size, model.size);
  const rgba = context.getImageData(0, 0, model.size, model.size).data;
  const count = 3 * model.size ** 2;
  return Uint8Array.from({ length: count }, (_, i) => rgba[4 * Math.trunc(i / 3) + (i % 3)]);
}

/** @param {Uint8Array} pixels (size, size, 3) */
async function run(pixels) {
  const area = model.size ** 2;
  const x = new Float32Array(3 * area);
  for (let i = 0; i < area; i++)
    for (let c = 0; c < 3; c++)
      x[c * area + i] = (pixels[3 * i + c] / 255 - model.mean[c]) / model.std[c];
  // @ts-ignore
  const images = new ort.Tensor("float32", x, [1, 3, model.size, model.size]);
  const out = await session.run({ images });
  const layers = [];
  for (let l = 0; l < model.depth; l++) layers.push(termsOf(out[`layer_${l + 1}`].data, l));
  found = { pixels, logits: Array.from(out.logits.data), layers, out };
  showClasses();
  showTerms();
  draw();
}

/** @param {number[]} logits */
function softmax(logits) {
  const most = Math.max(...logits);
  const parts = logits.map((value) => Math.exp(value - most));
  const sum = parts.reduce((a, b) => a + b);
  return parts.map((part) => part / sum);
}

function showClasses() {
  const shares = softmax(found.logits);
  const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]).slice(0, 5);
  const rows = order.map((i) => {
    const row = document.createElement("li");
    const meter = document.createElement("meter");
    meter.value = shares[i];
    row.append(meter, ` ${model.classes[i]}, ${(100 * shares[i]).toFixed(1)} %`);
    return row;
  });
  $("classes").replaceChildren(...rows);
}

function showTerms() {
  const rows = found.layers.map((/** @type {Terms} */ t, /** @type {number} */ l) => {
    const row = document.createElement("tr");
    const rates = [t.rate.toFixed(1), t.subspace_rate.toFixed(1)];
    for (const value of [l + 1, ...rates, t.l0, t.srr.toFixed(1)])
      row.append(Object.assign(document.createElement("td"), { textContent: value }));
    return row;
  });
  $("terms").replaceChildren(...rows);
}

/** The picture, darker where the selected token attends less. */
function draw() {
  if (!found) return;
  const canvas = $("picture");
  const context = canvas.getContext("2d");
  const cell = canvas.width / model.side;
  const scale = canvas.width / model.size;
  for (let i = 0; i < model.size ** 2; i++) {
    context.fillStyle = `rgb(${found.pixels.slice(3 * i, 3 * i + 3).join(",")})`;
    context.fillRect((i % model.size) * scale, Math.trunc(i / model.size) * scale, scale, scale);
  }
  const n = model.side ** 2 + 1;
  const maps = found.out[`attention_${$("layer").value}`].data;
  const start = (Number($("head").value) * n + selected) * n;
  const row = Array.from(maps.slice(start + 1, start + n));
  const most = Math.max(...row);
  row.forEach((weight, i) => {
    context.fillStyle = `rgba(0, 0, 0, ${0.8 * (1 - weight / most)})`;
    context.fillRect((i % model.side) * cell, Math.trunc(i / model.side) * cell, cell, cell);
  });
  if (selected) {
    context.strokeStyle = "red";
    context.lineWidth = 3;
    const [x, y] = [(selected - 1) % model.side, Math.trunc((selected - 1) / model.side)];
    context.strokeRect(x * cell + 1.5, y * cell + 1.5, cell - 3, cell - 3);
  }
  $("token").textContent = selected ? `patch ${selected} of ${n - 1}` : "the class token";
  $("own").textContent = `${(100 * maps[start]).toFixed(1)} % on the class token`;
}

/** @param {Blob} file */
async function open(file) {
  try {
    if (file.size > 5e7) throw new Error("its file is larger than 50 MB");
    const picture = await createImageBitmap(file);
    const area = picture.width * picture.height;
    if (area > MOST_PIXELS) throw new Error("it has more than 50 megapixels");
    const start = performance.now();
    await run(pixelsOf(picture));
    say(`done in ${Math.round(performance.now() - start)} ms`);
  } catch (e) {
    say(`this picture can't be shown (${/** @type {Error} */ (e).message}); take a PNG or JPEG`);
  }
}

/** @param {string} name */
const fetched = async (name) => {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name} is missing`);
  return answer;
};

/** @param {KeyboardEvent} event */
function move(event) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -model.side, ArrowDown: model.side };
  const step = /** @type {any} */ (steps)[event.key];
  if (step === undefined) return;
  event.preventDefault();
  selected = Math.min(Math.max(selected + step, 0), model.side ** 2);
  draw();
}

function listen() {
  $("file").addEventListener("change", () => $("file").files[0] && open($("file").files[0]));
  for (const name of ["layer", "head"]) $(name).addEventListener("change", draw);
  const canvas = $("picture");
  canvas.addEventListener("keydown", move);
  canvas.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.trunc(((event.clientX - box.left) / box.width) * model.side);
    const y = Math.trunc(((event.clientY - box.top) / box.height) * model.side);
    selected = 1 + y * model.side + x;
    draw();
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) open(file);
  });
}

async function main() {
  const isTest = location.hash === "#test"; // docs/see.py answers see/wait after see/done
  if (isTest) document.body.append(Object.assign(new Image(), { src: "see/wait" }));
  if (typeof WebAssembly !== "object")
    return say("your browser has no WebAssembly; take another one");
  model = await (await fetched("see/model.json")).json();
  subspaces = new Float32Array(await (await fetched("see/subspaces.bin")).arrayBuffer());
  // @ts-ignore
  ort.env.wasm.wasmPaths = new URL("see/", location.href).href;
  // @ts-ignore
  ort.env.wasm.numThreads = 1;
  say("loading the model (13 MB) ...");
  const file = await (await fetched("see/model.onnx")).arrayBuffer();
  // @ts-ignore
  session = await ort.InferenceSession.create(file);
  for (const [id, count, first] of [["layer", model.depth, 1], ["head", model.heads, 0]])
    for (let i = 0; i < Number(count); i++)
      $(id).append(new Option(String(i + 1), String(i + Number(first))));
  $("layer").value = String(model.depth);
  listen();
  for (const [file, name] of model.pictures) {
    const button = Object.assign(document.createElement("button"), { title: name });
    button.append(Object.assign(new Image(64, 64), { src: `see/${file}`, alt: name }));
    button.addEventListener("click", async () => open(await (await fetched(`see/${file}`)).blob()));
    $("pictures").append(button);
  }
  await open(await (await fetched(`see/${model.pictures[0][0]}`)).blob());
  if (isTest) {
    const { pixels, logits, layers } = found;
    $("found").textContent = JSON.stringify({ pixels: Array.from(pixels), logits, layers });
    new Image().src = "see/done";
  }
}

main().catch((e) => say(`the page can't start (${e.message})`));
