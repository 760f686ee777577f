"""Who bills whom, as the views for analysts name it where no document does: rows from the card."""

from __future__ import annotations

from typing import Any

from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.times import iso_day

PARTY_SCHEMA = (
    "account STRING, name STRING, issuer STRING, service STRING, host STRING, region STRING, "
    "terms STRING, made STRING"
)
"""`account`: of a buyer with a name; "" = the seller, in a row that is always there. `made`: the
run's day."""
_SERVICE, _CLOUD, _TERMS = "CirrusMQ", "AWS", "on receipt"


def party_rows(card: RateCard, region: str | None, made_ms: int) -> list[tuple[Any, ...]]:
    """The rows of PARTY_SCHEMA. `region`: of the cloud; None = a machine of the seller's own."""
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
