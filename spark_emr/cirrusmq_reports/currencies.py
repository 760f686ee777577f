"""The minor units of currencies, by ISO 4217, and rounding to them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

_PLACES = {
    **dict.fromkeys(
        ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI"), 0
    ),
    **dict.fromkeys(("VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
_MAX_PLACES = 2


def minor_places(currency: str) -> int:
    """Returns the decimal places of a currency's smallest unit."""
    return _PLACES.get(currency, _MAX_PLACES)


def rounded(amount: Decimal, currency: str) -> Decimal:
    """Returns the amount in whole minor units, rounded half away from zero."""
    unit = Decimal(1).scaleb(-minor_places(currency))
    value = amount.quantize(unit, ROUND_HALF_UP)
    return value if value else abs(value)


def shown(amount: Decimal, currency: str) -> str:
    """Returns the amount with all its decimals, and at least the minor unit's."""
    places = max(minor_places(currency), -int(amount.normalize().as_tuple().exponent))
    text = f"{amount:.{places}f}"
    return text.removeprefix("-") if not amount else text
