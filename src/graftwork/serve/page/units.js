// Numbers as `graftwork/units.py` shows them: inside everything is SI, scores are fractions. A test compares the two.

const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const CARRIES = 0.9995; // from here on three digits round up to the next unit

/** A value in its unit, with three digits and a prefix: 4.7e12 FLOP is "4.7 TFLOP"; what is not known is a dash. */
export function show(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "s") return duration(value);
  if (unit === "bytes") return scaled(value, "B");
  if (["FLOP", "J", "parameters"].includes(unit)) return scaled(value, unit === "parameters" ? "" : unit);
  return `${digits(value)} ${unit}`.trim();
}

/** With a decimal prefix. */
export function scaled(value, unit) {
  for (const [factor, prefix] of PREFIXES) {
    if (Math.abs(value) >= CARRIES * factor) return `${digits(value / factor)} ${prefix}${unit}`.trim();
  }
  return `${digits(value)} ${unit}`.trim();
}

/** 0.0042 is "4.2 ms", 75 is "1 min 15 s", 200000 is "2 d 7 h". */
export function duration(seconds) {
  if (seconds > 0 && seconds < CARRIES / 1000) return `${three(seconds * 1e6)} µs`;
  if (seconds < CARRIES) return `${three(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${three(seconds)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${count(Math.floor(hours / 24))} d ${hours % 24} h`;
}

/** A fraction in points: 0.9612 is "96.1". */
export function percent(fraction) {
  return (100 * fraction).toFixed(1);
}

/** A probability: what is nearly nothing, or nearly certain, is said to be so. */
export function chance(probability) {
  if (probability > 0 && probability < 0.0005) return "< 0.1 %";
  return probability < 1 && probability >= 0.9995 ? "> 99.9 %" : `${percent(probability)} %`;
}

/** A whole number with commas. */
export function count(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

function digits(value) {
  return Math.abs(value) >= 999.5 ? count(value) : three(value);
}

/** Three significant digits without trailing zeros. */
function three(value) {
  const rounded = Number(value.toPrecision(3));
  if (rounded === 0 || Math.abs(rounded) >= 1e-4) return String(rounded);
  const [mantissa, exponent] = rounded.toExponential().split("e");
  return `${mantissa}e-${exponent.slice(1).padStart(2, "0")}`;
}
