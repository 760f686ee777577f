-- The reports' tables for DuckDB, in the folder that --output named; run `duckdb` there and `.read`
-- this file. The views after the files are those that the template makes for Athena.

CREATE OR REPLACE VIEW current_parts AS
SELECT report, run, dataset, part, row_count, sequence
FROM read_json('current/*.json', format = 'newline_delimited', columns = {
    report: 'VARCHAR', run: 'VARCHAR', dataset: 'VARCHAR', part: 'VARCHAR', row_count: 'BIGINT',
    sequence: 'BIGINT'
});
CREATE OR REPLACE VIEW ledger_files AS
SELECT record, content, written_ms, account, resource, resource_id, kind, hour, count,
    bytes, attempts, table_id, export, shown_ms, written_day, run
FROM read_parquet(
    'tables/ledger/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW usage_files AS
SELECT account, resource, resource_id, kind, hour, day, month, count, bytes, run
FROM read_parquet(
    'tables/usage/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW document_files AS
SELECT number, ordinal, account, type, month, closed, refers_to, currency, sum, rounding,
    total, issued, run
FROM read_parquet(
    'tables/documents/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW document_line_files AS
SELECT account, month, used_month, currency, resource, resource_id, kind, tier, price_date,
    quantity, unit_price, paid, charge, count, bytes, reason, number, closed, run
FROM read_parquet(
    'tables/document_lines/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW open_line_files AS
SELECT account, month, used_month, currency, resource, resource_id, kind, tier, price_date,
    quantity, unit_price, paid, charge, count, bytes, reason, kept_in, run
FROM read_parquet(
    'tables/open_lines/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW backlog_files AS
SELECT * FROM read_parquet('tables/backlog/*/*/*.parquet', hive_partitioning = false);

CREATE OR REPLACE VIEW usage_by_day AS
SELECT account, resource, kind, day, files.month,
    CAST(SUM(count) AS BIGINT) AS count, CAST(SUM(bytes) AS BIGINT) AS bytes
FROM usage_files files JOIN current_parts parts
    ON parts.dataset = 'usage' AND parts.sequence > 0 AND parts.run = files.run
    AND parts.part = files.month
GROUP BY account, resource, kind, day, files.month;

CREATE OR REPLACE VIEW invoices_by_month AS
SELECT account, month, currency, number, resource, kind,
    CASE WHEN used_month <> month THEN used_month END AS correction, count, bytes, charge AS amount
FROM document_line_files files JOIN current_parts parts
    ON parts.dataset = 'document_lines' AND parts.run = files.run AND parts.part = files.closed
UNION ALL
SELECT account, month, currency, CAST(NULL AS VARCHAR) AS number, resource, kind,
    CASE WHEN used_month <> month THEN used_month END AS correction, count, bytes, charge AS amount
FROM open_line_files files JOIN current_parts parts
    ON parts.dataset = 'open_lines' AND parts.run = files.run AND parts.part = files.kept_in;

CREATE OR REPLACE VIEW documents_by_month AS
SELECT account, month, number, type, refers_to, currency, sum, rounding, total, issued
FROM document_files files JOIN current_parts parts
    ON parts.dataset = 'documents' AND parts.run = files.run AND parts.part = files.closed;

CREATE OR REPLACE VIEW backlog_by_day AS
SELECT day, at_ms, account, kind, name, id, active, inactive, delayed, rewindable, dead, expired,
    bytes, oldest_age_seconds, p95_age_seconds, retrying
FROM (
    SELECT files.*, ROW_NUMBER() OVER (PARTITION BY id, day ORDER BY at_ms DESC) AS place
    FROM backlog_files files JOIN current_parts parts
        ON parts.dataset = 'backlog' AND parts.run = files.run AND parts.part = files.kept_in
) points
WHERE place = 1;
