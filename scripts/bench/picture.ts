/** Growth as a picture: cost against size, both in powers of ten. */
import type { Growth } from "./growth.ts";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [860, 460, 70, 220, 40, 50];
const COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#16a085", "#7f8c8d", "#34495e"];

export function picture({ sizes, operations }: Growth): string {
  const all = operations.flatMap(({ us }) => us);
  const x = scale(Math.min(...sizes), Math.max(...sizes), LEFT, WIDTH - RIGHT);
  const y = scale(10 ** Math.floor(Math.log10(Math.min(...all))), 10 ** Math.ceil(Math.log10(Math.max(...all))), HEIGHT - BOTTOM, TOP);
  const across = sizes.map((size) => text(x(size), HEIGHT - BOTTOM + 20, "middle", short(size)));
  const up = powers(Math.min(...all), Math.max(...all)).flatMap((value) => [
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(value))}" y2="${at(y(value))}" stroke="#ddd"/>`,
    text(LEFT - 8, y(value) + 4, "end", value >= 1_000 ? `${value / 1_000} ms` : `${value} µs`),
  ]);
  const ends = spread(operations.map(({ us }) => y(us.at(-1) ?? 1)));
  const curves = operations.flatMap(({ name, us }, index) => {
    const colour = COLOURS[index % COLOURS.length] ?? "#000";
    const points = us.map((value, which) => `${at(x(sizes[which] ?? 1))},${at(y(value))}`).join(" ");
    return [
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      text(WIDTH - RIGHT + 10, (ends[index] ?? 0) + 4, "start", name, colour),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(LEFT, 22, "start", "What an operation costs as finished rows pile up, 10,000 pending"),
    ...up,
    ...across,
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle", "finished rows"),
    ...curves,
    "</svg>",
    "",
  ].join("\n");
}

function scale(from: number, to: number, start: number, end: number): (value: number) => number {
  return (value) => start + ((Math.log10(value) - Math.log10(from)) / (Math.log10(to) - Math.log10(from) || 1)) * (end - start);
}

function powers(from: number, to: number): number[] {
  const [first, last] = [Math.floor(Math.log10(from)), Math.ceil(Math.log10(to))];
  return Array.from({ length: last - first + 1 }, (_, n) => 10 ** (first + n));
}

/** Names that would lie on each other are moved apart, in the order of the curves' ends. */
function spread(ends: readonly number[]): readonly number[] {
  const order = ends.map((end, index) => ({ end, index })).toSorted((a, b) => a.end - b.end);
  let least = TOP;
  for (const each of order) {
    each.end = Math.max(each.end, least);
    least = each.end + 17;
  }
  return order.toSorted((a, b) => a.index - b.index).map(({ end }) => end);
}

function text(x: number, y: number, anchor: string, words: string, colour = "#222"): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}" fill="${colour}">${words}</text>`;
}

function at(value: number): string {
  return value.toFixed(1);
}

function short(size: number): string {
  return size >= 1_000_000 ? `${size / 1_000_000} million` : size >= 1_000 ? `${size / 1_000} thousand` : String(size);
}
