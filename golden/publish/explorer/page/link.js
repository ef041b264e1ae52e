// What the page shows, as the part of its address behind the #: instructions, operands, and pasted units.

const SEPARATOR = ".";

// {first, second: "architecture:name", operands: {name: [BigInt]}, unit: a pasted document}.
export async function toHash({ first, second, operands, unit }) {
  const parts = new URLSearchParams();
  parts.set("i", first);
  if (second) parts.set("with", second);
  for (const [name, codes] of Object.entries(operands)) parts.set(name, codesText(codes));
  if (unit) parts.set("unit", await packed(JSON.stringify(unit)));
  return `#${parts.toString().replaceAll("%3A", ":")}`;
}

export async function fromHash(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const operands = {};
  for (const [name, text] of parts) {
    if (!["i", "with", "unit"].includes(name)) operands[name] = codesOf(text);
  }
  const unit = parts.get("unit");
  return { first: parts.get("i"), second: parts.get("with"), operands, unit: unit && (await unpacked(unit)) };
}

// Codes in hex; of the zeros at the end none.
function codesText(codes) {
  const last = codes.findLastIndex((code) => code !== 0n);
  return codes
    .slice(0, last + 1)
    .map((code) => code.toString(16))
    .join(SEPARATOR);
}

function codesOf(text) {
  return text
    .split(SEPARATOR)
    .filter(Boolean)
    .map((word) => (/^[0-9a-f]{1,16}$/i.test(word) ? BigInt(`0x${word}`) : 0n));
}

// Text compressed, in the letters that an address may hold.
async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) =>
    letter.charCodeAt(0),
  );
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

async function through(stream, bytes) {
  const response = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await response.arrayBuffer());
}
