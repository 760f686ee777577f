"""Issuer and buyer of bills, for views of analysts over rows without a document: from the card."""

from __future__ import annotations

from typing import Any

from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import iso_day

PARTY_SCHEMA = (
    "account STRING, name STRING, issuer STRING, service STRING, host STRING, region STRING, "
    "terms STRING, made STRING"
)
"""`account`: a buyer with a name, or "" for the seller, whose row always exists. `made`: the
run's day."""
_SERVICE, _CLOUD, _TERMS = "CirrusMQ", "AWS", "on receipt"


def party_rows(card: RateCard, region: str | None, made_ms: int) -> list[tuple[Any, ...]]:
    """Returns the rows of PARTY_SCHEMA. `region`: AWS region, or None for the seller's machine."""
    seller = card.seller
    issuer = seller.get("name", _SERVICE)
    common = (
        issuer,
        seller.get("service", _SERVICE),
        _CLOUD if region else issuer,
        region,
        seller.get("payment_terms", _TERMS),
        iso_day(made_ms),
    )
    names = {"": issuer, **{account: of.get("name") for account, of in card.buyers.items()}}
    return [(account, name, *common) for account, name in names.items() if name]
