// What the search finds. An entry is [page, title of the page, heading, anchor, text].

const TITLE_POINTS = 8;
const HEADING_POINTS = 20;
const MOST_TIMES = 5;

/** The words of a question, in lower case. */
export function wordsOf(question) {
  return question.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
}

/** The entries in which every word begins some word, the best first. */
export function look(entries, question) {
  const asked = wordsOf(question);
  if (asked.length === 0) return [];
  return entries
    .map((entry) => [points(entry, asked), entry])
    .filter(([sum]) => sum > 0)
    .sort(([a], [b]) => b - a)
    .map(([, entry]) => entry);
}

function points([, title, heading, , text], asked) {
  const places = [title, heading, text].map(wordsOf);
  let sum = wordsOf(heading).join(" ") === asked.join(" ") ? HEADING_POINTS : 0;
  for (const word of asked) {
    const [inTitle, inHeading, inText] = places.map(
      (words) => words.filter((each) => each.startsWith(word)).length,
    );
    if (inTitle + inHeading + inText === 0) return 0;
    sum += (inHeading > 0 ? HEADING_POINTS : 0) + (inTitle > 0 ? TITLE_POINTS : 0);
    sum += Math.min(inText, MOST_TIMES);
  }
  return sum;
}
