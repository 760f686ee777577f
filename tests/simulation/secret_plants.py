"""Faults that do harm only while environments know different generations of the secret."""

from __future__ import annotations

import pytest
from tests.simulation.plants import plant

from cirrusmq.runtime import secret
from cirrusmq.runtime.secret import Secret
from cirrusmq.subscriptions import confirmations
from cirrusmq_local.judging.scenario import TURNED_OVER


@plant(TURNED_OVER, found_by=355)
def environments_forget_the_earlier_generation(patch: pytest.MonkeyPatch) -> None:
    """Whoever knows the new generation signs with it and accepts no other."""
    patch.setattr(Secret, "key_at", lambda self, _: self.generations().key_bytes)
    patch.setattr(Secret, "accepted_keys", lambda self: [self.generations().key_bytes])


@plant(TURNED_OVER, found_by=420)
def a_new_generation_signs_at_once(patch: pytest.MonkeyPatch) -> None:
    """Environments that have not read it yet refuse what others sign with it."""

    def newest_first(self: Secret) -> list[bytes]:
        held = self.generations()
        previous = [] if held.previous is None else [held.previous.key_bytes]
        return [held.key_bytes, *previous]

    patch.setattr(Secret, "signing_key", lambda self: self.generations().key_bytes)
    patch.setattr(Secret, "accepted_keys", newest_first)


@plant(TURNED_OVER, found_by=214)
def the_secret_is_read_once(patch: pytest.MonkeyPatch) -> None:
    """An environment that lives long never learns of a new generation."""
    patch.setattr(secret, "READ_AGAIN_MS", 1 << 50)


@plant(TURNED_OVER, found_by=441)
def attempts_derive_from_the_newest_generation(patch: pytest.MonkeyPatch) -> None:
    """A repeat in an environment that does not know it yet finds nothing of its first try."""
    key_at = Secret.key_at
    patch.setattr(Secret, "signing_key", lambda self: key_at(self, self._clock.now_ms()))
    patch.setattr(Secret, "key_at", lambda self, _: self.generations().key_bytes)


@plant(TURNED_OVER, found_by=135)
def posts_have_the_newest_signature_alone(patch: pytest.MonkeyPatch) -> None:
    """A subscriber that has not taken the new secret yet cannot check them."""
    signing = confirmations.signing_secrets
    patch.setattr(confirmations, "signing_secrets", lambda *given: signing(*given)[:1])
