// The bill of the calculator: dollars from counted use and prices, as `python -m infra.bench cost`.

const MILLION = 1e6;

/**
 * Dollars by line for `messages` of a case.
 * `used`: the share of provisioned capacity in use; null for tables on demand.
 * `direct`: by functions' own URLs, without the HTTP API.
 * `term`: one of `prices.terms`; null without one.
 * `gigabytes`: in the table of messages, on average: stored, backed up, and exported each night.
 */
export function bill({ use }, prices, { messages, used, direct, term = null, gigabytes = 0 }) {
  const off = term === null ? { tables: 0, functions: 0 } : prices.terms[term];
  const write = used === null ? prices.write_units : prices.provisioned_write_units / used;
  const read = used === null ? prices.read_units : prices.provisioned_read_units / used;
  const millions = messages / MILLION;
  return {
    "DynamoDB": millions * (use.write_units * write + use.read_units * read) * (1 - off.tables),
    "HTTP API": direct ? 0 : millions * use.calls * prices.calls,
    "S3, KMS": millions * (use.puts * prices.puts + use.gets * prices.gets),
    "Lambda": millions * use.functions * prices.functions
      + messages * use.gb_seconds * prices.gb_second * (1 - off.functions),
    "Messages that wait": gigabytes * prices.kept_gigabyte,
  };
}
