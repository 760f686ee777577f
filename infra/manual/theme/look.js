// What the search finds. An entry is [page, title of the page, heading, anchor, text].

const TITLE_POINTS = 8;
const HEADING_POINTS = 20;
const MOST_TIMES = 5;

/** The words of a question, in lower case. */
export function wordsOf(question) {
  return question.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
}

/** The entries in which every word occurs, the best first. */
export function look(entries, question) {
  const words = wordsOf(question);
  if (words.length === 0) return [];
  return entries
    .map((entry) => [points(entry, words), entry])
    .filter(([sum]) => sum > 0)
    .sort(([a], [b]) => b - a)
    .map(([, entry]) => entry);
}

function points([, title, heading, , text], words) {
  let sum = 0;
  for (const word of words) {
    const inTitle = title.toLowerCase().includes(word);
    const inHeading = heading.toLowerCase().includes(word);
    const times = text.toLowerCase().split(word).length - 1;
    if (!inTitle && !inHeading && times === 0) return 0;
    sum += (inHeading ? HEADING_POINTS : 0) + (inTitle ? TITLE_POINTS : 0);
    sum += Math.min(times, MOST_TIMES);
  }
  return sum;
}
