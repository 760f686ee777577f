// The errors of the contract, by their codes, and those of calls without an answer.

/** A call was refused, or had no answer. */
export class CirrusMQError extends Error {
  /** `problem`: the answer of the service, or {code, detail} of an error without one. */
  constructor(problem, retryAfterSeconds = undefined, options = undefined) {
    super(problem.detail, options);
    this.name = "CirrusMQError";
    this.code = problem.code;
    this.status = problem.status;
    this.parameter = problem.parameter;
    this.requestId = problem.request_id;
    this.retryAfterSeconds = retryAfterSeconds;
    /** Whether the call, or an earlier try of it, may have taken effect all the same. */
    this.uncertain = false;
  }
}

/** The error of an answer that is no success: its problem, or its status where it has none. */
export async function errorOf(answer) {
  const text = await answer.text();
  const after = Number(answer.headers.get("retry-after"));
  return new CirrusMQError(problemIn(text, answer.status), after > 0 ? after : undefined);
}

function problemIn(text, status) {
  try {
    const problem = JSON.parse(text);
    if (typeof problem?.code === "string") return { status, ...problem };
  } catch {
    // no JSON: something before the service has answered
  }
  return { status, code: "NoAnswer", detail: `The answer has the status ${status}: ${text.slice(0, 200)}` };
}
