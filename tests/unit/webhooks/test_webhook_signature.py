"""Signatures: as the specification's own example and its library have them."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from cirrusmq.webhooks import requests

# The example of the Standard Webhooks specification, also used by its libraries' tests.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP_S = 1_614_265_330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_example_has_the_published_signature() -> None:
    assert requests.sign(SECRET, ID, TIMESTAMP_S, BODY) == SIGNATURE
    assert requests.signed_headers([SECRET], ID, TIMESTAMP_S, BODY) == {
        "webhook-id": ID,
        "webhook-timestamp": str(TIMESTAMP_S),
        "webhook-signature": SIGNATURE,
    }


@pytest.mark.parametrize("seed", range(20))
def test_the_library_computes_the_same(seed: int) -> None:
    randomness = random.Random(seed)
    secret = requests.secret_of(randomness.randbytes(24))
    body = "".join(randomness.choice('aé∑😀"\n{}.') for _ in range(randomness.randrange(200)))
    moment = randomness.randrange(2**32)
    expected = Webhook(secret).sign(f"m{seed}", datetime.fromtimestamp(moment, UTC), body)
    assert requests.sign(secret, f"m{seed}", moment, body.encode()) == expected


def test_the_library_accepts_our_headers_and_no_others() -> None:
    now_s = int(datetime.now(UTC).timestamp())
    secret = requests.secret_of(random.SystemRandom().randbytes(24))
    headers = requests.signed_headers([secret], ID, now_s, BODY)
    assert Webhook(secret).verify(BODY, headers) == {"test": 2432232314}
    for other in (b"{}", BODY + b" "):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(other, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(requests.secret_of(random.SystemRandom().randbytes(24))).verify(BODY, headers)


def test_a_secret_is_24_bytes_and_new_each_time() -> None:
    randomness = random.Random(1)
    made = [requests.secret_of(randomness.randbytes(24)) for _ in range(50)]
    assert len(set(made)) == 50
    for secret in made:
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret[6:], validate=True)) == 24
