// The bill of the calculator: dollars from counted use and prices, as `python -m infra.bench cost`.

const MILLION = 1e6;

/**
 * Dollars by line for `messages` of a case.
 * `used`: the share of provisioned capacity in use; null for tables on demand.
 * `direct`: by functions' own URLs, without the HTTP API.
 */
export function bill({ use }, prices, { messages, used, direct }) {
  const write = used === null ? prices.write_units : prices.provisioned_write_units / used;
  const read = used === null ? prices.read_units : prices.provisioned_read_units / used;
  const millions = messages / MILLION;
  return {
    "DynamoDB": millions * (use.write_units * write + use.read_units * read),
    "HTTP API": direct ? 0 : millions * use.calls * prices.calls,
    "S3, KMS": millions * (use.puts * prices.puts + use.gets * prices.gets),
    "Lambda": millions * use.functions * prices.functions
      + messages * use.gb_seconds * prices.gb_second,
  };
}
