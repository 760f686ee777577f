-- The reports' tables for DuckDB, in the folder that --output named; run `duckdb` there and `.read`
-- this file. The views of files are made by `make reports-tables`, and so are the tables and views
-- that the template has for Athena: those of files from the jobs' schemas, the others from this file.

CREATE OR REPLACE VIEW current_parts AS
SELECT report, run, dataset, part, row_count, sequence
FROM read_json('current/*.json', format = 'newline_delimited', columns = {
    report: 'VARCHAR', run: 'VARCHAR', dataset: 'VARCHAR', part: 'VARCHAR', row_count: 'BIGINT',
    sequence: 'BIGINT'
});
-- files begin
CREATE OR REPLACE VIEW ledger_files AS
SELECT record, content, written_ms, account, resource, resource_id, kind, hour, count, bytes,
    attempts, table_id, export, shown_ms, written_day, run
FROM read_parquet(
    'tables/ledger/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);

CREATE OR REPLACE VIEW usage_files AS
SELECT account, resource, resource_id, kind, hour, day, month, count, bytes, run
FROM read_parquet(
    'tables/usage/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);

CREATE OR REPLACE VIEW document_files AS
SELECT number, ordinal, account, type, month, closed, refers_to, currency, sum, rounding, total,
    issued, tax, tax_name, tax_percent, issuer, buyer, terms, run
FROM read_parquet(
    'tables/documents/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);

CREATE OR REPLACE VIEW document_line_files AS
SELECT account, month, used_month, currency, resource, resource_id, kind, tier, price_date,
    quantity, unit_price, paid, charge, count, bytes, reason, tags, number, line, closed, run
FROM read_parquet(
    'tables/document_lines/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);

CREATE OR REPLACE VIEW open_line_files AS
SELECT account, month, used_month, currency, resource, resource_id, kind, tier, price_date,
    quantity, unit_price, paid, charge, count, bytes, reason, tags, used_day, kept_in, run
FROM read_parquet(
    'tables/open_lines/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);

CREATE OR REPLACE VIEW party_files AS
SELECT account, name, issuer, service, host, region, terms, made, kept_in, run
FROM read_parquet(
    'tables/parties/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
-- files end
CREATE OR REPLACE VIEW backlog_files AS
SELECT * FROM read_parquet(
    'tables/backlog/*/*/*.parquet', hive_partitioning = false, union_by_name = true
);
CREATE OR REPLACE VIEW backlog_label_files AS
SELECT * FROM read_parquet('tables/backlog_labels/*/*/*.parquet', hive_partitioning = false);

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
    CASE WHEN used_month <> month THEN used_month END AS correction,
    CAST(SUM(count) AS BIGINT) AS count, CAST(SUM(bytes) AS BIGINT) AS bytes,
    CAST(SUM(charge) AS DECIMAL(38,19)) AS amount
FROM open_line_files files JOIN current_parts parts
    ON parts.dataset = 'open_lines' AND parts.run = files.run AND parts.part = files.kept_in
GROUP BY account, month, currency, used_month, resource, resource_id, kind, tier, price_date,
    unit_price, paid, reason;

CREATE OR REPLACE VIEW documents_by_month AS
SELECT account, month, number, type, refers_to, currency, sum, rounding, tax_name, tax_percent, tax,
    total, issued
FROM document_files files JOIN current_parts parts
    ON parts.dataset = 'documents' AND parts.run = files.run AND parts.part = files.closed;

-- The datasets of FOCUS 1.4 (FinOps Open Cost and Usage Specification).

CREATE OR REPLACE VIEW billed_lines AS
WITH bills AS (
    SELECT files.*
    FROM document_files files JOIN current_parts parts
        ON parts.dataset = 'documents' AND parts.run = files.run AND parts.part = files.closed
), parties AS (
    SELECT files.*
    FROM party_files files JOIN current_parts parts
        ON parts.dataset = 'parties' AND parts.run = files.run AND parts.part = files.kept_in
), every_line AS (
    SELECT account, closed AS period, used_month, currency, resource, resource_id, kind, tier,
        price_date, quantity, unit_price, paid, charge, reason, tags, number, line,
        CAST(NULL AS VARCHAR) AS used_day
    FROM document_line_files files JOIN current_parts parts
        ON parts.dataset = 'document_lines' AND parts.run = files.run
        AND parts.part = files.closed
    UNION ALL
    SELECT account, month AS period, used_month, currency, resource, resource_id, kind, tier,
        price_date, quantity, unit_price, paid, charge, reason, tags,
        CAST(NULL AS VARCHAR) AS number, CAST(NULL AS INTEGER) AS line, used_day
    FROM open_line_files files JOIN current_parts parts
        ON parts.dataset = 'open_lines' AND parts.run = files.run AND parts.part = files.kept_in
)
SELECT every_line.*, bills.refers_to, bills.issued, bills.tax_name,
    COALESCE(bills.issuer, seller.issuer) AS issuer, seller.service, seller.host, seller.region,
    COALESCE(bills.terms, seller.terms) AS terms, seller.made,
    COALESCE(bills.buyer, buyer.name) AS buyer,
    CASE WHEN every_line.tier IS NOT NULL THEN 'Usage' WHEN every_line.kind = 'tax' THEN 'Tax'
        WHEN every_line.kind = 'credit' THEN 'Credit' ELSE 'Adjustment' END AS category,
    CASE
        WHEN bills.month <> bills.closed THEN 'Correction'
        WHEN every_line.used_month <> every_line.period AND earlier.month IS NOT NULL
            THEN 'Correction'
    END AS class,
    CAST(CASE WHEN every_line.kind = 'kept' THEN every_line.quantity * 0.000000001
        ELSE every_line.quantity * 0.000001 END AS DECIMAL(38,9)) AS priced_quantity,
    CAST(CASE WHEN every_line.kind = 'kept' THEN every_line.unit_price * 1000000000
        ELSE every_line.unit_price * 1000000 END AS DECIMAL(30,15)) AS list_price,
    CASE WHEN every_line.kind = 'kept' THEN 'GB-Hours'
        WHEN every_line.kind = 'rewindable' THEN '1000000 Message-Hours'
        ELSE '1000000 Messages' END AS pricing_unit,
    CASE WHEN every_line.kind = 'kept' THEN 'GB-Hours'
        WHEN every_line.kind = 'rewindable' THEN 'Message-Hours' ELSE 'Messages' END AS unit,
    CASE WHEN every_line.tier IS NOT NULL THEN every_line.kind || '/' || every_line.price_date
        || '/' || CAST(every_line.tier AS VARCHAR) END AS price_id,
    every_line.resource = '' OR every_line.resource LIKE 'adjustment:%' AS of_no_resource
FROM every_line
LEFT JOIN bills ON bills.number = every_line.number
LEFT JOIN (
    SELECT DISTINCT account, month, currency, number FROM bills WHERE month = closed
) earlier
    ON earlier.account = every_line.account AND earlier.month = every_line.used_month
    AND earlier.currency = every_line.currency
    AND earlier.number <> COALESCE(every_line.number, '')
LEFT JOIN parties buyer ON buyer.account = every_line.account
CROSS JOIN (SELECT * FROM parties WHERE account = '') seller;

CREATE OR REPLACE VIEW focus_cost_and_usage AS
SELECT
    charge AS BilledCost,
    account AS BillingAccountId,
    buyer AS BillingAccountName,
    currency AS BillingCurrency,
    CAST(period || '-01' AS TIMESTAMP) + INTERVAL '1' MONTH AS BillingPeriodEnd,
    CAST(period || '-01' AS TIMESTAMP) AS BillingPeriodStart,
    category AS ChargeCategory,
    class AS ChargeClass,
    CASE WHEN kind = 'tax' THEN COALESCE(tax_name, kind)
        WHEN reason IS NOT NULL THEN kind || ': ' || reason
        WHEN tier IS NOT NULL THEN kind || ', tier ' || CAST(tier AS VARCHAR)
        ELSE kind END AS ChargeDescription,
    CASE WHEN category = 'Usage' THEN 'Usage-Based' ELSE 'One-Time' END AS ChargeFrequency,
    CASE WHEN used_day IS NULL THEN CAST(used_month || '-01' AS TIMESTAMP) + INTERVAL '1' MONTH
        ELSE CAST(used_day AS TIMESTAMP) + INTERVAL '1' DAY END AS ChargePeriodEnd,
    CAST(COALESCE(used_day, used_month || '-01') AS TIMESTAMP) AS ChargePeriodStart,
    CAST(CASE WHEN tier IS NULL THEN NULL WHEN kind = 'kept' THEN priced_quantity
        ELSE quantity END AS DECIMAL(38,9)) AS ConsumedQuantity,
    CASE WHEN tier IS NOT NULL THEN unit END AS ConsumedUnit,
    charge AS ContractedCost,
    CAST(list_price * paid AS DECIMAL(38,19)) AS ContractedUnitPrice,
    charge AS EffectiveCost,
    host AS HostProviderName,
    CAST(line AS VARCHAR) AS InvoiceDetailId,
    number AS InvoiceId,
    issuer AS InvoiceIssuerName,
    CASE WHEN tier IS NULL THEN charge
        ELSE CAST(unit_price * quantity AS DECIMAL(38,19)) END AS ListCost,
    list_price AS ListUnitPrice,
    priced_quantity AS PricingQuantity,
    CASE WHEN tier IS NOT NULL THEN pricing_unit END AS PricingUnit,
    region AS RegionId,
    region AS RegionName,
    CASE WHEN NOT of_no_resource THEN resource_id END AS ResourceId,
    CASE WHEN NOT of_no_resource AND resource_id IS NOT NULL
        THEN SUBSTR(resource, STRPOS(resource, ':') + 1) END AS ResourceName,
    CASE WHEN NOT of_no_resource AND resource_id IS NOT NULL
        THEN SUBSTR(resource, 1, STRPOS(resource, ':') - 1) END AS ResourceType,
    'Integration' AS ServiceCategory,
    service AS ServiceName,
    issuer AS ServiceProviderName,
    'Messaging' AS ServiceSubcategory,
    CASE WHEN tier IS NOT NULL THEN kind END AS SkuId,
    CASE WHEN tier IS NOT NULL THEN kind END AS SkuMeter,
    CASE WHEN tier IS NOT NULL
        THEN '{"x_Tier":' || CAST(tier AS VARCHAR) || '}' END AS SkuPriceDetails,
    price_id AS SkuPriceId,
    tags AS Tags,
    CASE WHEN resource LIKE 'adjustment:%' THEN SUBSTR(resource, 12) END AS x_AdjustmentId
FROM billed_lines;

CREATE OR REPLACE VIEW focus_invoice_detail AS
SELECT
    charge AS BilledCost,
    account AS BillingAccountId,
    currency AS BillingCurrency,
    CAST(period || '-01' AS TIMESTAMP) + INTERVAL '1' MONTH AS BillingPeriodEnd,
    CAST(period || '-01' AS TIMESTAMP) AS BillingPeriodStart,
    category AS ChargeCategory,
    CAST(issued AS TIMESTAMP) AS InvoiceDetailCreated,
    CASE WHEN reason IS NOT NULL THEN kind || ': ' || reason ELSE kind END
        AS InvoiceDetailDescription,
    CASE WHEN tier IS NULL THEN '{"x_Kind":"' || kind || '"}'
        WHEN of_no_resource OR resource_id IS NULL THEN '{"SkuPriceId":"' || price_id || '"}'
        ELSE '{"ResourceId":"' || resource_id || '","SkuPriceId":"' || price_id || '"}' END
        AS InvoiceDetailGrain,
    CAST(line AS VARCHAR) AS InvoiceDetailId,
    CAST(issued AS TIMESTAMP) AS InvoiceDetailLastUpdated,
    number AS InvoiceId,
    CAST(issued AS TIMESTAMP) AS InvoiceIssueDate,
    'Issued' AS InvoiceIssueStatus,
    issuer AS InvoiceIssuerName,
    currency AS PaymentCurrency,
    CAST(NULL AS TIMESTAMP) AS PaymentDueDate,
    terms AS PaymentTerms,
    COALESCE(refers_to, number) AS ReferenceInvoiceId
FROM billed_lines
WHERE number IS NOT NULL;

CREATE OR REPLACE VIEW focus_billing_period AS
SELECT
    CAST(period || '-01' AS TIMESTAMP) AS BillingPeriodCreated,
    CAST(period || '-01' AS TIMESTAMP) + INTERVAL '1' MONTH AS BillingPeriodEnd,
    CAST(COALESCE(MAX(issued), MAX(made)) AS TIMESTAMP) AS BillingPeriodLastUpdated,
    CAST(period || '-01' AS TIMESTAMP) AS BillingPeriodStart,
    CASE WHEN MAX(number) IS NULL THEN 'Open' ELSE 'Closed' END AS BillingPeriodStatus,
    issuer AS InvoiceIssuerName
FROM billed_lines
GROUP BY period, issuer;

CREATE OR REPLACE VIEW backlog_by_day AS
SELECT day, at_ms, account, kind, name, id, labels, active, inactive, delayed, rewindable, dead,
    expired, bytes, oldest_age_seconds, p50_age_seconds, p95_age_seconds, p99_age_seconds,
    dead_max_receives, dead_max_age, dead_retries, dead_expired, dead_too_large, dead_consumer,
    dead_other, retrying
FROM (
    SELECT files.*, ROW_NUMBER() OVER (PARTITION BY id, day ORDER BY at_ms DESC) AS place
    FROM backlog_files files JOIN current_parts parts
        ON parts.dataset = 'backlog' AND parts.run = files.run AND parts.part = files.kept_in
) points
WHERE place = 1;

CREATE OR REPLACE VIEW backlog_labels_by_day AS
SELECT day, at_ms, account, label, value, resources, active, inactive, delayed, rewindable, dead,
    expired, bytes, oldest_age_seconds, p50_age_seconds, p95_age_seconds, p99_age_seconds,
    dead_max_receives, dead_max_age, dead_retries, dead_expired, dead_too_large, dead_consumer,
    dead_other
FROM (
    SELECT files.*, ROW_NUMBER() OVER (
        PARTITION BY account, label, value, day ORDER BY at_ms DESC) AS place
    FROM backlog_label_files files JOIN current_parts parts
        ON parts.dataset = 'backlog_labels' AND parts.run = files.run AND parts.part = files.kept_in
) points
WHERE place = 1;
