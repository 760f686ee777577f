// What two readings of a resource's last hour say of the seconds between them; without clock and calls.
//
// A reading: {at: when it was asked for, first: the beginning of its first interval, step: the length
// of each, numbers: {sent: [count, …], …}}, all times in ms. A sample: {at, seconds, happened: {sent:
// count, …}}, of the seconds before `at`; where nothing is known of them, `happened` is null.

const MOST = 60;

/** Nothing was read yet. */
export const NO_SAMPLES = { last: null, samples: [] };

/**
 * What is held, with one more reading. After more than `gapMs` without one, as of a page that was
 * hidden, the sample is a gap: what was counted meanwhile is nobody's rate of a moment.
 */
export function withReading(held, reading, gapMs) {
  const { last, samples } = held;
  if (!last) return { last: reading, samples };
  const elapsed = reading.at - last.at;
  // Answers may overtake each other, and clocks are set back.
  if (elapsed <= 0) return elapsed < -gapMs ? { last: reading, samples: [] } : held;
  const happened = elapsed > gapMs ? null : between(last, reading);
  const sample = { at: reading.at, seconds: elapsed / 1000, happened };
  return { last: reading, samples: [...samples, sample].slice(-MOST) };
}

/**
 * What was counted between two readings, by kind. An interval that began since then counts whole; one
 * that fell out of the hour counts no more. What is taken back makes no number negative.
 */
function between(before, now) {
  const kinds = Object.entries(now.numbers).map(([kind, numbers]) => {
    const changes = numbers.map((number, place) => {
      const was = (now.first + place * now.step - before.first) / before.step;
      // Before the earlier reading's hour: an answer by another clock, and nothing to compare with.
      return was < 0 ? 0 : number - (before.numbers[kind][was] ?? 0);
    });
    return [kind, Math.max(0, sum(changes))];
  });
  return Object.fromEntries(kinds);
}

/** A kind's line since a time: [[ms, messages a second], …]; null is a gap. */
export function lineOf(samples, kind, from) {
  return samples
    .filter(({ at }) => at >= from)
    .map(({ at, seconds, happened }) => [at, happened && happened[kind] / seconds]);
}

/** Messages of a kind a second, as the mean of what is known since a time; null if that is nothing. */
export function meanOf(samples, kind, from) {
  const known = samples.filter(({ at, happened }) => at > from && happened);
  if (!known.length) return null;
  return sum(known.map(({ happened }) => happened[kind])) / sum(known.map(({ seconds }) => seconds));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
