"""The columns of FOCUS 1.4 as its specification lists them, and what it allows in them.

Of each column: its level, whether it may be null, and its allowed values. Read in June's edition of
the specification; columns of later drafts (of principals and credentials) are not in it. A column
of the level `conditional` has the condition under which it must be there.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """What the specification says of a column."""

    level: str
    nullable: bool
    allowed: frozenset[str] = frozenset()
    condition: str = ""


CATEGORIES = frozenset({"Usage", "Purchase", "Tax", "Credit", "Adjustment"})
MET = frozenset(
    {
        "usage measurement", "negotiated pricing", "payable invoices", "list unit prices",
        "regions", "provisioned resources", "unit pricing", "tags",
    }
)  # fmt: skip
"""The conditions that this service meets; it has none of the other things."""


def _must(*, nullable: bool = False, allowed: frozenset[str] = frozenset()) -> Column:
    return Column("mandatory", nullable, allowed)


def _if(condition: str, *, nullable: bool = True) -> Column:
    return Column("conditional", nullable, condition=condition)


COST_AND_USAGE = {
    "AllocatedMethodDetails": Column("recommended", True, condition="split cost allocation"),
    "AllocatedMethodId": _if("split cost allocation"),
    "AllocatedResourceId": _if("split cost allocation"),
    "AllocatedResourceName": _if("split cost allocation"),
    "AllocatedTags": _if("split cost allocation"),
    "AvailabilityZone": Column("recommended", True, condition="availability zones"),
    "BilledCost": _must(),
    "BillingAccountId": _must(),
    "BillingAccountName": _must(nullable=True),
    "BillingAccountType": _if("multiple billing account types", nullable=False),
    "BillingCurrency": _must(),
    "BillingPeriodEnd": _must(),
    "BillingPeriodStart": _must(),
    "CapacityReservationId": _if("capacity reservations"),
    "CapacityReservationStatus": _if("capacity reservations"),
    "ChargeCategory": _must(allowed=CATEGORIES),
    "ChargeClass": _must(nullable=True, allowed=frozenset({"Correction"})),
    "ChargeDescription": _must(nullable=True),
    "ChargeFrequency": Column(
        "recommended", False, frozenset({"One-Time", "Recurring", "Usage-Based"})
    ),
    "ChargePeriodEnd": _must(),
    "ChargePeriodStart": _must(),
    "CommitmentDiscountCategory": _if("commitment discounts"),
    "CommitmentDiscountId": _if("commitment discounts"),
    "CommitmentDiscountName": _if("commitment discounts"),
    "CommitmentDiscountQuantity": _if("commitment discounts"),
    "CommitmentDiscountStatus": _if("commitment discounts"),
    "CommitmentDiscountType": _if("commitment discounts"),
    "CommitmentDiscountUnit": _if("commitment discounts"),
    "CommitmentProgramEligibilityDetails": _if("commitment programs"),
    "ConsumedQuantity": _if("usage measurement"),
    "ConsumedUnit": _if("usage measurement"),
    "ContractApplied": _if("contract commitments"),
    "ContractedCost": _must(),
    "ContractedUnitPrice": _if("negotiated pricing"),
    "EffectiveCost": _must(),
    "HostProviderName": _must(),
    "InvoiceDetailId": _if("payable invoices"),
    "InvoiceId": _if("payable invoices"),
    "InvoiceIssuerName": _must(),
    "ListCost": _must(),
    "ListUnitPrice": _if("list unit prices"),
    "PricingCategory": _if("multiple pricing categories"),
    "PricingCurrency": _if("pricing and billing currency differences", nullable=False),
    "PricingCurrencyContractedUnitPrice": _if("pricing and billing currency differences"),
    "PricingCurrencyEffectiveCost": _if("pricing and billing currency differences", nullable=False),
    "PricingCurrencyListUnitPrice": _if("pricing and billing currency differences"),
    "PricingQuantity": _must(nullable=True),
    "PricingUnit": _must(nullable=True),
    "RegionId": _if("regions"),
    "RegionName": _if("regions"),
    "ResourceId": _if("provisioned resources"),
    "ResourceName": _if("provisioned resources"),
    "ResourceType": _if("provisioned resources"),
    "ServiceCategory": _must(allowed=frozenset({"Integration"})),
    "ServiceName": _must(),
    "ServiceProviderName": _must(),
    "ServiceSubcategory": Column("recommended", False, frozenset({"Messaging"})),
    "SkuId": _if("unit pricing"),
    "SkuMeter": _if("unit pricing"),
    "SkuPriceDetails": _if("unit pricing"),
    "SkuPriceId": _if("unit pricing"),
    "SubAccountId": _if("sub accounts"),
    "SubAccountName": _if("sub accounts"),
    "SubAccountType": _if("multiple sub account types"),
    "Tags": _if("tags"),
}
"""ServiceCategory and its subcategory have many more allowed values: these are the pair of ours."""

INVOICE_DETAIL = {
    "BilledCost": _must(),
    "BillingAccountId": _must(),
    "BillingCurrency": _must(),
    "BillingPeriodEnd": _must(),
    "BillingPeriodStart": _must(),
    "ChargeCategory": _must(allowed=CATEGORIES),
    "InvoiceDetailCreated": _must(),
    "InvoiceDetailDescription": _must(nullable=True),
    "InvoiceDetailGrain": _must(nullable=True),
    "InvoiceDetailId": _must(),
    "InvoiceDetailLastUpdated": _must(),
    "InvoiceId": _must(),
    "InvoiceIssueDate": _must(nullable=True),
    "InvoiceIssueStatus": _must(allowed=frozenset({"Open", "Issued", "Voided"})),
    "InvoiceIssuerName": _must(),
    "PaymentCurrency": _must(),
    "PaymentCurrencyBilledCost": _if("payment in other currencies", nullable=False),
    "PaymentCurrencyInvoiceDetailId": _if("payment in other currencies", nullable=False),
    "PaymentDueDate": _must(nullable=True),
    "PaymentTerms": _must(),
    "PurchaseOrderNumber": _if("purchase orders"),
    "ReferenceInvoiceId": _must(),
}

BILLING_PERIOD = {
    "BillingPeriodCreated": _must(),
    "BillingPeriodEnd": _must(),
    "BillingPeriodLastUpdated": _must(),
    "BillingPeriodStart": _must(),
    "BillingPeriodStatus": _must(allowed=frozenset({"Open", "Closed"})),
    "InvoiceIssuerName": _must(),
}


def is_needed(column: Column) -> bool:
    """Whether a view of this service must have the column."""
    return not column.condition or column.condition in MET
