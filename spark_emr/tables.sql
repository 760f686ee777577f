-- The reports' tables for DuckDB, in the folder that --output named; run `duckdb` there and `.read`
-- this file. The views after the files are those that the template makes for Athena.

CREATE OR REPLACE VIEW current_parts AS
SELECT report, run, dataset, part, row_count
FROM read_json('current/*.json', format = 'newline_delimited', columns = {
    report: 'VARCHAR', run: 'VARCHAR', dataset: 'VARCHAR', part: 'VARCHAR', row_count: 'BIGINT'
});
CREATE OR REPLACE VIEW usage_files AS
SELECT * FROM read_parquet('tables/usage/*/*/*.parquet', hive_partitioning = false);
CREATE OR REPLACE VIEW invoice_line_files AS
SELECT * FROM read_parquet('tables/invoice_lines/*/*/*.parquet', hive_partitioning = false);
CREATE OR REPLACE VIEW backlog_files AS
SELECT * FROM read_parquet('tables/backlog/*/*/*.parquet', hive_partitioning = false);

CREATE OR REPLACE VIEW usage_by_day AS
SELECT account, resource, kind, day, files.month, currency,
    CAST(SUM(count) AS BIGINT) AS count, CAST(SUM(bytes) AS BIGINT) AS bytes,
    SUM(charge) AS charge
FROM usage_files files JOIN current_parts parts
    ON parts.dataset = 'usage' AND parts.run = files.run AND parts.part = files.month
GROUP BY account, resource, kind, day, files.month, currency;

CREATE OR REPLACE VIEW invoices_by_month AS
SELECT account, month, currency, resource, kind, correction, count, bytes, amount
FROM invoice_line_files files JOIN current_parts parts
    ON parts.dataset = 'invoice_lines' AND parts.run = files.run AND parts.part = files.month;

CREATE OR REPLACE VIEW backlog_by_day AS
SELECT day, at_ms, account, kind, name, id, active, inactive, delayed, rewindable, dead, expired,
    bytes, oldest_age_seconds, p95_age_seconds, retrying
FROM (
    SELECT files.*, ROW_NUMBER() OVER (PARTITION BY id, day ORDER BY at_ms DESC) AS place
    FROM backlog_files files JOIN current_parts parts
        ON parts.dataset = 'backlog' AND parts.run = files.run AND parts.part = files.kept_in
) points
WHERE place = 1;
